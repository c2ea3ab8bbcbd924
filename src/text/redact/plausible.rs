//! Tells a secret after a secret's name from code, placeholders and descriptions.

use super::names::{self, SecretKind};
use crate::text::echo::TYPED;

/// How a value is connected with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `NAME=value`, the name in capitals: an environment variable.
    Variable,
    /// `name=value`
    Assigned,
    /// `?name=value`, `--name=value`
    Query,
    /// `--name value`, in text
    Option,
    /// `--name value` as arguments of a command, or another value that can be nothing else
    Argument,
    /// `Name: value` of HTTP, and a value after `Bearer`
    Header,
    /// A value in quotes
    Quoted,
    /// The rest of a line that begins with the name
    Line,
    /// Any other value after `: ` or ` = `, which is code more often than not
    Spaced,
}

const VALUE_BYTES_MIN: usize = 4;

/// Words for a missing value, for the kind of a value, or for a result.
const STOP: &str = " null none nil undefined true false yes no on off string str text integer number boolean bool bytes byte \
     object array list dict any unknown never void optional required value values example sample placeholder \
     dummy changeme change-me change_me todo tbd fixme empty unset missing invalid incorrect wrong expired \
     redacted hidden masked removed secret default auto prompt inherit enabled disabled valid accepted \
     rejected denied failed failure success error char varchar file env environment stdin vault keychain \
     keyring plain bearer basic digest argument parameter option options instead authenticate specify \
     specifies deprecated identifier literal comment keyword operator whitespace function async await this \
     self input output read write user field column admin-only variable please must cannot should hash hashed \
     encrypted foo bar baz *mut *const flag provided found needed used with from when that the will is for to and or ";
const EXTENSIONS: &str = " pem key crt cer pub json txt yaml yml toml rs js jsx ts tsx py go rb java kt c h cc cpp hpp cs php sh \
     env md html css lock log cfg conf ini p12 pfx jks kdbx gpg asc sql db sock png svg xml tmpl ";

/// Returns true if the value of a name of this kind is a secret.
pub(super) fn is_plausible(kind: SecretKind, form: Form, name: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii();
    if value.len() < VALUE_BYTES_MIN || is_placeholder(value) || is_same(name, value) {
        return false;
    }
    let counts = CharacterCounts::of(value);
    if counts.alphanumerics == 0 && (kind != SecretKind::Password || value.len() < 8) {
        return false;
    }
    if counts.is_number() {
        return match kind {
            SecretKind::Password => true,
            SecretKind::Pin => value.len() <= 12,
            _ => value.len() >= 16 && form != Form::Spaced,
        };
    }
    let is_bare = !matches!(form, Form::Quoted | Form::Argument | Form::Query | Form::Header | Form::Variable);
    let is_version = is_version(value) && (kind != SecretKind::Password || value.len() <= 5 || counts.dots >= 2);
    if is_place(value, &counts) || is_version || (is_bare && is_code(value, &counts)) {
        return false;
    }
    match kind {
        SecretKind::Password => is_password(form, value, &counts),
        SecretKind::Token | SecretKind::Authorization => is_token(form, name, value, &counts),
        SecretKind::Weak if name.eq_ignore_ascii_case(b"pass") && is_dense(value, &counts) => true,
        SecretKind::Weak | SecretKind::Pin | SecretKind::Cookie => is_key(form, value, &counts),
    }
}

/// Returns true if a value of one word has letters of both cases and digits, as a password has that some rule asks for.
fn is_dense(value: &[u8], counts: &CharacterCounts) -> bool {
    counts.spaces == 0
        && counts.alphanumerics >= 6
        && counts.digits > 0
        && counts.lower > 0
        && counts.upper > 0
        && !is_slug(value)
}

/// How many characters of each kind a value has.
struct CharacterCounts {
    digits: usize,
    lower: usize,
    upper: usize,
    alphanumerics: usize,
    spaces: usize,
    dots: usize,
    /// All others but `-`, `_`, `.` and blanks.
    symbols: usize,
    len: usize,
}

