//! The fields of a payload: writes them, and reads them with every length checked.

use std::ffi::CStr;

use super::{RUN_BYTES_MAX, WireError};

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("callers bound their strings");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn put_strings<'a>(out: &mut Vec<u8>, strings: impl Iterator<Item = &'a CStr>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    let mut count = 0_u32;
    for string in strings {
        out.extend_from_slice(string.to_bytes_with_nul());
        count += 1;
    }
    // A length that does not fit is far over RUN_BYTES_MAX; the caller reports that.
    let bytes = u32::try_from(out.len() - start - 8).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&count.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&bytes.to_le_bytes());
}

/// A list of NUL-terminated strings as it lies in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strings<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a CStr> + use<'a> {
        self.bytes
            .split_inclusive(|&byte| byte == 0)
            .map(|string| CStr::from_bytes_with_nul(string).expect("the decoder counted the terminators"))
    }
}

/// A cursor over a payload; every read is checked.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.0.split_at_checked(bytes).ok_or(WireError::Malformed("a RUN that ends early"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        Ok(*self.take(N)?.first_chunk().expect("take gave N bytes"))
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, WireError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn count(&mut self, most: usize, what: &'static str) -> Result<usize, WireError> {
        let [count] = self.array()?;
        let count = usize::from(count);
        if count > most { Err(WireError::Malformed(what)) } else { Ok(count) }
    }

    /// One of these, by its number from 1 on; 0 stands for none.
    pub(super) fn choice<T: Copy>(&mut self, all: &[T], what: &'static str) -> Result<Option<T>, WireError> {
        let [number] = self.array()?;
        let Some(at) = usize::from(number).checked_sub(1) else { return Ok(None) };
        all.get(at).copied().map(Some).ok_or(WireError::Malformed(what))
    }

    pub(super) fn bytes(&mut self, most: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.u32()?).expect("usize has 32 bits or more");
        if length > most { Err(WireError::Malformed(what)) } else { self.take(length) }
    }

    pub(super) fn strings(&mut self) -> Result<Strings<'a>, WireError> {
        let count = usize::try_from(self.u32()?).expect("usize has 32 bits or more");
        let bytes = self.bytes(RUN_BYTES_MAX, "a list of strings that is too long")?;
        let terminated = bytes.last().is_none_or(|&byte| byte == 0);
        if !terminated || bytes.iter().filter(|&&byte| byte == 0).count() != count {
            return Err(WireError::Malformed("a list of strings with a wrong count"));
        }
        Ok(Strings { count, bytes })
    }
}
