//! Settings files: an edit brings one setting, and taking it back leaves every other byte as it was.

use rexec_host::text::settings::{
    Setting, SettingChange, SettingEdit, SettingValue, SettingsFormat, applied, set, undo,
};

const SHELL: &str = "/srv/user/.local/share/rexec/shells/rexec-bash";

fn setting(keys: &[&str], value: &str) -> Setting {
    let value = if value == "false" { SettingValue::False } else { SettingValue::Text(value.to_owned()) };
    Setting { keys: keys.iter().map(|key| (*key).to_owned()).collect(), value }
}

fn edit(format: SettingsFormat, text: &str, setting: &Setting, force: bool) -> (SettingEdit, String) {
    match set(format, text, setting, force) {
        Ok(SettingChange::Edit(edit)) => {
            let after = applied(text, &edit.splices).expect("the splices fit their text");
            (edit, after)
        }
        other => panic!("{text:?}: {other:?}"),
    }
}

/// Sets it, sets it again, takes it back; then with lines of the user's before and behind. Returns the text with it.
fn round_trip(format: SettingsFormat, text: &str, setting: &Setting) -> String {
    let (edit, after) = edit(format, text, setting, false);
    assert_eq!(set(format, &after, setting, false), Ok(SettingChange::Same), "twice is once: {after}");
    assert_eq!(undo(format, &after, setting, &edit).unwrap().as_deref(), Some(text), "with it: {after}");
    assert_eq!(undo(format, text, setting, &edit).unwrap(), None, "there is nothing to take back");
    // Where nothing but the setting itself says what was done.
    let bare = SettingEdit { splices: Vec::new(), ..edit };
    let back = undo(format, &after, setting, &bare).unwrap().expect("it is there");
    let blanks = |text: &str| text.split_whitespace().collect::<String>();
    let is_new = matches!(format, SettingsFormat::Json | SettingsFormat::JsonWithComments) && !text.contains('{');
    assert!(is_new || blanks(&back) == blanks(text), "by structure: {after}\n{back}");
    after
}

#[test]
fn a_member_of_json_is_written_as_its_file_writes_members() {
    let shell = setting(&["shell"], "/s");
    for (text, after) in [
        ("", "{\n  \"shell\": \"/s\"\n}\n"),
        ("{}", "{\n  \"shell\": \"/s\"\n}"),
        ("{ }\n", "{\n  \"shell\": \"/s\"\n}\n"),
        ("{\n}\n", "{\n  \"shell\": \"/s\"\n}\n"),
        ("{\"a\":1}", "{\"a\":1,\"shell\":\"/s\"}"),
        ("{ \"a\": 1 }\r\n", "{ \"a\": 1, \"shell\": \"/s\" }\r\n"),
        ("{\r\n\t\"a\": [1, {}]\r\n}", "{\r\n\t\"a\": [1, {}],\r\n\t\"shell\": \"/s\"\r\n}"),
        (
            "\u{feff}{\n    \"größe\": \"\\u00e9\"\n}\n",
            "\u{feff}{\n    \"größe\": \"\\u00e9\",\n    \"shell\": \"/s\"\n}\n",
        ),
        (
            "{\n  \"a\": {\n    \"shell\": \"x\"\n  }\n}\n",
            "{\n  \"a\": {\n    \"shell\": \"x\"\n  },\n  \"shell\": \"/s\"\n}\n",
        ),
    ] {
        assert_eq!(round_trip(SettingsFormat::Json, text, &shell), after);
        assert_eq!(round_trip(SettingsFormat::JsonWithComments, text, &shell), after);
    }
}

