//! What every run can have beside its command: markers, an environment profile, ports, spans.

mod accepted;
mod always;
mod held;
mod kept;
mod ports;
mod projects;
pub(crate) mod rules;
mod spans;
mod told;
mod trusted;
mod variables;
mod victims;
