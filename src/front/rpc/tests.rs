//! Lines and the calls that they become.

use super::answers::{OutputAnswer, OutputNote, OutputRest};
use super::call::RpcCall;
use super::client::HostLine;
use super::error::{BAD_PARAMS, ERRORS, INVALID_REQUEST, PARSE_ERROR, UNKNOWN_METHOD};
use super::events::{EVENT_ROWS, event};
use super::methods::{ALIASES, Call, METHOD_ROWS, METHODS};
use super::params::Encoding;
use super::reply::{RequestId, put_chunks, put_event, put_output, put_result};
use super::shape::Shape;
use super::*;
use crate::core::entry::Stream;
use crate::front::budget::Budget;
use crate::front::language::Language;
use serde_json::Value;

fn error(line: &str) -> (i32, String) {
    let error = RpcCall::read(line.as_bytes()).unwrap().call.unwrap_err();
    (error.code, error.message)
}

#[test]
fn each_wrong_line_gets_one_error_that_names_the_mistake() {
    for (line, code, words) in [
        ("{", PARSE_ERROR, "not JSON"),
        ("[]", INVALID_REQUEST, "batches"),
        ("7", INVALID_REQUEST, "object"),
        (r#"{"id":1}"#, INVALID_REQUEST, "method: missing"),
        (r#"{"id":1,"method":7}"#, INVALID_REQUEST, "method"),
        (r#"{"id":[],"method":"hello"}"#, INVALID_REQUEST, "id"),
        (r#"{"id":12345678901234567890123,"method":"hello"}"#, INVALID_REQUEST, "id: a number that"),
        (r#"{"jsonrpc":"1.0","method":"hello"}"#, INVALID_REQUEST, "jsonrpc"),
        (r#"{"id":1,"method":"hello","run":1}"#, INVALID_REQUEST, "run: "),
        (r#"{"id":1,"method":"dance"}"#, UNKNOWN_METHOD, "\"dance\""),
        (r#"{"id":1,"method":"hello","params":[1]}"#, BAD_PARAMS, "params"),
        (r#"{"id":1,"method":"exec.status"}"#, BAD_PARAMS, "`run`"),
        (r#"{"id":1,"method":"exec.status","params":{"run":"x"}}"#, BAD_PARAMS, "run: invalid type"),
        (r#"{"id":1,"method":"exec.status","params":{"run":1,"colour":2}}"#, BAD_PARAMS, "`colour`"),
        (r#"{"id":1,"method":"exec.run","params":{"command":"a","timeout":"1"}}"#, BAD_PARAMS, "timeout: invalid type"),
        (r#"{"id":1,"method":"exec.write","params":{"run":1,"base64":"!"}}"#, BAD_PARAMS, "base64: not base64"),
        (r#"{"id":1,"method":"exec.wait","params":{"run":1,"for":"rain"}}"#, BAD_PARAMS, "for: unknown variant"),
    ] {
        let (seen, message) = error(line);
        assert!(seen == code && message.contains(words), "{line}: {seen} {message}");
    }
    assert!(RpcCall::read(b"  ").is_none());
}

/// Words of this program's source say nothing to a client.
#[test]
fn an_error_names_no_type_of_this_program() {
    for (method, params) in [
        ("session.create", r#""dir":"/a","ports":VALUE"#),
        ("exec.signal", r#""run":1,"signal":VALUE"#),
        ("exec.run", r#""command":"a","size":VALUE"#),
        ("exec.run", r#""command":"a","limits":VALUE"#),
        ("exec.run", r#""command":"a","env":VALUE"#),
        ("exec.run", r#""command":"a","mode":VALUE"#),
        ("exec.run", r#""command":"a","notify":[VALUE]"#),
        ("events.subscribe", r#""runs":VALUE"#),
    ] {
        for value in ["true", "-1", "1.5", r#""""#, "{}", "[1,2,3]"] {
            let params = params.replace("VALUE", value);
            let line = format!(r#"{{"id":1,"method":"{method}","params":{{{params}}}}}"#);
            let Some(Err(refused)) = RpcCall::read(line.as_bytes()).map(|call| call.call) else { continue };
            let is_ours = |word: &str| ["struct", "enum", "variants", "untagged"].contains(&word);
            assert!(!refused.message.split(' ').any(is_ours), "{line}: {}", refused.message);
        }
    }
}

#[test]
fn the_first_line_tells_the_languages_apart() {
    for (line, is_rpc) in [
        (r#"{"method":"hello"}"#, true),
        (r#"{"jsonrpc":"2.0","id":"a","method":"exec.list","params":{}}"#, true),
        (r#"{"method":"hello","method":"hello"}"#, true),
        (r#"{"id":1,"method":null}"#, true),
        (r#"{"action":"ping"}"#, false),
        (r#"{"action":"ping","method":"hello"}"#, false),
        (r#"{"whoami":"Me","dir":"/","exec":["ls"]}"#, false),
        (r#"{"method":"#, false),
    ] {
        assert_eq!(RpcLanguage::is_spoken_in(line.as_bytes()), is_rpc, "{line}");
    }
}

#[test]
fn empty_lines_in_front_say_nothing_about_the_language() {
    for (blank, line, is_rpc) in [
        ("", r#"{"id":1,"method":"exec.list"}"#, true),
        ("\n \r\n\t", r#"{"id":1,"method":"exec.list"}"#, true),
        ("\n", "[]", true),
        ("\n", r#"{"action":"ping"}"#, false),
    ] {
        let mut language = Language::Undecided(Budget::new(1 << 20, 0));
        let (mut inbox, mut out) = (blank.as_bytes().to_vec(), Vec::new());
        assert!(language.take(&mut inbox, &mut out).unwrap().is_none(), "{blank:?}");
        assert!(matches!(language, Language::Undecided(_)), "{blank:?}");
        inbox.extend_from_slice(format!("{line}\n").as_bytes());
        let request = language.take(&mut inbox, &mut out).unwrap();
        assert!(request.is_some() || !out.is_empty(), "{blank:?} {line}");
        assert_eq!(matches!(language, Language::Rpc(_)), is_rpc, "{blank:?} {line}");
    }
}

/// Some languages have one type of numbers, and write a point behind all of them.
#[test]
fn integers_may_be_written_with_a_point() {
    let read = |params: &str| {
        let line = format!(r#"{{"id":1,"method":"exec.output","params":{params}}}"#);
        RpcCall::read(line.as_bytes()).unwrap().call.map(|call| format!("{call:?}"))
    };
    let plain = read(r#"{"run":1000,"after":0,"wait_ms":20}"#);
    assert_eq!(read(r#"{"run":1e3,"after":-0,"wait_ms":20.0}"#), plain);
    for wrong in [r#"{"run":1.5}"#, r#"{"run":-1.0}"#, r#"{"run":1e30}"#, r#"{"run":18446744073709551616}"#] {
        assert!(read(wrong).is_err_and(|error| error.code == BAD_PARAMS), "{wrong}");
    }
}

#[test]
fn a_signal_has_the_names_that_kill_knows() {
    use super::params::SignalName;
    let number = |name: &str| SignalName::Name(name.to_owned()).signal().map(|signal| signal.number());
    for (name, expected) in [
        ("INT", Some(2)),
        ("SIGINT", Some(2)),
        ("sigTerm", Some(15)),
        ("9", Some(9)),
        ("IOT", Some(6)),
        ("CLD", Some(17)),
        ("POLL", Some(29)),
        ("RTMIN", Some(34)),
        ("SIGRTMIN+30", Some(64)),
        ("RTMAX-1", Some(63)),
        ("RTMIN+31", None),
        ("RTMAX+1", None),
        ("0", None),
        ("65", None),
        ("", None),
        ("SIG", None),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
}

#[test]
fn every_method_is_known_by_its_name() {
    for &name in METHODS {
        let line = format!(r#"{{"id":1,"method":"{name}"}}"#);
        let call = RpcCall::read(line.as_bytes()).unwrap().call;
        assert!(call.is_ok() || call.unwrap_err().code == BAD_PARAMS, "{name}");
    }
}

fn names_of(params: &Shape) -> Vec<&'static str> {
    let Shape::Object(fields) = params else { panic!("{params:?}") };
    fields.iter().map(|field| field.name).collect()
}

#[test]
fn the_manual_has_every_method_with_its_parameters() {
    let page = include_str!("../../cli/help/protocol.md");
    for row in METHOD_ROWS {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{}` |", row.name))).expect("a row");
        let cell = line.split('|').nth(2).unwrap();
        let mut named: Vec<&str> = cell.split('`').skip(1).step_by(2).filter(|word| !word.starts_with('"')).collect();
        let mut taken = names_of(&(row.params)());
        if cell.contains("of a start") {
            named = taken.clone();
            taken.retain(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!("\"{name}\":")));
            assert!(taken.is_empty(), "no word of {taken:?}");
            taken.clone_from(&named);
        }
        named.sort_unstable();
        taken.sort_unstable();
        assert_eq!(named, taken, "{}", row.name);
    }
    assert!(ALIASES.iter().all(|(name, of)| page.contains(&format!("`{name}`")) && METHODS.contains(of)));
}

/// The rows of the table below this heading: the cells' texts without their marks.
fn table_of_manual(heading: &str) -> Vec<Vec<String>> {
    let page = include_str!("../../cli/help/protocol.md");
    let rows = page.lines().skip_while(|line| *line != heading).skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    rows.map(cells).collect()
}

#[test]
fn the_manual_has_every_event_and_every_error() {
    let word = |row: &events::EventRow| serde_json::to_value(row.word).unwrap().as_str().unwrap_or_default().to_owned();
    let events: Vec<[String; 2]> = EVENT_ROWS.iter().map(|row| [row.name.to_owned(), word(row)]).collect();
    let told: Vec<Vec<String>> = table_of_manual("| event | word | parameters |");
    assert_eq!(told.iter().map(|cells| cells[..2].to_vec()).collect::<Vec<_>>(), events);
    let errors: Vec<[String; 2]> = ERRORS.iter().map(|(code, text)| [code.to_string(), (*text).to_owned()]).collect();
    let told =
        table_of_manual("| code | the |").into_iter().map(|cells| [cells[0].clone(), format!("the {}", cells[1])]);
    assert_eq!(told.collect::<Vec<_>>(), errors);
}

/// Many programs write null for what they do not say.
#[test]
fn null_is_as_good_as_nothing_for_every_parameter_of_every_method() {
    let needed = serde_json::json!({"run": 7, "for": "exit", "signal": 2, "rows": 1, "cols": 1, "subscription": 1,
        "session": "a", "dir": "/"});
    let read = |method: &str, params: &serde_json::Map<String, Value>| {
        let line = serde_json::json!({"id": 1, "method": method, "params": params});
        RpcCall::read(line.to_string().as_bytes()).unwrap().call.map(|call| format!("{call:?}"))
    };
    let mut optional = 0;
    let others = ALIASES.iter().map(|(name, of)| (*name, METHOD_ROWS.iter().find(|row| row.name == *of).unwrap()));
    for (method, row) in METHOD_ROWS.iter().map(|row| (row.name, row)).chain(others) {
        let names = names_of(&(row.params)());
        let is_start = names.len() > 20;
        let given: serde_json::Map<String, Value> = names
            .iter()
            .filter(|name| !is_start && needed.get(**name).is_some())
            .map(|name| ((*name).to_owned(), needed[*name].clone()))
            .collect();
        for name in &names {
            let (mut without, mut null) = (given.clone(), given.clone());
            without.remove(*name);
            null.insert((*name).to_owned(), Value::Null);
            assert_eq!(read(method, &null), read(method, &without), "{method} {name}");
            optional += usize::from(read(method, &without).is_ok());
        }
        let mut unknown = given;
        unknown.insert("zeal".to_owned(), Value::Null);
        assert!(read(method, &unknown).is_err_and(|error| error.message.contains("unknown field `zeal`")), "{method}");
    }
    assert!(optional > 130, "{optional} of them are found");
}

#[test]
fn a_start_says_what_no_command_can_have() {
    let start = |params: &str| {
        let line = format!(r#"{{"id":1,"method":"exec.start","params":{params}}}"#);
        let Call::Start(params) = RpcCall::read(line.as_bytes()).unwrap().call.unwrap() else { panic!("a start") };
        params.request(Some("me"), "/srv")
    };
    for (params, words) in [
        ("{}", "command: missing"),
        (r#"{"command":"a","argv":["a"]}"#, "argv:"),
        (r#"{"argv":[]}"#, "argv:"),
        (r#"{"command":"a","dir":"relative"}"#, "dir:"),
        (r#"{"command":"a","timeout":-1}"#, "timeout"),
        (r#"{"command":"a","env":{"A=B":"c"}}"#, "envs"),
        (r#"{"command":"a","size":{"rows":1,"cols":1}}"#, "size:"),
        (r#"{"command":"a","mode":"pty","size":{"rows":0,"cols":1}}"#, "size:"),
        (r#"{"command":"a","restart":true}"#, "restart:"),
        (r#"{"command":"a","stdin":"x","stdin_base64":"eA=="}"#, "stdin_base64:"),
    ] {
        let error = start(params).unwrap_err();
        assert!(error.code == BAD_PARAMS && error.message.contains(words), "{params}: {}", error.message);
    }
    let request = start(r#"{"command":"echo $0"}"#).unwrap();
    assert_eq!((&*request.whoami, &*request.dir, request.exec.len()), ("me", "/srv", 3));
}

/// The host writes the answer to `exec.output`, and the event, by hand.
#[test]
fn an_answer_with_output_has_the_form_of_its_type() {
    let mut ring = ring::OutputRing::default();
    ring.push(Stream::Out, b"gone".as_slice().into(), 1);
    ring.push(Stream::Err, b"\"kept\"\n\xff".as_slice().into(), 2);
    ring.shed(limits::ENTRY_OVERHEAD_BYTES + 8);
    for (encoding, exit) in [(Encoding::Text, Some(3)), (Encoding::Base64, None)] {
        let rest = OutputRest::new(7, &ring, 0, Some(2), exit, exit.is_some());
        let (id, mut written, mut again) = (RequestId(5.into()), Vec::new(), Vec::new());
        put_chunks(&id, ring.after(0), encoding, &rest, &mut written);
        let Some(HostLine::Answer(5, answer)) = HostLine::read(&written) else { panic!("{written:?}") };
        put_result(&id, &answer.unwrap().form::<OutputAnswer>().unwrap(), &mut again);
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(written).unwrap());
    }
    let chunk = ring.after(0).next().unwrap();
    for (encoding, lost) in [(Encoding::Text, 0), (Encoding::Base64, 3), (Encoding::Binary, 0)] {
        let (mut written, mut again) = (Vec::new(), Vec::new());
        put_output(7, chunk, lost, encoding, &mut written);
        let line = written.split_inclusive(|byte| *byte == b'\n').next().unwrap();
        let mut fields: serde_json::Map<String, Value> = serde_json::from_slice(line).unwrap();
        let note: OutputNote = serde_json::from_value(fields["params"].take()).unwrap();
        put_event::<event::Output>(&note, &mut again);
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(line.to_vec()).unwrap());
    }
}

/// A client's author has nothing else to go by.
#[test]
fn the_manual_has_the_bounds_of_the_code() {
    let page = include_str!("../../cli/help/protocol.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let days = limits::TIMEOUT_MAX.as_secs() / 86_400;
    for said in [
        format!(
            "first {} prompts, {} remarks and {} ports",
            limits::RPC_PROMPTS_MAX,
            limits::RPC_REMARKS_MAX,
            limits::RPC_PORTS_MAX
        ),
        format!("the last {} events in {} MiB", limits::RPC_EVENTS_MAX, limits::RPC_EVENTS_BYTES >> 20),
        format!("up to {} `runs` write", limits::RPC_TERMINALS_MAX),
        format!("{} subscriptions can see one run so", limits::RPC_TERMINALS_MAX),
        format!("oldest first: {}, or up to {}", limits::HISTORY_RUNS, limits::HISTORY_RUNS_MAX),
        format!("up to {} questions wait", limits::HISTORY_WAITING_MAX),
        format!("longer than {} MiB is left out", limits::HISTORY_BYTES >> 20),
        format!("no answer within {} seconds", limits::HISTORY_WAIT.as_secs()),
        format!("up to {} ms old, or up to {} s", limits::PORTS_KNOWN.as_millis(), limits::PORTS_KNOWN_MAX.as_secs()),
        format!("no limit; more than {days} days are refused"),
        format!("{days} days are the most"),
        format!("A text may have {} bytes", limits::RPC_TEXT_BYTES),
        format!("{} requests may wait for texts of one run", limits::RPC_TEXT_WAITS_MAX),
        format!("{} for anything of it", limits::RPC_RUN_WAITING_MAX),
        format!("{} foreground commands", limits::RPC_RUNS_MAX),
        format!("{} requests that wait and {} subscriptions", limits::RPC_WAITING_MAX, limits::RPC_SUBSCRIPTIONS_MAX),
        format!("all runs or of up to {}", limits::RPC_SUBSCRIBED_MAX),
        format!("An agent may have {} connections", limits::RPC_CONNECTIONS_MAX),
    ] {
        assert!(page.contains(&said), "{said}");
    }
}
