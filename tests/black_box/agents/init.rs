//! `rexec init` and `rexec uninit` on settings files as people have them: what is shown is what is done, twice is once, and
//! every byte comes back.

mod files;
mod rules;
mod shown;

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use super::Place;
use crate::support::programs;
use files::{AGENTS, INVALID};
use shown::patched;

impl Place {
    /// `rexec` with these arguments, without a terminal.
    fn rexec(&self, args: &[&str]) -> Output {
        self.alone(programs::rexec()).args(args).output().expect("the program starts")
    }

    /// The same, which must succeed; returns what it prints.
    fn does(&self, args: &[&str]) -> String {
        let output = self.rexec(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// A settings file with this text.
    fn settings(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Everything in the home folder: names, modes, what files hold, and where links lead.
    fn all(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let meta = fs::symlink_metadata(&path).expect("it is there");
                let bytes = if meta.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else if meta.is_symlink() {
                    // Not what it leads to, such as a program of 50 MB.
                    fs::read_link(&path).expect("a link").into_os_string().into_vec()
                } else {
                    fs::read(&path).unwrap_or_default()
                };
                found.push((path, meta.mode(), bytes));
            }
        }
        found.sort();
        found
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a text")
}

#[test]
#[ignore = "long: 65 settings files, 5 calls each"]
fn every_file_gets_the_setting_as_shown_and_every_byte_back() {
    for (agent, name, texts) in AGENTS {
        for before in texts {
            let place = Place::new();
            let path = place.settings(name, before);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
            let untouched = place.all();
            let refused = place.rexec(&["init", agent]);
            assert_eq!((refused.status.code(), place.all()), (Some(1), untouched.clone()), "{agent}: {before}");
            let shown = place.does(&["init", "--yes", agent]);
            let after = text(&path);
            assert!(String::from_utf8_lossy(&refused.stdout).starts_with("--- ") && shown.starts_with("--- "));
            assert_eq!(patched(before, &shown), after, "{agent}: {shown}");
            assert!(after.contains("/.local/share/rexec/shells/rexec-"), "{agent}: {after}");
            let once = place.all();
            assert_eq!(place.does(&["init", "--yes", agent]), "nothing to do\n");
            assert_eq!(place.all(), once, "{agent}: twice is once");
            let shown = place.does(&["uninit", "--yes"]);
            assert_eq!(patched(&after, &shown), *before, "{agent}: {shown}");
            assert_eq!(place.all(), untouched, "{agent}: {before}");
            assert_eq!(place.does(&["uninit", "--yes"]), "nothing to do\n");
        }
    }
}

#[test]
fn a_file_that_was_not_there_is_not_there_afterwards() {
    let place = Place::new();
    let untouched = place.all();
    let agents = AGENTS.map(|(agent, ..)| agent);
    place.does(&[&["init", "--yes"][..], &agents].concat());
    for (agent, name, _) in AGENTS {
        assert!(text(&place.home.join(name)).contains("shells/rexec-"), "{agent}");
    }
    place.does(&["uninit", "--yes", "claude", "opencode"]);
    assert!(!place.home.join(".claude").exists() && place.home.join(".codex/config.toml").exists());
    place.does(&["uninit", "--yes"]);
    assert_eq!(place.all(), untouched);
}

#[test]
fn what_the_user_has_edited_in_between_stays() {
    for (agent, name, texts) in AGENTS {
        for before in texts.iter().filter(|text| !text.trim().is_empty()) {
            let place = Place::new();
            let path = place.settings(name, before);
            place.does(&["init", "--yes", agent]);
            let after = text(&path);
            // Lines at both ends, as comments where the format has them.
            let note = match name {
                _ if name.ends_with("settings.json") => "\n",
                _ if name.ends_with("json") => "// note\n",
                _ => "# note\n",
            };
            let mark = if after.starts_with('\u{feff}') { "\u{feff}" } else { "" };
            let edited = |text: &str| {
                let end = if text.ends_with('\n') { "" } else { "\n" };
                format!("{mark}{note}{}{end}{note}", &text[mark.len()..])
            };
            fs::write(&path, edited(&after)).expect("it is ours");
            place.does(&["uninit", "--yes"]);
            let (left, wanted) = (text(&path), edited(before));
            // A last line without an end is complete now, as the line behind it needs that.
            let lines =
                |text: &str| text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect::<Vec<_>>();
            let is_same = if before.ends_with('\n') { left == wanted } else { lines(&left) == lines(&wanted) };
            assert!(is_same, "{agent}:\n{left}\ninstead of\n{wanted}");
        }
    }
}

#[test]
fn a_link_stays_one_and_its_file_keeps_its_mode() {
    for (agent, name, texts) in AGENTS {
        let place = Place::new();
        let target = place.settings("dotfiles/settings", texts[3]);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o604)).expect("it is ours");
        let link = place.home.join(name);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        symlink(&target, &link).expect("a link");
        let untouched = place.all();
        place.does(&["init", "--yes", agent]);
        assert_eq!(fs::read_link(&link).expect("a link"), target);
        assert!(text(&target).contains("shells/rexec-"));
        assert_eq!(fs::metadata(&target).expect("it is there").mode() & 0o777, 0o604);
        place.does(&["uninit", "--yes"]);
        assert_eq!(place.all(), untouched, "{agent}");
    }
}

