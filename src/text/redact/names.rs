//! Which variables hold secrets, by their names.

const WORDS: [&str; 11] =
    ["key", "token", "secret", "passwd", "password", "pwd", "credential", "auth", "cookie", "dsn", "session"];

/// Names that have such a word in them and hold none: places, and what desktops and git put there.
const HARMLESS: [&str; 6] =
    ["PWD", "SSH_AUTH_SOCK", "DESKTOP_SESSION", "SESSION_MANAGER", "DBUS_SESSION_BUS_ADDRESS", "TERM_SESSION_ID"];
const HARMLESS_STARTS: [&str; 2] = ["XDG_SESSION_", "GIT_CONFIG_KEY_"];

/// Whether a variable of this name holds a secret: one of the words stands between underscores, or before a digit.
pub fn is_secret_name(name: &[u8]) -> bool {
    if HARMLESS.iter().any(|harmless| name == harmless.as_bytes())
        || HARMLESS_STARTS.iter().any(|start| name.starts_with(start.as_bytes()))
    {
        return false;
    }
    let parts = name.split(|&byte| byte == b'_');
    parts.into_iter().any(|part| {
        let word_len = part.iter().position(u8::is_ascii_digit).unwrap_or(part.len());
        WORDS.iter().any(|word| part[..word_len].eq_ignore_ascii_case(word.as_bytes()))
    })
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
        ] {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
    }
}
