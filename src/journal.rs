//! The journal's format, which the recorder writes and the command line reads, and the frames and reports between host
//! and recorder.
//!
//! ```text
//! host ── frame ──▶ recorder ── record ──▶ file ── reader ──▶ command line, next recorder
//!   ▲                  │
//!   └───── status ─────┘
//! ```
//!
//! * [`entry_words`]: what of a log's entries is published, in words and in the record of the end.
//! * [`record`]: the lines of a file, one type per file below it.
//! * [`reader`]: reads the lines back.
//! * [`line_fields`]: reads a few fields of a line, as fast as its end can be found.
//! * [`recording`]: the lines of a recording, which has the output with its times.
//! * `prior`: the lines of the tool before this one, which the reader takes for ends.
//! * [`summary`]: the summary of a file's lines, kept beside the file.
//! * [`frame`]: the host's messages to the recorder, on a socket. No frame reaches a file.
//! * [`status`]: the recorder's answers on that socket.
//!
//! Only the format is here. [`crate::sink::feed`] decides what the host sends and what it keeps until the recorder
//! has written it. `host::recorder_link` holds that feed, and `host::recorder_process` starts the recorder and owns
//! the host's end of the socket. [`crate::recorder`] writes the files.

pub mod entry_words;
pub mod frame;
pub mod line_fields;
mod prior;
pub mod reader;
pub mod record;
pub mod recording;
pub mod status;
pub mod summary;
