//! The map of the code in `src/lib.rs` names files that exist.

use std::fs;
use std::path::Path;

/// The files that the map names: `io/port.rs` for a file of the host, `protocol/wire.rs` or `shim/src/client.rs` for one
/// of the shim.
#[test]
fn every_file_on_the_map_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let named = map.split('`').filter(|name| name.ends_with(".rs") && !name.contains(char::is_whitespace));
    let mut seen = 0;
    for name in named {
        seen += 1;
        let places = [format!("src/{name}"), format!("shim/src/{name}"), name.to_owned()];
        assert!(places.iter().any(|place| root.join(place).is_file()), "the map names {name}, which does not exist");
    }
    assert!(seen > 40, "the search finds what it looks for: {seen}");
}
