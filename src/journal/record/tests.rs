//! The lines of the journal, byte by byte: what is written today must be what earlier builds wrote.

use super::*;

fn start() -> StartRecord {
    StartRecord {
        card: PublishedCard {
            seq: 7,
            time: "2026-05-21T09:42:18.123Z".into(),
            whoami: "Codex".into(),
            dir: "/srv/\u{fffd}".into(),
            command: "ls".into(),
            why: "look".into(),
            name: "web".into(),
            shell: "/bin/bash".into(),
            unwrapped: true,
            probe: true,
            sandbox: None,
            agent: "codex".into(),
            agent_version: "0.1".into(),
            session: "s".into(),
            session_number: 2,
            call: "c".into(),
            role: "hook".into(),
        },
        envs: [("LANG".to_owned(), "C".to_owned())].into(),
        exec: vec!["bash".into(), "-c".into(), "ls \"ä\"".into()],
        exec_b64: Some(vec!["YQ==".into()]),
        dir_b64: Some("L3Nydi/k".into()),
        clipped: true,
        exec_text: [(2, TextRef { id: 3, head: 4, own: "x".into(), tail: 5 })].into(),
        trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        trace_parent: "00f067aa0ba902b7".into(),
        window: None,
        relayed: false,
        terminal: true,
        env: None,
        environment: None,
        environment_sent: false,
    }
}

fn end() -> RunEnd {
    RunEnd {
        seq: 7,
        exit: 130,
        signal: Some(2),
        duration_ms: 20,
        queued_ms: 1,
        bytes: 90,
        received: Some(80),
        hidden: 1,
        error: Some("aborted".into()),
        by: Some("kill".into()),
        left: vec![Straggler { pid: 9, comm: "node".into(), ports: Vec::new() }],
        left_count: 2,
        unkillable: vec![11],
        answers: 2,
        port_held: Some(PortHolder { port: 3000, seq: 5 }),
        kept: Some(KeptRecord { files: 12, missed: 1, unknown: "xargs rm".to_owned(), failure: None }),
        gate: Some(GateRecord {
            r#do: "ask".into(),
            rule: Some("push (config.toml:12)".into()),
            leaf: "git push".into(),
            by: "watch".into(),
            after_ms: None,
        }),
    }
}

#[track_caller]
fn assert_line(line: &[u8], expected: &str) {
    assert_eq!(std::str::from_utf8(line).unwrap(), format!("{expected}\n"));
}

#[test]
fn a_record_with_every_field_is_written_as_ever() {
    assert_line(
        &line("start", &start()),
        r#"{"v":1,"type":"start","seq":7,"time":"2026-05-21T09:42:18.123Z","whoami":"Codex","dir":"/srv/�","envs":{"LANG":"C"},"exec":["bash","-c","ls \"ä\""],"command":"ls","why":"look","name":"web","shell":"/bin/bash","exec_b64":["YQ=="],"dir_b64":"L3Nydi/k","agent":"codex","agent_version":"0.1","session":"s","session_number":2,"call":"c","role":"hook","unwrapped":true,"probe":true,"clipped":true,"exec_text":{"2":{"id":3,"head":4,"own":"x","tail":5}},"trace":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","trace_parent":"00f067aa0ba902b7","terminal":true}"#,
    );
    let output = RecordedOutput {
        text: "é\n".into(),
        omitted: Some(40),
        cut: Some(1),
        lost: Some(30),
        raw: Some("raw/x-7.out".into()),
        raw_bytes: Some(50),
        raw_omitted: Some(60),
        raw_cut: Some(25),
        raw_error: Some("No space left on device".into()),
        secrets: 3,
        recording: Some("raw/x.rec".into()),
        recording_at: Some((70, 90)),
        recording_omitted: Some(80),
        recording_error: Some("full".into()),
    };
    let record = EndRecord { start: start(), end: end(), output };
    assert_eq!(EndRecord::parse(&record.line()).unwrap(), record);
    assert_line(
        &record.line(),
        r#"{"v":1,"type":"end","seq":7,"whoami":"Codex","dir":"/srv/�","envs":{"LANG":"C"},"exec":["bash","-c","ls \"ä\""],"exit":130,"output":"é\n","time":"2026-05-21T09:42:18.123Z","error":"aborted","by":"kill","command":"ls","why":"look","name":"web","shell":"/bin/bash","duration_ms":20,"queued_ms":1,"signal":2,"bytes":90,"received":80,"hidden":1,"output_omitted":40,"output_cut":1,"output_lost":30,"raw":"raw/x-7.out","raw_bytes":50,"raw_omitted":60,"raw_cut":25,"raw_error":"No space left on device","secrets":3,"recording":"raw/x.rec","recording_at":[70,90],"recording_omitted":80,"recording_error":"full","left":[{"pid":9,"comm":"node"}],"left_count":2,"unkillable":[11],"answers":2,"port_held":{"port":3000,"seq":5},"gate":{"do":"ask","rule":"push (config.toml:12)","leaf":"git push","by":"watch"},"kept":{"files":12,"missed":1,"unknown":"xargs rm"},"exec_b64":["YQ=="],"dir_b64":"L3Nydi/k","agent":"codex","agent_version":"0.1","session":"s","session_number":2,"call":"c","role":"hook","unwrapped":true,"probe":true,"terminal":true,"clipped":true,"exec_text":{"2":{"id":3,"head":4,"own":"x","tail":5}},"trace":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","trace_parent":"00f067aa0ba902b7"}"#,
    );
    let lost = LostRecord { start: start() };
    let read: LostRecord = serde_json::from_slice(&line("lost", &lost)).unwrap();
    assert_eq!((read.start.card.seq, &read.start.exec, read.start.card.unwrapped), (7, &start().exec, true));
    assert_line(
        &line("lost", &lost),
        r#"{"v":1,"type":"lost","seq":7,"whoami":"Codex","agent":"codex","session":"s","session_number":2,"role":"hook","dir":"/srv/�","exec":["bash","-c","ls \"ä\""],"command":"ls","time":"2026-05-21T09:42:18.123Z","unwrapped":true}"#,
    );
}