#[test]
fn a_file_that_cannot_be_changed_is_named_and_nothing_is_done() {
    let wrong = |place: &Place, words: &[&str]| {
        let untouched = place.all();
        let output = place.rexec(&["init", "--yes", "opencode", "claude"]);
        let said = super::said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(words.iter().all(|word| said.contains(word)) && said.contains("hint: "), "{words:?}: {said}");
        assert_eq!(place.all(), untouched);
    };
    let place = Place::new();
    let path = place.settings(".claude/settings.json", "{}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("it is ours");
    wrong(&place, &["settings.json is read-only", "chmod"]);
    let place = Place::new();
    symlink("nowhere", place.settings("x", "").with_file_name("y")).expect("a link");
    fs::create_dir(place.home.join(".claude")).expect("a folder");
    symlink("nowhere", place.home.join(".claude/settings.json")).expect("a link");
    wrong(&place, &["does not exist"]);
    let place = Place::new();
    fs::create_dir_all(place.home.join(".claude/settings.json")).expect("a folder");
    wrong(&place, &["not a regular file"]);
    let place = Place::new();
    fs::write(place.settings(".claude/settings.json", ""), b"{\"a\": \"\xff\"}").expect("it is ours");
    wrong(&place, &["UTF-8"]);
}

#[test]
fn a_file_that_rexec_cannot_edit_is_named_with_the_line_and_what_to_paste_and_stays() {
    for (agent, texts) in INVALID {
        let name = AGENTS.into_iter().find(|(other, ..)| *other == agent).expect("it has a file").1;
        for (line, before) in texts {
            let place = Place::new();
            place.settings(name, before);
            let untouched = place.all();
            let output = place.rexec(&["init", "--yes", agent]);
            let said = super::said(&output);
            assert_eq!((output.status.code(), place.all()), (Some(1), untouched), "{agent}: {before}\n{said}");
            assert!(said.contains(&format!(", line {line}: ")) && said.contains("hint: "), "{agent}: {before}\n{said}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("shells/rexec-"), "{agent}: {output:?}");
        }
    }
}

#[test]
fn a_change_that_fails_leaves_nothing_behind() {
    // Root may write into any folder.
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let path = place.settings(".claude/settings.json", "{}\n");
    let folder = path.parent().expect("a folder");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o500)).expect("it is ours");
    let untouched = place.all();
    let output = place.rexec(&["init", "--yes", "claude"]);
    assert_eq!((output.status.code(), place.all()), (Some(1), untouched), "{output:?}");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn another_shell_is_replaced_by_force_only_and_comes_back() {
    for (agent, name, before) in [
        ("claude", ".claude/settings.json", "{ \"env\": { \"CLAUDE_CODE_SHELL\": \"/bin/zsh\" } }"),
        ("codex", ".codex/config.toml", "[features]\nshell_snapshot = true # mine\n"),
        ("opencode", ".config/opencode/opencode.jsonc", "{ \"shell\": \"zsh\", }\n"),
        ("kilo", ".config/kilo/kilo.jsonc", "{ \"shell\": \"zsh\", }\n"),
    ] {
        let place = Place::new();
        let path = place.settings(name, before);
        let untouched = place.all();
        let output = place.rexec(&["init", "--yes", agent]);
        assert!(super::said(&output).contains("--force replaces it"), "{output:?}");
        assert_eq!((output.status.code(), place.all()), (Some(1), untouched.clone()), "{agent}");
        place.does(&["init", "--yes", "--force", agent]);
        assert!(text(&path).contains("shells/rexec-"), "{agent}");
        place.does(&["uninit", "--yes"]);
        assert_eq!(place.all(), untouched, "{agent}");
    }
}

#[test]
fn links_that_a_setting_names_stay_until_it_is_gone() {
    let place = Place::new();
    place.does(&["init", "--yes", "claude"]);
    let link = place.home.join(".local/share/rexec/shells/rexec-bash");
    // One that the user has set by hand, which init has therefore never changed.
    let by_hand = place.settings(".pi/agent/settings.json", &format!("{{\"shellPath\": \"{}\"}}", link.display()));
    let said = super::said(&place.rexec(&["uninit", "--yes", "claude"]));
    assert!(said.contains("settings.json names a link") && link.exists(), "{said}");
    let said = super::said(&place.rexec(&["uninit", "--yes"]));
    assert!(said.contains("settings.json names a link") && link.exists(), "{said}");
    fs::write(&by_hand, "{}").expect("it is ours");
    assert_eq!(place.does(&["uninit", "--yes"]), "the links are gone\n");
    assert!(!link.exists() && !place.home.join(".local/share/rexec").exists());
    assert_eq!(place.does(&["uninit", "--yes"]), "nothing to do\n");
}

#[test]
fn a_block_that_an_earlier_release_has_put_into_a_profile_is_taken_back() {
    let place = Place::new();
    let (before, added) =
        ("alias ll='ls -l'", "\n\n# >>> rexec init >>>\nalias gemini='rexec run -- gemini'\n# <<< rexec init <<<\n");
    let profile = place.settings(".bashrc", before);
    let untouched = place.all();
    fs::write(&profile, format!("{before}{added}")).expect("it is ours");
    let data = place.home.join(".local/share/rexec");
    let record = serde_json::json!({
        "v": 1,
        "directories": [data, data.parent(), place.home.join(".local")],
        "files": [{
            "agent": "", "path": profile, "format": "yaml", "is_new": false, "directories": [],
            "edits": [[null, { "splices": [{ "at": 16, "removed": "", "added": added }], "was": null, "made": 0 }]],
        }],
    });
    place.settings(".local/share/rexec/init.json", &record.to_string());
    fs::create_dir(data.join("shells")).expect("a folder");
    assert_eq!(place.does(&["uninit", "--yes", "claude"]), "nothing to do\n");
    place.does(&["uninit", "--yes", "qwen"]);
    assert_eq!(place.all(), untouched);
}

#[test]
fn doctor_says_when_a_link_or_a_setting_is_gone() {
    let place = Place::new();
    let path = place.settings(".claude/settings.json", "{}");
    place.does(&["init", "--yes", "claude"]);
    let doctor = || String::from_utf8(place.rexec(&["doctor"]).stdout).expect("text");
    let has = |text: &str, state: &str, words: &str| {
        assert!(text.lines().any(|line| line.starts_with(state) && line.contains(words)), "{state} {words}:\n{text}");
    };
    has(&doctor(), "ok", "lead to this rexec");
    has(&doctor(), "ok", "Claude Code, init");
    let link = place.home.join(".local/share/rexec/shells/rexec-bash");
    for (target, state) in [("/nowhere/rexec-sh", "broken"), ("/bin/bash", "note")] {
        fs::remove_file(&link).expect("it is there");
        symlink(target, &link).expect("a link");
        has(&doctor(), state, "rexec-bash");
        assert!(place.does(&["init", "claude"]).contains("lead to this rexec now"));
        assert_eq!(place.does(&["init", "claude"]), "nothing to do\n");
    }
    fs::write(&path, "{}").expect("it is ours");
    has(&doctor(), "note", "Claude Code, init");
    place.does(&["uninit", "claude"]);
    assert!(!doctor().contains(", init"));
}
