//! Which project session a command is in, and what is kept of one.

use super::*;

const NOW: &str = "2026-05-21T09:42:18Z";

/// Nothing runs.
fn idle(_: ProjectId) -> bool {
    false
}

/// What a host finds that has this change on its disk alone.
fn kept(change: &[u8]) -> Projects {
    let change: serde_json::Value = serde_json::from_slice(change).unwrap();
    let (projects, is_all) = Projects::read(change["kept"].to_string().as_bytes());
    assert!(is_all);
    projects
}

fn defined(projects: &mut Projects, dir: &str, name: Option<&str>) -> Result<ProjectId, ProjectError> {
    let (dir, name) = (dir.to_owned(), name.map(str::to_owned));
    projects.define(ProjectDefinition { dir, name, ..ProjectDefinition::default() }, true, NOW)
}

#[test]
fn a_command_is_in_the_innermost_one() {
    let mut projects = Projects::default();
    assert_eq!(projects.of_run("/tmp", None, NOW, idle), None, "no project");
    let shop = projects.of_run("/srv/shop/src", Some("/srv/shop"), NOW, idle).unwrap();
    assert_eq!(projects.of_run("/srv/shop", Some("/srv/shop"), NOW, idle), Some(shop));
    let inner = projects.of_run("/srv/shop/vendor/lib", Some("/srv/shop/vendor/lib"), NOW, idle).unwrap();
    assert_ne!(inner, shop, "a project in a project");
    assert_eq!(projects.of_run("/srv/shop2", None, NOW, idle), None, "a name that begins alike");
    let api = defined(&mut projects, "/srv/shop/api/", None).unwrap();
    assert_eq!(
        projects.of_run("/srv/shop/api/src", Some("/srv/shop"), NOW, idle),
        Some(api),
        "defined within a project"
    );
    let other = projects.of_run("/srv/ann/shop", Some("/srv/ann/shop"), NOW, idle).unwrap();
    assert_eq!(projects.get(other).unwrap().name, "shop-2");
    for word in ["shop-2", "/srv/ann/shop", &other.name()] {
        assert_eq!(projects.find(word).map(|found| found.id), Some(other), "{word}");
    }
}

#[test]
fn a_directory_may_be_written_in_several_ways() {
    let mut projects = Projects::default();
    let implied = projects.of_run("/srv//shop/./src", Some("/srv//shop"), NOW, idle).unwrap();
    assert_eq!(projects.get(implied).unwrap().dir, "/srv/shop");
    assert_eq!(projects.of_run("/srv/shop", Some("/srv/shop"), NOW, idle), Some(implied));
    assert_eq!(defined(&mut projects, "/srv/./shop//", None), Ok(implied));
    assert!(matches!(defined(&mut projects, "//srv/shop/.", None), Err(ProjectError::Taken(id, _)) if id == implied));
    assert_eq!(projects.find("/srv//shop/").map(|found| found.id), Some(implied));
    let (root, above) = (defined(&mut projects, "//", None), defined(&mut projects, "/srv/../srv", None));
    assert_eq!(projects.get(root.unwrap()).unwrap().dir, "/");
    assert_eq!(projects.get(above.unwrap()).unwrap().dir, "/srv/../srv", "srv may be a symbolic link");
}

#[test]
fn definitions_are_checked_and_do_not_collide() {
    let mut projects = Projects::default();
    let implied = projects.of_run("/a", Some("/a"), NOW, idle).unwrap();
    assert_eq!(defined(&mut projects, "/a", Some("mine")), Ok(implied), "one that a command has made");
    assert!(matches!(defined(&mut projects, "/a", None), Err(ProjectError::Taken(id, _)) if id == implied));
    assert!(matches!(defined(&mut projects, "/b", Some("mine")), Err(ProjectError::Taken(..))));
    for (dir, name) in [("b", None), ("/b\0", None), ("/b", Some("")), ("/b", Some("p7")), ("/b", Some("x/y"))] {
        assert!(matches!(defined(&mut projects, dir, name), Err(ProjectError::Bad(..))), "{dir:?} {name:?}");
    }
    let mut with_ports = |dir: &str, ports| {
        let wanted = ProjectDefinition { dir: dir.to_owned(), ports: Some(ports), ..ProjectDefinition::default() };
        projects.define(wanted, true, NOW).map(|id| projects.get(id).unwrap().ports)
    };
    assert_eq!(with_ports("/c", WantedPorts::Count(3)), Ok(Some((3_100, 3_102))));
    assert_eq!(with_ports("/d", WantedPorts::Count(100)), Ok(Some((3_200, 3_299))));
    assert_eq!(with_ports("/e", WantedPorts::Range(9_000, 9_001)), Ok(Some((9_000, 9_001))));
    for (at, bad) in
        [WantedPorts::Range(3_102, 3_110), WantedPorts::Range(5, 4), WantedPorts::Range(0, 4), WantedPorts::Count(0)]
            .into_iter()
            .enumerate()
    {
        assert!(matches!(with_ports(&format!("/f{at}"), bad), Err(ProjectError::Bad("ports", _))), "{bad:?}");
    }
    let seen = projects.find("/c").unwrap().port_variables();
    assert_eq!(seen[0], ("PORT", "3100".to_owned()));
    assert_eq!(seen.len(), 3);
}

