//! Tokens with a fixed start and then bytes of an alphabet, as their issuers document them.

use super::finding::{Finding, Swallow};
use super::searched_text::SearchedText;

use std::sync::LazyLock;

/// The most bytes of a token that are read for a verdict.
const TOKEN_BYTES_MAX: usize = 256;

/// The shape of a token with a fixed start.
pub(super) struct Prefixed {
    name: &'static str,
    pub(super) start: &'static [u8],
    pub(super) alphabet: Alphabet,
    /// The least letters and digits in a row, and the least bytes in all, after the start.
    run_min: usize,
    len_min: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Alphabet {
    Alphanumeric,
    Hex,
    /// Letters, digits, `_` and `-`.
    Token,
    /// Letters, digits and `-`.
    Slack,
    /// Letters, digits, `_`, `-`, `.`, `=`, `+` and `/`.
    Base64,
    /// The same, `$` and `,`: what crypt(5) makes of a password.
    Crypt,
}

impl Alphabet {
    pub(super) fn is_part(self) -> fn(u8) -> bool {
        match self {
            Self::Alphanumeric => |byte| byte.is_ascii_alphanumeric(),
            Self::Hex => |byte| byte.is_ascii_hexdigit(),
            Self::Token => is_token,
            Self::Slack => |byte| byte.is_ascii_alphanumeric() || byte == b'-',
            Self::Base64 => |byte| is_token(byte) || matches!(byte, b'.' | b'=' | b'+' | b'/'),
            Self::Crypt => |byte| is_token(byte) || matches!(byte, b'.' | b'=' | b'+' | b'/' | b'$' | b','),
        }
    }
}

pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

const fn of(name: &'static str, start: &'static [u8], alphabet: Alphabet, run_min: usize, len_min: usize) -> Prefixed {
    Prefixed { name, start, alphabet, run_min, len_min }
}

use Alphabet::{Alphanumeric, Base64, Crypt, Hex, Slack, Token};

pub(super) const PREFIXED: &[Prefixed] = &[
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
    of("SQUARE_TOKEN", b"sq0idp-", Token, 8, 22),
    of("SQUARE_TOKEN", b"EAAA", Token, 20, 50),
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
    of("VERCEL_TOKEN", b"vercel_", Token, 16, 20),
    of("NEON_KEY", b"napi_", Alphanumeric, 32, 32),
    of("ARTIFACTORY_KEY", b"AKCp", Alphanumeric, 40, 40),
    of("CLOJARS_TOKEN", b"CLOJARS_", Hex, 32, 32),
    of("GITLAB_TOKEN", b"GR1348941", Token, 8, 20),
    of("GITLAB_TOKEN", b"glagent-", Token, 6, 20),
    of("GITLAB_TOKEN", b"glimt-", Token, 6, 20),
    of("HUBSPOT_TOKEN", b"pat-na1-", Slack, 8, 30),
    of("HUBSPOT_TOKEN", b"pat-eu1-", Slack, 8, 30),
    of("SONAR_TOKEN", b"squ_", Hex, 40, 40),
    of("SONAR_TOKEN", b"sqp_", Hex, 40, 40),
    of("SOURCEGRAPH_TOKEN", b"sgp_", Token, 32, 40),
    of("AMAZON_MWS_TOKEN", b"amzn.mws.", Slack, 8, 36),
    of("AWS_BEDROCK_KEY", b"ABSK", Base64, 8, 100),
    of("GOOGLE_TOKEN", b"1//0", Token, 20, 40),
    of("PADDLE_KEY", b"pdl_", Token, 16, 30),
    of("FLUTTERWAVE_KEY", b"FLWSECK", Token, 12, 20),
    of("SHIPPO_TOKEN", b"shippo_", Token, 32, 40),
    of("EASYPOST_KEY", b"EZAK", Alphanumeric, 50, 50),
    of("EASYPOST_KEY", b"EZTK", Alphanumeric, 50, 50),
    of("MAILERSEND_TOKEN", b"mlsn.", Hex, 40, 40),
    of("BREVO_KEY", b"xsmtpsib-", Slack, 32, 40),
    of("README_KEY", b"rdme_", Alphanumeric, 40, 40),
    of("APIFY_TOKEN", b"apify_api_", Alphanumeric, 30, 30),
    of("CEREBRAS_KEY", b"csk-", Alphanumeric, 30, 30),
    of("RENDER_KEY", b"rnd_", Alphanumeric, 28, 28),
    of("RUNPOD_KEY", b"rpa_", Alphanumeric, 40, 40),
    of("JINA_KEY", b"jina_", Token, 32, 40),
    of("DOPPLER_TOKEN", b"dp.sa.", Alphanumeric, 32, 32),
    of("CIRCLECI_TOKEN", b"CCIPRJ_", Token, 16, 30),
    of("BITCOIN_KEY", b"xprv", Alphanumeric, 100, 100),
    of("NOSTR_KEY", b"nsec1", Alphanumeric, 50, 50),
    of("PASSWORD_HASH", b"$1$", Crypt, 8, 24),
    of("PASSWORD_HASH", b"$5$", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$6$", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$7$", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$y$", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$gy$", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$apr1$", Crypt, 8, 24),
    of("PASSWORD_HASH", b"$2a$", Crypt, 8, 50),
    of("PASSWORD_HASH", b"$2b$", Crypt, 8, 50),
    of("PASSWORD_HASH", b"$2y$", Crypt, 8, 50),
    of("PASSWORD_HASH", b"$argon2", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$pbkdf2", Crypt, 8, 40),
    of("PASSWORD_HASH", b"$scrypt$", Crypt, 8, 40),
];

/// A token with its first four bytes, and a mask of those that exist.
pub(super) struct Begin {
    pub(super) token: &'static Prefixed,
    four: u32,
    mask: u32,
}

impl Begin {
    fn of(token: &'static Prefixed) -> Self {
        let (mut four, mut mask) = ([0; 4], [0; 4]);
        for (at, &byte) in token.start.iter().take(4).enumerate() {
            (four[at], mask[at]) = (byte, u8::MAX);
        }
        Self { token, four: u32::from_le_bytes(four), mask: u32::from_le_bytes(mask) }
    }

    /// Returns true if a text begins with the token's start, or is the beginning of it.
    pub(super) fn agrees(&self, text: &[u8]) -> bool {
        if let Some(&four) = text.first_chunk()
            && u32::from_le_bytes(four) & self.mask != self.four
        {
            return false;
        }
        let len = self.token.start.len().min(text.len());
        self.token.start[..len] == text[..len]
    }
}

/// The tokens by the first byte of their start.
pub(super) static BY_FIRST: LazyLock<Vec<Vec<Begin>>> = LazyLock::new(|| {
    let with = |byte: u8| PREFIXED.iter().filter(|token| token.start[0] == byte).map(Begin::of).collect();
    (0..=255).map(with).collect()
});

impl Prefixed {
    pub(super) fn judge(&self, text: SearchedText<'_>, at: usize) -> Option<Finding> {
        for (offset, &byte) in self.start.iter().enumerate() {
            if text.peek(at + offset) != Some(byte) {
                return None;
            }
        }
        let (start, is_part) = (at + self.start.len(), self.alphabet.is_part());
        let (mut run, mut enough) = (0, false);
        for end in start..start + TOKEN_BYTES_MAX {
            let byte = text.peek(end).filter(|&byte| is_part(byte))?;
            run = if byte.is_ascii_alphanumeric() { run + 1 } else { 0 };
            enough |= run >= self.run_min;
            if enough && end + 1 - start >= self.len_min {
                let swallow = Some(Swallow::While(is_part));
                return Some(Finding { start: at, end: end + 1, name: self.name.to_owned(), swallow });
            }
        }
        None
    }
}
