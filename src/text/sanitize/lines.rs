//! Copies plain lines that end in CR LF, as terminals deliver them, without the carriage returns.
//!
//! The returns of several blocks are located before anything is copied. Their number per block is random, so a loop that
//! ended with each block would be mispredicted nearly every time.

use crate::text::scan::{self, WIDE};

/// Bytes of input searched before they are copied. The search is wasted from the first other control on, so it is short.
const STRETCH_BYTES: usize = 8 * WIDE;
/// The least bytes per copy; excess bytes are overwritten. Most copies then have the same length, which is predictable.
const COPY_BYTES: usize = 64;
/// Returns recorded per step, whether there are as many or not.
const FEW: usize = 4;

/// A stretch, and the excess bytes that its last copy may read.
type Stretch = [u8; STRETCH_BYTES + COPY_BYTES];
type Places = [u16; STRETCH_BYTES + FEW];

/// Copies whole stretches of `input`, up to the first control that does not end a line. Returns the number of bytes
/// taken.
pub(super) fn take(input: &[u8], out: &mut Vec<u8>) -> usize {
    let mut len = out.len();
    let mut taken = 0;
    let mut places = [0; STRETCH_BYTES + FEW];
    while let Some(stretch) = input[taken..].first_chunk() {
        out.resize(len + STRETCH_BYTES + COPY_BYTES, 0);
        let (bytes, written) = take_stretch(stretch, &mut places, &mut out[len..]);
        taken += bytes;
        len += written;
        if bytes < STRETCH_BYTES {
            break;
        }
    }
    out.truncate(len);
    taken
}

/// Copies a stretch without its excess bytes. Returns the numbers of bytes taken and written.
#[inline]
fn take_stretch(stretch: &Stretch, places: &mut Places, text: &mut [u8]) -> (usize, usize) {
    let count = stops(stretch, places);
    let (mut from, mut len) = (0, 0);
    for &at in &places[..count] {
        let at = usize::from(at);
        copy(&stretch[from..], at - from, &mut text[len..]);
        len += at - from;
        from = at;
        if stretch[at] != b'\r' || stretch[at + 1] != b'\n' {
            return (from, len);
        }
        from += 1;
    }
    copy(&stretch[from..], STRETCH_BYTES - from, &mut text[len..]);
    (STRETCH_BYTES, len + STRETCH_BYTES - from)
}

#[inline]
fn copy(from: &[u8], len: usize, to: &mut [u8]) {
    let len = len.max(COPY_BYTES);
    to[..len].copy_from_slice(&from[..len]);
}

/// Records the places of the stops, and returns their number.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a block has 64 bytes")]
fn stops(stretch: &Stretch, places: &mut Places) -> usize {
    let mut count = 0;
    let (blocks, _) = stretch.as_chunks::<WIDE>();
    for (start, block) in (0..).step_by(WIDE).zip(&blocks[..STRETCH_BYTES / WIDE]) {
        let mut stops = scan::stop_bytes(block);
        let mut noted = count;
        count += stops.count_ones() as usize;
        loop {
            for place in &mut places[noted..][..FEW] {
                *place = start + stops.trailing_zeros() as u16;
                stops &= stops.wrapping_sub(1);
            }
            noted += FEW;
            if noted >= count {
                break;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of all lengths up to 130, empty ones among them.
    fn lines() -> Vec<u8> {
        (0..400)
            .flat_map(|n| ["\t".repeat(n % 3), "x".repeat(n * 37 % 131), "\r\n".repeat(1 + n % 2)])
            .collect::<String>()
            .into()
    }

    fn without_returns(input: &[u8]) -> Vec<u8> {
        input.iter().copied().filter(|&byte| byte != b'\r').collect()
    }

    #[test]
    fn lines_are_taken_up_to_near_the_end() {
        let all = lines();
        for len in [0, 1, 575, 576, 577, 1087, 1088, 1089, all.len()] {
            let mut out = b"before".to_vec();
            let taken = take(&all[..len], &mut out);
            assert!(taken + STRETCH_BYTES + COPY_BYTES > len, "{taken} of {len}");
            assert_eq!(out.strip_prefix(b"before"), Some(&without_returns(&all[..taken])[..]), "of {len}");
        }
    }

    #[test]
    fn other_controls_end_them() {
        for (at, other) in
            (0..1200).zip([&b"\x1b[m"[..], b"\rx", b"\r\r\n", b"\x08", b"\x7f", b"\0", "é".as_bytes()].iter().cycle())
        {
            let mut input = lines();
            // Not between a return and its line feed.
            let at = if input[at] == b'\n' { at + 1 } else { at };
            input.splice(at..at, other.iter().copied());
            let mut out = Vec::new();
            assert_eq!(take(&input, &mut out), at, "{other:?}");
            assert_eq!(out, without_returns(&input[..at]));
        }
    }
}
