//! The mark of a reported run: its name in the environment of its command, by which shims below find it.

use std::ffi::CString;

/// The name of a reported run in its command's environment, drawn by chance.
pub type RunMark = [u8; 16];

/// What a witness's name begins with, and how much of the mark is behind it: a name has 15 bytes.
const WITNESS: &[u8] = b"rexec-";
const WITNESS_DIGITS: usize = 9;

/// The entry that tells processes of a reported run which one it is.
#[must_use]
pub fn reported_entry(mark: &RunMark) -> CString {
    let digits: String = mark.iter().map(|byte| format!("{byte:02x}")).collect();
    CString::new(format!("REXEC_REPORTED={digits}")).expect("made of digits")
}

/// The run that such a variable's value names. Zero if it names none.
#[must_use]
pub fn marked_run(value: &[u8]) -> RunMark {
    let digits = std::str::from_utf8(value).unwrap_or_default();
    let is_one = digits.len() == 2 * size_of::<RunMark>() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_one { u128::from_str_radix(digits, 16).unwrap_or(0).to_be_bytes() } else { RunMark::default() }
}

/// The name of the process that waits beside the command of a run (PR_SET_NAME, prctl(2)). From outside it shows which
/// run the shim above it reports, as the environment of a process cannot be read without waiting for it.
#[must_use]
pub fn witness_name(mark: &RunMark) -> CString {
    let digits = mark.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).take(WITNESS_DIGITS);
    let digits: Vec<u8> = digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]).collect();
    CString::new([WITNESS, &digits].concat()).expect("made of digits")
}

/// Whether a process's name is that of such a process, of whatever run.
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
        let entry = reported_entry(&mark);
        assert_eq!(entry.as_c_str(), c"REXEC_REPORTED=000102fa0405060708090a0b0c0d0eff");
        let value = &entry.to_bytes()[15..];
        assert_eq!(marked_run(value), mark);
        for value in [&b""[..], b"1", &value[1..], b"+00102fa0405060708090a0b0c0d0eff", &[0xff; 32]] {
            assert_eq!(marked_run(value), RunMark::default());
        }
        assert_eq!(witness_name(&mark).as_c_str(), c"rexec-000102fa0");
        assert!(names_witness(b"rexec-000102fa0") && !names_witness(b"rexec-sh") && !names_witness(b"rexec-000102fa"));
    }
}
