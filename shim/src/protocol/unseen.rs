//! Notes about commands that a shim ran without a host, in a file beside the socket. The next host tells a person.
//!
//! ```text
//! file  a note per line, `1 MILLISECONDS REASON PID PARENT NAME`
//! ```
//!
//! A note has the start and the caller of a command, and no word of the command itself. A shim holds a shared flock(2)
//! while it adds one. A host that takes the file renames it first, and then waits for an exclusive one, so no note is
//! lost between.

/// The longest file, bytes. Notes that do not fit are left out.
pub const FILE_BYTES_MAX: u64 = 256 << 10;
/// The longest name in a note, bytes.
const NAME_BYTES_MAX: usize = 64;

/// The reason why no host saw a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnseenReason {
    /// None could be reached.
    NoHost,
    /// The caller's sandbox denied sockets, and no host took reports.
    Sandboxed,
}

/// A command that no host saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenNote<'a> {
    /// Its start, milliseconds since 1970.
    pub at: u64,
    pub reason: UnseenReason,
    /// The shim's process, and its parent, by their own numbers. A shim executed by one of an earlier note belongs to
    /// the same command.
    pub pids: (i32, i32),
    /// The caller's name; empty if it has none.
    pub name: &'a [u8],
}

impl<'a> UnseenNote<'a> {
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let reason = match self.reason {
            UnseenReason::NoHost => 'n',
            UnseenReason::Sandboxed => 's',
        };
        let mut line = format!("1 {} {reason} {} {} ", self.at, self.pids.0, self.pids.1).into_bytes();
        let name = self.name.iter().take(NAME_BYTES_MAX);
        line.extend(name.map(|&byte| if byte < b' ' || byte == 0x7F { b'_' } else { byte }));
        line.push(b'\n');
        line
    }

    /// Reads a line without its end; `None` if it is not a note.
    #[must_use]
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let version = text()?;
        let at = text()?.parse().ok()?;
        let reason = match text()? {
            "n" => UnseenReason::NoHost,
            "s" => UnseenReason::Sandboxed,
            _ => return None,
        };
        let pids = (text()?.parse().ok()?, text()?.parse().ok()?);
        let name = fields.next()?;
        (version == "1" && name.len() <= NAME_BYTES_MAX).then_some(Self { at, reason, pids, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_that_reads_back() {
        let note =
            UnseenNote { at: 1_790_000_000_123, reason: UnseenReason::Sandboxed, pids: (7, 3), name: b"Claude Code" };
        let line = note.line();
        assert_eq!(line, b"1 1790000000123 s 7 3 Claude Code\n");
        assert_eq!(UnseenNote::read(&line[..line.len() - 1]), Some(note));
        let nameless = UnseenNote { name: b"", reason: UnseenReason::NoHost, ..note };
        assert_eq!(UnseenNote::read(nameless.line().trim_ascii_end()), None, "its last blank is missing");
        assert_eq!(UnseenNote::read(b"1 1790000000123 n 7 3 "), Some(nameless));
        let forged = UnseenNote { name: b"x\n1 2 n 3 4 y", ..note }.line();
        assert_eq!(forged.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let long = [b'x'; 9_999];
        assert!(UnseenNote { name: &long, ..note }.line().len() < 128);
        for line in ["", "1", "2 5 n 1 1 x", "1 -5 n 1 1 x", "1 5 q 1 1 x", "1 5 n 1 x", "1 5 n 1 1"] {
            assert_eq!(UnseenNote::read(line.as_bytes()), None, "{line:?}");
        }
    }
}
