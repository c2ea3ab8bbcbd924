//! Keeps the values of variables out of reports: other processes of the same user may read them.
//!
//! Of its caller's environment a shim reports names, and values only if the host knows an agent by them. A value whose
//! name suggests a secret is masked in arguments and output.
//!
//! Invariant: how a stream was split never shows; the held part is the beginning of a value.

use std::rc::Rc;

/// The shortest value that is masked, bytes.
const VALUE_BYTES_MIN: usize = 4;
/// Values from this length on are masked everywhere, bytes. A shorter one is masked only where it stands alone, and
/// only if it is no plain word or number.
const ANYWHERE_BYTES_MIN: usize = 8;
/// The most bytes of a value that are masked.
const VALUE_BYTES_MAX: usize = 16 << 10;
/// Parts of names, in capitals, whose variables may hold secrets. They may be some more than the journal masks.
const SECRET_PARTS: [&[u8]; 20] = [
    b"PASS",
    b"PWD",
    b"PWORD",
    b"TOKEN",
    b"SECRET",
    b"KEY",
    b"CRED",
    b"AUTH",
    b"COOKIE",
    b"SESSION",
    b"JWT",
    b"BEARER",
    b"PAT",
    b"DSN",
    b"SIG",
    b"SID",
    b"PIN",
    b"LICENSE",
    b"WEBHOOK",
    b"DATABASE_URL",
];
/// Names that contain such a part and hold no secret.
const HARMLESS: [&[u8]; 8] =
    [b"PWD", b"OLDPWD", b"PATH", b"SSH_AUTH_SOCK", b"MANPATH", b"INFOPATH", b"DESKTOP_SESSION", b"SESSION_MANAGER"];
/// Variables by whose values the host knows an agent, its version, session and call, and its own looks at the shell.
const MARKS: [&[u8]; 34] = [
    b"AI_AGENT",
    b"CLAUDECODE",
    b"CLAUDE_CODE_EXECPATH",
    b"CLAUDE_CODE_SESSION_ID",
    b"CLAUDE_CODE_SHELL",
    b"CLAUDE_CODE_TOOL_USE_ID",
    b"CLAUDE_PROJECT_DIR",
    b"CLINE_CONNECTOR_CLI_LAUNCH",
    b"CODEX_CI",
    b"CODEX_SESSION_ID",
    b"CODEX_THREAD_ID",
    b"CODEX_TOOL_CALL_ID",
    b"CODEX_VERSION",
    b"COPILOT_AGENT_SESSION_ID",
    b"COPILOT_CLI",
    b"COPILOT_CLI_BINARY_VERSION",
    b"CRUSH",
    b"GEMINI_CLI",
    b"GEMINI_SESSION_ID",
    b"GOOSE_TERMINAL",
    b"HOME",
    b"KILOCODE_VERSION",
    b"KILO_PID",
    b"KILO_RUN_ID",
    b"LETTA_CODE_AGENT_ROLE",
    b"LETTA_CONVERSATION_ID",
    b"OPENCODE",
    b"OPENCODE_PID",
    b"OR_APP_NAME",
    b"PATH",
    b"PI_CODING_AGENT",
    b"QWEN_CODE",
    b"QWEN_CODE_SESSION_ID",
    b"VIBE_APP_SERVER_BIN",
];

/// The reported part of a variable: all of it, or its name without the value.
#[must_use]
pub fn reported_variable(entry: &[u8]) -> &[u8] {
    let Some(at) = entry.iter().position(|&byte| byte == b'=') else { return entry };
    if MARKS.contains(&&entry[..at]) { entry } else { &entry[..=at] }
}

/// The masked values of one environment, by their first bytes; of those that begin alike, the longest goes first.
#[derive(Debug, Default, Clone)]
pub struct ValueMasks(Rc<Vec<MaskedValue>>);