#[test]
fn secrets_are_not_kept_and_the_number_is_bounded() {
    let mut projects = Projects::default();
    let env = [
        ("NODE_ENV", "dev"),
        ("API_TOKEN", "sk-123456789abcdef"),
        ("DB", "postgres://me:hunter22@db/x"),
        ("DB_PASSWORD", "pw1"),
        ("EMPTY_TOKEN", ""),
    ];
    let env = env.map(|(n, v)| (n.to_owned(), v.to_owned()));
    let wanted = ProjectDefinition { dir: "/a".to_owned(), env: env.into(), ..ProjectDefinition::default() };
    let id = projects.define(wanted, true, NOW).unwrap();
    projects.suspend(id, true);
    let text = projects.take_changed().unwrap();
    let text_of = String::from_utf8_lossy(&text);
    assert!(!text_of.contains("sk-") && !text_of.contains("hunter22") && !text_of.contains("pw1"), "{text_of}");
    assert_eq!(projects.take_changed(), None);
    let again = kept(&text);
    let kept = again.get(id).unwrap();
    let lost = ["API_TOKEN", "DB", "DB_PASSWORD"].map(str::to_owned);
    assert_eq!((kept.env.len(), kept.lost.as_slice()), (2, &lost[..]));
    assert!(!kept.is_suspended);
    // Something has run there from the beginning.
    let busy = projects.of_run("/first", Some("/first"), "000000", idle);
    for number in 0..2 * limits::PROJECTS_MAX {
        let dir = format!("/x/{number}");
        assert!(projects.of_run(&dir, Some(&dir), &format!("{number:06}"), |id| Some(id) == busy).is_some());
    }
    assert_eq!(projects.iter().count(), limits::PROJECTS_MAX);
    assert!(projects.get(id).is_some(), "somebody has defined it");
    assert!(projects.get(busy.unwrap()).is_some(), "something runs in it");
    assert_eq!(projects.of_run("/new", Some("/new"), NOW, |_| true), None, "all are busy");
}

#[test]
fn what_is_not_understood_is_told_and_the_rest_is_taken() {
    let mut projects = Projects::default();
    let id = defined(&mut projects, "/srv/shop", None).unwrap();
    let entry = serde_json::to_value(projects.get(id).unwrap()).unwrap();
    for (text, count, is_all) in [
        (String::new(), 0, true),
        ("[]".to_owned(), 0, true),
        ("{}".to_owned(), 0, false),
        ("[1]".to_owned(), 0, false),
        (format!("[{entry}, {{}}]"), 1, false),
        (format!("[{entry}"), 0, false),
    ] {
        let (read, whole) = Projects::read(text.as_bytes());
        assert_eq!((read.iter().count(), whole), (count, is_all), "{text}");
    }
    // Another host's, which counts by itself.
    let mut other = entry.clone();
    other["dir"] = "/srv/ann/shop".into();
    let (read, _) = Projects::read(format!("[{entry}, {other}]").as_bytes());
    let names: Vec<_> = read.iter().map(|known| (known.id.0, known.name.as_str(), known.dir.as_str())).collect();
    assert_eq!(names, [(1, "shop", "/srv/shop"), (2, "shop-2", "/srv/ann/shop")]);
}

#[test]
fn the_disk_is_told_which_ones_are_forgotten() {
    let mut projects = Projects::default();
    let id = defined(&mut projects, "/a", None).unwrap();
    projects.take_changed();
    projects.remove(id);
    let change = |projects: &mut Projects| -> serde_json::Value {
        serde_json::from_slice(&projects.take_changed().unwrap()).unwrap()
    };
    assert_eq!(change(&mut projects), serde_json::json!({"kept": [], "own": [], "forgotten": ["/a"]}));
    defined(&mut projects, "/a", None).unwrap();
    let again = change(&mut projects);
    assert_eq!(
        (&again["forgotten"], &again["own"]),
        (&serde_json::json!([]), &serde_json::json!(["/a"])),
        "it is back"
    );
    let (mut read, _) = Projects::read(again["kept"].to_string().as_bytes());
    defined(&mut read, "/b", None).unwrap();
    assert_eq!(change(&mut read)["own"], serde_json::json!(["/b"]), "the other one may be another host's");
}

#[test]
fn every_name_follows_the_rule_wherever_it_comes_from() {
    let mut projects = Projects::default();
    let implied = |projects: &mut Projects, dir: &str| {
        let id = projects.of_run(dir, Some(dir), NOW, idle).unwrap();
        projects.get(id).unwrap().name.clone()
    };
    for (dir, expected) in [
        ("/srv/y\u{1b}]0;X\u{7}", "y__0_X_"),
        ("/srv/$(touch x)", "_(touch x)"),
        ("/srv/\u{202e}", "_"),
        ("/srv/p4", "p4-2"),
        ("/a/shop", "shop"),
        ("/b/shop", "shop-2"),
        ("/srv/ ", "project"),
    ] {
        assert_eq!(implied(&mut projects, dir), expected, "{dir:?}");
    }
    let name = implied(&mut projects, &format!("/srv/{}", "ä".repeat(100)));
    assert!(name.len() <= limits::PROJECT_NAME_BYTES && name.starts_with("ää"), "{name}");
    for bad in ["", "a\n", "$(x)", "`x`", "▌", "\u{202e}x", "a/b", "p7", " a", "a'b"] {
        assert!(matches!(defined(&mut projects, "/srv/new", Some(bad)), Err(ProjectError::Bad("name", _))), "{bad:?}");
    }
    // A file of an older host.
    let kept = |id: u32, name: &str, dir: &str| serde_json::json!({"id": id, "name": name, "dir": dir, "created_at": NOW, "last_activity": NOW});
    let file = [kept(4, "x\u{1b}[2J", "/a"), kept(5, "", "/b"), kept(6, "x__2J", "/c")];
    let (read, is_all) = Projects::read(serde_json::to_string(&file).unwrap().as_bytes());
    assert!(is_all);
    let names: Vec<&str> = read.iter().map(|known| known.name.as_str()).collect();
    assert_eq!(names, ["x__2J", "project", "x__2J-2"]);
}
