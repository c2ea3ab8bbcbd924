//! Finds the programs that take a preload: those of this machine that glibc's loader loads (elf(5), ld.so(8)). Pure:
//! the caller passes the beginning of a file.

/// The bytes read from the start of a program. The headers, and the loader's path, lie there.
pub const HEAD_BYTES: usize = 4 << 10;

/// The number of this machine's kind.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// Returns true if glibc's loader loads the program that begins so.
#[must_use]
pub fn is_loaded(head: &[u8]) -> bool {
    const MAGIC: &[u8] = b"\x7fELF\x02\x01";
    let is_kind = head.starts_with(MAGIC) && head.get(18..20) == Some(&MACHINE.to_le_bytes());
    let file =
        |path: &'_ [u8]| path.rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(b"ld-linux"));
    is_kind && loader(head).is_some_and(file)
}

/// The path of the loader that a program of 64 bits names (`PT_INTERP`).
fn loader(head: &[u8]) -> Option<&[u8]> {
    const INTERP: u32 = 3;
    let bytes = |at: usize, count: usize| head.get(at..at.checked_add(count)?);
    let long = |at| usize::try_from(u64::from_le_bytes(bytes(at, 8)?.try_into().ok()?)).ok();
    let short = |at| Some(usize::from(u16::from_le_bytes(bytes(at, 2)?.try_into().ok()?)));
    let (begin, size, count) = (long(32)?, short(54)?, short(56)?);
    let kind = |at| Some(u32::from_le_bytes(bytes(at, 4)?.try_into().ok()?));
    let at = (0..count).map(|header| begin.saturating_add(header * size)).find(|&at| kind(at) == Some(INTERP))?;
    let (from, length) = (long(at.checked_add(8)?)?, long(at.checked_add(32)?)?);
    head.get(from..from.checked_add(length)?)?.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_loads_is_told_by_its_headers() {
        let mut own = std::fs::read("/proc/self/exe").unwrap();
        own.truncate(HEAD_BYTES);
        assert_eq!(is_loaded(&own), cfg!(target_env = "gnu"));
        assert!(!is_loaded(b"#!/bin/sh\n") && !is_loaded(&own[..40]));
        for at in 0..own.len().min(200) {
            // No byte of a header makes it fail.
            let mut damaged = own.clone();
            damaged[at] = 0xff;
            let _ = is_loaded(&damaged);
        }
        for (at, byte) in [(4, 1), (18, 0), (18, 3)] {
            let mut other = own.clone();
            other[at] = byte;
            assert!(!is_loaded(&other), "32 bits, or another machine");
        }
    }
}
