//! The statements of SQL in a program's words, as rules see them: in capitals, with one blank between words, and without
//! comments and quoted text.

use crate::script::{Argument, ArgumentPiece, Leaf, base_name};

/// The programs that run SQL: in the values of options, in operands, or on their input.
const CLIENTS: [&[u8]; 6] = [b"psql", b"mysql", b"mariadb", b"sqlite3", b"sqlcmd", b"clickhouse-client"];

/// The statements that a leaf runs, as far as they are in its words or in its input.
pub(super) fn statements(leaf: &Leaf) -> Vec<Argument> {
    if !CLIENTS.contains(&base_name(&leaf.program)) {
        return Vec::new();
    }
    let arguments = leaf.arguments.iter().filter_map(value);
    let input = leaf.input.iter().map(|input| (**input).clone());
    arguments.chain(input).flat_map(|text| Reader::default().read(&text)).collect()
}

/// The value in the word of an option, or a word that is none.
fn value(word: &Argument) -> Option<Argument> {
    let Some(ArgumentPiece::Text(text)) = word.pieces.first() else { return Some(word.clone()) };
    let begin = match &text[..] {
        [b'-', b'-', b' ' | b'\n', ..] => 0,
        [b'-', b'-', ..] => text.iter().position(|byte| *byte == b'=')? + 1,
        // `-Atc'DROP TABLE a'`.
        [b'-', letters @ ..] => letters.iter().position(|letter| b"ceqQ".contains(letter))? + 2,
        _ => 0,
    };
    Some(word.with_first(&text[begin..]))
}

/// Where a text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Statement,
    /// Up to this byte.
    Quoted(u8),
    LineComment,
    BlockComment,
}

#[derive(Debug, Default)]
struct Reader {
    done: Vec<Argument>,
    pieces: Vec<ArgumentPiece>,
    run: Vec<u8>,
    within: Within,
}

impl Reader {
    fn read(mut self, text: &Argument) -> Vec<Argument> {
        for piece in &text.pieces {
            match piece {
                ArgumentPiece::Text(text) => self.text(text),
                ArgumentPiece::Hole(_) if self.within == Within::Statement => {
                    self.flush();
                    self.pieces.push(piece.clone());
                }
                ArgumentPiece::Hole(_) => {}
            }
        }
        self.end();
        self.done
    }

    fn text(&mut self, text: &[u8]) {
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let two = (byte, text.get(at + 1));
            at += 1;
            match (self.within, two) {
                (Within::LineComment, (b'\n', _)) => self.within = Within::Statement,
                (Within::BlockComment, (b'*', Some(b'/'))) => {
                    at += 1;
                    self.within = Within::Statement;
                }
                (Within::Quoted(quote), (byte, _)) if *byte == quote => {
                    self.run.push(quote);
                    self.within = Within::Statement;
                }
                (Within::LineComment | Within::BlockComment | Within::Quoted(_), _) => {}
                (Within::Statement, (b'-', Some(b'-'))) => self.within = Within::LineComment,
                // What MySQL runs although it looks like a comment.
                (Within::Statement, (b'/', Some(b'*'))) if text.get(at + 1) == Some(&b'!') => at += 2,
                (Within::Statement, (b'/', Some(b'*'))) => {
                    at += 1;
                    self.blank();
                    self.within = Within::BlockComment;
                }
                // A text that does not end is none.
                (Within::Statement, (quote @ (b'\'' | b'"'), _)) if text[at..].contains(quote) => {
                    self.run.push(*quote);
                    self.within = Within::Quoted(*quote);
                }
                (Within::Statement, (b';', _)) => self.end(),
                (Within::Statement, (byte, _)) if byte.is_ascii_whitespace() => self.blank(),
                (Within::Statement, (byte, _)) => self.run.push(byte.to_ascii_uppercase()),
            }
        }
    }

    fn blank(&mut self) {
        let is_behind_text = self.run.last().map_or(!self.pieces.is_empty(), |last| *last != b' ');
        if is_behind_text {
            self.run.push(b' ');
        }
    }

    fn flush(&mut self) {
        if !self.run.is_empty() {
            self.pieces.push(ArgumentPiece::Text(std::mem::take(&mut self.run)));
        }
    }

    fn end(&mut self) {
        if self.run.last() == Some(&b' ') {
            self.run.pop();
        }
        self.flush();
        if !self.pieces.is_empty() {
            self.done.push(Argument { pieces: std::mem::take(&mut self.pieces) });
        }
        self.within = Within::Statement;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    fn read(text: &str) -> Vec<String> {
        let leaves = script::leaves(text.as_bytes(), &|_| None).leaves;
        let shown = |one: &Argument| String::from_utf8_lossy(&one.shown()).into_owned();
        statements(&leaves[0]).iter().map(shown).collect()
    }

    #[test]
    fn a_statement_is_one_however_it_is_written() {
        assert_eq!(read("psql -c 'drop\n\ttable  a;'"), ["DROP TABLE A"]);
        assert_eq!(read("psql '-- it is\ndrop/* x */table a; select 1 -- b'"), ["DROP TABLE A", "SELECT 1"]);
        assert_eq!(read("psql \"select 'drop; table' from \\\"a b\\\"\""), ["SELECT '' FROM \"\""]);
        assert_eq!(read("mysql '/*!50000 drop*/ table a'"), ["50000 DROP*/ TABLE A"]);
        assert_eq!(read("psql \"it's; drop table $a where b\""), ["IT'S", "DROP TABLE $a WHERE B"]);
        assert_eq!(read("psql -Atcselect --command='drop table a' --x"), ["SELECT", "DROP TABLE A"]);
        assert_eq!(read("psql a <<< 'delete from b'"), ["A", "DELETE FROM B"]);
        assert_eq!(read("cat 'drop table a'"), [""; 0]);
    }
}
