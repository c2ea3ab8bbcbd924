//! The arrows of the architecture, checked: which part may name which.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each part, and the parts that it may name beside itself and the limits.
const MAY_NAME: [(&str, &[&str]); 11] = [
    ("core", &[]),
    ("text", &[]),
    // Numbers of processes and signals are plain data of the core; so are Order and Exit, which travel between host and guard.
    ("sys", &["core"]),
    ("guard", &["core", "sys"]),
    ("io", &["sys"]),
    ("front", &["core", "text"]),
    ("journal", &["text"]),
    ("recorder", &["journal", "text"]),
    ("sink", &["core", "journal", "text"]),
    ("host", &["core", "text", "sys", "guard", "io", "front", "journal", "recorder", "sink"]),
    ("cli", &["core", "text", "sys", "front", "journal", "recorder", "sink", "host"]),
];

/// Each foreign crate that is confined, and the parts that may name it.
const CONFINED: [(&str, &[&str]); 4] = [
    ("mio", &["io"]),
    ("nix", &["sys", "guard"]),
    ("lexopt", &["cli"]),
    ("serde_json", &["front", "journal", "recorder"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The sources of each part, without comments.
fn parts() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut parts: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for file in files {
        let within = file.strip_prefix(&root).unwrap();
        let part = within.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        parts.entry(part).or_default().push((within.to_owned(), code.collect::<Vec<_>>().join("\n")));
    }
    parts
}

/// The names that follow `prefix` in the code, also in `use crate::{a, b}`.
fn names_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(prefix).flat_map(move |(at, _)| {
        let rest = &code[at + prefix.len()..];
        let group =
            rest.strip_prefix('{').map_or(&rest[..rest.len().min(80)], |inner| inner.split('}').next().unwrap());
        let many = rest.starts_with('{');
        let words = group.split(',').take(if many { usize::MAX } else { 1 });
        words.map(|word| {
            let word = word.trim_start();
            &word[..word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len())]
        })
    })
}

#[test]
fn every_part_names_only_what_it_may() {
    let parts = parts();
    let known: Vec<&str> = MAY_NAME.iter().map(|(part, _)| *part).collect();
    let mut seen = 0;
    for (part, files) in &parts {
        if ["bin", "lib", "limits"].contains(&part.as_str()) {
            continue;
        }
        let (_, allowed) =
            MAY_NAME.iter().find(|(name, _)| name == part).unwrap_or_else(|| panic!("unknown part {part}"));
        for (file, code) in files {
            for name in names_after(code, "crate::").filter(|name| known.contains(name)) {
                seen += 1;
                assert!(name == part || allowed.contains(&name), "{} names {name}", file.display());
            }
        }
    }
    assert!(seen > 100, "the search finds what it looks for: {seen}");
    for (file, code) in &parts["bin"] {
        assert!(code.contains("rexec_host::cli::"), "{}", file.display());
        assert!(code.lines().count() < 10, "{} is more than a few lines", file.display());
    }
}

#[test]
fn foreign_crates_stay_where_they_belong() {
    for (part, files) in parts() {
        for (file, code) in files {
            for (foreign, allowed) in CONFINED {
                let names = [format!("use {foreign}::"), format!("{foreign}::")];
                let is_named = names.iter().any(|name| {
                    code.match_indices(name.as_str())
                        .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
                });
                assert!(!is_named || allowed.contains(&part.as_str()), "{} names {foreign}", file.display());
            }
            // The lint forbids it elsewhere; the allowance itself is given once, in lib.rs.
            assert!(
                ["sys", "guard"].contains(&part.as_str()) || !code.contains("unsafe {"),
                "{} is unsafe",
                file.display()
            );
        }
    }
}

/// What the wall's clock may be asked for beside the time stamps of records: a file's age.
const ASK_THE_WALL: [&str; 1] = ["recorder/raw.rs"];

/// Somebody may set the wall's clock at any time, so no duration and no deadline comes from it.
#[test]
fn the_time_of_day_is_for_records_only() {
    let (mut stamps, mut others) = (0, 0);
    for (file, code) in parts().into_values().flatten() {
        for (at, _) in code.match_indices("SystemTime::now()") {
            let is_stamp = code[..at].ends_with("timestamp(");
            stamps += usize::from(is_stamp);
            others += usize::from(!is_stamp);
            let may_ask = ASK_THE_WALL.iter().any(|allowed| file.ends_with(allowed));
            assert!(is_stamp || may_ask, "{} asks for the time of day", file.display());
        }
    }
    assert!(stamps > 2 && others > 0, "the search finds what it looks for: {stamps} and {others}");
}
