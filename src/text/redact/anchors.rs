//! Finds the *places* in a text that need a verdict: where a secret's name may have one of its words, where a token of a
//! known shape may begin, and where an option, an address or a private key may be.
//!
//! Most of the text is read in pairs of bytes, with one table lookup per pair. The entry has a bit for each group of
//! four-byte windows that the pair may begin, and one for each that it may end. If two pairs in a row are halves of the same
//! group, the places around them are tested byte by byte. Each place has a window for even offsets in the text and one for
//! odd offsets, see [`Windows`].
//!
//! Invariant: no place is missed, however the text was cut; few others are found.

use std::sync::LazyLock;

use super::tokens::{Rarity, SHAPES};
use super::{names, private_keys, tokens};

/// The most bytes from a place to the end of its window.
const REACH: usize = 8;
/// Bytes per decision.
const BLOCK: usize = 16;
/// The first bit of an entry's upper half, which is about second halves.
const SECOND: u32 = 32;

/// The groups; those of the names come first.
const COLON: usize = 0;
const PAIR: usize = 11;
const DASH: usize = 12;
const TOKENS: usize = 16;
/// Shapes with a sign, at even offsets and at odd ones.
const SIGNS: [usize; 2] = [27, 28];
const PHRASES: [usize; 2] = [29, 30];
const SHORT_TOKENS: usize = 31;

/// The groups of the tokens, by their starts or the first bytes of one. Little of other text begins like one of a group and goes
/// on like another one of it; what is worth knowing of other text was measured: sources, logs, JSON, prose, output of tools.
/// A start that is in none goes to the last group.
const TOKEN_GROUPS: [&str; 11] = [
    "SK AIza MTEy sq0atp- key- ABSK EZAK EZTK xkeysib- sq0idp- eyJ tvly- sq0csp- CFPAT- PMAK- CLOJARS_",
    "cio 1//0 hvr. hvb. SG. pa- sk- csk- pul- dapi dp.st. apify_api_ xsmtpsib- dp.pt. xapp- EAAA LTAI \
     dp.sa. ya29. AGE-SECRET-KEY-1 bkua_ NRAK- CCIPAT_ AKIA GOCSPX- dt0c01. CCIPRJ_ HRKU-",
    "patAbC hvs. AKCp sgp_ tfp_ pdl_ fm2_ npm_ hf_ r8_ sb_secret_ pat-na1- pat-eu1- sbp_ sqp_ squ_ glptt- \
     GR1348941 ATBB ATCTT3 FLWSECK",
    "secret_ oy2 whsec_ rdme_ Private-L xoxe- ops_eyJ nvapi- xoxe. xoxo- xoxc- xoxa- ATATT3 xoxb- \
     EAACEdEose0cBA",
    "vercel_ nsec1 napi_ tskey- dckr_pat_ dckr_oat_ pplx- glcbt-",
    "shpat_ glpat- Basi shppa_ glagent- xprv xoxr- pscale_tkn_ pscale_pw_ glft- shpca_ glrt- gldt- xoxp- \
     xoxd- xoxs-",
    "lin_oauth_ lin_api_ jina_ or-v1- dor_v1_ glimt- doo_v1_ glsoat- amzn.mws. api_org_ mlsn. glsa_ \
     dop_v1_ lsv2_",
    "rnd_ ntn_ fo1_ glc_ phx_ gsk_ nfp_ ghp_ azd_ ghu_ rk_test_ sk_test_ sntrys_ sntryu_ figd_",
    "rpa_ xai- md- ghs_ gloas-",
    "atlasv1. github_pat_ rubygems_ shippo_ shpss_",
    "gho_ pnu_ ghr_ rk_live_ sk_live_ pypi-",
];

type Pairs = [u64; 1 << 16];

