//! What cargo packs of the crate is enough to build it: `cargo install` and `cargo publish` take nothing else of the tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::sources;

#[expect(clippy::disallowed_methods, reason = "cargo knows what it packs")]
fn packed() -> BTreeSet<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.args(["package", "--list", "--allow-dirty", "--offline"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(PathBuf::from).collect()
}

#[test]
fn every_file_that_a_source_includes_is_packed() {
    let (packed, root) = (packed(), Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap());
    let mut included = 0;
    for source in sources("src") {
        let file = Path::new("src").join(&source.file);
        assert!(packed.contains(&file), "{} is not packed", file.display());
        for text in source.code.split("include_str!(\"").skip(1) {
            let name = text.split('"').next().unwrap();
            let path = root.join(file.with_file_name(name)).canonicalize().unwrap();
            let is_packed = path.strip_prefix(&root).is_ok_and(|path| packed.contains(path));
            assert!(is_packed, "{} includes {name}, which is not packed", file.display());
            included += 1;
        }
    }
    assert!(included > 5, "the search finds what it looks for");
}

/// `cargo install` installs the programs of one package only.
#[test]
fn the_shim_is_packed_with_the_host() {
    let packed = packed();
    for source in sources("shim/src").iter().filter(|source| !["lib", "protocol"].contains(&source.part())) {
        let path = Path::new("src/bin/rexec-sh").join(&source.file);
        assert!(packed.contains(&path), "{} is not packed", path.display());
    }
}
