//! The character set of the user's terminal, by the environment.

/// Returns true for UTF-8, by the precedence of locale(7). Without a locale, UTF-8 is assumed.
#[must_use]
pub fn is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
