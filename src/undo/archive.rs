//! The names of the files that an archive has, read from tar's and zip's own forms. What is compressed, the program reads that tar
//! would start.
//!
//! Invariants: a superset of what is unpacked, without steps that lead up. An archive that is not wholly understood, or has too
//! many names, tells none. Nothing that an archive says is opened.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::Instant;

use super::store::split;
use crate::limits;
use crate::sys::folder::Folder;
use crate::sys::query;

/// Tar's unit of length, bytes.
const BLOCK: usize = 512;
/// What a compressed file begins with, and what unpacks it.
const COMPRESSED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];
/// What zip files end with, and what begins each of their names.
const ZIP_END: &[u8] = b"PK\x05\x06";
const ZIP_NAME: &[u8] = b"PK\x01\x02";
/// The bytes of these parts without names and remarks.
const ZIP_END_BYTES: usize = 22;
const ZIP_NAME_BYTES: usize = 46;

/// How the names in an archive are found.
pub(super) struct Reading<'a> {
    /// The command's, for the program that unpacks.
    pub environment: &'a [(OsString, OsString)],
    pub until: Instant,
    /// The steps at the beginning of each name that are left out.
    pub strip: usize,
}

impl Reading<'_> {
    /// The names of an archive's files and directories, from the directory on where it is unpacked.
    ///
    /// # Errors
    /// It cannot be read, is too large, or is not understood.
    pub(super) fn names(&self, archive: &[u8]) -> io::Result<BTreeSet<Vec<u8>>> {
        let (directory, name) = split(archive);
        let (mut file, facts) = Folder::enter(directory)?.read(name)?;
        let mut begin = [0; 6];
        let length = file.read(&mut begin)?;
        file.rewind()?;
        let begin = &begin[..length];
        let mut names = Names { reading: self, found: BTreeSet::new() };
        if begin.starts_with(b"PK") {
            names.of_zip(file, facts.size)?;
        } else if let Some((_, program)) = COMPRESSED.iter().find(|(magic, _)| begin.starts_with(magic)) {
            if facts.size > limits::ARCHIVE_UNPACKED_BYTES_MAX {
                return Err(ErrorKind::FileTooLarge.into());
            }
            let mut call = Command::new(program);
            call.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
            call.args(["-dc", "--"]).arg(OsStr::from_bytes(archive));
            let unpacked = query::answer(call, self.until, limits::ARCHIVE_BYTES_MAX)?;
            names.of_tar(Cursor::new(unpacked))?;
        } else {
            names.of_tar(file)?;
        }
        Ok(names.found)
    }
}

struct Names<'a> {
    reading: &'a Reading<'a>,
    found: BTreeSet<Vec<u8>>,
}

impl Names<'_> {
    fn add(&mut self, name: &[u8]) -> io::Result<()> {
        let steps = name.split(|byte| *byte == b'/').filter(|step| !matches!(step, &(b"" | b"." | b"..")));
        let rest = steps.skip(self.reading.strip).collect::<Vec<_>>().join(&b'/');
        if rest.contains(&0) {
            return Err(ErrorKind::InvalidData.into());
        }
        if !rest.is_empty() {
            self.found.insert(rest);
        }
        let is_over = self.found.len() > limits::ARCHIVE_NAMES_MAX || Instant::now() > self.reading.until;
        if is_over { Err(ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }

    fn of_tar(&mut self, mut from: impl Read + Seek) -> io::Result<()> {
        // What stands before a header about it.
        let (mut name, mut size) = (None, None);
        loop {
            let Some(header) = Header::read(&mut from)? else { return Ok(()) };
            let length = size.take().map_or_else(|| header.size(), Ok)?;
            match header.kind() {
                b'L' => name = Some(until_zero(&data(&mut from, length)?).to_vec()),
                b'x' => {
                    let facts = data(&mut from, length)?;
                    let told = |key: &[u8]| pax(&facts).filter(|(name, _)| *name == key).last().map(|(_, value)| value);
                    // Of a file with holes, the name in its header is made up.
                    name = told(b"GNU.sparse.name").or_else(|| told(b"path")).map(<[u8]>::to_vec).or(name);
                    size = told(b"size").map(decimal).transpose()?;
                }
                b'g' => {
                    let facts = data(&mut from, length)?;
                    if pax(&facts).any(|(key, _)| matches!(key, b"path" | b"size")) {
                        return Err(ErrorKind::InvalidData.into());
                    }
                }
                b'K' | b'V' => skip(&mut from, length)?,
                // Parts of archives on other media.
                b'M' | b'N' => return Err(ErrorKind::InvalidData.into()),
                kind => {
                    self.add(&name.take().unwrap_or_else(|| header.name()))?;
                    if kind == b'S' {
                        header.skip_map(&mut from)?;
                    }
                    // A link has no bytes, whatever its size is.
                    skip(&mut from, if kind == b'1' { 0 } else { length })?;
                }
            }
        }
    }

    fn of_zip(&mut self, mut from: impl Read + Seek, size: u64) -> io::Result<()> {
        let unknown = || io::Error::from(ErrorKind::InvalidData);
        let end_max = (ZIP_END_BYTES + usize::from(u16::MAX)) as u64;
        from.seek(SeekFrom::Start(size.saturating_sub(end_max)))?;
        let mut end = Vec::new();
        from.by_ref().take(end_max).read_to_end(&mut end)?;
        let at = memchr::memmem::rfind(&end, ZIP_END).ok_or_else(unknown)?;
        let end = end.get(at..at + ZIP_END_BYTES).ok_or_else(unknown)?;
        let (count, length, begin) = (u16_at(end, 10), u32_at(end, 12), u32_at(end, 16));
        // Larger ones have another end.
        if count == u16::MAX || begin == u32::MAX || u64::from(length) > limits::ARCHIVE_BYTES_MAX as u64 {
            return Err(ErrorKind::FileTooLarge.into());
        }
        from.seek(SeekFrom::Start(begin.into()))?;
        let mut list = Vec::new();
        from.take(length.into()).read_to_end(&mut list)?;
        let mut left = &list[..];
        for _ in 0..count {
            let head = left.get(..ZIP_NAME_BYTES).filter(|head| head.starts_with(ZIP_NAME)).ok_or_else(unknown)?;
            let ends = [28, 30, 32].map(|at| usize::from(u16_at(head, at)));
            let name = left.get(ZIP_NAME_BYTES..ZIP_NAME_BYTES + ends[0]).ok_or_else(unknown)?;
            // Names of other systems are written otherwise when they are unpacked.
            if !name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\' || *byte == b' ') {
                return Err(unknown());
            }
            self.add(name)?;
            left = left.get(ZIP_NAME_BYTES + ends.iter().sum::<usize>()..).ok_or_else(unknown)?;
        }
        Ok(())
    }
}