impl CharacterCounts {
    fn of(value: &[u8]) -> Self {
        let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
        let (digits, lower, upper) =
            (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
        let (spaces, joints) = (count(|&byte| byte == b' '), count(|byte| matches!(byte, b'-' | b'_' | b'.')));
        let dots = count(|&byte| byte == b'.');
        let alphanumerics = digits + lower + upper;
        let symbols = value.len() - alphanumerics - spaces - joints;
        Self { digits, lower, upper, alphanumerics, spaces, dots, symbols, len: value.len() }
    }

    fn is_number(&self) -> bool {
        self.digits == self.len
    }

    /// Returns true if the value has only letters and characters that join words.
    fn is_words(&self) -> bool {
        self.digits == 0 && self.symbols == 0
    }
}

fn is_password(form: Form, value: &[u8], counts: &CharacterCounts) -> bool {
    if !counts.is_words() {
        // A label or a message: `"password": "At least 8 characters"`.
        let is_sentence = counts.spaces >= 2 && counts.digits <= 3 && value[0].is_ascii_uppercase();
        return !(is_sentence || (form == Form::Spaced && counts.alphanumerics < 3));
    }
    let is_reference = mentions_secret(value);
    match form {
        Form::Variable | Form::Query | Form::Header | Form::Argument => true,
        Form::Quoted => {
            let is_label = counts.spaces > 0 && (value[0].is_ascii_uppercase() || is_reference);
            !is_label && (!is_reference || value.contains(&b'-'))
        }
        Form::Option => counts.len >= 8 && !is_reference && counts.upper < counts.len,
        Form::Assigned | Form::Line => counts.len >= 6 && !is_reference,
        Form::Spaced => counts.len >= 16 && value.iter().filter(|&&byte| byte == b'-').count() >= 2,
    }
}

fn is_token(form: Form, name: &[u8], value: &[u8], counts: &CharacterCounts) -> bool {
    let is_secret = || name.to_ascii_lowercase().windows(6).any(|word| word == b"secret");
    let may_be_phrase = || form == Form::Argument || (form == Form::Variable && is_secret());
    if (counts.spaces > 0 && !may_be_phrase()) || counts.alphanumerics < VALUE_BYTES_MIN {
        return false;
    }
    let is_reference = mentions_secret(value);
    if counts.is_words() {
        let is_one_word = counts.alphanumerics == counts.len;
        let is_random = is_one_word && counts.len >= 16 && (counts.lower == 0 || counts.upper == 0 || counts.upper > 3);
        return match form {
            Form::Header => !is_reference,
            Form::Argument | Form::Query | Form::Variable => counts.len >= 6 && !is_reference,
            Form::Option => is_random,
            Form::Quoted | Form::Line | Form::Assigned => {
                is_random || (is_one_word && counts.upper == 0 && counts.len >= 8 && !is_reference && is_secret())
            }
            Form::Spaced => is_random && counts.len >= 20,
        };
    }
    match form {
        Form::Header | Form::Argument | Form::Query | Form::Variable => true,
        Form::Quoted | Form::Line | Form::Assigned | Form::Option => {
            counts.alphanumerics >= 6 && (counts.digits > 0 || counts.len >= 12) && !(is_slug(value) && is_reference)
        }
        Form::Spaced => {
            let is_identifier = value.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
            counts.alphanumerics >= 8
                && counts.digits > 0
                && !(is_identifier && (is_reference || counts.lower == 0 || counts.digits <= 1))
                && !(is_slug(value) && counts.len < 20)
        }
    }
}

/// Returns true if the value of a name that proves little is a secret.
fn is_key(form: Form, value: &[u8], counts: &CharacterCounts) -> bool {
    let has_both = counts.digits > 0 && counts.lower + counts.upper > 0;
    if counts.spaces > 0 || is_slug(value) || is_uuid(value) {
        return form == Form::Variable && counts.spaces > 0 && counts.digits > 0 && counts.len >= 12;
    }
    match form {
        Form::Variable | Form::Query | Form::Header | Form::Argument | Form::Assigned | Form::Option => {
            counts.len >= 8 && (has_both || counts.symbols > 0) && (form == Form::Variable || !value.contains(&b'/'))
        }
        Form::Quoted | Form::Line | Form::Spaced => {
            let is_joint = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'/' | b'=');
            value.split(is_joint).any(|part| {
                let part = CharacterCounts::of(part);
                part.len >= 16 && part.digits >= 2 && part.lower + part.upper >= 2
            })
        }
    }
}

/// Returns true if the value is joined words, each of letters or of digits: `v1-deps-2024`.
fn is_slug(value: &[u8]) -> bool {
    let is_joint = |byte: &u8| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b'@');
    value.split(is_joint).all(|part| {
        let part = part.strip_prefix(b"v").unwrap_or(part);
        let counts = CharacterCounts::of(part);
        counts.symbols == 0 && (counts.digits == 0 || counts.digits == counts.len || counts.len <= 3)
    })
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value
            .iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// Returns true if the value has several words, one of them a secret's: it names a variable or a field.
fn mentions_secret(value: &[u8]) -> bool {
    let is_joined = value.iter().any(|byte| matches!(byte, b'_' | b'-' | b'.' | b' '))
        || value.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    is_joined && value.len() <= names::NAME_BYTES_MAX && names::kind(value).is_some()
}

fn is_same(name: &[u8], value: &[u8]) -> bool {
    let bare = |text: &[u8]| -> Vec<u8> {
        text.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect()
    };
    let (name, value) = (bare(name), bare(value));
    !value.is_empty() && name.ends_with(&value)
}