#[test]
fn comments_and_trailing_commas_of_json_stay() {
    let shell = setting(&["shell"], "/s");
    for (text, after) in [
        ("{\n  \"a\": 1, // one\n}\n", "{\n  \"a\": 1, // one\n  \"shell\": \"/s\",\n}\n"),
        ("{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  \"shell\": \"/s\"\n}\n"),
        (
            "{\n  \"a\": 1 /* x */ // one\n  // end\n}",
            "{\n  \"a\": 1, /* x */ // one\n  \"shell\": \"/s\"\n  // end\n}",
        ),
        ("{\n  // nothing yet\n}\n", "{\n  // nothing yet\n  \"shell\": \"/s\"\n}\n"),
        ("{ /* none */ }", "{ /* none */\n  \"shell\": \"/s\"\n }"),
        ("// mine\n{ \"a\": 1, }\n", "// mine\n{ \"a\": 1, \"shell\": \"/s\", }\n"),
        ("// mine", "// mine\n{\n  \"shell\": \"/s\"\n}\n"),
        ("// mine\n", "// mine\n{\n  \"shell\": \"/s\"\n}\n"),
        ("{ \"x\": \"// no comment /*\" }", "{ \"x\": \"// no comment /*\", \"shell\": \"/s\" }"),
    ] {
        let with = round_trip(SettingsFormat::JsonWithComments, text, &shell);
        assert_eq!(with.split_whitespace().collect::<Vec<_>>(), after.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn objects_on_the_way_to_a_setting_are_made_and_taken_back() {
    let shell = setting(&["env", "CLAUDE_CODE_SHELL"], SHELL);
    for text in [
        "",
        "{}",
        "{\n  \"model\": \"x\"\n}\n",
        "{\n  \"env\": {}\n}\n",
        "{\"env\":{\"A\":\"1\"}}",
        "{\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t},\n\t\"z\": null\n}",
        "{\"a\":{\"env\":1},\"env\":{}}\n",
    ] {
        let with = round_trip(SettingsFormat::Json, text, &shell);
        assert!(with.contains(SHELL), "{with}");
    }
    let text = "{\n    \"model\": \"x\"\n}\n";
    let with = round_trip(SettingsFormat::Json, text, &setting(&["env", "A"], "b"));
    assert_eq!(with, "{\n    \"model\": \"x\",\n    \"env\": {\n        \"A\": \"b\"\n    }\n}\n");
}

#[test]
fn what_was_edited_in_between_stays() {
    let shell = setting(&["env", "S"], SHELL);
    let (edit, after) = edit(SettingsFormat::Json, "{\n  \"a\": 1\n}\n", &shell, false);
    let back = |text: &str| undo(SettingsFormat::Json, text, &shell, &edit).unwrap();
    let changed = after.replace("\"a\": 1", "\"a\": 2,\n  \"b\": 3");
    assert_eq!(back(&changed).as_deref(), Some("{\n  \"a\": 2,\n  \"b\": 3\n}\n"));
    let behind = after.replace("  }\n}", "  },\n  \"b\": 3\n}");
    assert_eq!(back(&behind).as_deref(), Some("{\n  \"a\": 1,\n  \"b\": 3\n}\n"));
    let beside = after.replace(&format!("\"{SHELL}\""), &format!("\"{SHELL}\",\n    \"T\": \"x\""));
    assert_eq!(back(&beside).as_deref(), Some("{\n  \"a\": 1,\n  \"env\": {\n    \"T\": \"x\"\n  }\n}\n"));
    assert_eq!(back(&after.replace(SHELL, "/bin/zsh")), None);
    let compact = after.split_whitespace().collect::<String>();
    assert_eq!(back(&compact).as_deref(), Some("{\"a\":1}"));
}

#[test]
fn another_value_is_replaced_only_by_force_and_comes_back() {
    for (format, text, keys) in [
        (SettingsFormat::Json, "{ \"shell\": \"/bin/zsh\", \"a\": 1 }", vec!["shell"]),
        (SettingsFormat::Json, "{ \"shell\": null }", vec!["shell"]),
        (SettingsFormat::Toml, "[t]\nshell = '/bin/zsh' # mine\n", vec!["t", "shell"]),
    ] {
        let shell = setting(&keys, SHELL);
        assert!(matches!(set(format, text, &shell, false), Ok(SettingChange::Taken(_))), "{text}");
        let (edit, after) = edit(format, text, &shell, true);
        assert_eq!(undo(format, &after, &shell, &edit).unwrap().as_deref(), Some(text));
        let more = format!("{}{after}", if format == SettingsFormat::Toml { "first = 1\n" } else { "\n" });
        assert!(undo(format, &more, &shell, &edit).unwrap().unwrap().ends_with(text));
    }
}

#[test]
fn a_pair_of_toml_goes_into_its_table_however_that_is_written() {
    let shell = setting(&["policy", "set", "BASH_ENV"], "/s");
    for (text, with) in [
        ("", "[policy.set]\nBASH_ENV = \"/s\"\n"),
        ("model = 'x'", "model = 'x'\n\n[policy.set]\nBASH_ENV = \"/s\"\n"),
        ("# c\r\n[a]\r\nb = 1\r\n", "# c\r\n[a]\r\nb = 1\r\n\r\n[policy.set]\r\nBASH_ENV = \"/s\"\r\n"),
        ("[policy.set] # mine\n[z]\n", "[policy.set] # mine\nBASH_ENV = \"/s\"\n[z]\n"),
        (
            "[policy.set]\nA = \"1\" # one\n\n[z]\nA = 2\n",
            "[policy.set]\nA = \"1\" # one\nBASH_ENV = \"/s\"\n\n[z]\nA = 2\n",
        ),
        ("[policy.set]\n  A = [\n 1, # x\n]", "[policy.set]\n  A = [\n 1, # x\n]\n  BASH_ENV = \"/s\""),
        ("[policy]\nset = { A = \"1\" }\n", "[policy]\nset = { A = \"1\", BASH_ENV = \"/s\" }\n"),
        ("[policy]\nset = {}\n", "[policy]\nset = { BASH_ENV = \"/s\" }\n"),
        ("policy = { inherit = \"all\" }\n", "policy = { inherit = \"all\", set.BASH_ENV = \"/s\" }\n"),
        ("[policy]\nset.A = \"1\"\nx = 1\n", "[policy]\nset.A = \"1\"\nset.BASH_ENV = \"/s\"\nx = 1\n"),
        ("policy.set.A = 1\n[b]\n", "policy.set.A = 1\npolicy.set.BASH_ENV = \"/s\"\n[b]\n"),
        ("policy.inherit = \"all\"\n", "policy.inherit = \"all\"\n\n[policy.set]\nBASH_ENV = \"/s\"\n"),
        (
            "[[a]]\nx = '''\n[policy.set]\n'''\n",
            "[[a]]\nx = '''\n[policy.set]\n'''\n\n[policy.set]\nBASH_ENV = \"/s\"\n",
        ),
        ("\u{feff}t = 1979-05-27 07:32:00\n", "\u{feff}t = 1979-05-27 07:32:00\n\n[policy.set]\nBASH_ENV = \"/s\"\n"),
        ("[ policy . 'set' ]\n", "[ policy . 'set' ]\nBASH_ENV = \"/s\"\n"),
    ] {
        assert_eq!(round_trip(SettingsFormat::Toml, text, &shell), with);
    }
    let off = setting(&["features", "snapshot"], "false");
    assert_eq!(
        set(SettingsFormat::Toml, "features.snapshot = true\n", &off, false),
        Ok(SettingChange::Taken("true".to_owned()))
    );
    assert_eq!(set(SettingsFormat::Toml, "[features]\nsnapshot=false\n", &off, false), Ok(SettingChange::Same));
}

#[test]
fn a_table_of_toml_that_has_got_more_stays() {
    let shell = setting(&["policy", "set", "BASH_ENV"], "/s");
    let (edit, after) = edit(SettingsFormat::Toml, "a = 1", &shell, false);
    let back = |text: &str| undo(SettingsFormat::Toml, text, &shell, &edit).unwrap().unwrap();
    assert_eq!(back(&format!("{after}C = \"2\"\n")), "a = 1\n\n[policy.set]\nC = \"2\"\n");
    assert_eq!(back(&after.replace("a = 1", "a = 22")), "a = 22");
    assert_eq!(back(&format!("{after}\n[z]\nb = 1\n")), "a = 1\n[z]\nb = 1\n");
}

#[test]
fn days_and_times_of_toml_that_exist_are_passed() {
    let shell = setting(&["policy", "BASH_ENV"], "/s");
    for time in ["2024-02-29", "2000-02-29T23:59:60Z", "2026-12-31 00:00:00.5+14:00", "07:32", "2026-04-30t07:32z"] {
        let text = format!("a = {time}\n");
        assert!(round_trip(SettingsFormat::Toml, &text, &shell).starts_with(&text));
    }
}

#[test]
fn what_cannot_be_understood_is_refused_with_its_line() {
    let line = |format, text: &str, keys: &[&str]| set(format, text, &setting(keys, "/s"), true).unwrap_err().line;
    for (text, at) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 3),
        ("{\n  // c\n}", 2),
        ("{\n  \"a\": 1,\n}", 2),
        ("{\n  \"a\": \"x\n}", 2),
        ("{\n  'a': 1\n}", 2),
        ("{\n  \"a\": 01\n}", 2),
        ("{\n  \"a\": tru\n}", 2),
        ("[1]", 1),
        ("{}\n{}", 2),
        ("{\n", 2),
        ("{\n\"shell\": 1, \"a\": \"\\x\"}", 2),
    ] {
        assert_eq!(line(SettingsFormat::Json, text, &["shell"]), at, "{text}");
    }
    assert_eq!(line(SettingsFormat::Json, "{\n\"env\": 1}", &["env", "a"]), 2);
    assert_eq!(line(SettingsFormat::Json, &"[".repeat(1_000_000), &["a"]), 1);
    for (text, at) in [
        ("a = \n", 1),
        ("a = 1\nb\n", 2),
        ("[a\n", 1),
        ("a = 'x\n'", 1),
        ("a = [1\n", 2),
        ("set = 1\n", 1),
        ("\n[[set]]\n", 2),
        ("a = 1 b = 2", 1),
        ("a = 2026-02-29\n", 1),
        ("a = 1\nb = 2026-13-01T00:00:00Z\n", 2),
        ("a = 2026-01-00 12:00:00\n", 1),
        ("a = 24:00:00\n", 1),
        ("a = 2026-11-22T10:60:00+01:00\n", 1),
    ] {
        assert_eq!(line(SettingsFormat::Toml, text, &["set", "a"]), at, "{text}");
    }
}
