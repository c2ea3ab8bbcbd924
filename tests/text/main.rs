//! The text modules, tested through their public interface; each file says what it covers.

mod console;
mod corpus;
mod data;
#[expect(dead_code, reason = "every test file uses its part of the harness")]
#[path = "../black_box/support/dice.rs"]
mod dice;
mod properties;
mod redact;
mod settings;
mod settle;
mod tidy;
mod wrappers;
