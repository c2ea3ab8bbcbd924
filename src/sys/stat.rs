//! A /proc/PID/stat, read by the places that proc_pid_stat(5) gives its fields.

use std::str::FromStr;

/// One line of it, borrowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stat<'a> {
    /// The program's name, which may hold any byte but NUL.
    pub(super) name: &'a [u8],
    /// From the third field on.
    rest: &'a [u8],
}

impl<'a> Stat<'a> {
    /// Finds the name: it ends at the last parenthesis, because nothing behind it has one.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let (open, close) = (memchr::memchr(b'(', line)?, memchr::memrchr(b')', line)?);
        Some(Self { name: line.get(open + 1..close)?, rest: line.get(close + 2..)?.trim_ascii_end() })
    }

    /// The third field: `R`, `S`, `T`, `Z`, …
    pub(super) fn state(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The number at a place, from the fourth on.
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
        let stat = Stat::read(b"7 (a) b) (c\xff) S 1 -2 3 18446744073709551615\n").unwrap();
        assert_eq!((stat.name, stat.state()), (b"a) b) (c\xff".as_slice(), Some(b'S')));
        assert_eq!((stat.field(4), stat.field(5), stat.field(6)), (Some(1), Some(-2), Some(3)));
        assert_eq!((stat.field(7), stat.field::<i32>(7)), (Some(u64::MAX), None));
        assert_eq!((stat.field::<i32>(8), stat.field::<i32>(3), stat.field::<i32>(2)), (None, None, None));
        for line in [&b""[..], b"7", b"7 (a", b"7 )a(", b"7 (a)"] {
            assert!(Stat::read(line).is_none_or(|stat| stat.state().is_none()), "{}", line.escape_ascii());
        }
    }
}
