//! Finds the places of a text that are worth a closer look, by three bytes: where a secret's name may have one of its
//! words, where a token of a known shape may begin, and what may be an option, an address or a private key.
//!
//! Each kind of three bytes is in one of 64 groups, and a table for each of the three says which groups a byte fits.
//! Invariant: no such place is missed, however the text was cut; few others are found.

use std::sync::LazyLock;

use super::{names, tokens};

const PLACES: usize = 3;
const GROUPS: usize = 64;
/// Groups from here on may be shared by tokens.
const SHARED: usize = 28;

type Tables = [[u64; 256]; PLACES];

static TABLES: LazyLock<Tables> = LazyLock::new(tables);

fn tables() -> Tables {
    let mut tables = [[0; 256]; PLACES];
    let mut group = 0;
    let mut add = |alternatives: [&[u8]; PLACES]| {
        for (table, bytes) in tables.iter_mut().zip(alternatives) {
            bytes.iter().for_each(|&byte| {
                table[usize::from(byte)] |=
                    1 << (if group < GROUPS { group } else { SHARED + (group - SHARED) % (GROUPS - SHARED) })
            });
        }
        group += 1;
    };
    let any: Vec<u8> = (0..=255).collect();
    for three in names::THREES {
        let [first, second, third] = three.map(|byte| [byte, byte.to_ascii_uppercase()]);
        // `pw` ends where it ends.
        add([&first, &second, if three == *b"pw_" { &any } else { &third }]);
    }
    for three in [b"://", b":AA", b"---", b"--u", b"--p", b"Bas", b"bas"] {
        add([&three[..1], &three[1..2], &three[2..]]);
    }
    add([b"-", b"upaU", &any]);
    // A number, the beginning of a bot's token, in base64.
    add([b"MNO", b"DTjz", b"AEIMQUYcgk"]);
    // What begins alike goes together.
    let mut starts: Vec<[u8; 3]> = tokens::starts().collect();
    starts.sort_unstable();
    for alike in starts.chunk_by(|a, b| a[..2] == b[..2]) {
        let thirds: Vec<u8> = alike.iter().map(|three| three[2]).collect();
        add([&alike[0][..1], &alike[0][1..2], &thirds]);
    }
    tables
}

/// The first place where one of these may begin, or begin to: at the end of the text fewer bytes are enough.
pub(super) fn find(text: &[u8]) -> Option<usize> {
    let tables = &*TABLES;
    let [first, second, third] = tables;
    let fits = |a: u8, b: u8, c: u8| first[usize::from(a)] & second[usize::from(b)] & third[usize::from(c)];
    let mut at = 0;
    // Four at a time: one branch for all of them.
    while let Some(&[a, b, c, d, e, f]) = text[at..].first_chunk::<6>() {
        if fits(a, b, c) | fits(b, c, d) | fits(c, d, e) | fits(d, e, f) != 0 {
            let two = fits(a, b, c) | fits(b, c, d);
            let step = if two != 0 { usize::from(fits(a, b, c) == 0) } else { 2 + usize::from(fits(c, d, e) == 0) };
            return Some(at + step);
        }
        at += 4;
    }
    (at..text.len()).find(|&at| {
        let groups = text[at..].iter().zip(tables).map(|(&byte, table)| table[usize::from(byte)]);
        groups.fold(u64::MAX, |all, fitting| all & fitting) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_missed() {
        for word in ["PassWord", "token", "KEY", "pw", "ghp_", "sk-", "xoxb-", "eyJ", "AKIA", "://", "-----", "-u "] {
            for before in 0..20 {
                let text = format!("{}{word}", ".".repeat(before));
                for len in before + 1..=text.len() {
                    assert!(find(&text.as_bytes()[..len]).is_some_and(|at| at <= before + 4), "{}", &text[..len]);
                }
                assert!(find(text.as_bytes()).is_some_and(|at| at >= before), "{text}");
            }
        }
        assert_eq!(find(b"finished in 12 ms, 0 left\n"), None);
        assert_eq!(find(b""), None);
    }
}
