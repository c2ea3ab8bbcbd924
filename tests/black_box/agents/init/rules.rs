//! The rules that `rexec init` writes for a person who has none.

use std::fs;

use super::Place;
use crate::support::host::Host;
use crate::support::programs;
use crate::support::typist::{At, Typist};

const CONFIG: &str = ".config/rexec/config.toml";

/// A home with a folder for configurations, which stays.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.home.join(".config")).expect("a folder");
    place
}

#[test]
fn rules_are_written_if_they_are_wanted_and_taken_back_as_they_were_written() {
    let place = place();
    let untouched = place.all();
    place.does(&["init", "--yes", "claude"]);
    assert!(!place.home.join(CONFIG).exists(), "nobody has wanted them");
    place.does(&["init", "--yes", "--packs", "none", "claude"]);
    assert!(!place.home.join(CONFIG).exists(), "somebody has not wanted them");
    place.does(&["init", "--packs", "git,cloud", "claude"]);
    let written = super::text(&place.home.join(CONFIG));
    assert!(written.ends_with("[gate]\nmode = \"watch\"\npacks = [\"git\", \"cloud\"]\n"), "{written}");
    assert!(place.does(&["config"]).contains("mode = \"watch\""));
    let tested = place.rexec(&["gate", "test", "git push -f"]);
    assert_eq!(tested.status.code(), Some(3), "{tested:?}");

    let again = place.does(&["init", "--packs", "files", "claude"]);
    assert!(again.ends_with("\npacks = [\"files\"]\n"), "{again}");
    assert_eq!(super::text(&place.home.join(CONFIG)), written);
    place.does(&["uninit", "--yes", "claude"]);
    assert!(place.home.join(CONFIG).exists(), "it belongs to no agent");
    place.does(&["uninit", "--yes"]);
    assert_eq!(place.all(), untouched);
    assert_eq!(place.does(&["uninit", "--yes"]), "nothing to do\n");
}

#[test]
fn a_file_that_a_person_has_written_stays() {
    let place = place();
    for text in ["[host]\ngrace = 5\n", "[gate]\nmode = \"watch\"\npacks = [\"git\"]\n"] {
        let path = place.settings(CONFIG, text);
        let said = place.does(&["init", "--packs", "git,files", "claude", "--yes"]);
        assert!(said.ends_with("packs = [\"git\", \"files\"]\n"), "{said}");
        place.does(&["uninit", "--yes"]);
        assert_eq!(super::text(&path), text);
    }
    let refused = place.rexec(&["init", "--packs", "git,file"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("did you mean files?"), "{refused:?}");
}

#[test]
fn a_person_at_a_terminal_sees_what_the_packs_would_have_asked_about() {
    let place = place();
    let host = Host::start();
    for command in ["true", "git push -f nowhere 2>&1"] {
        host.run(command);
        host.wait_for(command, |journal| journal.end_of(command).map(|_| ()));
    }
    let env = [
        format!("HOME={}", place.home.path().display()),
        format!("REXEC_HOME={}", host.journal_home().display()),
        format!("XDG_CONFIG_HOME={}", place.home.join(".config").display()),
    ];
    let init = |answer: &[u8]| {
        let argv = ["rexec", "init", "claude"];
        let mut typist = Typist::start(programs::rexec(), &argv, &env, place.home.path(), [At::Terminal; 3]);
        if !place.home.join(".claude").exists() {
            typist.sees("Change this file? [y/N] ");
            typist.types(b"y\n");
        }
        let shown = typist.sees("with them? [y/N] ");
        typist.types(answer);
        typist.ends();
        shown
    };
    let shown = init(b"\n");
    assert!(shown.contains("they would have asked about 1:\r\n\r\n  #2  git push -f nowhere 2>&1\r\n"), "{shown:?}");
    assert!(!place.home.join(CONFIG).exists());
    init(b"y\n");
    assert!(super::text(&place.home.join(CONFIG)).ends_with("packs = [\"git\", \"files\", \"database\"]\n"));
    fs::remove_file(place.home.join(CONFIG)).expect("a file");
    let argv = ["rexec", "init", "--yes", "claude"];
    Typist::start(programs::rexec(), &argv, &env, place.home.path(), [At::Terminal; 3]).ends();
    assert!(!place.home.join(CONFIG).exists(), "--yes asks nothing");
}
