//! The commands that end in journals, as their records come.
//!
//! Invariant: each record is read once; a line whose rest is still to come is read when it is whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::session::{SessionHistory, sessions};
use crate::journal::reader::Header;
use crate::journal::record::{EndRecord, LINE_BYTES_MAX, VERSION};
use crate::recorder::journals;

/// How far journals were read.
#[derive(Debug)]
pub struct JournalEnds {
    home: PathBuf,
    /// Files that come later are read, too.
    follows: bool,
    files: BTreeMap<PathBuf, OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    session: String,
    read: u64,
}

impl JournalEnds {
    /// Begins with all that the newest session has.
    ///
    /// # Errors
    /// The journals cannot be read.
    pub fn of_newest(home: &Path) -> io::Result<Self> {
        let newest = sessions(home)?.into_iter().take(1);
        Ok(Self {
            home: home.to_owned(),
            follows: false,
            files: newest.flat_map(|session| files_of(&session)).collect(),
        })
    }

    /// Begins with what comes from now on.
    ///
    /// # Errors
    /// The journals cannot be read.
    pub fn from_now(home: &Path) -> io::Result<Self> {
        let mut files: BTreeMap<PathBuf, OpenFile> = sessions(home)?.iter().flat_map(files_of).collect();
        for (path, file) in &mut files {
            file.read = whole_lines(path)?;
        }
        Ok(Self { home: home.to_owned(), follows: true, files })
    }

    /// Calls `each` with every record that is new, and the name of its session.
    ///
    /// # Errors
    /// A journal cannot be read. One that is gone is left out.
    pub fn read(&mut self, mut each: impl FnMut(&str, EndRecord)) -> io::Result<()> {
        if self.follows {
            self.find_new()?;
        }
        for (path, file) in &mut self.files {
            match file.read_new(path, &mut each) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                read => read?,
            }
        }
        Ok(())
    }

    fn find_new(&mut self) -> io::Result<()> {
        let found = match journals(&self.home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if found.iter().any(|(_, path)| !self.files.contains_key(path)) {
            for (path, file) in sessions(&self.home)?.iter().flat_map(files_of) {
                self.files.entry(path).or_insert(file);
            }
        }
        self.files.retain(|path, _| found.iter().any(|(_, known)| known == path));
        Ok(())
    }
}

fn files_of(session: &SessionHistory) -> Vec<(PathBuf, OpenFile)> {
    let file = |path: &PathBuf| (path.clone(), OpenFile { session: session.name.clone(), read: 0 });
    session.files.iter().map(|part| file(&part.path)).collect()
}

/// The offset behind the last whole line of a file.
fn whole_lines(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(LINE_BYTES_MAX as u64);
    let mut last = vec![0; usize::try_from(length - from).unwrap_or(0)];
    file.read_exact_at(&mut last, from)?;
    Ok(memchr::memrchr(b'\n', &last).map_or(from, |at| from + at as u64 + 1))
}

impl OpenFile {
    fn read_new(&mut self, path: &Path, each: &mut impl FnMut(&str, EndRecord)) -> io::Result<()> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() <= self.read {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.read))?;
        let (mut lines, mut line) = (BufReader::with_capacity(64 << 10, file), Vec::new());
        loop {
            line.clear();
            lines.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Ok(());
            }
            self.read += line.len() as u64;
            let header = serde_json::from_slice::<Header>(&line).unwrap_or_default();
            if header.kind == "end"
                && header.v <= VERSION
                && let Ok(record) = EndRecord::parse(&line)
            {
                each(&self.session, record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::journal::record::{PublishedCard, RunEnd, StartRecord, line};

    #[test]
    fn each_end_is_read_once_and_when_it_is_whole() {
        let path = std::env::temp_dir().join(format!("rexec-ends-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        let end = |seq| {
            let start =
                StartRecord { card: PublishedCard { seq, ..PublishedCard::default() }, ..StartRecord::default() };
            EndRecord { start, end: RunEnd { seq, ..RunEnd::default() }, ..EndRecord::default() }.line()
        };
        let mut known = OpenFile { session: "s".to_owned(), read: 0 };
        let news = |known: &mut OpenFile| {
            let mut seen = Vec::new();
            known.read_new(&path, &mut |_, record| seen.push(record.start.card.seq)).unwrap();
            seen
        };
        let (third, started) = (
            end(3),
            line(
                "start",
                &StartRecord { card: PublishedCard { seq: 2, ..PublishedCard::default() }, ..StartRecord::default() },
            ),
        );
        file.write_all(&[end(1), started, b"no record\n".to_vec(), third[..20].to_vec()].concat()).unwrap();
        assert_eq!(whole_lines(&path).unwrap(), std::fs::metadata(&path).unwrap().len() - 20);
        assert_eq!((news(&mut known), news(&mut known)), (vec![1], vec![]));
        file.write_all(&third[20..]).unwrap();
        assert_eq!((news(&mut known), news(&mut known)), (vec![3], vec![]));
        std::fs::remove_file(&path).unwrap();
    }
}
