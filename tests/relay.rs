//! What the caller is given of a command's output, and when: the treatment, through the real shim and host.

#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;

#[path = "relay/demand.rs"]
mod demand;
#[path = "relay/flags.rs"]
mod flags;
#[path = "relay/fullscreen.rs"]
mod fullscreen;
#[path = "relay/interaction.rs"]
mod interaction;
#[path = "relay/jobs.rs"]
mod jobs;
#[path = "relay/keys.rs"]
mod keys;
#[path = "relay/notes.rs"]
mod notes;
#[path = "relay/sessions.rs"]
mod sessions;
#[path = "relay/streaming.rs"]
mod streaming;
#[path = "relay/terminals.rs"]
mod terminals;
