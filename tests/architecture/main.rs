//! The rules of the source code, checked on its text.
//!
//! | rule | module |
//! | --- | --- |
//! | which part may name which, and where mio, nix, serde_json, lexopt, `unsafe`, files and the wall clock may be used | `arrows` |
//! | no circle among the modules of a folder | `circles` |
//! | black-box tests start programs with an environment of their own | `hermetic` |
//! | no file on the map of `src/lib.rs` that does not exist | `map` |
//! | what cargo packs of the crate is whole | `package` |
//!
//! The lints in Cargo.toml and .clippy.toml check the rest: casts, blocking calls, missing docs.

mod arrows;
mod circles;
mod hermetic;
mod map;
mod package;
mod source;
