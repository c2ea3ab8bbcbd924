//! Finds the end of a run of clean text, many bytes at a time.
//!
//! A *stop* is a byte that ends a run: a C0 control other than TAB and LF, or DEL. Bytes from 0x80 up do not end it, but
//! the result says whether there are any, so that only such runs need UTF-8 validation.

/// Bytes read together.
pub(crate) const WIDE: usize = 64;
/// Bytes read together as long as text is plain.
const WIDER: usize = 256;
const WIDEST: usize = 1024;

/// A run of clean bytes at the start of some input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CleanRun {
    pub(crate) len: usize,
    pub(crate) ascii: bool,
}

#[inline]
pub(crate) fn is_stop(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7F
}

/// The bytes before the first stop.
#[inline]
pub(crate) fn clean_run(input: &[u8]) -> CleanRun {
    // Between colours runs are short, and reading wide would be wasted on them.
    if let Some(chunk) = input.first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let stops = stops(word);
        if stops != 0 {
            let at = stops.trailing_zeros() / 8;
            return CleanRun { len: at as usize, ascii: word & HIGH & ((1 << (at * 8)) - 1) == 0 };
        }
    }
    let mut len = 0;
    let mut high = 0u8;
    let mut rest = input;
    while let Some((chunk, tail)) = rest.split_first_chunk::<WIDER>() {
        if !is_plain(chunk) {
            break;
        }
        len += WIDER;
        rest = tail;
    }
    while let Some((chunk, tail)) = rest.split_first_chunk::<WIDE>() {
        if !is_plain(chunk) {
            // No early exit within a chunk, so that the compiler can use vector registers.
            let (mut stop, mut bits) = (false, 0u8);
            for &byte in chunk {
                stop |= is_stop(byte);
                bits |= byte;
            }
            if stop {
                break;
            }
            high |= bits;
        }
        len += WIDE;
        rest = tail;
    }
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let stops = stops(word);
        if stops != 0 {
            let at = stops.trailing_zeros() / 8;
            let before = word & ((1u64 << (at * 8)) - 1);
            return CleanRun { len: len + at as usize, ascii: high < 0x80 && before & HIGH == 0 };
        }
        high |= if word & HIGH == 0 { 0 } else { 0x80 };
        len += 8;
        rest = tail;
    }
    for &byte in rest {
        if is_stop(byte) {
            break;
        }
        high |= byte;
        len += 1;
    }
    CleanRun { len, ascii: high < 0x80 }
}

/// The number of bytes at the start that are surely printable ASCII, DEL or LF.
#[inline]
pub(crate) fn plain_len(input: &[u8]) -> usize {
    fn len_in<const N: usize>(input: &[u8]) -> usize {
        let windows = input.as_chunks::<N>().0;
        N * windows.iter().position(|window| lowest(window) < LOWEST).unwrap_or(windows.len())
    }
    let len = len_in::<WIDEST>(input);
    len + len_in::<WIDER>(&input[len..])
}

/// The bytes before the first NUL, BS, ESC, or CR without an LF after it: text in which nothing edits a line.
#[inline]
pub(crate) fn unedited_run(input: &[u8]) -> CleanRun {
    // Between colours runs are short.
    if let Some(chunk) = input.first_chunk::<8>() {
        let at = stops(u64::from_le_bytes(*chunk)).trailing_zeros() as usize / 8;
        if at < 8 && matches!(input[at..], [0x1B | 0x08, ..]) {
            return CleanRun { len: at, ascii: chunk[..at].is_ascii() };
        }
    }
    let is_edit = |&at: &usize| !matches!(input[at..], [b'\r', b'\n', ..]);
    let end = memchr::memchr3_iter(b'\r', 0x1B, 0x08, input).find(is_edit).unwrap_or(input.len());
    let len = memchr::memchr(0, &input[..end]).unwrap_or(end);
    CleanRun { len, ascii: input[..len].is_ascii() }
}

/// Returns true if all bytes are printable ASCII or LF, in as few operations per byte as possible.
#[inline]
fn is_plain<const N: usize>(chunk: &[u8; N]) -> bool {
    let highest = chunk.iter().fold(0, |most, &byte| most.max(byte));
    highest < 0x7F && lowest(chunk) >= LOWEST
}

/// Flipping these bits makes LF and the bytes from 0x20 to 0x7F the highest bytes.
const FLIPPED: u8 = 0x80 | (b'\n' ^ 0x1F);
const LOWEST: u8 = b'\n' ^ FLIPPED;

#[inline]
fn lowest<const N: usize>(chunk: &[u8; N]) -> u8 {
    chunk.iter().fold(u8::MAX, |least, &byte| least.min(byte ^ FLIPPED))
}

