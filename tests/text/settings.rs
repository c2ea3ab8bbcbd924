//! Settings files: an edit brings one setting, and taking it back leaves every other byte as it was.

mod odd;

use crate::dice::rounds;
use rexec_host::text::settings::{
    Setting, SettingChange, SettingEdit, SettingValue, SettingsFormat, Splice, applied, has, set, undo,
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
fn odd_files_are_edited_and_get_every_byte_back_but_for_the_named_ones() {
    let kinds = [
        (SettingsFormat::Json, odd::JSON, setting(&["env", "S"], "/s")),
        (SettingsFormat::Json, odd::JSON, setting(&["S"], "/s")),
        (SettingsFormat::JsonWithComments, odd::JSON, setting(&["env", "S"], "/s")),
        (SettingsFormat::JsonWithComments, odd::JSON_WITH_COMMENTS, setting(&["env", "S"], "/s")),
        (SettingsFormat::Toml, odd::TOML, setting(&["env", "S"], "/s")),
        (SettingsFormat::Yaml, odd::YAML, setting(&["set-env"], "SHELL=/s")),
    ];
    for (format, files, setting) in kinds {
        for (name, text) in files {
            // A key that is there twice stands in the way of what is below it alone.
            let is_refused = odd::REFUSED.contains(name) && !(*name == "the object twice" && setting.keys.len() == 1);
            match is_refused {
                true => drop(set(format, text, &setting, true).expect_err(name)),
                false => drop(round_trip(format, text, &setting)),
            }
        }
    }
}

#[test]
fn a_pair_that_an_earlier_release_has_put_into_an_inline_table_goes_by_its_bytes() {
    let shell = setting(&["policy", "set", "BASH_ENV"], "/s");
    let added = Splice { at: 25, removed: String::new(), added: ", BASH_ENV = \"/s\"".to_owned() };
    let edit = SettingEdit { splices: vec![added], was: None, made: 0 };
    let after = "[policy]\nset = { A = \"1\", BASH_ENV = \"/s\" }\n";
    let back = |text: &str| undo(SettingsFormat::Toml, text, &shell, &edit).unwrap();
    for lead in ["", "model = \"x\"\n"] {
        let before = format!("{lead}[policy]\nset = {{ A = \"1\" }}\n");
        assert_eq!(back(&format!("{lead}{after}")).as_deref(), Some(before.as_str()));
        assert_eq!(back(&before), None);
    }
}

#[test]
fn toml_that_its_agent_has_rewritten_loses_the_setting_alone() {
    let shell = setting(&["policy", "set", "BASH_ENV"], "/s");
    let (edit, _) = edit(SettingsFormat::Toml, "a = 1\n", &shell, false);
    for (now, wanted) in [
        ("[policy]\n[policy.set]\nA = 1\nBASH_ENV = '/s'\n", "[policy]\n[policy.set]\nA = 1\n"),
        ("a=1\n[policy.set]\nBASH_ENV=\"/s\"\n[z]\n", "a=1\n[z]\n"),
        ("policy.set.BASH_ENV = \"/s\" # x\npolicy.b = 1\n", "policy.b = 1\n"),
        ("[policy]\nset.'BASH_ENV' = \"\\u002fs\"\n", "[policy]\n"),
    ] {
        assert_eq!(undo(SettingsFormat::Toml, now, &shell, &edit).unwrap().as_deref(), Some(wanted));
    }
    assert_eq!(undo(SettingsFormat::Toml, "[policy.set]\nBASH_ENV = '/x'\n", &shell, &edit), Ok(None));
}

#[test]
fn json_that_an_earlier_release_has_edited_is_taken_back_though_it_is_refused_now() {
    let shell = setting(&["env", "S"], "/s");
    for (before, at, added) in [
        ("\u{feff}{ \"env\": {} }", 13, "\"S\": \"/s\""),
        ("\u{feff}// x\n{ \"a\": [1,], }", 19, ", \"env\": { \"S\": \"/s\" }"),
        ("{ \"env\": { \"A\": 1 }, \"env\": { \"B\": 2 } }", 36, ", \"S\": \"/s\""),
    ] {
        set(SettingsFormat::JsonWithComments, before, &shell, false).unwrap_err();
        let splice = Splice { at, removed: String::new(), added: added.to_owned() };
        let after = applied(before, std::slice::from_ref(&splice)).unwrap();
        let edit = SettingEdit { splices: vec![splice], was: None, made: 1 };
        let back = undo(SettingsFormat::JsonWithComments, &after, &shell, &edit).unwrap();
        assert_eq!(back.as_deref(), Some(before), "{after}");
    }
}

#[test]
fn files_in_disorder_are_refused_or_get_every_byte_back() {
    const TOKENS: &[&str] = &[
        "{", "}", "[", "]", "[[", ",", ":", "=", ".", "\"", "'", "\"\"\"", "'''", "\\", "//", "/*", "*/", "#", "\n",
        "\r\n", " ", "\t", "env", "\"env\"", "S = 1\n", "set-env:", "- ", "---\n", "é", "{}",
    ];
    let kinds = [
        (SettingsFormat::Json, odd::JSON, setting(&["env", "S"], "/s")),
        (SettingsFormat::JsonWithComments, odd::JSON_WITH_COMMENTS, setting(&["env", "S"], "/s")),
        (SettingsFormat::Toml, odd::TOML, setting(&["env", "S"], "/s")),
        (SettingsFormat::Yaml, odd::YAML, setting(&["set-env"], "SHELL=/s")),
    ];
    let mut edited = 0;
    rounds(4_000, |dice| {
        let (format, files, setting) = &kinds[dice.below(kinds.len())];
        let mut text = files[dice.below(files.len())].1.to_owned();
        for _ in 0..dice.below(5) {
            let boundary = |at: usize| (0..=at.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let at = boundary(dice.below(text.len() + 1));
            let to = boundary(at + dice.below(8));
            text.replace_range(at..to, TOKENS[dice.below(TOKENS.len())]);
        }
        let Ok(SettingChange::Edit(edit)) = set(*format, &text, setting, false) else { return };
        edited += 1;
        let after = applied(&text, &edit.splices).expect("the splices are of this text");
        assert_eq!(set(*format, &after, setting, true), Ok(SettingChange::Same), "{text}");
        assert_eq!(undo(*format, &after, setting, &edit), Ok(Some(text.clone())), "{after}");
        let bare = SettingEdit { splices: Vec::new(), ..edit };
        if let Ok(Some(back)) = undo(*format, &after, setting, &bare) {
            assert_eq!(has(*format, &back, setting), Ok(false), "{after}");
        }
    });
    assert!(edited > 0, "some are edited");
}

/// What an agent writes that has read these settings and adds one.
fn rewritten(settings: &serde_json::Value) -> [String; 2] {
    let mut settings = settings.clone();
    settings["added"] = serde_json::json!({ "S": ["/s"] });
    [settings.to_string(), serde_json::to_string_pretty(&settings).unwrap()]
}

#[test]
fn json_that_its_agent_has_rewritten_loses_the_setting_alone() {
    let shell = setting(&["env", "S"], "/s");
    for (name, text) in odd::JSON.iter().filter(|(name, _)| !odd::REFUSED.contains(name)) {
        let (edit, after) = edit(SettingsFormat::Json, text, &shell, false);
        let before = if text.trim().is_empty() { "{}" } else { text };
        let wanted = rewritten(&serde_json::from_str(before).unwrap());
        for (now, wanted) in rewritten(&serde_json::from_str(&after).unwrap()).iter().zip(wanted) {
            let back = undo(SettingsFormat::Json, now, &shell, &edit).unwrap().expect("it is there");
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&back), read(&wanted), "{name}: {now}");
        }
    }
}

