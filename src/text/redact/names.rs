//! Which names say that their value is a secret, and how surely.
//!
//! A name is taken apart into words: at everything that is no letter, where small letters are followed by a capital, and
//! where letters and digits meet. `github_token`, `X-Api-Key`, `clientSecret` and `KEY2` all have their word.

use memchr::memmem;

/// What kind of secret a name speaks of; see [`super::plausible`] for what each takes for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something that people choose: it may be a plain word.
    Password,
    /// Something that machines make.
    Token,
    /// The name alone proves little: a key may be one on a keyboard.
    Weak,
    /// Digits.
    Pin,
    /// A header whose value begins with a scheme: `Bearer …`.
    Authorization,
    /// A header that is a list of names and values.
    Cookie,
}

/// The longest name that is looked at, bytes: of a longer one, its end.
pub(super) const NAME_BYTES_MAX: usize = 64;
const WORDS_MAX: usize = 12;

/// Words that make a secret of whatever they stand in.
const PASSWORDS: &str =
    " password passwords passwd passphrase passphrases passcode pgpass pgpassword sshpass pwd pw pword ";
const TOKENS: &str = " token tokens secret secrets apikey apikeys apitoken authtoken authkey accesskey secretkey privatekey \
     credential credentials cred creds jwt bearer pat dsn appkey ";
const WEAK: &str = " key keys auth authorization cookie cookies session sessions pass sessionid sid phpsessid jsessionid sig \
     signature oauth ";

/// Words are often written together: `dbpassword`, `clientsecret`.
const PASSWORD_ENDS: &[&str] = &["password", "passwd", "passphrase"];
const TOKEN_ENDS: &[&str] = &["token", "secret", "apikey", "accesskey", "secretkey", "privatekey", "credentials"];

/// Before `key`, these make it one that opens something.
const KEY_OPENERS: &str = " api access secret private account encryption encrypt signing sign master auth service storage shared \
     deploy license app client aws admin webhook hmac session subscription ssh gpg pgp openai anthropic \
     stripe sendgrid mailgun google azure ";
/// Before `key`, these make it something else. `pub` and `public` are there for all to see.
const KEY_HARMLESS: &str = " public pub cache primary foreign sort partition hot shortcut routing lookup restore object unique \
     composite group index map row column translation i18n react idempotency host known ";
/// Before `pass`, these make a password of it.
const PASS_OPENERS: &str = " db database user smtp mail email imap ftp sftp admin root mysql mariadb pg postgres pgsql redis mongo \
     mongodb rabbitmq amqp mqtt login basic http proxy vnc ssh sudo ldap wifi keystore truststore key store \
     ca cert registry docker git my ci test dev prod app api auth master es elastic kafka oracle vault \
     service gpg backup restic borg router bot ";
/// Last words with which a name speaks about a secret and holds none.
const ABOUT: &str = " count counts type types url uri urls endpoint file files path paths dir name names length len size \
     limit limits budget expiry expires expire expiration ttl timeout index position kind stream format \
     algorithm alg provider providers method methods mode enabled disabled required policy version hint field \
     pattern regex label placeholder prompt manager driver domain scope scopes issuer audience rotation \
     interval retries date samesite secure through rate ratio usage stdin sock lifetime age separator \
     parallelism error errors strength generator validator parser ref handler ";

/// Names that have such a word in them and hold none: places, and what desktops and git put there.
const HARMLESS: [&str; 7] = [
    "PWD",
    "SSH_AUTH_SOCK",
    "DESKTOP_SESSION",
    "SESSION_MANAGER",
    "DBUS_SESSION_BUS_ADDRESS",
    "TERM_SESSION_ID",
    "ITERM_SESSION_ID",
];
const HARMLESS_STARTS: [&str; 2] = ["XDG_SESSION_", "GIT_CONFIG_KEY_"];

/// Whether a variable of this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &[u8]) -> bool {
    kind(name).is_some()
}

