//! The file requests.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::client::{Client, encoded, uri};
use crate::support::temp::TempDir;

#[test]
fn files_are_written_read_listed_copied_and_removed_without_a_host() {
    let home = TempDir::new(None);
    let mut client = Client::greeted(&home.join("host.sock"));
    let at = |name: &str| uri(&home.join(name));
    let file = |name: &str| json!({"path": at(name), "sandbox": null});
    assert_eq!(client.ask("fs/createDirectory", &json!({"path": at("d/e"), "recursive": true})), json!({}));
    let write = |text: &str| json!({"path": at("d/a%20b.txt"), "dataBase64": encoded(text), "sandbox": null});
    for text in ["longer than the next\n", "short\n"] {
        assert_eq!(client.ask("fs/writeFile", &write(text)), json!({}));
    }
    assert_eq!(fs::read_to_string(home.join("d/a b.txt")).unwrap(), "short\n");
    assert_eq!(client.ask("fs/readFile", &file("d/a%20b.txt")), json!({"dataBase64": encoded("short\n")}));
    let found = client.ask("fs/getMetadata", &file("d/a%20b.txt"));
    assert_eq!((&found["isFile"], &found["size"]), (&json!(true), &json!(6)));
    symlink("e", home.join("d/link")).unwrap();
    let found = client.ask("fs/getMetadata", &file("d/link"));
    assert_eq!((&found["isDirectory"], &found["isSymlink"]), (&json!(true), &json!(true)));
    let listed = client.ask("fs/readDirectory", &file("d"));
    let names: Vec<&str> =
        listed["entries"].as_array().unwrap().iter().map(|entry| entry["fileName"].as_str().unwrap()).collect();
    assert_eq!(names, ["a b.txt", "e", "link"]);
    assert_eq!(client.ask("fs/canonicalize", &file("d/../d/link")), json!({"path": at("d/e")}));
    let copy = |recursive: bool| json!({"sourcePath": at("d"), "destinationPath": at("c"), "recursive": recursive});
    assert_eq!(client.refusal("fs/copy", &copy(false))["code"], -32600);
    assert_eq!(client.ask("fs/copy", &copy(true)), json!({}));
    assert_eq!(fs::read_to_string(home.join("c/a b.txt")).unwrap(), "short\n");
    let remove =
        |name: &str, recursive: bool, force: bool| json!({"path": at(name), "recursive": recursive, "force": force});
    assert_eq!(client.refusal("fs/remove", &remove("c", false, false))["code"], -32603);
    assert_eq!(client.ask("fs/remove", &remove("c", true, false)), json!({}));
    assert_eq!(client.refusal("fs/remove", &remove("c", true, false))["code"], -32004);
    assert_eq!(client.ask("fs/remove", &remove("c", true, true)), json!({}));
    for method in ["fs/readFile", "fs/getMetadata", "fs/canonicalize", "fs/readDirectory"] {
        let refusal = client.refusal(method, &file("none"));
        assert_eq!(refusal, json!({"code": -32004, "message": "No such file or directory (os error 2)"}), "{method}");
    }
}

#[test]
fn a_walk_is_bounded_and_no_link_makes_it_endless() {
    let home = TempDir::new(None);
    let mut client = Client::greeted(&home.join("host.sock"));
    for folder in ["w/a/b/c", "w/.hidden/x"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(home.join("w/a/file"), "x").unwrap();
    symlink("..", home.join("w/a/up")).unwrap();
    let mut walk = |options: Value| {
        let found = client.ask("fs/walk", &json!({"path": uri(&home.join("w")), "options": options, "sandbox": null}));
        let entries: Vec<String> = found["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["path"].as_str().unwrap().rsplit("/w/").next().unwrap().to_owned())
            .collect();
        (entries.join(" "), found["truncated"].as_bool().unwrap())
    };
    let options = |depth: u32, entries: u32| {
        json!({"maxDepth": depth, "maxDirectories": 100, "maxEntries": entries, "followDirectorySymlinks": true,
               "pruneHiddenDirectories": true})
    };
    assert_eq!(walk(options(9, 100)), ("a a/b a/file a/up a/b/c".to_owned(), false));
    assert_eq!(walk(options(1, 100)), ("a".to_owned(), false));
    assert_eq!(walk(options(9, 2)), ("a a/b".to_owned(), true));
}

#[test]
fn a_file_request_that_names_a_sandbox_or_would_wait_is_refused() {
    let home = TempDir::new(None);
    let mut client = Client::greeted(&home.join("host.sock"));
    let place = uri(&home.join("file"));
    let write = json!({"path": place, "dataBase64": "eA==", "sandbox": {"permissions": []}});
    assert!(client.refusal("fs/writeFile", &write)["message"].as_str().unwrap().contains("sandbox"));
    assert!(!home.join("file").exists());
    nix::unistd::mkfifo(&home.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(client.refusal("fs/readFile", &json!({"path": uri(&home.join("fifo"))}))["code"], -32600);
    assert_eq!(client.refusal("fs/readFile", &json!({"path": uri(home.path())}))["code"], -32600);
    assert_eq!(client.refusal("fs/readFile", &json!({"path": "file:///dev/zero"}))["code"], -32600);
    assert_eq!(client.refusal("fs/readFile", &json!({"path": "etc/hostname"}))["code"], -32602);
    assert_eq!(client.refusal("fs/open", &json!({}))["code"], -32601);
}