/// What stands before each file in a tar archive.
struct Header([u8; BLOCK]);

impl Header {
    /// `None` at the end of the archive, also if it was cut off.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; BLOCK];
        match from.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let expected = sum(&header[..148]) + sum(&header[156..]) + 8 * u64::from(b' ');
        let header = Self(header);
        if header.number(148..156)? == expected { Ok(Some(header)) } else { Err(ErrorKind::InvalidData.into()) }
    }

    fn kind(&self) -> u8 {
        self.0[156]
    }

    fn size(&self) -> io::Result<u64> {
        self.number(124..136)
    }

    fn name(&self) -> Vec<u8> {
        let (name, prefix) = (until_zero(&self.0[..100]), until_zero(&self.0[345..500]));
        let has_prefix = self.0[257..].starts_with(b"ustar\0") && !prefix.is_empty();
        if has_prefix { [prefix, b"/", name].concat() } else { name.to_vec() }
    }

    fn number(&self, at: std::ops::Range<usize>) -> io::Result<u64> {
        let field = &self.0[at];
        // A large one is binary.
        if field[0] & 0x80 != 0 {
            let [first, rest @ ..] = field else { return Ok(0) };
            let digits = [first & 0x7f].into_iter().chain(rest.iter().copied());
            let number = digits.fold(0_u128, |number, byte| number << 8 | u128::from(byte));
            return u64::try_from(number).map_err(|_| ErrorKind::InvalidData.into());
        }
        let digits = field.iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
        digits.copied().try_fold(0_u64, |number, digit| match digit {
            b'8' | b'9' => Err(ErrorKind::InvalidData.into()),
            digit => Ok(number << 3 | u64::from(digit - b'0')),
        })
    }

    /// Skips where a file's holes are, if the header has not all of them.
    fn skip_map(&self, from: &mut impl Read) -> io::Result<()> {
        let mut goes_on = self.0[482] != 0;
        while goes_on {
            let mut map = [0; BLOCK];
            from.read_exact(&mut map)?;
            goes_on = map[504] != 0;
        }
        Ok(())
    }
}

/// The bytes behind a header.
fn data(from: &mut (impl Read + Seek), length: u64) -> io::Result<Vec<u8>> {
    if length > limits::ARCHIVE_HEADER_BYTES_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    from.seek_relative((length.next_multiple_of(BLOCK as u64) - length).cast_signed())?;
    Ok(bytes)
}

fn skip(from: &mut impl Seek, length: u64) -> io::Result<()> {
    let blocks = length.checked_next_multiple_of(BLOCK as u64).and_then(|length| i64::try_from(length).ok());
    from.seek_relative(blocks.ok_or(ErrorKind::InvalidData)?)
}