/// What the value of this name is, if it is a secret.
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    if !may_be_secret(name) {
        return None;
    }
    let is_harmless = HARMLESS.iter().any(|harmless| name == harmless.as_bytes())
        || HARMLESS_STARTS.iter().any(|start| name.starts_with(start.as_bytes()));
    if is_harmless {
        return None;
    }
    let mut lower = [0; NAME_BYTES_MAX];
    let name = &name[name.len().saturating_sub(NAME_BYTES_MAX)..];
    let mut words: [&[u8]; WORDS_MAX] = [&[]; WORDS_MAX];
    for (to, byte) in lower.iter_mut().zip(name) {
        *to = byte.to_ascii_lowercase();
    }
    let mut count = 0;
    let mut start = 0;
    for at in 0..=name.len() {
        if at == name.len() || is_hump(name, at) {
            let word = &lower[start..at];
            if word.first().is_some_and(u8::is_ascii_alphanumeric) {
                if count == WORDS_MAX {
                    words.rotate_left(1);
                    count -= 1;
                }
                words[count] = word;
                count += 1;
            }
            start = at + usize::from(name.get(at).is_some_and(|byte| !byte.is_ascii_alphanumeric()));
        }
    }
    of_words(&words[..count])
}

/// Whether a word ends before this byte.
fn is_hump(name: &[u8], at: usize) -> bool {
    let (this, next) = (name[at], name.get(at + 1).copied().unwrap_or(b'_'));
    let Some(previous) = at.checked_sub(1).map(|at| name[at]) else { return !this.is_ascii_alphanumeric() };
    if !this.is_ascii_alphanumeric() || !previous.is_ascii_alphanumeric() {
        return !this.is_ascii_alphanumeric();
    }
    (previous.is_ascii_lowercase() && this.is_ascii_uppercase())
        || (previous.is_ascii_uppercase() && this.is_ascii_uppercase() && next.is_ascii_lowercase())
        || previous.is_ascii_digit() != this.is_ascii_digit()
}

/// Whether a list, of words between blanks, has this one.
pub(super) fn is_one(word: &[u8], list: &str) -> bool {
    let mut needle = [b' '; NAME_BYTES_MAX + 2];
    needle[1..=word.len()].copy_from_slice(word);
    !word.is_empty() && memmem::find(list.as_bytes(), &needle[..word.len() + 2]).is_some()
}

fn of_words(words: &[&[u8]]) -> Option<Kind> {
    let (&last, before) = words.split_last()?;
    let last = if last[0].is_ascii_digit() { before.last().copied().unwrap_or(last) } else { last };
    let mut found = None;
    for (at, &word) in words.iter().enumerate() {
        let previous = at.checked_sub(1).map_or(&[][..], |at| words[at]);
        let kind = of_word(word, previous, words, at);
        found = match (found, kind) {
            (Some(Kind::Password | Kind::Token), _) | (_, None) => found,
            (None, _) | (_, Some(Kind::Password | Kind::Token)) => kind,
            _ => found,
        };
    }
    found.filter(|_| words.len() == 1 || !is_one(last, ABOUT))
}

fn of_word(word: &[u8], previous: &[u8], words: &[&[u8]], at: usize) -> Option<Kind> {
    let is_last = at + 1 == words.len();
    if is_one(word, PASSWORDS) || (word.len() > 8 && PASSWORD_ENDS.iter().any(|end| word.ends_with(end.as_bytes()))) {
        return Some(Kind::Password);
    }
    if word == b"pass" {
        return Some(if is_one(previous, PASS_OPENERS) && is_last { Kind::Password } else { Kind::Weak });
    }
    if let Some(opener) = word.strip_suffix(b"pass")
        && is_one(opener, PASS_OPENERS)
    {
        return Some(Kind::Password);
    }
    if matches!(word, b"pin" | b"otp" | b"totp") {
        return is_last.then_some(Kind::Pin);
    }
    if matches!(word, b"authorization") {
        return Some(Kind::Authorization);
    }
    if word == b"cookie" && is_last && (words.len() == 1 || previous == b"set") {
        return Some(Kind::Cookie);
    }
    if matches!(word, b"key" | b"keys") {
        return match previous {
            _ if is_one(previous, KEY_OPENERS) => Some(Kind::Token),
            _ if is_one(previous, KEY_HARMLESS) => None,
            [] if word == b"keys" => None,
            _ => Some(Kind::Weak),
        };
    }
    if is_one(word, TOKENS) || (word.len() > 6 && TOKEN_ENDS.iter().any(|end| word.ends_with(end.as_bytes()))) {
        return Some(Kind::Token);
    }
    is_one(word, WEAK).then_some(Kind::Weak)
}

