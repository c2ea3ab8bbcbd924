//! The recorded and hand-written cases under `tests/data/corpus`.

use std::path::Path;

use rexec_host::text::encode::from_base64;

/// The number of cases. Each test asserts how many of them it has compared.
pub(crate) const CASES: usize = 596;

/// One line of a corpus file.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) rows: u16,
    pub(crate) cols: u16,
    pub(crate) input: Vec<u8>,
    pub(crate) strip: Vec<u8>,
    pub(crate) collapse: Vec<u8>,
}

/// All cases: captures of real programs, cases written by hand, mutated ones, and frames as well-known tools draw them. The
/// expected text of the frames is what tmux shows in the end.
pub(crate) fn all() -> Vec<Case> {
    let all: Vec<Case> = ["captures", "cases", "fuzz", "redraws"].into_iter().flat_map(load).collect();
    assert_eq!(all.len(), CASES, "the corpus is complete");
    all
}

pub(crate) fn load(name: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/corpus/{name}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(case).collect()
}

fn case(line: &str) -> Case {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let bytes = |key: &str| from_base64(value[key].as_str().unwrap()).expect("base64");
    let size = |key: &str| u16::try_from(value[key].as_u64().unwrap()).unwrap();
    Case {
        id: value["id"].as_str().unwrap().to_owned(),
        rows: size("rows"),
        cols: size("cols"),
        input: bytes("input"),
        strip: bytes("strip"),
        collapse: bytes("collapse"),
    }
}

/// Both sides of a failed comparison, around the first difference.
pub(crate) fn sides(left: &[u8], right: &[u8]) -> String {
    let at = left.iter().zip(right).position(|(l, r)| l != r).unwrap_or(left.len().min(right.len()));
    let show = |bytes: &[u8]| {
        let part = &bytes[at.saturating_sub(60).min(bytes.len())..(at + 60).min(bytes.len())];
        format!("{:?}", String::from_utf8_lossy(part))
    };
    format!("differ at {at} ({} and {} bytes)\n left {}\nright {}", left.len(), right.len(), show(left), show(right))
}