/// One bit for each pair of bytes with which a place may begin.
static STARTS: LazyLock<Box<[u64; 1 << 10]>> = LazyLock::new(|| {
    let mut starts = Box::new([0; 1 << 10]);
    let mut add = |one: u8, two: u8| {
        let (word, bit) = start_of(one, two);
        starts[word] |= bit;
    };
    for word in names::WORDS {
        let (one, two) = (word.text[0], word.text[1]);
        for one in [one, one.to_ascii_uppercase()] {
            [two, two.to_ascii_uppercase()].into_iter().for_each(|two| add(one, two));
        }
    }
    for classes in tokens::starts() {
        classes[0].iter().for_each(|&one| classes[1].iter().for_each(|&two| add(one, two)));
    }
    for (one, second) in [(b':', &b"/A"[..]), (b'-', b"upaU-")] {
        second.iter().for_each(|&two| add(one, two));
    }
    starts
});

/// The word and the bit of a pair in [`STARTS`].
#[inline]
fn start_of(one: u8, two: u8) -> (usize, u64) {
    let pair = usize::from(u16::from_le_bytes([one, two]));
    (pair / 64, 1 << (pair % 64))
}

static PAIRS: LazyLock<Box<Pairs>> = LazyLock::new(|| {
    let mut windows = Windows { pairs: vec![0; 1 << 16] };
    windows.add_names();
    windows.add_tokens();
    windows.add_shapes();
    windows.add_others();
    windows.pairs.try_into().expect("an entry for each pair")
});

/// Builds the table. Pairs begin at even offsets, a place at any: so a place needs one window at an even distance from it
/// and one at an odd distance.
struct Windows {
    pairs: Vec<u64>,
}

/// The group of a token that begins so.
fn token_group(classes: &[Class]) -> usize {
    let is_it = |word: &str| word.bytes().zip(classes).all(|(byte, class)| class.contains(&byte));
    let of = |words: &&str| words.split_ascii_whitespace().any(is_it);
    TOKENS + TOKEN_GROUPS.iter().position(of).unwrap_or(TOKEN_GROUPS.len() - 1)
}

/// The bytes that may stand at one place of a window.
type Class = Vec<u8>;

fn any() -> Class {
    (0..=u8::MAX).collect()
}

fn only(of: fn(u8) -> bool) -> Class {
    (0..=u8::MAX).filter(|&byte| of(byte)).collect()
}

impl Windows {
    fn add(&mut self, group: usize, [a, b, c, d]: [&Class; 4]) {
        let mut mark = |first: &Class, second: &Class, bit: u64| {
            for (&one, &two) in first.iter().flat_map(|one| second.iter().map(move |two| (one, two))) {
                self.pairs[usize::from(u16::from_le_bytes([one, two]))] |= bit;
            }
        };
        mark(a, b, 1 << group);
        mark(c, d, 1 << SECOND << group);
    }

    /// Adds both windows of a place that begins with these bytes. The second one begins one byte after the place or, in the
    /// group `short`, one byte before it.
    fn add_start(&mut self, group: usize, short: Option<usize>, classes: &[Class]) {
        let any = any();
        let class = |at: usize| classes.get(at).unwrap_or(&any);
        self.add(group, [class(0), class(1), class(2), class(3)]);
        match short.or((classes.len() < 5).then_some(group)) {
            Some(short) => self.add(short, [&any, class(0), class(1), class(2)]),
            None => self.add(group, [class(1), class(2), class(3), class(4)]),
        }
    }

    fn add_names(&mut self) {
        for word in names::WORDS {
            let mut classes: Vec<Class> = word.text.iter().map(|&byte| vec![byte, byte.to_ascii_uppercase()]).collect();
            if word.is_whole {
                classes.push(only(|byte| !byte.is_ascii_lowercase()));
            }
            // Words with common pairs are in groups of their own.
            let (group, short) = match word.text {
                [b'p', b'a', b's', ..] => (0, None),
                [b't', ..] => (1, None),
                [b's', b'e', b'c', ..] => (2, None),
                [b'k', ..] => (3, None),
                [b'c', b'r', ..] => (4, None),
                [b'a', ..] => (5, None),
                [b's', b'e', ..] => (6, None),
                [b'c' | b'b', ..] => (7, None),
                // The bytes after these form common pairs.
                b"pw" => (9, Some(8)),
                [b'p', ..] => (8, Some(8)),
                [b's', ..] => (10, Some(10)),
                [b'o', ..] => (13, None),
                _ => (14, None),
            };
            self.add_start(group, short, &classes);
        }
    }