/// A beginning of a word in any secret's name.
pub(super) struct Word {
    pub(super) text: &'static [u8],
    /// The first four bytes, and which of them there are.
    four: u32,
    mask: u32,
    /// The word ends behind it: `pat` is one, and `path` is not.
    pub(super) is_whole: bool,
    /// Nothing of the word stands before it, either: `compat` is not one.
    begins: bool,
}

const fn start(text: &'static [u8]) -> Word {
    Word::new(text, false, false)
}

const fn end(text: &'static [u8]) -> Word {
    Word::new(text, true, false)
}

const fn whole(text: &'static [u8]) -> Word {
    Word::new(text, true, true)
}

/// Each name that has a [`kind`] has one of these in it, in small letters or capitals. Sorted by the first letter.
pub(super) const WORDS: &[Word] = &[
    end(b"auth"),
    start(b"authorization"),
    start(b"bearer"),
    start(b"cookie"),
    end(b"cred"),
    end(b"creds"),
    start(b"credential"),
    end(b"dsn"),
    end(b"jwt"),
    end(b"key"),
    end(b"keys"),
    whole(b"otp"),
    end(b"pass"),
    start(b"passc"),
    start(b"passp"),
    start(b"passw"),
    whole(b"pat"),
    whole(b"pin"),
    whole(b"pw"),
    end(b"pwd"),
    end(b"pword"),
    start(b"secret"),
    start(b"sessid"),
    start(b"session"),
    whole(b"sid"),
    whole(b"sig"),
    start(b"signature"),
    start(b"token"),
];

/// Where the words that begin with a letter are in the list.
const BY_LETTER: [(u8, u8); 256] = {
    let mut ranges = [(0, 0); 256];
    let mut at = 0;
    while at < WORDS.len() {
        let (small, next) = (WORDS[at].text[0], at as u8 + 1);
        let begins = at == 0 || WORDS[at - 1].text[0] != small;
        let from = if begins { at as u8 } else { ranges[small as usize].0 };
        ranges[small as usize] = (from, next);
        ranges[small.to_ascii_uppercase() as usize] = (from, next);
        at += 1;
    }
    ranges
};

/// Whether one of the words is at this place, as far as the text goes.
#[inline]
pub(super) fn has_word(text: &[u8], at: usize) -> bool {
    let (from, to) = BY_LETTER[usize::from(text[at])];
    let words = &WORDS[usize::from(from)..usize::from(to)];
    match text[at..].first_chunk() {
        Some(&four) => {
            let four = small(four);
            words.iter().any(|word| four & word.mask == word.four && word.is_at(text, at))
        }
        None => words.iter().any(|word| word.is_at(text, at)),
    }
}

/// Four letters in small ones; what is no letter may become another byte.
const fn small(four: [u8; 4]) -> u32 {
    u32::from_le_bytes(four) | 0x2020_2020
}

