//! The body of a control sequence (ECMA-48, section 5.4): private marker, numeric parameters, intermediates.

/// A well-formed control sequence body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Csi<'a> {
    /// `<`, `=`, `>` or `?`, if the body opens with one.
    pub(crate) private: Option<u8>,
    /// Digits, `;` and `:`.
    pub(crate) params: &'a [u8],
    pub(crate) intermediates: &'a [u8],
}

impl<'a> Csi<'a> {
    /// Parses a body; `None` if it is malformed and has no effect.
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let split = body.iter().rposition(|b| !matches!(b, 0x20..=0x2F)).map_or(0, |at| at + 1);
        let (params, intermediates) = body.split_at(split);
        let (private, params) = match params {
            [marker @ b'<'..=b'?', rest @ ..] => (Some(*marker), rest),
            _ => (None, params),
        };
        let well_formed = params.iter().all(|b| matches!(b, b'0'..=b'9' | b';' | b':'));
        well_formed.then_some(Self { private, params, intermediates })
    }

    /// The first number of each parameter; 0 if missing, 65,535 if larger.
    pub(crate) fn values(&self) -> impl Iterator<Item = u16> + 'a {
        let params = self.params;
        let count = if params.is_empty() { 0 } else { usize::MAX };
        params.split(|&b| b == b';').take(count).map(first_number)
    }

    /// Parameter `at`; 0 if missing.
    pub(crate) fn value(&self, at: usize) -> u16 {
        self.values().nth(at).unwrap_or(0)
    }

    /// Parameter `at` as a count; 1 if missing or 0.
    pub(crate) fn count(&self, at: usize) -> u16 {
        self.value(at).max(1)
    }
}

/// The private modes that drawing programs use: cursor keys, reverse video, origin, wrapping, the cursor's look, the
/// alternate screen, the saved cursor, left and right margins, and output in one go.
pub(crate) const DRAWING_MODES: [u16; 13] = [1, 5, 6, 7, 12, 25, 45, 47, 69, 1047, 1048, 1049, 2026];

/// Returns true if a control character only moves the cursor or changes the character set: BS, VT, FF, CR, SO and SI.
/// The bell would ring, and ENQ is a question.
pub(crate) fn draws(control: u8) -> bool {
    matches!(control, 0x08 | 0x0b..=0x0f)
}

/// Returns true if an escape sequence (not CSI) draws: the cursor, tabs, character sets, the alignment pattern.
pub(crate) fn escape_draws(intermediates: &[u8], last: u8) -> bool {
    match intermediates {
        [] => matches!(last, b'7' | b'8' | b'=' | b'>' | b'D' | b'E' | b'H' | b'M'),
        [b'(' | b')' | b'#'] => true,
        _ => false,
    }
}

pub(crate) fn put(body: &[u8], last: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[");
    out.extend_from_slice(body);
    out.push(last);
}

/// Appends an escape sequence that is no control sequence.
pub(crate) fn put_escape(intermediates: &[u8], last: u8, out: &mut Vec<u8>) {
    out.push(0x1b);
    out.extend_from_slice(intermediates);
    out.push(last);
}

/// The digits before the first colon as a number.
pub(crate) fn first_number(param: &[u8]) -> u16 {
    let digits = param.iter().take_while(|&&b| b != b':');
    digits.fold(0u16, |number, digit| number.saturating_mul(10).saturating_add(u16::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_taken_apart() {
        let csi = Csi::parse(b"?25;1049").unwrap();
        assert_eq!((csi.private, csi.values().collect::<Vec<_>>()), (Some(b'?'), vec![25, 1049]));
        let csi = Csi::parse(b"4:3;;99999 q").map(|_| ());
        assert_eq!(csi, None, "a letter is not a body");
        let csi = Csi::parse(b"4:3;;99999 ").unwrap();
        assert_eq!((csi.values().collect::<Vec<_>>(), csi.intermediates), (vec![4, 0, 65535], b" ".as_slice()));
        assert_eq!(Csi::parse(b"").unwrap().values().count(), 0);
        assert_eq!(Csi::parse(b";").unwrap().values().count(), 2);
        assert_eq!(Csi::parse(b"1?2"), None);
        assert_eq!(Csi::parse(b"1 2"), None);
        assert_eq!((Csi::parse(b"0").unwrap().count(0), Csi::parse(b"7").unwrap().count(0)), (1, 7));
    }
}
