//! The reader of the strict subset of TOML, against a reader of all of it.

use rexec_host::gate::{Document, Value, load};

use crate::dice::{Dice, rounds};

/// A value of a reader of all of TOML, as ours would have it.
fn same(theirs: &toml::Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (toml::Value::String(theirs), Value::Text(ours)) => theirs == ours,
        (toml::Value::Integer(theirs), Value::Integer(ours)) => theirs == ours,
        (toml::Value::Boolean(theirs), Value::Flag(ours)) => theirs == ours,
        (toml::Value::Array(theirs), Value::List(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| theirs.as_str() == Some(ours))
        }
        _ => false,
    }
}

/// Takes out of a parsed text what a document says, and returns true if it was there and nothing is left.
fn is_all(mut theirs: toml::Table, document: &Document) -> bool {
    let mut seen: Vec<(&[String], usize)> = Vec::new();
    for table in &document.tables {
        let count = seen.iter().filter(|(name, _)| *name == table.name).count();
        seen.push((&table.name, count));
        let mut place = &mut theirs;
        for (at, name) in table.name.iter().enumerate() {
            let is_last = at + 1 == table.name.len();
            let Some(value) = place.get_mut(name) else { return false };
            place = match value {
                toml::Value::Table(table) => table,
                toml::Value::Array(list) if is_last && table.is_list => match list.get_mut(count) {
                    Some(toml::Value::Table(table)) => table,
                    _ => return false,
                },
                _ => return false,
            };
        }
        for pair in &table.pairs {
            if !place.remove(&pair.key).is_some_and(|theirs| same(&theirs, &pair.value)) {
                return false;
            }
        }
    }
    is_empty(&toml::Value::Table(theirs))
}

fn is_empty(value: &toml::Value) -> bool {
    match value {
        toml::Value::Table(table) => table.values().all(is_empty),
        toml::Value::Array(list) => !list.is_empty() && list.iter().all(|value| value.is_table() && is_empty(value)),
        _ => false,
    }
}

/// Pieces of texts that are nearly TOML.
const PIECES: [&str; 58] = [
    "[gate]",
    "[[rule]]",
    "[program.x]",
    "[a.b]",
    "[a]",
    "[[a]]",
    "[[a.b]]",
    "[ a . b ]",
    "[\"a\"]",
    "[a",
    "]",
    "[[",
    "\n",
    "\n",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "# note",
    "mode",
    "a",
    "b",
    "do",
    "run",
    "a.b",
    "\"a\"",
    "'a'",
    " = ",
    "=",
    " = ",
    " = ",
    "\"watch\"",
    "'ask'",
    "\"a\\n\\u00e4\"",
    "\"\\q\"",
    "\"a\"\"",
    "\"\"\"a\"\"\"",
    "'''a'''",
    "1",
    "-17",
    "+3",
    "007",
    "1_0",
    "1.5",
    "0x1",
    "inf",
    "true",
    "false",
    "[\"a\", 'b',]",
    "[\n'a', # x\n]",
    "{a = 1}",
    "2026-01-01",
    "é",
    "\u{1}",
    "\u{feff}",
];

const VALUES: [&str; 9] = [r#""x""#, "'y'", "3", "true", r#"["a", "b"]"#, r#""\"\\\t""#, "[]", "-0", r#""\U0001F600""#];

fn pieces(dice: &mut Dice) -> String {
    let count = 1 + dice.below(14);
    (0..count).map(|_| PIECES[dice.below(PIECES.len())]).collect()
}

/// A text that is well formed but for a few bytes.
fn mutated(dice: &mut Dice) -> String {
    let mut text = String::new();
    for at in 0..1 + dice.below(4) {
        text += &match dice.below(4) {
            0 => format!("[t{}]\n", dice.below(3)),
            1 => "[[list]]\n".to_owned(),
            2 => format!("[t{}.u{}]\n", dice.below(2), dice.below(2)),
            _ => format!("[u{at}]\n"),
        };
        for key in 0..dice.below(4) {
            let value = VALUES[dice.below(VALUES.len())];
            text += &format!("k{} = {value} # note\n", if dice.below(9) == 0 { 0 } else { key });
        }
    }
    if dice.below(3) == 0 {
        let at = dice.below(text.len() + 1);
        text.insert_str(at, PIECES[dice.below(PIECES.len())]);
    }
    text
}

/// And nothing panics, whatever is read.
#[test]
fn what_is_accepted_means_the_same_to_a_reader_of_all_of_toml() {
    let mut accepted = 0;
    rounds(6_000, |dice| {
        let text = if dice.below(2) == 0 { pieces(dice) } else { mutated(dice) };
        let _ = load(text.as_bytes(), "x");
        let Ok(document) = Document::read(text.as_bytes()) else { return };
        accepted += 1;
        match text.parse::<toml::Table>() {
            Ok(theirs) => assert!(is_all(theirs.clone(), &document), "{text:?}\n{theirs:?}\n{document:?}"),
            Err(error) => panic!("{text:?}: {error}"),
        }
    });
    assert!(accepted > 500, "the generator makes texts that are accepted: {accepted}");
}

#[test]
fn every_pack_is_toml() {
    for name in rexec_host::gate::packs::NAMES {
        let text = rexec_host::gate::packs::text(name).expect("a pack");
        let document = Document::read(text.as_bytes()).expect("strict TOML");
        assert!(is_all(text.parse().expect("TOML"), &document), "{name}");
    }
}
