//! The line in /proc/PID/stat. Fields have the numbers of proc_pid_stat(5), from 1.

use std::str::FromStr;

#[derive(Debug, Clone, Copy)]
pub(super) struct StatLine<'a> {
    /// The program's name. It may contain any byte except NUL.
    pub(super) name: &'a [u8],
    /// The third field and all that follow.
    rest: &'a [u8],
}

impl<'a> StatLine<'a> {
    /// Parses a line. The name ends at the last parenthesis, because no later field contains one.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let (open, close) = (memchr::memchr(b'(', line)?, memchr::memrchr(b')', line)?);
        Some(Self { name: line.get(open + 1..close)?, rest: line.get(close + 2..)?.trim_ascii_end() })
    }

    /// The third field: `R`, `S`, `T`, `Z`, …
    pub(super) fn state(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The number in a field, from the fourth on; `None` if it does not fit the type.
    pub(super) fn field<N: FromStr>(&self, place: usize) -> Option<N> {
        let field = self.rest.split(|&byte| byte == b' ').nth(place.checked_sub(3)?)?;
        std::str::from_utf8(field).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = StatLine::read(b"7 (a) b) (c\xff) S 1 -2 3 18446744073709551615\n").unwrap();
        assert_eq!((stat.name, stat.state()), (b"a) b) (c\xff".as_slice(), Some(b'S')));
        assert_eq!((stat.field(4), stat.field(5), stat.field(6)), (Some(1), Some(-2), Some(3)));
        assert_eq!((stat.field(7), stat.field::<i32>(7)), (Some(u64::MAX), None));
        assert_eq!((stat.field::<i32>(8), stat.field::<i32>(3), stat.field::<i32>(2)), (None, None, None));
        for line in [&b""[..], b"7", b"7 (a", b"7 )a(", b"7 (a)"] {
            assert!(StatLine::read(line).is_none_or(|stat| stat.state().is_none()), "{}", line.escape_ascii());
        }
    }
}
