//! Patterns of names: a shell's, and find's.
//!
//! Invariant: what is in brackets matches too much rather than too little.

/// True if a shell's pattern may match the name. What is in brackets matches too much rather than too little.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where the last star stands, and how much of the name it has taken.
    let mut star = None;
    loop {
        let step = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            None if read == name.len() => return true,
            None => None,
            Some(_) if read == name.len() => return false,
            Some(b'?') => Some(at + 1),
            Some(b'[') => bracket(&pattern[at..], name[read]).map(|length| at + length),
            Some(b'\\') if pattern.len() > at + 1 => (pattern[at + 1] == name[read]).then_some(at + 2),
            Some(byte) => (*byte == name[read]).then_some(at + 1),
        };
        match (step, star) {
            (Some(next), _) => {
                let is_open = matches!(pattern[at], b'?' | b'[');
                let more = name[read + 1..].iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count();
                (at, read) = (next, read + 1 + if is_open && name[read] >= 0xc0 { more } else { 0 });
            }
            (None, Some((starred, taken))) if taken < name.len() => {
                star = Some((starred, taken + 1));
                (at, read) = (starred + 1, taken + 1);
            }
            (None, _) => return false,
        }
    }
}

/// The length of the bracket at the beginning of the pattern, if it matches. A class, and what is no ASCII, matches always.
fn bracket(pattern: &[u8], byte: u8) -> Option<usize> {
    let is_negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(is_negated);
    let end = (first + 1..pattern.len()).find(|&at| pattern[at] == b']' && !is_in_class(&pattern[first..at]));
    let Some(end) = end else {
        return (byte == b'[').then_some(1);
    };
    let set = &pattern[first..end];
    if set.contains(&b'[') || set.contains(&b'\\') || !set.is_ascii() || !byte.is_ascii() {
        return Some(end + 1);
    }
    let mut is_in = set.contains(&byte);
    for range in set.windows(3).filter(|range| range[1] == b'-') {
        is_in |= (range[0]..=range[2]).contains(&byte);
    }
    (is_in != is_negated).then_some(end + 1)
}

/// True behind the colon that ends a class: `[:alpha:` has a bracket of its own to come.
fn is_in_class(set: &[u8]) -> bool {
    let open = set.windows(2).rposition(|two| matches!(two, b"[:" | b"[." | b"[="));
    open.is_some_and(|open| set.len() > open + 2 && set.last() == Some(&set[open + 1]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell_or_more() {
        for (pattern, name, wanted) in [
            ("*", ".x", true),
            ("a*b*c", "aXbYbc", true),
            ("a*b", "ac", false),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a]", "b", true),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("[[:alpha:]]x", "bx", true),
            ("[[:alpha:]_]x", "_x", true),
            ("[[:alpha:]]", "ab", false),
            ("[[:alpha:]]x", "b]x", false),
            ("*.o", "x.c", false),
            ("**", "x", true),
            ("?[\u{e9}]", "\u{e9}\u{e9}", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), wanted, "{pattern} {name}");
        }
    }
}
