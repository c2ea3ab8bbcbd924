//! A value as one line of JSON, for the socket and for `--json`.

use serde::Serialize;

/// Appends a value and a newline. The value must be of a type that always serializes into memory: a struct or an enum of
/// such, or a map whose keys are text.
pub fn put_line(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, value).expect("these types always serialize into memory");
    out.push(b'\n');
}
