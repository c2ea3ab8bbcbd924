//! The known name that a misspelt word was probably meant to be.

/// The longest word that is compared, characters. A longer one is not a misspelt name.
const WORD_CHARS_MAX: usize = 32;

/// The name nearest to a word. `None` unless a third of the word or less is wrong, or the name begins with the word.
/// Leading dashes do not count.
#[must_use]
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let bare = word.trim_start_matches('-');
    if bare.is_empty() || bare.chars().count() > WORD_CHARS_MAX {
        return None;
    }
    let worth = |name: &&'a str| {
        let name = name.trim_start_matches('-');
        let begins = bare.len() > 1 && name.starts_with(bare);
        let wrong = if begins { 0 } else { distance(bare, name) };
        (wrong <= (bare.chars().count() / 3).max(1) && wrong < bare.chars().count()).then_some(wrong)
    };
    names.iter().filter_map(|name| worth(name).map(|wrong| (wrong, *name))).min_by_key(|near| near.0).map(|near| near.1)
}

/// The number of edits that turn one word into the other. An edit changes, adds or removes a character, or swaps two
/// neighbours.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let (mut before, mut last) = (Vec::<usize>::new(), (0..=other.len()).collect::<Vec<_>>());
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut cost = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_find_their_names() {
        let names = ["ps", "kill", "--check-host", "--list", "--print", "help", "--help", "--version"];
        for (word, name) in [
            ("kil", Some("kill")),
            ("klil", Some("kill")),
            ("KILL", None),
            ("list", Some("--list")),
            ("--lsit", Some("--list")),
            ("--check", Some("--check-host")),
            ("pss", Some("ps")),
            ("p", None),
            ("dance", None),
            ("", None),
            ("--", None),
            ("hlep", Some("help")),
            ("--verzion", Some("--version")),
        ] {
            assert_eq!(nearest(word, &names), name, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), &names), None);
    }
}
