//! The reader of shell text, tested through its public interface, against bash, another parser and itself.

#![expect(clippy::disallowed_methods, reason = "bash is started to compare with it")]

mod against_bash;
mod allocated;
mod bounds;
#[expect(dead_code, reason = "every test file uses its part of the harness")]
#[path = "../black_box/support/dice.rs"]
mod dice;
mod fed;
mod foreseen;
mod leaves;
mod shown;