    fn add_tokens(&mut self) {
        for classes in tokens::rare_starts() {
            let short = match (classes[1][0], classes[2][0]) {
                (b'a', b't') => 8,
                (b'i', b'o') => 15,
                _ => SHORT_TOKENS,
            };
            let is_short = classes.len() < 5 || short != SHORT_TOKENS;
            self.add_start(token_group(&classes), is_short.then_some(short), &classes);
        }
    }

    fn add_shapes(&mut self) {
        let any = any();
        let signs = tokens::starts().filter(|classes| classes[0] == b"$");
        let shapes = SHAPES.iter().filter(|shape| shape.rarity == Rarity::Sign);
        let shapes = shapes.map(|shape| shape.begin.iter().map(|class| class.to_vec()).collect::<Vec<Class>>());
        for classes in signs.chain(shapes) {
            let class = |at: usize| classes.get(at).unwrap_or(&any);
            self.add(SIGNS[0], [class(0), class(1), class(2), class(3)]);
            self.add(SIGNS[1], [&any, class(0), class(1), class(2)]);
        }
        for shape in SHAPES {
            if let Rarity::Phrase(kind) = shape.rarity {
                let classes: Vec<Class> = shape.begin.iter().map(|class| class.to_vec()).collect();
                self.add_start(PHRASES[usize::from(kind)], None, &classes);
            }
        }
    }

    fn add_others(&mut self) {
        let one = |byte: u8| vec![byte];
        let (any, word, digit) = (any(), only(|byte| byte.is_ascii_alphanumeric()), only(|byte| byte.is_ascii_digit()));
        let (colon, slash, capital, dash) = (one(b':'), one(b'/'), one(b'A'), one(b'-'));
        let (apart, letters) = (only(|byte| !names::is_part(byte)), b"upaU".to_vec());
        // These are rare enough as two bytes.
        self.add(PAIR, [&any, &word, &colon, &slash]);
        self.add(PAIR, [&any, &digit, &colon, &capital]);
        self.add(PAIR, [&any, &apart, &dash, &letters]);
        self.add(COLON, [&word, &colon, &slash, &slash]);
        self.add(COLON, [&digit, &colon, &capital, &capital]);
        self.add(DASH, [&apart, &dash, &letters, &any]);
        // The end of `-----BEGIN `, because rules of dashes are common.
        self.add(DASH, [&dash, &one(b'B'), &one(b'E'), &one(b'G')]);
        self.add(DASH, [&dash, &dash, &one(b'B'), &one(b'E')]);
        for start in [b"--use", b"--pro"] {
            let classes: Vec<Class> = start.iter().map(|&byte| one(byte)).collect();
            self.add_start(DASH, None, &classes);
        }
    }
}

/// The first place from `from` on. At the end of the text, the beginning of what makes a place is enough.
#[inline(never)]
pub(super) fn find(text: &[u8], from: usize) -> Option<usize> {
    let pairs = &**PAIRS;
    // Some windows begin before their place, and the text has nothing before its first bytes.
    let early = (from..text.len().min(2)).find(|&at| is_place(text, at));
    if early.is_some() {
        return early;
    }
    let start = (from & !1).saturating_sub(2).min(text.len());
    let (blocks, rest) = text[start..].as_chunks::<BLOCK>();
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let mut before = 0;
    for (nth, block) in blocks.iter().chain([&last]).enumerate() {
        let entries = entries(pairs, block);
        let mut hit = before & entries[0] >> SECOND;
        for two in entries.windows(2) {
            hit |= two[0] & two[1] >> SECOND;
        }
        if hit != 0 {
            let found = near_hits(text, from, start + nth * BLOCK, before, &entries);
            if found.is_some() {
                return found;
            }
        }
        before = entries[BLOCK / 2 - 1];
    }
    // The windows of these places end past the text.
    (text.len().saturating_sub(REACH).max(from)..text.len()).find(|&at| is_place(text, at))
}

/// What [`find`] does, by a look at each byte.
#[cfg(test)]
pub(super) fn find_slowly(text: &[u8], from: usize) -> Option<usize> {
    (from..text.len()).find(|&at| is_place(text, at))
}

