//! The size of files, one name for one type, and a map whose files exist.

use std::collections::BTreeMap;

use crate::source::sources;

/// A file is as long as its one thing, and no line is made denser to meet a count. A longer one has two matters.
const LINES_MAX: usize = 600;

#[test]
fn no_long_file() {
    let all = ["src", "shim/src", "tests", "shim/tests"].map(|src| (src, sources(src)));
    let files = all.iter().flat_map(|(src, sources)| sources.iter().map(move |source| (src, source)));
    let named = files.map(|(src, source)| (format!("{src}/{}", source.file.display()), source.lines));
    let long: Vec<String> =
        named.filter(|(_, lines)| *lines > LINES_MAX).map(|(name, lines)| format!("{name}: {lines} lines")).collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines:\n{}", long.join("\n"));
}

/// The types that the code of a module defines, in blocks too.
fn types(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let is_nested = line.starts_with(' ');
        let line = line.trim_start();
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
            Some(rest) => rest.trim_start(),
            None => line,
        };
        let line = line.strip_prefix("unsafe ").unwrap_or(line);
        let (kind, rest) = line.split_once(' ')?;
        // A nested `type` belongs to a trait.
        let is_type = ["struct", "enum", "union", "trait"].contains(&kind) || (kind == "type" && !is_nested);
        let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        (is_type && !name.is_empty()).then_some(name)
    })
}

#[test]
fn one_name_for_one_type() {
    let all = ["src", "shim/src"].map(|src| (src, sources(src)));
    let mut homes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (src, source) in all.iter().flat_map(|(src, sources)| sources.iter().map(move |source| (src, source))) {
        for name in types(&source.code) {
            homes.entry(name).or_default().push(format!("{src}/{}", source.file.display()));
        }
    }
    assert!(homes.len() > 200, "the search finds what it looks for: {}", homes.len());
    homes.retain(|_, homes| homes.len() > 1);
    assert!(homes.is_empty(), "more than one type has each of these names: {homes:#?}");
}

/// The files that the map names: `io/port.rs` for a file of the host, `protocol/wire.rs` or `shim/src/client.rs` for one
/// of the shim.
#[test]
fn every_file_on_the_map_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let named = map.split('`').filter(|name| name.ends_with(".rs") && !name.contains(char::is_whitespace));
    let mut seen = 0;
    for name in named {
        seen += 1;
        let places = [format!("src/{name}"), format!("shim/src/{name}"), name.to_owned()];
        assert!(places.iter().any(|place| root.join(place).is_file()), "the map names {name}, which does not exist");
    }
    assert!(seen > 40, "the search finds what it looks for: {seen}");
}
