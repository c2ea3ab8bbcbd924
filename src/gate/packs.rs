//! Packs: rules that come with rexec, as data in the format of a person's own. All of them ask, none denies, and all are
//! lenient.

const PACKS: [(&str, &str); 6] = [
    ("git", include_str!("packs/git.toml")),
    ("files", include_str!("packs/files.toml")),
    ("database", include_str!("packs/database.toml")),
    ("publish", include_str!("packs/publish.toml")),
    ("cloud", include_str!("packs/cloud.toml")),
    ("kill", include_str!("packs/kill.toml")),
];

/// Their names.
pub const NAMES: [&str; PACKS.len()] = {
    let mut names = [""; PACKS.len()];
    let mut at = 0;
    while at < PACKS.len() {
        names[at] = PACKS[at].0;
        at += 1;
    }
    names
};

/// The text of a pack.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    PACKS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
