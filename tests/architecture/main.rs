//! The rules of the source code, checked on its text.
//!
//! | rule | module |
//! | --- | --- |
//! | which part may name which, and where mio, nix, serde_json, lexopt, `unsafe`, files and the wall clock may be used | `arrows` |
//! | no circle among the modules of a folder | `circles` |
//! | no long file; no type name twice in the workspace; no file on the map of `src/lib.rs` that does not exist | `house` |
//!
//! The lints in Cargo.toml and clippy.toml check the rest: long functions, casts, blocking calls, missing docs.

mod arrows;
mod circles;
mod house;
mod source;