#[derive(Debug)]
struct MaskedValue {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The value at a place of a text.
enum ValueAt<'a> {
    Nothing,
    Whole(&'a MaskedValue),
    /// It may become one with further text.
    Begin,
}

impl ValueMasks {
    /// The values of these entries.
    pub fn of<'a>(env: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut secrets = Vec::new();
        for entry in env {
            let Some(at) = entry.iter().position(|&byte| byte == b'=') else { continue };
            let name = &entry[..at];
            let value = entry[at + 1..].trim_ascii();
            // A report contains marks in full, so they stay in arguments as well: by them the host knows an agent's
            // wrapper.
            if may_be_secret(name) && !MARKS.contains(&name) && is_masked(value) {
                let value = value[..value.len().min(VALUE_BYTES_MAX)].to_vec();
                secrets.push(MaskedValue { name: name.to_vec(), value });
            }
        }
        secrets.sort_by_key(|secret| (secret.value[0], std::cmp::Reverse(secret.value.len())));
        Self(Rc::new(secrets))
    }

    /// A whole text with its values masked.
    #[must_use]
    pub fn masked(&self, text: &[u8]) -> Vec<u8> {
        let mut stream = MaskedStream::new(self.clone());
        let mut out = Vec::new();
        stream.push(text, &mut out);
        stream.end(&mut out);
        out
    }

    /// Finds the value at the beginning of a text that follows the byte `before`.
    fn at<'a>(&'a self, before: Option<u8>, text: &[u8], is_whole: bool) -> ValueAt<'a> {
        let Some(&first) = text.first() else { return ValueAt::Nothing };
        let follows_word = before.is_some_and(is_word);
        let from = self.0.partition_point(|secret| secret.value[0] < first);
        for secret in self.0[from..].iter().take_while(|secret| secret.value[0] == first) {
            let needs_room = secret.value.len() < ANYWHERE_BYTES_MIN;
            if needs_room && follows_word {
                continue;
            }
            if let Some(rest) = text.strip_prefix(secret.value.as_slice()) {
                match rest.first() {
                    Some(&next) if needs_room && is_word(next) => continue,
                    None if needs_room && !is_whole => return ValueAt::Begin,
                    _ => return ValueAt::Whole(secret),
                }
            }
            if !is_whole && secret.value.starts_with(text) {
                return ValueAt::Begin;
            }
        }
        ValueAt::Nothing
    }
}

/// Returns true if a possible secret is masked. Short ones are too likely to be ordinary words and numbers, unless they
/// have letters and digits, or signs that join no words.
fn is_masked(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    let is_sign = |byte: &u8| byte.is_ascii_punctuation() && !b"_-./:,".contains(byte);
    let is_mixed = has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit) || has(is_sign);
    value.len() >= ANYWHERE_BYTES_MIN || (value.len() >= VALUE_BYTES_MIN && is_mixed)
}

/// Returns true if a byte belongs to a word, as a letter of any script, a digit or an underscore.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn may_be_secret(name: &[u8]) -> bool {
    let name = name.to_ascii_uppercase();
    let has = |part: &&[u8]| name.windows(part.len()).any(|window| window == *part);
    !HARMLESS.contains(&&*name) && !name.ends_with(b"PATH") && SECRET_PARTS.iter().any(has)
}

#[derive(Debug)]
pub struct MaskedStream {
    masks: ValueMasks,
    /// The beginning of a value.
    held: Vec<u8>,
    /// The byte before that.
    before: Option<u8>,
}

impl MaskedStream {
    #[must_use]
    pub fn new(masks: ValueMasks) -> Self {
        Self { masks, held: Vec::new(), before: None }
    }