fn is_placeholder(value: &[u8]) -> bool {
    if value == TYPED.as_bytes() {
        return true;
    }
    let lower = value.to_ascii_lowercase();
    if lower.len() <= 16 && names::is_one(lower.strip_suffix(b"?").unwrap_or(&lower), STOP) {
        return true;
    }
    // `$NAME`, but not `$2b$10$…`, which is a hash.
    let is_variable = value[0] == b'$' && value.get(1).is_some_and(|&byte| !byte.is_ascii_digit());
    let opens = matches!(value[0], b'<' | b'{' | b'[' | b'(') || value.starts_with("«".as_bytes());
    let is_format = value[0] == b'%' && value.len() <= 16;
    let is_colour =
        value[0] == b'#' && matches!(value.len(), 4 | 7 | 9) && value[1..].iter().all(u8::is_ascii_hexdigit);
    // `****`, `xxxx`, `....`, and the rest of a value that another program has masked.
    let is_one_byte = value.iter().all(|&byte| byte.eq_ignore_ascii_case(&value[0])) && !value[0].is_ascii_digit();
    let has = |part: &[u8]| lower.windows(part.len()).any(|window| window == part);
    const PARTS: [&[u8]; 20] = [
        b"${",
        b"$(",
        b"{{",
        b"<%",
        b"***",
        b"...",
        b"process.env",
        b"os.environ",
        b"getenv(",
        b"env[",
        b"env::var",
        b"secrets.",
        b"your-",
        b"your_",
        b"yourtoken",
        b"xxxx",
        b"-here",
        b"_here",
        b"replace",
        "«redacted:".as_bytes(),
    ];
    is_variable || opens || is_format || is_colour || is_one_byte || PARTS.iter().any(|part| has(part))
}

/// Returns true if the value is a path, a file name or an address without a password.
fn is_place(value: &[u8], counts: &CharacterCounts) -> bool {
    // A key in base64 can begin with a slash.
    let is_dense = counts.len >= 32 && counts.digits > 2 && counts.upper > 4 && counts.lower > 4;
    if is_dense {
        return false;
    }
    let starts = [&b"./"[..], b"../", b"~/", b"file:", b"http://", b"https://", b"arn:", b"op://", b"vault:"];
    if starts.iter().any(|start| value.starts_with(start)) || (value[0] == b'/' && counts.symbols <= 8) {
        return true;
    }
    let extension = value.iter().rposition(|&byte| byte == b'.').map(|at| &value[at + 1..]);
    counts.spaces == 0 && extension.is_some_and(|end| end.len() <= 8 && names::is_one(end, EXTENSIONS))
}

/// Returns true if the value is a version, an address, a date or a measure: `^1.2.3`, `10.0.0.1:80`, `30s`.
fn is_version(value: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b':' | b'-' | b'+' | b'_' | b' ');
    let start = value.iter().take_while(|byte| matches!(byte, b'^' | b'~' | b'>' | b'<' | b'=' | b'v')).count();
    let rest = &value[start..];
    let digits = rest.iter().take_while(|byte| is_part(byte)).count();
    let unit = &rest[digits..];
    let is_hex = value.strip_prefix(b"0x").is_some_and(|hex| hex.len() <= 16 && hex.iter().all(u8::is_ascii_hexdigit));
    const UNITS: [&[u8]; 14] =
        [b"s", b"m", b"h", b"d", b"ms", b"us", b"ns", b"b", b"kb", b"mb", b"gb", b"k", b"x", b"%"];
    let is_measure = rest.first().is_some_and(u8::is_ascii_digit)
        && (unit.is_empty() || (digits <= 8 && UNITS.iter().any(|one| unit.eq_ignore_ascii_case(one))));
    let is_release = start > 0 && digits >= 3 && rest[0].is_ascii_digit();
    // `1.0.0-beta.1`
    let is_prerelease = rest[..digits].iter().filter(|&&byte| byte == b'.').count() >= 2
        && [&b"alpha"[..], b"beta", b"rc", b"dev"].iter().any(|word| unit.starts_with(word));
    is_hex || is_measure || is_release || is_prerelease
}

/// Returns true if the value is source code: `self.token`, `Token::new(x)`, `tokens[0]`, `&str`.
fn is_code(value: &[u8], counts: &CharacterCounts) -> bool {
    let is_dense = counts.len >= 24 && counts.digits > 2 && counts.upper > 2 && counts.lower > 2;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'\'' | b'<' | b'>' | b':');
    if value.strip_prefix(b"&").is_some_and(|name| name.iter().all(is_name)) {
        return true;
    }
    let value = value.strip_prefix(b"&").or_else(|| value.strip_prefix(b"*")).unwrap_or(value);
    if !value.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'\'')) {
        return matches!(value.first(), Some(b'|' | b'(' | b'=' | b'!' | b')' | b'}' | b']' | b','));
    }
    let path =
        value.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':')).count();
    let (head, tail) = value.split_at(path);
    let is_call = matches!(tail.first(), Some(b'(' | b'[' | b'<')) && head.len() >= 2;
    let is_field = tail.is_empty() && head.contains(&b'.') && !is_dense && counts.digits <= 1;
    let is_path = head.windows(2).any(|pair| pair == b"::");
    is_call || is_field || is_path
}
