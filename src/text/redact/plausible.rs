//! Whether what stands behind a secret's name looks like a secret, and not like code, a placeholder or a description.

use super::names::{self, Kind};

/// Where a value stands.
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
    /// The same as an argument of its own, or a value that can be nothing else.
    Argument,
    /// `Name: value` of HTTP, and what follows `Bearer`
    Header,
    /// A value in quotes
    Quoted,
    /// The rest of a line that begins with the name
    Line,
    /// Anything else behind `: ` or ` = `: code more often than not
    Spaced,
}

const VALUE_BYTES_MIN: usize = 4;

/// Values that say that there is none, what goes there, or how it went.
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

/// Whether a value of this kind of name is a secret.
pub(super) fn is_plausible(kind: Kind, form: Form, name: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii();
    if value.len() < VALUE_BYTES_MIN || is_placeholder(value) || is_same(name, value) {
        return false;
    }
    let looks = Looks::of(value);
    if looks.alphanumerics == 0 && (kind != Kind::Password || value.len() < 8) {
        return false;
    }
    if looks.is_number() {
        return match kind {
            Kind::Password => true,
            Kind::Pin => value.len() <= 12,
            _ => value.len() >= 16 && form != Form::Spaced,
        };
    }
    let is_bare = !matches!(form, Form::Quoted | Form::Argument | Form::Query | Form::Header | Form::Variable);
    let is_version = is_version(value) && (kind != Kind::Password || value.len() <= 5 || looks.dots >= 2);
    if is_place(value, &looks) || is_version || (is_bare && is_code(value, &looks)) {
        return false;
    }
    match kind {
        Kind::Password => is_password(form, value, &looks),
        Kind::Token | Kind::Authorization => is_token(form, name, value, &looks),
        Kind::Weak | Kind::Pin | Kind::Cookie => is_key(form, value, &looks),
    }
}

/// What characters a value has.
struct Looks {
    digits: usize,
    lower: usize,
    upper: usize,
    alphanumerics: usize,
    spaces: usize,
    dots: usize,
    /// Other than `-`, `_`, `.` and blanks.
    symbols: usize,
    len: usize,
}

impl Looks {
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

    /// Letters, and what joins words.
    fn is_words(&self) -> bool {
        self.digits == 0 && self.symbols == 0
    }
}

fn is_password(form: Form, value: &[u8], looks: &Looks) -> bool {
    if !looks.is_words() {
        // A label or a message: `"password": "At least 8 characters"`.
        let is_sentence = looks.spaces >= 2 && looks.digits <= 3 && value[0].is_ascii_uppercase();
        return !(is_sentence || (form == Form::Spaced && looks.alphanumerics < 3));
    }
    let is_reference = mentions_secret(value);
    match form {
        Form::Variable | Form::Query | Form::Header | Form::Argument => true,
        Form::Quoted => {
            let is_label = looks.spaces > 0 && (value[0].is_ascii_uppercase() || is_reference);
            !is_label && (!is_reference || value.contains(&b'-'))
        }
        Form::Option => looks.len >= 8 && !is_reference && looks.upper < looks.len,
        Form::Assigned | Form::Line => looks.len >= 6 && !is_reference,
        Form::Spaced => looks.len >= 16 && value.iter().filter(|&&byte| byte == b'-').count() >= 2,
    }
}

