//! Which variables hold secrets, by their names.

/// The words, by their first letter; every command asks about every name of its environment.
fn words(first: u8) -> &'static [&'static str] {
    match first.to_ascii_lowercase() {
        b'a' => &["auth"],
        b'c' => &["credential", "cookie"],
        b'd' => &["dsn"],
        b'k' => &["key"],
        b'p' => &["passwd", "password", "pwd"],
        b's' => &["secret", "session"],
        b't' => &["token"],
        _ => &[],
    }
}

/// Names that have such a word in them and hold none: places, and what desktops and git put there.
const HARMLESS: [&str; 6] =
    ["PWD", "SSH_AUTH_SOCK", "DESKTOP_SESSION", "SESSION_MANAGER", "DBUS_SESSION_BUS_ADDRESS", "TERM_SESSION_ID"];
const HARMLESS_STARTS: [&str; 2] = ["XDG_SESSION_", "GIT_CONFIG_KEY_"];

/// Whether a variable of this name holds a secret: one of the words stands between underscores, or before a digit.
pub fn is_secret_name(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'_').any(has_word) && !is_harmless(name)
}

fn has_word(part: &[u8]) -> bool {
    let Some(&first) = part.first() else { return false };
    words(first).iter().any(|word| {
        let is_over = part.get(word.len()).is_none_or(u8::is_ascii_digit);
        is_over && part.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    })
}

fn is_harmless(name: &[u8]) -> bool {
    HARMLESS.iter().any(|harmless| name == harmless.as_bytes())
        || HARMLESS_STARTS.iter().any(|start| name.starts_with(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for name in [
            "API_KEY",
            "github_token",
            "R2_ACCESS_KEY_ID",
            "DB_PASSWORD",
            "MYSQL_PWD",
            "KEY2",
            "TOKEN",
            "SENTRY_DSN",
            "X_AUTH",
            "KEY2_X",
            "Session_Cookie",
            "MY_PASSWD3",
            "key9x_A",
            "_AUTH",
        ] {
            assert!(is_secret_name(name.as_bytes()), "{name}");
        }
        for name in [
            "PATH",
            "PWD",
            "OLDPWD",
            "KEYBOARD",
            "MONKEY",
            "TOKENIZERS_PARALLELISM",
            "SSH_AUTH_SOCK",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "XDG_SESSION_TYPE",
            "GIT_CONFIG_KEY_0",
            "",
            "_",
            "KEYS",
            "HOTKEY",
            "KE",
            "KEYx1",
        ] {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
    }
}