    /// Appends the certain part of the input so far to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.masks.0.is_empty() {
            return out.extend_from_slice(bytes);
        }
        self.held.extend_from_slice(bytes);
        self.settle(false, out);
    }

    /// Settles the held bytes, because nothing more comes, or not at once.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.settle(true, out);
    }

    /// Forgets the held bytes. Returns their number.
    pub fn forget(&mut self) -> usize {
        self.before = None;
        std::mem::take(&mut self.held).len()
    }

    fn settle(&mut self, is_whole: bool, out: &mut Vec<u8>) {
        let mut at = 0;
        while at < self.held.len() {
            let before = at.checked_sub(1).map_or(self.before, |before| Some(self.held[before]));
            match self.masks.at(before, &self.held[at..], is_whole) {
                ValueAt::Nothing => {
                    out.push(self.held[at]);
                    at += 1;
                }
                ValueAt::Whole(secret) => {
                    out.extend_from_slice("«redacted:".as_bytes());
                    out.extend_from_slice(&secret.name);
                    out.extend_from_slice("»".as_bytes());
                    at += secret.value.len();
                }
                ValueAt::Begin => break,
            }
        }
        self.before = at.checked_sub(1).map_or(self.before, |last| Some(self.held[last]));
        self.held.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENV: [&[u8]; 5] =
        [b"PATH=/usr/bin:/bin", b"API_TOKEN=abcabcabd", b"OTHER_SECRET=abcabcabdabc", b"PIN=1234", b"LANG=abcabcabx"];

    #[test]
    fn a_value_is_masked_however_the_stream_is_split() {
        let session: &[u8] = b"CODEX_SESSION_ID=abcabcabx";
        let masks = ValueMasks::of(ENV.into_iter().chain([session]));
        let text = "x abcabcabcabd y abcabcabdabc 1234 abcabcabx abcabcab".as_bytes();
        let wanted = "x abc«redacted:API_TOKEN» y «redacted:OTHER_SECRET» 1234 abcabcabx abcabcab";
        assert_eq!(String::from_utf8(masks.masked(text)).unwrap(), wanted);
        for step in 1..text.len() {
            let mut stream = MaskedStream::new(masks.clone());
            let mut out = Vec::new();
            text.chunks(step).for_each(|piece| stream.push(piece, &mut out));
            stream.end(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "in steps of {step}");
        }
    }

    #[test]
    fn a_short_value_is_masked_where_it_stands_alone() {
        let env: [&[u8]; 6] =
            [b"DB_PASSWORD=hunter2", b"MY_PASS=p$ab", b"A_TOKEN=a1b", b"KEY=plain", b"PIN=123456", b"SIG=a-b.c/d"];
        let masks = ValueMasks::of(env.into_iter());
        let text = "hunter2 xhunter2 hunter2x hunter2\u{e9} hunter2_ =hunter2,p$ab.a1b plain 123456 a-b.c/d hunter2";
        let wanted = "# xhunter2 hunter2x hunter2\u{e9} hunter2_ =#,§.a1b plain 123456 a-b.c/d #";
        let wanted = wanted.replace('#', "«redacted:DB_PASSWORD»").replace('§', "«redacted:MY_PASS»");
        for step in 1..text.len() {
            let mut stream = MaskedStream::new(masks.clone());
            let mut out = Vec::new();
            text.as_bytes().chunks(step).for_each(|piece| stream.push(piece, &mut out));
            stream.end(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "in steps of {step}");
        }
    }

    #[test]
    fn every_value_of_a_large_environment_is_masked() {
        let env: Vec<String> = (0..2_000).map(|n| format!("KEY_{n}={n:08}-value")).collect();
        let masks = ValueMasks::of(env.iter().map(String::as_bytes));
        for entry in &env {
            let (name, value) = entry.split_once('=').unwrap();
            let masked = String::from_utf8(masks.masked(value.as_bytes())).unwrap();
            assert_eq!(masked, format!("«redacted:{name}»"));
        }
    }

    #[test]
    fn values_stay_here_but_for_those_that_name_an_agent() {
        let reported = |entry: &'static str| std::str::from_utf8(reported_variable(entry.as_bytes())).unwrap();
        assert_eq!(reported("CODEX_API_KEY=sk-1"), "CODEX_API_KEY=");
        assert_eq!(reported("CODEX_THREAD_ID=a=b"), "CODEX_THREAD_ID=a=b");
        assert_eq!((reported("A="), reported("odd")), ("A=", "odd"));
        for (name, is_secret) in [("PWD", false), ("XDG_CONFIG_PATH", false), ("db_password", true), ("EDITOR", false)]
        {
            assert_eq!(may_be_secret(name.as_bytes()), is_secret, "{name}");
        }
    }
}