fn is_token(form: Form, name: &[u8], value: &[u8], looks: &Looks) -> bool {
    let is_secret = || name.to_ascii_lowercase().windows(6).any(|word| word == b"secret");
    let may_be_phrase = || form == Form::Argument || (form == Form::Variable && is_secret());
    if (looks.spaces > 0 && !may_be_phrase()) || looks.alphanumerics < VALUE_BYTES_MIN {
        return false;
    }
    let is_reference = mentions_secret(value);
    if looks.is_words() {
        let is_one_word = looks.alphanumerics == looks.len;
        let is_random = is_one_word && looks.len >= 16 && (looks.lower == 0 || looks.upper == 0 || looks.upper > 3);
        return match form {
            Form::Header => !is_reference,
            Form::Argument | Form::Query | Form::Variable => looks.len >= 6 && !is_reference,
            Form::Option => is_random,
            Form::Quoted | Form::Line | Form::Assigned => {
                is_random || (is_one_word && looks.upper == 0 && looks.len >= 8 && !is_reference && is_secret())
            }
            Form::Spaced => is_random && looks.len >= 20,
        };
    }
    match form {
        Form::Header | Form::Argument | Form::Query | Form::Variable => true,
        Form::Quoted | Form::Line | Form::Assigned | Form::Option => {
            looks.alphanumerics >= 6 && (looks.digits > 0 || looks.len >= 12) && !(is_slug(value) && is_reference)
        }
        Form::Spaced => {
            let is_identifier = value.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
            looks.alphanumerics >= 8
                && looks.digits > 0
                && !(is_identifier && (is_reference || looks.lower == 0 || looks.digits <= 1))
                && !(is_slug(value) && looks.len < 20)
        }
    }
}

/// Of a name that proves little.
fn is_key(form: Form, value: &[u8], looks: &Looks) -> bool {
    let has_both = looks.digits > 0 && looks.lower + looks.upper > 0;
    if looks.spaces > 0 || is_slug(value) || is_uuid(value) {
        return form == Form::Variable && looks.spaces > 0 && looks.digits > 0 && looks.len >= 12;
    }
    match form {
        Form::Variable | Form::Query | Form::Header | Form::Argument | Form::Assigned | Form::Option => {
            looks.len >= 8 && (has_both || looks.symbols > 0) && (form == Form::Variable || !value.contains(&b'/'))
        }
        Form::Quoted | Form::Line | Form::Spaced => {
            let is_joint = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'/' | b'=');
            value.split(is_joint).any(|part| {
                let part = Looks::of(part);
                part.len >= 16 && part.digits >= 2 && part.lower + part.upper >= 2
            })
        }
    }
}

/// Words joined, of which each is letters or digits only: `v1-deps-2024`.
fn is_slug(value: &[u8]) -> bool {
    let is_joint = |byte: &u8| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b'@');
    value.split(is_joint).all(|part| {
        let part = part.strip_prefix(b"v").unwrap_or(part);
        let looks = Looks::of(part);
        looks.symbols == 0 && (looks.digits == 0 || looks.digits == looks.len || looks.len <= 3)
    })
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value
            .iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// More than one word, and one of them a secret's: the name of a variable or a field, not its content.
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
    // `****`, `xxxx`, `....`, and what is left of a value that somebody else has masked.
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

/// A path, a file or an address without a password.
fn is_place(value: &[u8], looks: &Looks) -> bool {
    // A key in base64 can begin with a slash.
    let is_dense = looks.len >= 32 && looks.digits > 2 && looks.upper > 4 && looks.lower > 4;
    if is_dense {
        return false;
    }
    let starts = [&b"./"[..], b"../", b"~/", b"file:", b"http://", b"https://", b"arn:", b"op://", b"vault:"];
    if starts.iter().any(|start| value.starts_with(start)) || (value[0] == b'/' && looks.symbols <= 8) {
        return true;
    }
    let extension = value.iter().rposition(|&byte| byte == b'.').map(|at| &value[at + 1..]);
    looks.spaces == 0 && extension.is_some_and(|end| end.len() <= 8 && names::is_one(end, EXTENSIONS))
}

/// `^1.2.3`, `10.0.0.1:80`, `2024-01-01`, `30s`, `0x7ffe01`
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

/// `self.token`, `Token::new(x)`, `tokens[0]`, `&str`
fn is_code(value: &[u8], looks: &Looks) -> bool {
    let is_dense = looks.len >= 24 && looks.digits > 2 && looks.upper > 2 && looks.lower > 2;
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
    let is_field = tail.is_empty() && head.contains(&b'.') && !is_dense && looks.digits <= 1;
    let is_path = head.windows(2).any(|pair| pair == b"::");
    is_call || is_field || is_path
}