/// The lines of a pax header: `LENGTH KEY=VALUE`, with an end that counts.
fn pax(mut left: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let digits = memchr::memchr(b' ', left)?;
        let length = usize::try_from(decimal(&left[..digits]).ok()?).ok()?;
        let line = left.get(digits + 1..length)?.strip_suffix(b"\n")?;
        left = &left[length..];
        let at = memchr::memchr(b'=', line)?;
        Some((&line[..at], &line[at + 1..]))
    })
}

fn decimal(digits: &[u8]) -> io::Result<u64> {
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| ErrorKind::InvalidData.into())
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    fn names(archive: &[u8], strip: usize) -> io::Result<Vec<String>> {
        let number = archive.iter().map(|byte| usize::from(*byte)).sum::<usize>() + archive.len() + strip;
        let path = std::env::temp_dir().join(format!("rexec-archive-{}-{number}", std::process::id()));
        fs::write(&path, archive)?;
        let there = path.canonicalize()?;
        let environment: Vec<_> = std::env::vars_os().collect();
        let until = Instant::now() + Duration::from_secs(600);
        let found = Reading { environment: &environment, until, strip }.names(there.as_os_str().as_bytes());
        fs::remove_file(path)?;
        Ok(found?.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
    }

    struct Tree(PathBuf);

    impl Tree {
        fn tar(&self, options: &[&str]) -> Vec<u8> {
            let mut call = Command::new("tar");
            call.args(options).args(["-cf-", "-C"]).arg(&self.0).arg(".");
            query::answer(call, Instant::now() + Duration::from_secs(600), 64 << 20).expect("tar")
        }
    }

    #[test]
    fn each_form_of_tar_tells_its_names() {
        let tree = Tree(std::env::temp_dir().join(format!("rexec-archived-{}", std::process::id())));
        let long = format!("d/{}/{}", "x".repeat(90), "y".repeat(90));
        fs::create_dir_all(tree.0.join(&long).parent().unwrap()).unwrap();
        let bytes = fs::File::create(tree.0.join(&long)).unwrap();
        bytes.set_len(3_000_000).unwrap();
        fs::write(tree.0.join("a b"), "x").unwrap();
        fs::hard_link(tree.0.join("a b"), tree.0.join("other")).unwrap();
        std::os::unix::fs::symlink("a b", tree.0.join("link")).unwrap();
        let above = format!("d/{}", "x".repeat(90));
        let expected = ["a b", "d", &above, &long, "link", "other"];
        for options in [
            &["--format=gnu"][..],
            &["--format=pax"],
            &["--format=posix", "-S"],
            &["--format=gnu", "-S"],
            &["--format=ustar"],
        ] {
            let archive = tree.tar(options);
            assert_eq!(names(&archive, 0).unwrap(), expected, "{options:?}");
            assert!(names(&archive[..archive.len() - 9_000], 0).is_ok_and(|names| !names.is_empty()), "{options:?}");
        }
        assert_eq!(names(&tree.tar(&["-z"]), 1).unwrap(), [&above[2..], &long[2..]]);
        fs::remove_dir_all(&tree.0).unwrap();
    }

    #[test]
    fn what_is_no_archive_tells_nothing() {
        let mut header = [0; 512];
        header[..4].copy_from_slice(b"name");
        for bytes in [&b"hello"[..], &[b'x'; 2_000], &header, b"\x1f\x8bjunk", b"PK\x05\x06", b"BZhjunk"] {
            assert!(names(bytes, 0).is_err() || names(bytes, 0).is_ok_and(|names| names.is_empty()), "{bytes:?}");
        }
        assert!(names(&[b'x'; 2_000], 0).is_err() && names(&header, 0).is_err());
    }

    #[test]
    fn a_zip_file_tells_the_names_in_its_list() {
        let zip = |names: &[&[u8]]| {
            let mut list = Vec::new();
            for name in names {
                let mut head = [0; ZIP_NAME_BYTES];
                head[..4].copy_from_slice(ZIP_NAME);
                head[28] = u8::try_from(name.len()).unwrap();
                head[30] = 3;
                list.extend_from_slice(&[&head[..], name, b"???"].concat());
            }
            let mut end = [0; ZIP_END_BYTES];
            end[..4].copy_from_slice(ZIP_END);
            end[10] = u8::try_from(names.len()).unwrap();
            end[12] = u8::try_from(list.len()).unwrap();
            end[16] = 4;
            [b"PK\x03\x04", &list[..], &end, b"a remark"].concat()
        };
        assert_eq!(names(&zip(&[b"a/", b"a/b c", b"../x"]), 0).unwrap(), ["a", "a/b c", "x"]);
        assert!(names(&zip(&[b"a\\b"]), 0).is_err());
        assert!(names(&zip(&[b"\xe9"]), 0).is_err());
    }
}
