//! What every run can have beside its command: markers, an environment profile, ports, spans.

mod ports;
mod projects;
mod rules;
mod spans;
mod variables;