#[inline]
fn entries(pairs: &Pairs, block: &[u8; BLOCK]) -> [u64; BLOCK / 2] {
    let mut entries = [0; BLOCK / 2];
    for (entry, &pair) in entries.iter_mut().zip(block.as_chunks::<2>().0) {
        *entry = pairs[usize::from(u16::from_le_bytes(pair))];
    }
    entries
}

/// The first place near the matching windows of a block, of which the first one begins before the block.
#[cold]
#[inline(never)]
fn near_hits(text: &[u8], from: usize, block: usize, before: u64, entries: &[u64; BLOCK / 2]) -> Option<usize> {
    let mut hits = 0u32;
    let mut first = before;
    for (nth, &second) in entries.iter().enumerate() {
        hits |= u32::from(first & second >> SECOND != 0) << nth;
        first = second;
    }
    let starts = &**STARTS;
    while hits != 0 {
        let nth = hits.trailing_zeros() as usize;
        hits &= hits - 1;
        let window = (block + 2 * nth).wrapping_sub(2);
        if window >= text.len() {
            continue;
        }
        // A private key's dashes begin earlier; an option's dash or an address's colon may begin later.
        let start = window.saturating_sub(if text[window] == b'-' { 4 } else { 1 });
        let end = window + if matches!(text.get(window + 2), Some(b'-' | b':')) { 3 } else { 2 };
        for at in start.max(from)..end.min(text.len()) {
            let may_start = text.get(at + 1).is_none_or(|&two| {
                let (word, bit) = start_of(text[at], two);
                starts[word] & bit != 0
            });
            if may_start && is_place(text, at) {
                return Some(at);
            }
        }
    }
    None
}

/// Returns true if this is a place, as far as the text goes.
#[inline]
fn is_place(text: &[u8], at: usize) -> bool {
    let rest = &text[at..];
    let begins = |start: &[u8]| {
        let len = start.len().min(rest.len());
        rest[..len] == start[..len]
    };
    match rest[0] {
        first if first.is_ascii_alphanumeric() => names::has_word(text, at) || tokens::may_begin(text, at),
        b':' => begins(b"://") || begins(b":AA") || tokens::may_begin(text, at),
        b'-' if tokens::may_begin(text, at) => true,
        b'-' => {
            let is_apart = || !at.checked_sub(1).is_some_and(|before| names::is_part(text[before]));
            let is_short = || rest.get(1).is_none_or(|letter| b"upaU".contains(letter));
            begins(private_keys::START) || (is_apart() && (is_short() || begins(b"--user") || begins(b"--proxy-user")))
        }
        // Shapes that begin with a sign, and names of other alphabets.
        b'$' | 0x80.. => tokens::may_begin(text, at),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_missed() {
        let words = "PassWord token KEY= pw= ghp_abcd sk-abcd xoxb-1 eyJhbG AKIAIO z://u:p 9:AAbb -----BEGIN| -u|root --user|r \
             secret Cookie pat: SIG= signature Basic|a SK0123 patAbCdEfGhIjKlMn -pass -a|x hf_abc cioabc MTEa dsn= jwt. \
             otp: sid= auth: authorization bearer creds= credential session pwd= pword= SG.ab AGE-SECRET-KEY-1 oy2abc";
        for word in words.split_ascii_whitespace() {
            let word = word.replace('|', " ");
            let inner = word.find(':').filter(|_| word.starts_with(['z', '9'])).unwrap_or(0);
            for before in 0..40 {
                let text = format!("{}{word}", " ,".repeat(20).split_at(before).0);
                let place = before + inner;
                for len in place + 1..=text.len() {
                    assert_eq!(find(&text.as_bytes()[..len], 0), Some(place), "{:?}", &text[..len]);
                }
                let text = format!("{text} and more behind it");
                for from in 0..=place {
                    assert_eq!(find(text.as_bytes(), from), Some(place), "{text:?} from {from}");
                }
                assert_ne!(find(text.as_bytes(), place + 1), Some(place), "{text:?}");
            }
        }
        let text = b"finished in 12 ms, 0 left, 5 compatible parts for the authors' second path, ---------------- \n";
        assert_eq!(find(text, 0), None);
        assert_eq!(find(b"", 0), None);
    }
}
