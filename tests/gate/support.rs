//! Rules and commands in words.

use rexec_host::gate::{Action, Facts, Gate, Judged, load};

/// Around every command of these tests.
pub(crate) const FACTS: Facts<'static> = Facts {
    agent: Some("codex"),
    session: Some("s1"),
    directory: Some(b"/people/ann/shop"),
    project: Some(b"/people/ann/shop"),
    home: Some(b"/people/ann"),
    processes: None,
    today: Some("2026-05-21"),
};

#[track_caller]
pub(crate) fn gate(rules: &str) -> Gate {
    load(rules.as_bytes(), "rules.toml").unwrap_or_else(|error| panic!("{error}\n{rules}")).gate
}

/// The verdict on a text: what is done, and why.
pub(crate) fn judged(gate: &Gate, text: &str) -> (Action, String) {
    judged_with(gate, text, &FACTS)
}

pub(crate) fn judged_with(gate: &Gate, text: &str, facts: &Facts<'_>) -> (Action, String) {
    let leaves = gate.leaves(text.as_bytes(), &|name| (name == b"HOME").then(|| b"/people/ann".to_vec()));
    let judged = Judged::of(gate, leaves, facts);
    match judged.strictest() {
        Some(at) => {
            let program = String::from_utf8_lossy(&judged.leaves[at].program);
            (judged.verdicts[at].action, judged.verdicts[at].sentence(&program))
        }
        None => (Action::Allow, String::new()),
    }
}

/// What the rules do with a text.
pub(crate) fn action(rules: &str, text: &str) -> Action {
    judged(&gate(rules), text).0
}
