//! Texts that look a little like secrets and are none.

const TEXTS: &[&str] = &[
    "task-list-item-with-a-very-long-name-indeed",
    "sk-loading-spinner-container-2-wide-x",
    "sk-learn==1.4.2",
    "disk-usage-analyzer-1234567890123456",
    "risk-0123456789abcdefghijklmnop",
    "ghp_short",
    "ghp_",
    "github_pat_",
    "glpat-",
    "npm_config_registry=https://packages.example.org/",
    "npm_lifecycle_event",
    "AKIA",
    "AKIAlowercase1234567",
    "AKIA0123456789ABCDEFGHIJKLMNOP",
    "XAKIAIOSFODNN7EXAMPLE",
    "xoxo-hugs-and-kisses",
    "xoxb-",
    "eyJ",
    "eyJhbGciOiJIUzI1NiJ9",
    "eyJhbGciOiJIUzI1NiJ9.txt",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN RSA PUBLIC KEY-----",
    "-----BEGIN a test-----",
    "------------------------",
    "https://example.com:8080/a@b",
    "https://user@example.com/",
    "git@github.com:owner/repo.git",
    "ssh://git@github.com:22/owner/repo",
    "https://packages.example.org/@babel/core/-/core-7.24.0.tgz",
    "https://user:$TOKEN@example.com",
    "https://user:${PASSWORD}@example.com",
    "https://user:***@example.com",
    "http://[::1]:3000/",
    "std::collections::HashMap",
    "a::b://c",
    "time: 12:30:45",
    "/srv/me/project/src",
    "/usr/bin:/bin",
    "correct hors",
    "aabaabaa",
    "пароль",
    "sid=aaaaaaaaaaaaaaa",
    "Set the API_KEY and the DB_PASSWORD first",
    "export GITHUB_TOKEN=",
    "token = os.environ['TOKEN']",
    "password: ********",
    "secret_key_base: <%= ENV['SECRET_KEY_BASE'] %>",
    "skeleton sketch skip asks",
    "--privileged -----",
];

/// The texts, none of which may be masked.
pub(super) fn near_misses() -> Vec<String> {
    let hex = "0123456789abcdef0123456789abcdef01234567";
    let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    for n in 0..50 {
        texts.push(format!("{}{n:02}  file-{n}.tar.gz", &hex[..38]));
        texts.push(format!("sha512-{}{n}==", "aZ09+/bY18cX27dW36eV45fU54gT63hS72iR81jQ90".repeat(2)));
        texts.push(format!("2f1c{n:04}-aaaa-4bbb-8ccc-1234567890ab"));
    }
    texts
}
