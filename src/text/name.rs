//! The one rule for names: of services, projects, agents and their sessions. A name is chosen by a program, and is read,
//! typed and completed by a person.
//!
//! Invariant: a name is one line of plain text (see [`crate::text::safe_text`]) without a character that a shell or a banner
//! gives a meaning to. So it stands in a row of the host's, in a message and in a command line as what it is.

use rexec_sh::protocol::shown::is_plain;

use super::escape::escape_line;

/// The replacement for a character that no name may have.
const SUBSTITUTE: char = '_';

/// Returns true if this character may stand in a name. Those of a banner's grammar and of a shell's may not.
fn may_stand(c: char) -> bool {
    const SHELL: &str = "`'\"\\;&|<>*?{}!";
    is_plain(c) && !matches!(c, ':' | '$' | '#' | '[' | ']') && !SHELL.contains(c)
}

/// Returns true if a program may choose this name, of at most `bytes_max` bytes.
#[must_use]
pub fn is_name(text: &str, bytes_max: usize) -> bool {
    !text.is_empty() && text.len() <= bytes_max && text.trim() == text && text.chars().all(may_stand)
}

/// The form of a service's name, in words.
pub const NAME_FORM: &str = "a name has letters, digits, -, _ and ., begins with a letter, and has 64 at most";

/// Returns true if a service may have this name. Numbers and other references to runs are refused.
#[must_use]
pub fn is_service_name(text: &str, bytes_max: usize) -> bool {
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name(text, bytes_max) && begins_well && text.bytes().all(is_of_a_name)
}

/// A valid name made of a program's own name or a directory's, on at most `columns_max` columns, with `_` for
/// characters that no name has.
#[must_use]
pub fn name_of(text: &str, columns_max: usize) -> String {
    let name: String = text.trim().chars().map(|c| if may_stand(c) { c } else { SUBSTITUTE }).collect();
    escape_line(&name, columns_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_is_made_of_is_a_name() {
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        assert!(all.chars().all(|c| is_name(&name_of(&format!("a{c}b"), 99), 99)));
        assert_eq!(name_of("y\x1b]0;X\x07▌\u{202e}$(touch x)`y`", 99), "y_]0_X____(touch x)_y_".replace(']', "_"));
        assert_eq!((name_of(" größe 日本 (2) ", 99), name_of("a/b~c", 99)), ("größe 日本 (2)".into(), "a/b~c".into()));
        for bad in
            ["", " a", "a ", "a\n", "a\tb", "$(x)", "a;b", "a'b", "▌", "a\u{200b}", "a\u{9b}b", "#4", &"x".repeat(65)]
        {
            assert!(!is_name(bad, 64), "{bad:?}");
        }
    }

    #[test]
    fn names_of_services_are_words_that_no_reference_is() {
        for good in ["web", "Web-2", "api.v1", "a_b"] {
            assert!(is_service_name(good, 64), "{good}");
        }
        for bad in ["", "2web", "-x", "a b", "a:1", "#4", "wéb", "a/b", &"x".repeat(65)] {
            assert!(!is_service_name(bad, 64), "{bad}");
        }
    }
}