impl Word {
    const fn new(text: &'static [u8], is_whole: bool, begins: bool) -> Self {
        let (mut four, mut mask, mut at) = ([0; 4], [0; 4], 0);
        while at < 4 && at < text.len() {
            (four[at], mask[at]) = (text[at], u8::MAX);
            at += 1;
        }
        let mask = u32::from_le_bytes(mask);
        Self { text, four: small(four) & mask, mask, is_whole, begins }
    }

    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let rest = &text[at..];
        let len = self.text.len().min(rest.len());
        rest[..len].eq_ignore_ascii_case(&self.text[..len])
            && (!self.begins || may_begin_word(text, at))
            && (!self.is_whole || may_end_word(&rest[len - 1..]))
    }
}

/// Whether a word may begin here: behind two letters it needs a capital. One letter may be an escape's or an option's.
fn may_begin_word(text: &[u8], at: usize) -> bool {
    let Some([earlier, before]) = text[..at].last_chunk() else { return true };
    let is_letters = earlier.is_ascii_alphabetic() && before.is_ascii_alphabetic();
    let is_capital = text[at].is_ascii_uppercase();
    // The word `totp` is one, too.
    let is_totp = before.eq_ignore_ascii_case(&b't') && text[at].eq_ignore_ascii_case(&b'o');
    !is_letters
        || is_totp
        || (is_capital && (before.is_ascii_lowercase() || text.get(at + 1).is_none_or(u8::is_ascii_lowercase)))
}

/// Whether a word may end behind the first of these.
fn may_end_word(rest: &[u8]) -> bool {
    match *rest {
        [_, b'a'..=b'z', ..] => false,
        [b'A'..=b'Z', b'A'..=b'Z', after, ..] => after.is_ascii_lowercase(),
        _ => true,
    }
}

/// What names are made of.
const PARTS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'-' | b'.');
        byte += 1;
    }
    table
};

/// Whether a name can have this byte.
#[inline]
pub(super) fn is_part(byte: u8) -> bool {
    PARTS[usize::from(byte)]
}

/// Whether this is nothing but a name, and no option.
pub(super) fn is_name(word: &[u8]) -> bool {
    !word.starts_with(b"-") && word.len() <= NAME_BYTES_MAX && word.iter().all(|&byte| is_part(byte))
}

/// A quick look: most names have none of the words.
fn may_be_secret(name: &[u8]) -> bool {
    (0..name.len()).any(|at| has_word(name, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for name in "API_KEY github_token R2_ACCESS_KEY_ID DB_PASSWORD MYSQL_PWD KEY2 TOKEN SENTRY_DSN X_AUTH KEY2_X \
             Session_Cookie MY_PASSWD3 key9x_A _AUTH DB_PASS PGPASS PGPASSWORD SSHPASS APIKEY GITHUB_PAT \
             GCP_CREDENTIALS API_TOKENS SECRETS SSH_PASSPHRASE JWT APP_JWT BEARER apiKey clientSecret \
             dbPassword AUTHTOKEN npm_config__authToken ROOT_PW PW PIN CARD_PIN AWS_CREDENTIAL API_KEYS \
             privateKey AccountKey X-Api-Key spring.datasource.password SECRET_KEY_BASE authorization Cookie \
             dbpassword APIToken clientsecret SMTP_PASS userPass SESSION AUTH"
            .split(' ')
        {
            assert!(is_secret_name(name.as_bytes()), "{name}");
        }
        for name in "PATH PWD OLDPWD KEYBOARD MONKEY TOKENIZERS_PARALLELISM SSH_AUTH_SOCK AUTHOR GIT_AUTHOR_NAME \
             XDG_SESSION_TYPE GIT_CONFIG_KEY_0 _ KEYS HOTKEY KE KEYx1 TOKEN_COUNT PASSWORD_FILE SECRET_NAME \
             token_type publicKey PUBLIC_KEY cache-key primary_key bypass compass passed passing authority \
             secretary session_timeout PASSWORD_MIN_LENGTH pass-through SPIN pins patch PATTERN \
             password-stdin keyword author cookiecutter tokenizer secretsmanager"
            .split(' ')
        {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
    }
}
