//! Text as pure functions: bytes in, bytes out. No descriptors, no clock of its own, nothing of the host.
//!
//! A command's output takes three ways through this folder:
//!
//! ```text
//!                  ┌─▶ redact ─▶ sanitize ──────────────────────▶ the agent
//!                  │    (if asked)   ├─ raw       unchanged
//!                  │                 ├─ strip     parser, window
//!                  │                 ├─ tidy      scan, parser; after a move upwards: collapse
//!                  │                 └─ collapse  parser, lazy_terminal, virtual_terminal, row_sender
//! command output ──┤
//!                  ├─▶ safe or safe::raw ───────────────────────▶ the human's terminal
//!                  │   sanitize (strip), hidden, rows ──────────▶ the human's pipe, file, or terminal without UTF-8
//!                  │
//!                  └─▶ redact, sanitize (collapse) ─────────────▶ the journal
//!
//! shell call ──────▶ unwrap ─▶ ends, escape, banner ────────────▶ the lines that the host prints around the output
//! ```
//!
//! What each guarantees, for any input in pieces of any size and in bounded memory:
//! * `parser` — the one grammar of terminal output: valid UTF-8 text, controls, sequences.
//! * `sanitize` — the text that an agent reads: without escape sequences, redraws resolved as the mode says.
//! * `safe` — output that cannot change the console outside of its own block, nor pass for a row of the host's.
//! * `playable` — of a recording, what draws: nothing that asks the terminal, or that outlives a player.
//! * `hidden` and `rows` — no invisible character, and no row that reads like one of the host's.
//! * `redact` — no value of a secret-named variable, and no secret with a telling name or a known shape.
//! * `unwrap` — the model's command, or the whole text if a part of it is not certain.
//! * `markdown` — text that stays text there, without controls and invisible characters.
//! * `whole` — no character and no escape sequence is torn where output is cut.
//! * `echo` — whether output shows a secret that somebody types.
//! * `bind_failure` — whether output says that a port is in use, and which it may be.
//! * `safe_text` — by its type, text that a person's terminal may show as it is.
//! * `terminal_tail` — the end of what was written to a terminal, for one that comes later.
//! * `terminal_text` — what a verb writes to a terminal: plain text and own colours.
//! * `escape`, `ends` and `banner` — one line each, of printable characters, that no text within it can end.
//!
//! `name` is the rule for names, and `agent_name` how agents are called everywhere. `settings` edits files that people write,
//! `toml` is the lexer of TOML. `nearest` finds the name that a misspelt word was meant to be, `span` reads lengths of time.
//!
//! `scan`, `utf8`, `csi` and `width` are the tables and the fast loops below these; `encode`, `count` and `reason` are
//! small conversions for records and messages.

pub mod agent_name;
pub mod alternate_screen;
pub mod banner;
pub mod bind_failure;
pub mod count;
mod csi;
pub mod diff;
pub mod echo;
pub mod encode;
pub mod ends;
pub mod escape;
pub mod hidden;
pub mod highlight;
pub mod line_feeds;
pub mod markdown;
pub mod name;
pub mod nearest;
mod parser;
pub mod place;
pub mod plain_path;
pub mod playable;
pub mod prompt;
pub mod reason;
pub mod redact;
pub mod rows;
pub mod safe;
pub mod safe_text;
pub mod sanitize;
mod scan;
pub mod settings;
pub mod span;
pub mod terminal_tail;
pub mod terminal_text;
pub mod toml;
pub mod unwrap;
mod utf8;
pub mod whole;
pub(crate) mod width;