#[test]
fn a_record_without_any_field_is_written_as_ever() {
    assert_line(
        &line("start", &StartRecord::default()),
        r#"{"v":1,"type":"start","seq":0,"time":"","whoami":"","dir":"","envs":{},"exec":[],"command":"","shell":""}"#,
    );
    assert_line(
        &EndRecord::default().line(),
        r#"{"v":1,"type":"end","seq":0,"whoami":"","dir":"","envs":{},"exec":[],"exit":0,"output":"","time":"","command":"","shell":"","duration_ms":0,"queued_ms":0,"bytes":0}"#,
    );
    assert_line(
        &line("lost", &LostRecord::default()),
        r#"{"v":1,"type":"lost","seq":0,"whoami":"","dir":"","exec":[],"command":"","time":""}"#,
    );
}

#[test]
fn records_about_the_file_are_written_as_ever() {
    let time = || "t".to_owned();
    let open =
        OpenRecord { time: time(), pid: 3, started: Some(4), version: "0.1".into(), continues: Some("a".into()) };
    assert_line(
        &line("open", &open),
        r#"{"v":1,"type":"open","time":"t","pid":3,"started":4,"version":"0.1","continues":"a"}"#,
    );
    assert_line(&line("open", &OpenRecord::default()), r#"{"v":1,"type":"open","time":"","pid":0,"version":""}"#);
    let mark = MarkRecord { commands: 5, open: vec![(4, 100), (5, 200)] };
    assert_line(&line("mark", &mark), r#"{"v":1,"type":"mark","commands":5,"open":[[4,100],[5,200]]}"#);
    let input = InputRecord { seq: 46, bytes: 9, hidden: true, from: "send".into(), time: time() };
    assert_line(
        &line("input", &input),
        r#"{"v":1,"type":"input","seq":46,"bytes":9,"hidden":true,"from":"send","time":"t"}"#,
    );
    let unseen =
        UnseenRecord { whoami: "Codex".into(), count: 3, reason: "no host ran".into(), ..UnseenRecord::default() };
    let expected =
        r#"{"v":1,"type":"unseen","whoami":"Codex","count":3,"reason":"no host ran","since":"","until":"","time":""}"#;
    assert_line(&line("unseen", &unseen), expected);
    let destroyed =
        DestroyedRecord { seq: 46, files: 3, bytes: 9, not_kept: 1, time: time(), ..DestroyedRecord::default() };
    let expected = r#"{"v":1,"type":"destroyed","seq":46,"files":3,"bytes":9,"not_kept":1,"time":"t"}"#;
    assert_line(&line("destroyed", &destroyed), expected);
    let dropped = DroppedRecord { count: 6, time: time() };
    assert_line(&line("dropped", &dropped), r#"{"v":1,"type":"dropped","count":6,"time":"t"}"#);
    let close = CloseRecord { time: time(), commands: Some(8), next: Some("b".into()) };
    assert_line(&line("close", &close), r#"{"v":1,"type":"close","time":"t","commands":8,"next":"b"}"#);
    assert_line(&line("close", &CloseRecord::default()), r#"{"v":1,"type":"close","time":""}"#);
    let some = |name: &str| [name.to_owned()].into();
    let environment = KeptEnvironment { set: [("A".to_owned(), "b".to_owned())].into(), left_out: some("KEY") };
    let env = EnvironmentRef { id: 9, set: environment.set.clone(), unset: some("B"), left_out: some("KEY") };
    assert_line(
        &line("environment", &EnvironmentRecord { id: 9, environment }),
        r#"{"v":1,"type":"environment","id":9,"set":{"A":"b"},"left_out":["KEY"]}"#,
    );
    assert_line(
        &line("start", &StartRecord { env: Some(env), ..StartRecord::default() }),
        r#"{"v":1,"type":"start","seq":0,"time":"","whoami":"","dir":"","envs":{},"exec":[],"command":"","shell":"","env":{"id":9,"set":{"A":"b"},"unset":["B"],"left_out":["KEY"]}}"#,
    );
    let text = TextRecord { id: 1, text: "x".into() };
    assert_line(&line("text", &text), r#"{"v":1,"type":"text","id":1,"text":"x"}"#);
}
