//! `rexec explain`: the programs of a text, and whether it wants a terminal.

use super::said;

#[test]
fn explain_shows_each_program_and_what_is_fed() {
    let text = "cd web && sudo -u b git push \"$x\" 2>&1 | tail -5; eval \"$y\"";
    let told = said(&["explain", text]);
    let rows: Vec<String> = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        rows,
        [
            "STATE VIA WHY COMMAND",
            "known – – cd web",
            "open – – sudo -u b git push $x 2>&1",
            "open sudo – git push $x",
            "known – – tail -5",
            "open – – eval $y",
            "opaque eval a part of the code is not known –",
            "fed: tail by a pipe: a filter, which asks nobody",
            "terminal: yes: it feeds no program that may read answers",
        ]
        .map(|row| row.replace('–', dash(&told)))
    );
}

/// The sign for nothing, which the locale chooses.
fn dash(told: &str) -> &'static str {
    if told.contains('–') { "–" } else { "-" }
}

#[test]
fn explain_says_why_a_command_wants_no_terminal() {
    let last = |text: &str| said(&["explain", text]).lines().last().unwrap_or_default().to_owned();
    assert_eq!(last("printf 'p\\np\\n' | ssh-keygen -f k"), "terminal: no: ssh-keygen is fed by a pipe");
    assert_eq!(last("$tool < f"), "terminal: no: an unknown program is fed by a file");
    assert_eq!(last("cat < f; read x </dev/tty"), "terminal: no: it feeds a program and names /dev/tty");
    assert_eq!(last("echo 'x"), "terminal: no: it is not understood: a syntax error");
    assert_eq!(last("git push 2>&1 | tail -5"), "terminal: yes: it feeds no program that may read answers");
}

#[test]
fn explain_shows_what_would_be_destroyed() {
    let told = said(&["explain", "cd build && rm -rf * 'a*'; date > when; find . | xargs rm; cat x >> y"]);
    let rows: Vec<_> = told.lines().filter(|row| row.starts_with("destroys:")).collect();
    assert_eq!(
        rows,
        [
            "destroys: build/*, with all below it",
            "destroys: build/a\\*, with all below it",
            "destroys: build/when: its content",
            "destroys: by xargs rm, not known what",
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&said(&["explain", "--json", "rm a; xargs rm"])).expect("JSON");
    let expected = serde_json::json!([{"path": "a", "what": "name", "all_below": false}, {"by": "xargs rm"}]);
    assert_eq!(json["destroys"], expected);
}

/// In JSON, the fields that `rexec schema` lists.
#[test]
fn explain_prints_json_with_the_fields_of_its_schema() {
    let json: serde_json::Value = serde_json::from_str(&said(&["explain", "--json", "yes | ./setup"])).expect("JSON");
    let schema: serde_json::Value = serde_json::from_str(&said(&["schema", "explain"])).expect("JSON");
    let names = |value: &serde_json::Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(&json), names(&schema["properties"]));
    assert_eq!((&json["terminal"], &json["fed"][0]["program"]), (&false.into(), &"./setup".into()));
    assert_eq!(json["leaves"][1]["reads_pipe"], true);
}
