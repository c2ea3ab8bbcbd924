//! Tokens that are known by how they look, whatever variable or file they come from.
//!
//! Each needs a start, a length and an alphabet that ordinary words do not have, as its issuer documents them, and is
//! decided after a bounded number of bytes; what follows in the same alphabet is swallowed.

use std::sync::LazyLock;

use super::assigned::{Text, without_colour};
use super::stream::{Secret, Undecided};
use super::swallow::Swallow;

/// How far a token is read before it must have shown what it is.
const TOKEN_BYTES_MAX: usize = 256;
/// The longest first part of a JSON web token.
const JWT_HEAD_BYTES_MAX: usize = 2048;

/// A token that is a fixed start and then bytes of an alphabet.
struct Prefixed {
    name: &'static str,
    start: &'static [u8],
    alphabet: Alphabet,
    /// The token is one once so many letters and digits follow in a row, and so many bytes in all.
    run_min: usize,
    len_min: usize,
}

#[derive(Clone, Copy)]
enum Alphabet {
    Alphanumeric,
    Hex,
    /// With `_` and `-`.
    Token,
    /// With `-`.
    Slack,
    /// With `_`, `-`, `.`, `=`, `+` and `/`.
    Base64,
}

impl Alphabet {
    fn is_part(self) -> fn(u8) -> bool {
        match self {
            Self::Alphanumeric => |byte| byte.is_ascii_alphanumeric(),
            Self::Hex => |byte| byte.is_ascii_hexdigit(),
            Self::Token => is_token,
            Self::Slack => |byte| byte.is_ascii_alphanumeric() || byte == b'-',
            Self::Base64 => |byte| is_token(byte) || matches!(byte, b'.' | b'=' | b'+' | b'/'),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_jwt(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

const fn of(name: &'static str, start: &'static [u8], alphabet: Alphabet, run_min: usize, len_min: usize) -> Prefixed {
    Prefixed { name, start, alphabet, run_min, len_min }
}

use Alphabet::{Alphanumeric, Base64, Hex, Slack, Token};

const PREFIXED: &[Prefixed] = &[
    of("GITHUB_TOKEN", b"ghp_", Alphanumeric, 30, 30),
    of("GITHUB_TOKEN", b"gho_", Alphanumeric, 30, 30),
    of("GITHUB_TOKEN", b"ghs_", Alphanumeric, 30, 30),
    of("GITHUB_TOKEN", b"ghu_", Alphanumeric, 30, 30),
    of("GITHUB_TOKEN", b"ghr_", Alphanumeric, 30, 30),
    of("GITHUB_TOKEN", b"github_pat_", Token, 16, 22),
    of("GITLAB_TOKEN", b"glpat-", Token, 6, 20),
    of("GITLAB_TOKEN", b"glrt-", Token, 6, 20),
    of("GITLAB_TOKEN", b"gldt-", Token, 6, 20),
    of("GITLAB_TOKEN", b"glptt-", Token, 6, 20),
    of("GITLAB_TOKEN", b"glcbt-", Token, 6, 20),
    of("GITLAB_TOKEN", b"glsoat-", Token, 6, 20),
    of("GITLAB_TOKEN", b"glft-", Token, 6, 20),
    of("GITLAB_TOKEN", b"gloas-", Token, 6, 20),
    of("NPM_TOKEN", b"npm_", Alphanumeric, 30, 30),
    of("PYPI_TOKEN", b"pypi-", Token, 16, 32),
    of("API_KEY", b"sk-", Token, 16, 20),
    of("STRIPE_KEY", b"sk_live_", Alphanumeric, 10, 10),
    of("STRIPE_KEY", b"sk_test_", Alphanumeric, 16, 16),
    of("STRIPE_KEY", b"rk_live_", Alphanumeric, 10, 10),
    of("STRIPE_KEY", b"rk_test_", Alphanumeric, 16, 16),
    of("STRIPE_SECRET", b"whsec_", Base64, 16, 24),
    of("SLACK_TOKEN", b"xoxa-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xoxb-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xoxc-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xoxd-", Base64, 8, 10),
    of("SLACK_TOKEN", b"xoxe-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xoxe.", Base64, 8, 20),
    of("SLACK_TOKEN", b"xoxo-", Slack, 8, 16),
    of("SLACK_TOKEN", b"xoxp-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xoxr-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xoxs-", Slack, 8, 10),
    of("SLACK_TOKEN", b"xapp-", Slack, 8, 16),
    of("GOOGLE_KEY", b"AIza", Token, 6, 30),
    of("GOOGLE_TOKEN", b"ya29.", Token, 10, 20),
    of("GOOGLE_SECRET", b"GOCSPX-", Token, 6, 20),
    of("HUGGINGFACE_TOKEN", b"hf_", Alphanumeric, 30, 30),
    of("HUGGINGFACE_TOKEN", b"api_org_", Alphanumeric, 30, 30),
    of("SENDGRID_KEY", b"SG.", Base64, 8, 40),
    of("DOCKER_TOKEN", b"dckr_pat_", Token, 6, 20),
    of("DOCKER_TOKEN", b"dckr_oat_", Token, 6, 20),
    of("DIGITALOCEAN_TOKEN", b"dop_v1_", Hex, 32, 32),
    of("DIGITALOCEAN_TOKEN", b"doo_v1_", Hex, 32, 32),
    of("DIGITALOCEAN_TOKEN", b"dor_v1_", Hex, 32, 32),
    of("VAULT_TOKEN", b"hvs.", Base64, 8, 20),
    of("VAULT_TOKEN", b"hvb.", Base64, 8, 20),
    of("VAULT_TOKEN", b"hvr.", Base64, 8, 20),
    of("DATABRICKS_TOKEN", b"dapi", Hex, 32, 32),
    of("LINEAR_KEY", b"lin_api_", Alphanumeric, 20, 20),
    of("LINEAR_KEY", b"lin_oauth_", Alphanumeric, 20, 20),
    of("FIGMA_TOKEN", b"figd_", Token, 8, 20),
    of("AGE_KEY", b"AGE-SECRET-KEY-1", Alphanumeric, 20, 20),
    of("SHOPIFY_TOKEN", b"shpat_", Hex, 32, 32),
    of("SHOPIFY_TOKEN", b"shpca_", Hex, 32, 32),
    of("SHOPIFY_TOKEN", b"shppa_", Hex, 32, 32),
    of("SHOPIFY_TOKEN", b"shpss_", Hex, 32, 32),
    of("SQUARE_TOKEN", b"sq0atp-", Token, 8, 22),
    of("SQUARE_TOKEN", b"sq0csp-", Token, 8, 22),
    of("SQUARE_TOKEN", b"EAAAE", Token, 20, 50),
    of("TWILIO_KEY", b"SK", Hex, 32, 32),
    of("MAILGUN_KEY", b"key-", Hex, 32, 32),
    of("MAILCHIMP_KEY", b"md-", Token, 22, 22),
    of("GROQ_KEY", b"gsk_", Alphanumeric, 20, 32),
    of("XAI_KEY", b"xai-", Alphanumeric, 32, 32),
    of("REPLICATE_TOKEN", b"r8_", Alphanumeric, 30, 30),
    of("PERPLEXITY_KEY", b"pplx-", Alphanumeric, 30, 30),
    of("TAVILY_KEY", b"tvly-", Token, 16, 20),
    of("NVIDIA_KEY", b"nvapi-", Token, 16, 32),
    of("NOTION_TOKEN", b"ntn_", Alphanumeric, 30, 30),
    of("NOTION_TOKEN", b"secret_", Alphanumeric, 40, 40),
    of("POSTMAN_KEY", b"PMAK-", Slack, 20, 40),
    of("RUBYGEMS_KEY", b"rubygems_", Hex, 32, 32),
    of("CARGO_TOKEN", b"cio", Alphanumeric, 32, 32),
    of("NUGET_KEY", b"oy2", Alphanumeric, 40, 40),
    of("GRAFANA_TOKEN", b"glsa_", Token, 20, 32),
    of("GRAFANA_TOKEN", b"glc_", Base64, 20, 32),
    of("SENTRY_TOKEN", b"sntrys_", Base64, 20, 32),
    of("SENTRY_TOKEN", b"sntryu_", Hex, 32, 32),
    of("NEWRELIC_KEY", b"NRAK-", Alphanumeric, 20, 20),
    of("PULUMI_TOKEN", b"pul-", Hex, 32, 32),
    of("TAILSCALE_KEY", b"tskey-", Slack, 8, 20),
    of("ATLASSIAN_TOKEN", b"ATATT3", Base64, 20, 40),
    of("ATLASSIAN_TOKEN", b"ATCTT3", Base64, 20, 40),
    of("BITBUCKET_PASSWORD", b"ATBB", Alphanumeric, 28, 28),
    of("DOPPLER_TOKEN", b"dp.pt.", Alphanumeric, 32, 32),
    of("DOPPLER_TOKEN", b"dp.st.", Base64, 20, 32),
    of("PLANETSCALE_TOKEN", b"pscale_tkn_", Base64, 8, 24),
    of("PLANETSCALE_PASSWORD", b"pscale_pw_", Base64, 8, 24),
    of("SUPABASE_KEY", b"sbp_", Hex, 32, 32),
    of("SUPABASE_KEY", b"sb_secret_", Token, 8, 20),
    of("NETLIFY_TOKEN", b"nfp_", Alphanumeric, 30, 30),
    of("FLY_TOKEN", b"fo1_", Token, 20, 30),
    of("FLY_TOKEN", b"fm2_", Base64, 20, 40),
    of("BUILDKITE_TOKEN", b"bkua_", Hex, 32, 32),
    of("CIRCLECI_TOKEN", b"CCIPAT_", Token, 16, 30),
    of("CONTENTFUL_TOKEN", b"CFPAT-", Token, 16, 30),
    of("AIRTABLE_TOKEN", b"pat", Base64, 40, 60),
    of("HEROKU_KEY", b"HRKU-", Token, 8, 30),
    of("ALIBABA_KEY", b"LTAI", Alphanumeric, 16, 16),
    of("FACEBOOK_TOKEN", b"EAACEdEose0cBA", Alphanumeric, 16, 16),
    of("BREVO_KEY", b"xkeysib-", Slack, 32, 40),
    of("DYNATRACE_TOKEN", b"dt0c01.", Base64, 20, 60),
    of("ONEPASSWORD_TOKEN", b"ops_eyJ", Base64, 20, 60),
    of("TERRAFORM_TOKEN", b"atlasv1.", Base64, 20, 40),
    of("AZURE_DEVOPS_TOKEN", b"azd_", Alphanumeric, 30, 30),
    of("PREFECT_KEY", b"pnu_", Alphanumeric, 30, 30),
    of("TYPEFORM_TOKEN", b"tfp_", Base64, 20, 40),
    of("POSTHOG_KEY", b"phx_", Token, 20, 32),
    of("OPENROUTER_KEY", b"or-v1-", Hex, 32, 32),
    of("VOYAGE_KEY", b"pa-", Token, 32, 40),
    of("LANGSMITH_KEY", b"lsv2_", Token, 20, 32),
];

/// By their first bytes.
static BY_FIRST: LazyLock<Vec<Vec<&Prefixed>>> = LazyLock::new(|| {
    let with = |byte: u8| PREFIXED.iter().filter(|token| token.start[0] == byte).collect();
    (0..=255).map(with).collect()
});

/// The first three bytes of what is looked for, but for bots'.
pub(super) fn starts() -> impl Iterator<Item = [u8; 3]> {
    let thirds = |start: &'static [u8]| -> Vec<[u8; 3]> {
        match *start {
            [first, second] => (0..=255).map(|third| [first, second, third]).collect(),
            _ => vec![[start[0], start[1], start[2]]],
        }
    };
    let others = [*b"eyJ", *b"AKI", *b"ASI", *b"ABI"];
    PREFIXED.iter().flat_map(move |token| thirds(token.start)).chain(others)
}

/// Whether a word can start behind this: no letter, but for the end of a colour or an escape.
fn starts_word(before: &[u8]) -> bool {
    match before {
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't'] | [.., b'%', _, _] | [] => true,
        _ => without_colour(before).len() < before.len(),
    }
}

/// The token that begins at this place.
pub(super) fn judge(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    if !starts_word(text.before(at)) {
        return Ok(None);
    }
    let (Some(first), Some(second)) = (text.peek(at)?, text.peek(at + 1)?) else { return Ok(None) };
    // What has nothing but letters at its start is not looked for within base64.
    let in_base64 = matches!(text.before(at).last(), Some(b'+' | b'/'));
    let is_apart = |token: &Prefixed| !in_base64 || token.start.iter().any(|byte| matches!(byte, b'_' | b'-' | b'.'));
    for token in BY_FIRST[usize::from(first)].iter().filter(|token| token.start[1] == second && is_apart(token)) {
        if let Some(found) = token.judge(text, at)? {
            return Ok(Some(found));
        }
    }
    match first {
        b'e' => jwt(text, at),
        b'A' => aws(text, at),
        b'M' | b'N' | b'O' => discord(text, at),
        b'b' | b'B' => bearer(text, at),
        _ => Ok(None),
    }
}

impl Prefixed {
    fn judge(&self, text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
        for (offset, &byte) in self.start.iter().enumerate() {
            if text.peek(at + offset)? != Some(byte) {
                return Ok(None);
            }
        }
        let (start, is_part) = (at + self.start.len(), self.alphabet.is_part());
        let (mut run, mut enough) = (0, false);
        for end in start..start + TOKEN_BYTES_MAX {
            let Some(byte) = text.peek(end)?.filter(|&byte| is_part(byte)) else { return Ok(None) };
            run = if byte.is_ascii_alphanumeric() { run + 1 } else { 0 };
            enough |= run >= self.run_min;
            if enough && end + 1 - start >= self.len_min {
                let swallow = Some(Swallow::While(is_part));
                return Ok(Some(Secret { start: at, end: end + 1, name: self.name.to_owned(), swallow }));
            }
        }
        Ok(None)
    }
}

/// How many bytes from `at` on are of a kind, at most `max`.
fn count(text: Text<'_>, at: usize, max: usize, is: fn(u8) -> bool) -> Result<usize, Undecided> {
    let mut len = 0;
    while len < max && text.peek(at + len)?.is_some_and(is) {
        len += 1;
    }
    Ok(len)
}

fn secret(start: usize, end: usize, name: &str, alphabet: Option<fn(u8) -> bool>) -> Option<Secret> {
    Some(Secret { start, end, name: name.to_owned(), swallow: alphabet.map(Swallow::While) })
}

/// Exactly 20 capitals and digits.
fn aws(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    const LEN: usize = 20;
    let len = count(text, at, LEN, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())?;
    let is_known = [&b"AKIA"[..], b"ASIA", b"ABIA"].iter().any(|start| text.bytes[at..].starts_with(start));
    if len < LEN || !is_known {
        return Ok(None);
    }
    let is_longer = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'/' | b'=');
    Ok(if text.peek(at + LEN)?.is_some_and(is_longer) { None } else { secret(at, at + LEN, "AWS_KEY_ID", None) })
}

/// Two parts of base64 that are JSON objects, and what follows them.
fn jwt(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    const PART_MIN: usize = 8;
    let starts = |at: usize| -> Result<bool, Undecided> { Ok(count(text, at, 3, |byte| b"eyJ".contains(&byte))? == 3) };
    if !starts(at)? || !text.bytes[at..].starts_with(b"eyJ") {
        return Ok(None);
    }
    let head = count(text, at, JWT_HEAD_BYTES_MAX, is_token)?;
    let body = at + head + 1;
    if head < PART_MIN || head == JWT_HEAD_BYTES_MAX || text.peek(body - 1)? != Some(b'.') || !starts(body)? {
        return Ok(None);
    }
    if !text.bytes[body..].starts_with(b"eyJ") || count(text, body, PART_MIN, is_token)? < PART_MIN {
        return Ok(None);
    }
    Ok(secret(at, body + PART_MIN, "JWT", Some(is_jwt)))
}

/// A Discord bot's: its number in base64, a time, a signature.
fn discord(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    if !matches!(text.peek(at)?, Some(b'M' | b'N' | b'O')) {
        return Ok(None);
    }
    let head = count(text, at, 29, |byte| byte.is_ascii_alphanumeric())?;
    if !(23..=28).contains(&head) || text.peek(at + head)? != Some(b'.') {
        return Ok(None);
    }
    let time = at + head + 1;
    let len = count(text, time, 8, is_token)?;
    if !(5..=7).contains(&len) || text.peek(time + len)? != Some(b'.') {
        return Ok(None);
    }
    let signature = time + len + 1;
    let len = count(text, signature, 27, is_token)?;
    Ok(if len < 27 { None } else { secret(at, signature + len, "DISCORD_TOKEN", Some(is_token)) })
}

/// A Telegram bot's, behind its number and a colon.
pub(super) fn bot(text: Text<'_>, colon: usize) -> Result<Option<Secret>, Undecided> {
    let digits = text.before(colon).iter().rev().take(12).take_while(|byte| byte.is_ascii_digit()).count();
    if !(8..=10).contains(&digits) || text.peek(colon + 2)? != Some(b'A') {
        return Ok(None);
    }
    let len = count(text, colon + 1, 34, is_token)?;
    Ok(if len < 34 { None } else { secret(colon + 1, colon + 1 + len, "TELEGRAM_TOKEN", Some(is_token)) })
}

/// What follows `Bearer ` or `Basic `, without a header's name.
fn bearer(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    const LEN: usize = 16;
    let Some(start) = [&b"bearer "[..], b"basic "].iter().find_map(|word| match text.has(at, word) {
        Ok(false) => None,
        found => Some(found.map(|_| at + word.len())),
    }) else {
        return Ok(None);
    };
    let (start, is_part) = (start?, Alphabet::Base64.is_part());
    let len = count(text, start, 2 * LEN, is_part)?;
    let bytes = &text.bytes[start..start + len];
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    let is_random = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    Ok(if len < LEN || !is_random { None } else { secret(start, start + len, "BEARER_TOKEN", Some(is_part)) })
}
