//! Finds the end of a run of clean text, many bytes at a time.
//!
//! A *stop* is a byte that ends a run: a C0 control other than TAB and LF, or DEL. Bytes from 0x80 up are no stops;
//! whether a run has any is told along with its length, so that only those runs need UTF-8 validation.

/// How many bytes are looked at together.
pub(crate) const WIDE: usize = 64;

/// A run of clean bytes at the start of some input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) len: usize,
    pub(crate) ascii: bool,
}

#[inline]
pub(crate) fn is_stop(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7F
}

/// How many bytes there are before the first stop, and whether all of them are ASCII.
#[inline]
pub(crate) fn clean_run(input: &[u8]) -> Run {
    // Between colours runs are short, and a wide look would be wasted on them.
    if let Some(chunk) = input.first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let stops = stops(word);
        if stops != 0 {
            let at = stops.trailing_zeros() / 8;
            return Run { len: at as usize, ascii: word & HIGH & ((1 << (at * 8)) - 1) == 0 };
        }
    }
    let mut len = 0;
    let mut high = 0u8;
    let mut rest = input;
    while let Some((chunk, tail)) = rest.split_first_chunk::<WIDE>() {
        if !is_plain(chunk) {
            // No early exit inside of a chunk: that is what lets the compiler use vector registers.
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
            return Run { len: len + at as usize, ascii: high < 0x80 && before & HIGH == 0 };
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
    Run { len, ascii: high < 0x80 }
}

/// Whether all bytes are ASCII and none is a stop: the common case, in the fewest operations per byte. Counted down from
/// 0x7E, printable characters are small numbers, and everything else is not.
#[inline]
fn is_plain(chunk: &[u8; WIDE]) -> bool {
    let mut most = 0u8;
    for &byte in chunk {
        let is_blank = (byte.wrapping_add(0x80 - b'\t') as i8) < -0x7E;
        most = most.max(if is_blank { 0 } else { 0x7Eu8.wrapping_sub(byte) });
    }
    most <= 0x7E - 0x20
}

/// Which of 64 bytes are what, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Masks {
    /// Not printable ASCII.
    pub(crate) odd: u64,
    /// May end a control sequence: 0x40 to 0x7E.
    pub(crate) last: u64,
}

#[inline]
pub(crate) fn masks(block: &[u8; WIDE]) -> Masks {
    let (mut odd, mut last) = ([0u8; WIDE], [0u8; WIDE]);
    for ((odd, last), &byte) in odd.iter_mut().zip(&mut last).zip(block) {
        // Signed: bytes from 0x80 up are below the printable ones.
        let signed = byte as i8;
        *odd = if signed < 0x20 || signed == 0x7F { 0xFF } else { 0 };
        *last = if signed >= 0x40 && signed != 0x7F { 0xFF } else { 0 };
    }
    Masks { odd: gather(&odd), last: gather(&last) }
}

/// One bit for each byte that is not 0.
#[inline]
fn gather(flags: &[u8; WIDE]) -> u64 {
    let (words, _) = flags.as_chunks::<8>();
    words.iter().rev().fold(0, |bits, word| {
        let ones = u64::from_le_bytes(*word) & each(1);
        bits << 8 | ones.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

const HIGH: u64 = each(0x80);

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The top bit of every byte of the result says whether that byte of `word` is a stop. Exact: no carry leaves a byte.
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
                let expected = Masks { odd: bit(!matches!(byte, b' '..=b'~')), last: bit(matches!(byte, b'@'..=b'~')) };
                assert_eq!(masks(&block), expected, "byte {byte:02x} at {at}");
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
                    let expected =
                        if is_stop(byte) { Run { len: at, ascii: true } } else { Run { len, ascii: byte < 0x80 } };
                    assert_eq!(clean_run(&input), expected, "byte {byte:02x} at {at} of {len}");
                }
            }
        }
    }
}
