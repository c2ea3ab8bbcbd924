//! The mask that takes a secret's place: `«redacted:NAME»`.

/// The longest name in a mask, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// How every mask begins.
const MASK: &str = "«redacted:";

/// Returns true if a mask stands in this text.
#[must_use]
pub fn is_masked(text: &[u8]) -> bool {
    memchr::memmem::find(text, MASK.as_bytes()).is_some()
}

/// The mask for the value of this variable.
#[must_use]
pub fn masked(name: &[u8]) -> String {
    mask(&shown(name))
}

/// The mask of a secret of this name.
pub(super) fn mask(name: &str) -> String {
    [MASK, name, "»"].concat()
}

/// A variable's name as the mask shows it: letters, digits and `_`.
pub(super) fn shown(name: &[u8]) -> String {
    let safe = |&byte: &u8| if byte.is_ascii_alphanumeric() || byte == b'_' { char::from(byte) } else { '_' };
    name.iter().take(NAME_BYTES_MAX).map(safe).collect()
}
