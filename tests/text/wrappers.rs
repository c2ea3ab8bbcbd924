//! What agents really hand to their shells: captures of whole calls, by the versions that are named there.

use rexec_host::text::unwrap::unwrap;

#[test]
fn the_model_s_command_is_found_in_every_capture() {
    let text = include_str!("../data/wrappers.jsonl");
    for line in text.lines() {
        let capture: serde_json::Value = serde_json::from_str(line).expect("one object a line");
        let exec =
            capture["exec"].as_array().expect("arguments").iter().map(|argument| argument.as_str().expect("text"));
        let unwrapped = unwrap(exec.map(str::as_bytes));
        let found = String::from_utf8(unwrapped.command).expect("the captures are text");
        let expected = (capture["command"].as_str().expect("text"), capture["probe"].as_bool().expect("yes or no"));
        assert_eq!((found.as_str(), unwrapped.is_probe), expected, "{}", capture["agent"]);
    }
}
