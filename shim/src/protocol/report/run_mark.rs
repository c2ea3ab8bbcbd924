//! The mark of a reported run: its name in the environment of its command, by which shims below find it.

use std::ffi::{CStr, CString};

/// The name of a reported run in its command's environment, drawn by chance.
pub type RunMark = [u8; 16];

/// The beginning of a witness's name. A part of the mark follows it: a name has 15 bytes.
const WITNESS: &[u8] = b"rexec-";
const WITNESS_DIGITS: usize = 9;
/// The digits of a mark.
const MARK_DIGITS: usize = 2 * size_of::<RunMark>();

/// The entry that names a reported run to its processes. `socket` is the path of the host's socket, if the caller has
/// chosen that: its variable does not reach the command.
#[must_use]
pub fn reported_entry(mark: &RunMark, socket: &[u8]) -> CString {
    let digits: String = mark.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut entry = format!("REXEC_REPORTED={digits}").into_bytes();
    if !socket.is_empty() {
        entry.push(b':');
        entry.extend_from_slice(socket);
    }
    CString::new(entry).expect("made of digits and a C string")
}

/// The run in such a variable's value. Zero if it names none.
#[must_use]
pub fn marked_run(value: &[u8]) -> RunMark {
    let (digits, rest) = value.split_at(value.len().min(MARK_DIGITS));
    let is_one = digits.len() == MARK_DIGITS
        && digits.iter().all(u8::is_ascii_hexdigit)
        && rest.first().is_none_or(|&byte| byte == b':');
    let number =
        std::str::from_utf8(digits).ok().filter(|_| is_one).and_then(|text| u128::from_str_radix(text, 16).ok());
    number.unwrap_or(0).to_be_bytes()
}

/// The path of the host's socket in such a variable's value.
#[must_use]
pub fn marked_socket(value: &CStr) -> Option<&CStr> {
    let rest = value.to_bytes_with_nul().get(MARK_DIGITS + 1..)?;
    let is_one = marked_run(value.to_bytes()) != RunMark::default() && rest.len() > 1;
    CStr::from_bytes_with_nul(rest).ok().filter(|_| is_one)
}

/// The name of the process that waits beside the command of a run (PR_SET_NAME, prctl(2)). From outside it shows the
/// run that the shim above it reports, because the environment of a process cannot be read without waiting for it.
#[must_use]
pub fn witness_name(mark: &RunMark) -> CString {
    let digits = mark.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).take(WITNESS_DIGITS);
    let digits: Vec<u8> = digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]).collect();
    CString::new([WITNESS, &digits].concat()).expect("made of digits")
}

/// Returns true if a process's name is that of such a process, of any run.
#[must_use]
pub fn names_witness(name: &[u8]) -> bool {
    let digits = name.strip_prefix(WITNESS).unwrap_or_default();
    digits.len() == WITNESS_DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_run() {
        let mark = [0, 1, 2, 250, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        let entry = reported_entry(&mark, b"");
        assert_eq!(entry.as_c_str(), c"REXEC_REPORTED=000102fa0405060708090a0b0c0d0eff");
        let value = &entry.to_bytes()[15..];
        assert_eq!(marked_run(value), mark);
        for value in [&b""[..], b"1", &value[1..], b"+00102fa0405060708090a0b0c0d0eff", &[0xff; 32]] {
            assert_eq!(marked_run(value), RunMark::default());
        }
        let entry = reported_entry(&mark, b"/a:b");
        let value = CStr::from_bytes_with_nul(&entry.as_bytes_with_nul()[15..]).unwrap();
        assert_eq!((marked_run(value.to_bytes()), marked_socket(value)), (mark, Some(c"/a:b")));
        assert_eq!(witness_name(&mark).as_c_str(), c"rexec-000102fa0");
        assert!(names_witness(b"rexec-000102fa0") && !names_witness(b"rexec-sh") && !names_witness(b"rexec-000102fa"));
        for value in [c"", c"/a:b", c"000102fa0405060708090a0b0c0d0eff", c"000102fa0405060708090a0b0c0d0eff:"] {
            assert_eq!(marked_socket(value), None);
        }
    }
}