/// One bit for each byte that is neither printable ASCII nor TAB or LF.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "bytes from 0x80 count as negative, to compare all at once")]
pub(crate) fn stop_bytes(block: &[u8; WIDE]) -> u64 {
    // As signed numbers, bytes from 0x80 up are below the printable ones.
    gather(block, |byte| ((byte as i8) < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7F)
}

/// One bit for each byte that is not a parameter or intermediate byte of a control sequence.
#[inline]
pub(crate) fn sequence_ends(block: &[u8; WIDE]) -> u64 {
    gather(block, |byte| byte & 0xE0 != 0x20)
}

/// One bit for each byte for which `is` holds. Vector registers without a gather instruction can collect bits only across
/// the block, eight places apart; transposing them as a matrix of 8 by 8 puts them in order.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the number")]
fn gather(block: &[u8; WIDE], is: impl Fn(u8) -> bool) -> u64 {
    let flags = block.map(|byte| if is(byte) { 0xFF } else { 0 });
    let mut bits = [0u8; 16];
    for at in 0..16 {
        bits[at] = flags[at] & PLACES[at]
            | flags[at + 16] & PLACES[at + 16]
            | flags[at + 32] & PLACES[at + 32]
            | flags[at + 48] & PLACES[at + 48];
    }
    let bits = u128::from_le_bytes(bits);
    let mut matrix = bits as u64 | (bits >> 64) as u64;
    for (distance, mask) in [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)] {
        let swapped = (matrix ^ (matrix >> distance)) & mask;
        matrix ^= swapped ^ (swapped << distance);
    }
    matrix
}

/// The bit of each byte: the same one for eight bytes in a row.
const PLACES: [u8; WIDE] = {
    let mut places = [0; WIDE];
    let mut at = 0;
    while at < WIDE {
        places[at] = 1 << (at / 8);
        at += 1;
    }
    places
};

const HIGH: u64 = each(0x80);

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// A word whose bytes have their top bit set where `word` has a stop. Exact, because no carry leaves a byte.
#[inline]
fn stops(word: u64) -> u64 {
    let low = word & each(0x7F);
    let not_control = low + each(0x60);
    let not_tab = (low ^ each(b'\t')) + each(0x7F);
    let not_lf = (low ^ each(b'\n')) + each(0x7F);
    let delete = low + each(1);
    ((!not_control & not_tab & not_lf) | delete) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_know_every_byte_at_every_place() {
        for at in 0..WIDE {
            for byte in 0..=255u8 {
                let mut block = [b'0'; WIDE];
                block[at] = byte;
                let bit = |is: bool| u64::from(is) << at;
                let stop = bit(!matches!(byte, b'\t' | b'\n' | b' '..=b'~'));
                assert_eq!(stop_bytes(&block), stop, "byte {byte:02x} at {at}");
                assert_eq!(sequence_ends(&block), bit(!matches!(byte, b' '..=b'?')), "byte {byte:02x} at {at}");
            }
        }
    }

    #[test]
    fn plain_windows_end_before_every_other_byte() {
        for byte in 0..=255u8 {
            let mut input = vec![b'a'; 3 * WIDER + 5];
            input[WIDER + 7] = byte;
            let is_plain = matches!(byte, b'\n' | b' '..=0x7F);
            assert_eq!(plain_len(&input), if is_plain { 3 * WIDER } else { WIDER }, "byte {byte:02x}");
        }
        assert_eq!(plain_len(&[b'a'; WIDER - 1]), 0);
    }

    #[test]
    fn unedited_runs_end_before_what_edits_a_line_or_is_not_text() {
        for len in [1, 7, 8, 9, 63, 64, 130] {
            for (at, byte) in (0..len).flat_map(|at| (0..=255u8).map(move |byte| (at, byte))) {
                for behind in [b'\n', b'a'] {
                    let mut input = vec![b'a'; len];
                    input[at] = byte;
                    input.push(behind);
                    let is_edit = matches!((byte, input[at + 1]), (0 | 0x08 | 0x1B, _) | (b'\r', b'a'));
                    let run = CleanRun { len: if is_edit { at } else { len + 1 }, ascii: byte < 0x80 };
                    assert_eq!(unedited_run(&input), run, "byte {byte:02x} at {at} of {len}");
                }
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_is_judged_alike() {
        for len in [1, 7, 8, 9, 63, 64, 65, 130] {
            for at in 0..len {
                for byte in 0..=255u8 {
                    let mut input = vec![b'a'; len];
                    input[at] = byte;
                    let expected = if is_stop(byte) {
                        CleanRun { len: at, ascii: true }
                    } else {
                        CleanRun { len, ascii: byte < 0x80 }
                    };
                    assert_eq!(clean_run(&input), expected, "byte {byte:02x} at {at} of {len}");
                }
            }
        }
    }
}
