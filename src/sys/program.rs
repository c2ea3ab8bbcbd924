//! A program's name, as the kernel shows it in /proc/PID/comm.

/// The size of a name in the kernel, with its NUL, bytes (TASK_COMM_LEN).
pub const PROGRAM_BYTES: usize = 16;

/// A program's name as the kernel keeps it: up to 15 bytes. Displayed, control characters are `?`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Program(pub(crate) [u8; PROGRAM_BYTES]);

impl Program {
    /// The first bytes of a name.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; PROGRAM_BYTES];
        let length = name.len().min(PROGRAM_BYTES);
        bytes[..length].copy_from_slice(&name[..length]);
        Self(bytes)
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |c: char| if c.is_control() { '?' } else { c };
        String::from_utf8_lossy(self.bytes()).chars().map(shown).try_for_each(|c| write!(f, "{c}"))
    }
}
