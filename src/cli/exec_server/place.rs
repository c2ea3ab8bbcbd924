//! The place of a file: `file:///absolute/path`, with percent signs, as Codex writes it, or the path itself, as the
//! protocol's description has it.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::message::{BAD_PARAMS, Refusal};

pub(super) fn path_of(uri: &str) -> Result<PathBuf, Refusal> {
    let bad = |why: &str| Refusal::new(BAD_PARAMS, format!("invalid URI: {why}"));
    if uri.starts_with('/') {
        return if uri.contains('\0') { Err(bad("a NUL")) } else { Ok(PathBuf::from(uri)) };
    }
    let rest = uri.strip_prefix("file://").ok_or_else(|| {
        let is_path = !uri.contains("://");
        bad(if is_path { "relative URL without a base" } else { "only file:// is supported" })
    })?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return Err(bad("the path is not absolute"));
    }
    let (mut bytes, mut left) = (Vec::with_capacity(rest.len()), rest.as_bytes());
    while let Some((&byte, after)) = left.split_first() {
        left = after;
        if byte == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(decoded.ok_or_else(|| bad("a percent sign without two digits"))?);
            left = &after[2..];
        } else {
            bytes.push(byte);
        }
    }
    if bytes.contains(&0) { Err(bad("a NUL")) } else { Ok(PathBuf::from(OsString::from_vec(bytes))) }
}

pub(super) fn uri_of(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_uri() {
        for bytes in [&b"/"[..], b"/a b/%41", b"/\xff\xe4", "/ä#?".as_bytes()] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            assert_eq!(path_of(&uri_of(&path)), Ok(path));
        }
        assert_eq!(path_of("/a b/%41"), Ok(PathBuf::from("/a b/%41")));
        for wrong in
            ["tmp", "/a\0", "file:/tmp", "file://host/tmp", "file:///%4", "file:///%zz", "file:///a%00", "http://a/"]
        {
            assert!(path_of(wrong).is_err(), "{wrong}");
        }
    }
}
