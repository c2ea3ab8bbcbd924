//! Captures of whole shell calls, by the versions of agents that are named there.

use rexec_host::front::caller;
use rexec_host::text::unwrap::unwrap;
use rexec_sh::protocol::agents::known_name;

#[test]
fn the_model_s_command_is_found_in_every_capture() {
    let text = include_str!("../data/wrappers.jsonl");
    assert_eq!(text.lines().count(), 16);
    for line in text.lines() {
        let capture: serde_json::Value = serde_json::from_str(line).expect("one object a line");
        let words = |key: &str| -> Vec<Vec<u8>> {
            let words = capture[key].as_array().expect("a list").iter();
            words.map(|word| word.as_str().expect("text").as_bytes().to_vec()).collect()
        };
        let (exec, env) = (words("exec"), words("env"));
        let env: Vec<&[u8]> = env.iter().map(Vec::as_slice).collect();
        let known = known_name(b"", env.iter().copied());
        let unwrapped = unwrap(exec.iter().map(Vec::as_slice), &env, caller::agent(known));
        let found = String::from_utf8(unwrapped.command).expect("the captures are text");
        let is = |key: &str| capture[key].as_bool().expect("yes or no");
        let expected = (capture["command"].as_str().expect("text"), is("unwrapped"), is("probe"));
        assert_eq!((found.as_str(), unwrapped.is_unwrapped, unwrapped.is_probe), expected, "{}", capture["agent"]);
    }
}
