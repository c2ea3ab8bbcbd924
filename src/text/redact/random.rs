//! Values that look like secrets without a name or a shape that says so.

/// The shortest part of a value that can look random, bytes.
const PART_BYTES_MIN: usize = 20;

/// Whether a part of the value may be a key: long, without a blank, of letters and digits in no order. Parts of paths and
/// UUIDs are not meant, because programs pass those to each other all the time.
pub fn looks_random(value: &str) -> bool {
    let is_joint =
        |c: char| c.is_whitespace() || matches!(c, ':' | ';' | ',' | '"' | '\'' | '(' | ')' | '@' | '?' | '&');
    value.split(is_joint).any(|word| !is_path(word) && word.split(['.', '=']).any(is_key))
}

fn is_path(word: &str) -> bool {
    word.starts_with(['/', '~', '.']) && word.contains('/')
}

fn is_key(part: &str) -> bool {
    let counts = |is: fn(&u8) -> bool| part.bytes().filter(is).count();
    let (digits, upper, lower) =
        (counts(u8::is_ascii_digit), counts(u8::is_ascii_uppercase), counts(u8::is_ascii_lowercase));
    if part.len() < PART_BYTES_MIN || is_uuid(part) {
        return false;
    }
    let letters = upper + lower;
    // A word or a version among letters has few changes between letters and digits, a key has many.
    let kinds: Vec<u8> = part.bytes().map(kind).collect();
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1] && !pair.contains(&JOINT)).count();
    (digits >= 3 && letters >= 3 && changes >= 6) || (upper >= 4 && lower >= 4 && changes >= part.len() / 3)
}

/// What stands between words.
const JOINT: u8 = 3;

/// The kind of a character: digit, upper case, lower case, or what stands between words.
fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        b'a'..=b'z' => 2,
        _ => JOINT,
    }
}

fn is_uuid(part: &str) -> bool {
    let groups: Vec<usize> = part.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_look_random_and_what_people_set_does_not() {
        for key in [
            "8Jk2mQz7LpXv4Rt9WnYb3Hc6",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "https://host/hook?id=T024BE7LD8xY2kQ9pLm3",
            "QqWwEeRrTtYyUuIiOoPpAaSs",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY",
            "user:4bX9k2LmQ7w8Zr1Tn5Vc",
        ] {
            assert!(looks_random(key), "{key}");
        }
        for plain in [
            "",
            "/home/ann/.nvm/versions/node/v22.3.1/bin:/usr/local/bin:/usr/bin",
            "/nix/store/5qfhfa6b5c8d9e1f2g3h4i5j6k7l8m9n-bash-5.2/bin",
            "550e8400-e29b-41d4-a716-446655440000",
            "unix:path=/run/user/1000/bus",
            "en_US.UTF-8",
            "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35:do=01;35:bd=40;33;01",
            "xterm-256color",
            "https://registry.example.org/some/long/path/without/any/key",
            "--max-old-space-size=8192 --enable-source-maps",
            "x86_64-unknown-linux-gnu",
            "() {  local it; it=1; echo something_rather_long_here",
            "2026-11-22T05:51:14.000Z",
            "CurrentDesktopSessionManagerName",
        ] {
            assert!(!looks_random(plain), "{plain}");
        }
    }
}
