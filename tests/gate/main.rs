//! Rules for commands, tested through their public interface: the file, the rules, their order, and the packs.

mod algebra;
#[expect(dead_code, reason = "every test file uses its part of the harness")]
#[path = "../black_box/support/dice.rs"]
mod dice;
mod document;
mod errors;
mod learned;
mod packs;
mod rules;
mod support;
