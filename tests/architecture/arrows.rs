//! Which part may name which, and which part may use what.

use crate::source::sources;

/// Each part, and the parts that it may name beside itself and the limits.
const MAY_NAME: [(&str, &[&str]); 15] = [
    ("core", &[]),
    ("text", &[]),
    ("script", &[]),
    ("gate", &["script", "text"]),
    // Process and signal numbers are plain data of the core. So are Order and Exit, which travel between host and guard.
    ("sys", &["core"]),
    ("undo", &["gate", "script", "sys", "text"]),
    ("guard", &["core", "sys", "undo"]),
    ("io", &["sys"]),
    ("front", &["core", "journal", "text"]),
    ("journal", &["core", "text"]),
    ("recorder", &["journal", "text"]),
    ("history", &["journal", "recorder", "text"]),
    ("sink", &["core", "journal", "text"]),
    ("host", &["core", "text", "script", "gate", "sys", "guard", "undo", "io", "front", "journal", "recorder", "sink"]),
    (
        "cli",
        &["core", "text", "script", "gate", "sys", "undo", "front", "journal", "recorder", "history", "sink", "host"],
    ),
];

/// Each foreign crate that is confined, and the parts that may name it.
const CONFINED: [(&str, &[&str]); 4] = [
    ("mio", &["io"]),
    ("nix", &["sys", "guard"]),
    ("lexopt", &["cli"]),
    ("serde_json", &["front", "journal", "recorder", "history", "undo"]),
];

#[test]
fn every_part_names_only_what_it_may() {
    let mut seen = 0;
    for source in sources("src").iter().filter(|source| !["bin", "lib", "limits"].contains(&source.part())) {
        let part = source.part();
        let allowed = MAY_NAME.iter().find(|(name, _)| *name == part);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("unknown part {part}"));
        for path in source.paths() {
            let name = path[0].as_str();
            if name != part && MAY_NAME.iter().any(|(part, _)| *part == name) {
                seen += 1;
                assert!(allowed.contains(&name), "{} names {}", source.file.display(), path.join("::"));
            }
        }
    }
    assert!(seen > 100, "the search finds what it looks for: {seen}");
    for source in sources("src").iter().filter(|source| source.part() == "bin") {
        assert!(source.code.contains("rexec_host::cli::"), "{}", source.file.display());
        assert!(source.lines < 10, "{} is more than a few lines", source.file.display());
    }
}

/// Whether this crate or module is named at all.
fn names(code: &str, name: &str) -> bool {
    let path = format!("{name}::");
    let is_whole = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    code.match_indices(&path).any(|(at, _)| is_whole(at))
}

/// Rooms that read JSON outside of these parts: a door that serves files, too, which no language in `front` may touch, and
/// the edits of settings, which serde_json judges.
const READ_JSON: [&str; 2] = ["cli/exec_server", "text/settings"];

#[test]
fn foreign_crates_stay_where_they_belong() {
    for source in sources("src") {
        for (foreign, allowed) in CONFINED {
            let speaks = foreign == "serde_json" && READ_JSON.iter().any(|room| source.file.starts_with(room));
            let may = speaks || allowed.contains(&source.part());
            assert!(may || !names(&source.code, foreign), "{} names {foreign}", source.file.display());
        }
    }
}

#[test]
fn unsafe_code_stays_where_it_belongs() {
    // The lint forbids it elsewhere; the allowance itself is given once, in lib.rs.
    let host = sources("src").into_iter().map(|source| (["sys", "guard"].contains(&source.part()), source));
    let shim = sources("shim/src").into_iter().map(|source| (["sys", "lib"].contains(&source.part()), source));
    let unsafe_parts = ["calls", "sys", "system", "variadic"];
    let preload = sources("shim/preload/src").into_iter();
    let preload = preload.map(|source| (unsafe_parts.contains(&source.part()), source));
    for (may, source) in host.chain(shim).chain(preload) {
        assert!(may || !source.code.contains("unsafe {"), "{} is unsafe", source.file.display());
    }
}

/// Where the loop touches files: it makes its socket and its lock file.
const TOUCH_FILES: [&str; 1] = ["host/door.rs"];

/// The loop never waits for a disk.
#[test]
fn the_loop_touches_no_file_but_its_socket() {
    for source in
        sources("src").iter().filter(|source| ["core", "front", "host", "io", "sink"].contains(&source.part()))
    {
        let is_named = names(&source.code, "fs") || names(&source.code, "std::fs");
        let may = TOUCH_FILES.iter().any(|allowed| source.file.ends_with(allowed));
        assert!(may || !is_named, "{} names std::fs", source.file.display());
    }
}

/// What the wall's clock may be asked for beside the time stamps of records: a file's age, and whether a note is of the future.
const ASK_THE_WALL: [&str; 3] = ["host/unseen/notes.rs", "recorder/output_directory.rs", "undo/tidying.rs"];

/// Somebody may set the wall's clock at any time, so no duration and no deadline comes from it.
#[test]
fn the_time_of_day_is_for_records_only() {
    let (mut stamps, mut others) = (0, 0);
    for source in sources("src") {
        let (file, code) = (&source.file, &source.code);
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