#[test]
fn a_member_of_json_is_written_as_its_file_writes_members() {
    let shell = setting(&["shell"], "/s");
    for (text, after) in [
        ("", "{\n  \"shell\": \"/s\"\n}\n"),
        ("{}", "{\n  \"shell\": \"/s\"\n}"),
        ("{ }\n", "{\n  \"shell\": \"/s\"\n}\n"),
        ("{\n}\n", "{\n  \"shell\": \"/s\"\n}\n"),
        ("{\"a\":1}", "{\"shell\":\"/s\",\"a\":1}"),
        ("{ \"a\": 1 }\r\n", "{ \"shell\": \"/s\", \"a\": 1 }\r\n"),
        ("{\r\n\t\"a\": [1, {}]\r\n}", "{\r\n\t\"shell\": \"/s\",\r\n\t\"a\": [1, {}]\r\n}"),
        ("{\n    \"größe\": \"\\u00e9\"\n}\n", "{\n    \"shell\": \"/s\",\n    \"größe\": \"\\u00e9\"\n}\n"),
        (
            "{\n  \"a\": {\n    \"shell\": \"x\"\n  }\n}\n",
            "{\n  \"shell\": \"/s\",\n  \"a\": {\n    \"shell\": \"x\"\n  }\n}\n",
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
        ("{\n  \"a\": 1, // one\n}\n", "{\n  \"shell\": \"/s\",\n  \"a\": 1, // one\n}\n"),
        ("{ // one\n  \"a\": 1\n}\n", "{ // one\n  \"shell\": \"/s\",\n  \"a\": 1\n}\n"),
        ("{ /* x\n */ \"a\": 1\n}", "{\n \"shell\": \"/s\", /* x\n */ \"a\": 1\n}"),
        ("{\n  // nothing yet\n}\n", "{\n  \"shell\": \"/s\"\n  // nothing yet\n}\n"),
        ("{ /* none */ }", "{\n  \"shell\": \"/s\"\n /* none */ }"),
        ("// mine\n{ \"a\": 1, }\n", "// mine\n{ \"shell\": \"/s\", \"a\": 1, }\n"),
        ("// mine", "// mine\n{\n  \"shell\": \"/s\"\n}\n"),
        ("// mine\n", "// mine\n{\n  \"shell\": \"/s\"\n}\n"),
        ("{ \"x\": \"// no comment /*\" }", "{ \"shell\": \"/s\", \"x\": \"// no comment /*\" }"),
    ] {
        assert_eq!(round_trip(SettingsFormat::JsonWithComments, text, &shell), after);
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
    assert_eq!(with, "{\n    \"env\": {\n        \"A\": \"b\"\n    },\n    \"model\": \"x\"\n}\n");
}

#[test]
fn what_was_edited_in_between_stays() {
    let shell = setting(&["env", "S"], SHELL);
    let (edit, after) = edit(SettingsFormat::Json, "{\n  \"a\": 1\n}\n", &shell, false);
    let back = |text: &str| undo(SettingsFormat::Json, text, &shell, &edit).unwrap();
    let changed = after.replace("\"a\": 1", "\"a\": 2,\n  \"b\": 3");
    assert_eq!(back(&changed).as_deref(), Some("{\n  \"a\": 2,\n  \"b\": 3\n}\n"));
    let behind = after.replace("1\n}", "1,\n  \"b\": 3\n}");
    assert_eq!(back(&behind).as_deref(), Some("{\n  \"a\": 1,\n  \"b\": 3\n}\n"));
    let beside = after.replace(&format!("\"{SHELL}\""), &format!("\"{SHELL}\",\n    \"T\": \"x\""));
    assert_eq!(back(&beside).as_deref(), Some("{\n  \"env\": {\n    \"T\": \"x\"\n  },\n  \"a\": 1\n}\n"));
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
            "[policy.set]\nBASH_ENV = \"/s\"\nA = \"1\" # one\n\n[z]\nA = 2\n",
        ),
        ("  [policy.set]\n  A = [\n 1, # x\n]", "  [policy.set]\n  BASH_ENV = \"/s\"\n  A = [\n 1, # x\n]"),
        ("[policy]\nset.A = \"1\"\nx = 1\n", "[policy]\nset.BASH_ENV = \"/s\"\nset.A = \"1\"\nx = 1\n"),
        ("policy.set.A = 1\n[b]\n", "policy.set.BASH_ENV = \"/s\"\npolicy.set.A = 1\n[b]\n"),
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

/// The block of YAML, with these lines in it.
fn block(lines: &str) -> String {
    format!("# >>> rexec init >>>\n{lines}# <<< rexec init <<<\n")
}

#[test]
fn yaml_gets_a_block_that_goes_with_its_marks_and_leaves_items_of_others() {
    let shell = setting(&["set-env"], "SHELL=/s");
    let ours = block("set-env:\n  - SHELL=/s\n");
    for (text, with) in [
        ("", ours.clone()),
        ("model: x", format!("model: x\n{ours}")),
        ("# c\r\nmodel: x\r\n", format!("# c\r\nmodel: x\r\n{}", ours.replace('\n', "\r\n"))),
        ("note: |+\n  text\n\n", format!("note: |+\n  text\n\n{ours}")),
    ] {
        assert_eq!(round_trip(SettingsFormat::Yaml, text, &shell), with);
    }
    let quoted = setting(&["set-env"], "SHELL=/a b/s");
    assert!(round_trip(SettingsFormat::Yaml, "", &quoted).contains("- \"SHELL=/a b/s\"\n"));
    let (edit, _) = edit(SettingsFormat::Yaml, "a: 1\n", &shell, false);
    for (now, wanted) in [
        (format!("a: 2\n{ours}b: 1\n"), "a: 2\nb: 1\n"),
        (format!("a: 2\n{}", block("set-env:\n  - SHELL=/s\n  - B=2\n")), "a: 2\nset-env:\n  - B=2\n"),
        (format!("a: 2\n{ours}\n  # more\n  - B=2\n"), "a: 2\nset-env:\n\n  # more\n  - B=2\n"),
        (format!("a: 2\n{}", block("set-env:\n- A=1\n- SHELL=/s\n")), "a: 2\nset-env:\n- A=1\n"),
        ("set-env:\n  - SHELL=/s\na: 2\n".to_owned(), "a: 2\n"),
    ] {
        assert_eq!(undo(SettingsFormat::Yaml, &now, &shell, &edit).unwrap().as_deref(), Some(wanted), "{now}");
    }
    undo(SettingsFormat::Yaml, "set-env: [SHELL=/s]\n", &shell, &edit).unwrap_err();
    assert_eq!(undo(SettingsFormat::Yaml, "set-env:\n  - SHELL=/short\n", &shell, &edit), Ok(None));
}

#[test]
fn an_item_that_an_earlier_release_has_put_into_a_list_of_yaml_goes_by_its_bytes() {
    let shell = setting(&["set-env"], "SHELL=/s");
    for (text, at, removed, added, made) in [
        ("set-env: [A=1]\n", 13, "", ", SHELL=/s", 0),
        ("set-env: []\n", 10, "", "SHELL=/s", 0),
        ("set-env:\n  - A=1\n  # c\n", 17, "", "  - SHELL=/s\n", 0),
        ("set-env:\n  - SHELL=/bin/zsh # mine\n", 13, "SHELL=/bin/zsh", "SHELL=/s", 0),
        ("set-env: null\n", 9, "null", "[SHELL=/s]", 0),
        ("a: 1\n", 5, "", "\nset-env:\n  - SHELL=/s\n", 1),
    ] {
        let splice = Splice { at, removed: removed.to_owned(), added: added.to_owned() };
        let after = applied(text, std::slice::from_ref(&splice)).expect("it fits");
        let edit = SettingEdit { splices: vec![splice], was: None, made };
        for lead in ["", "more: 1\n"] {
            let back = undo(SettingsFormat::Yaml, &format!("{lead}{after}"), &shell, &edit).unwrap();
            assert_eq!(back, Some(format!("{lead}{text}")));
        }
    }
}

#[test]
fn what_cannot_be_understood_is_refused_with_its_line() {
    let line = |format, text: &str, keys: &[&str]| set(format, text, &setting(keys, "/s"), true).unwrap_err().line;
    for (text, at) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 3),
        ("{\n  // c\n}", 2),
        ("{\n  \"a\": 1,\n}", 3),
        ("{\n  \"a\": \"x\n}", 2),
        ("{\n  'a': 1\n}", 2),
        ("{\n  \"a\": 01\n}", 2),
        ("{\n  \"a\": tru\n}", 2),
        ("[1]", 1),
        ("{}\n{}", 2),
        ("{\n", 1),
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
        ("x = 1\nset = {}\n", 2),
        ("\n[[set]]\n", 2),
        ("[set]\n[set.a]\n", 2),
        ("[set]\n[set]\n", 2),
    ] {
        assert_eq!(line(SettingsFormat::Toml, text, &["set", "a"]), at, "{text}");
    }
    for (text, at) in [
        ("{a: 1}", 1),
        ("a: 1\nset-env: A=1\n", 2),
        ("# c\n'set-env' :\n  - A\n", 2),
        ("a: 1\n---\nb: 1\n", 2),
        ("---\n---\n", 2),
        ("a: 1\n...\n", 2),
        ("\n- a\n", 2),
        ("# c\n  a: b\n", 2),
        ("a\n", 1),
        ("a::b\n", 1),
        ("a: b\n# c\rd: e\n", 2),
        ("a #: b\n", 1),
        ("'a: b\n c: '\n", 1),
        ("a: |\n  b", 2),
    ] {
        assert_eq!(line(SettingsFormat::Yaml, text, &["set-env"]), at, "{text}");
    }
}
