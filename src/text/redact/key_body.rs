//! The lines of a private key between the first and the last one.

/// A line of base64 of at least this many bytes is part of a key.
const KEY_LINE_BYTES_MIN: usize = 20;
/// The same where something else stands before it on the line, of no more bytes than …
const LED_IN_LINE_BYTES_MIN: usize = 40;
/// … this. Behind it stand fewer.
const LEAD_BYTES_MAX: usize = 64;
const LED_OUT_BYTES_MAX: usize = 8;
/// The longest header line of a key, or the longest type in a key's last line, in bytes.
pub(super) const KEY_HEADER_BYTES_MAX: usize = 128;

/// How far the lines of one key were read.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyBody {
    /// The last byte was in a line of base64 that is long enough.
    in_line: bool,
    seen_line: bool,
    seen_short: bool,
    /// Something stands before the base64 of each line: the sign of a diff, the number of a line, a comment's.
    is_led_in: bool,
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns true if the text begins with `start`, or is the beginning of it.
fn agrees(start: &[u8], text: &[u8]) -> bool {
    let len = start.len().min(text.len());
    start[..len] == text[..len]
}

impl KeyBody {
    /// Takes one line of the body, or a part of it. Returns its length and whether the key goes on; `None` if more bytes
    /// are needed. A key's lines are base64, or headers such as `Proc-Type: 4,ENCRYPTED`. Any other line ends the key.
    pub(super) fn take(&mut self, text: &[u8], last: bool) -> Option<(usize, bool)> {
        let blank = line_break(text);
        if blank > 0 {
            self.in_line = false;
            // A lone backslash may be the first half of an escaped line feed.
            return if blank == text.len() && text.ends_with(b"\\") && !last { None } else { Some((blank, true)) };
        }
        let len = text.iter().take_while(|&&byte| is_base64(byte)).count();
        if self.in_line && len > 0 {
            return Some((len, true));
        }
        if len >= KEY_LINE_BYTES_MIN {
            self.in_line = true;
            self.seen_line = true;
            return Some((len, true));
        }
        if len == text.len() && !last {
            return None;
        }
        if let Some(end) = self.end_line(text, last) {
            return end;
        }
        if let Some(led_in) = self.led_in(text, last) {
            return led_in;
        }
        if let Some(header) = self.header(text, len, last) {
            return header;
        }
        // The last line may be short.
        let after = &text[len..];
        if after == b"\\" && !last {
            return None;
        }
        let is_last_line = len > 0 && self.seen_line && !self.seen_short && (after.is_empty() || line_break(after) > 0);
        self.seen_short = true;
        Some(if is_last_line { (len, true) } else { (0, false) })
    }

    /// Takes `-----END … PRIVATE KEY-----`, the end of the key. The outer `None` means that the line is another one.
    fn end_line(&self, text: &[u8], last: bool) -> Option<Option<(usize, bool)>> {
        const END: &[u8] = b"-----END ";
        if !agrees(END, text) {
            return None;
        }
        let Some(rest) = text.strip_prefix(END) else { return if last { None } else { Some(None) } };
        let kind = rest.iter().take(KEY_HEADER_BYTES_MAX).take_while(|&&byte| byte != b'-' && byte != b'\n').count();
        let dashes = rest[kind..].iter().take(5).take_while(|&&byte| byte == b'-').count();
        if dashes < 5 && kind + dashes == rest.len() && kind < KEY_HEADER_BYTES_MAX && !last {
            return Some(None);
        }
        Some(Some((END.len() + kind + dashes, false)))
    }

    /// Takes what stands before the base64 of a line, and behind it. The outer `None` means that the line is another one.
    fn led_in(&mut self, text: &[u8], last: bool) -> Option<Option<(usize, bool)>> {
        let newline = text.iter().position(|&byte| byte == b'\n');
        let least = if self.is_led_in { KEY_LINE_BYTES_MIN } else { LED_IN_LINE_BYTES_MIN };
        // A quote and a comma, or an escaped line feed.
        let rest = &text[..newline.unwrap_or(text.len())];
        let may_be_behind = self.is_led_in || !self.seen_line;
        if may_be_behind && rest.len() <= LED_OUT_BYTES_MAX && !rest.iter().any(u8::is_ascii_alphanumeric) {
            return Some((newline.is_some() || last).then_some((rest.len(), true)));
        }
        let line = &text[..newline.unwrap_or(text.len()).min(LEAD_BYTES_MAX + least)];
        let mut at = 0;
        while at < line.len() {
            let run = line[at..].iter().take_while(|&&byte| is_base64(byte)).count();
            if at > 0 && (run >= least || line[at..].starts_with(b"-----END ")) {
                self.seen_line = true;
                self.is_led_in = true;
                self.in_line = run > 0;
                return Some(Some((at + run, true)));
            }
            at += run.max(1);
        }
        (newline.is_none() && text.len() < LEAD_BYTES_MAX + least && !last).then_some(None)
    }

    /// Takes `Name: value` before the first line of base64. The outer `None` means that the line is another one.
    fn header(&self, text: &[u8], len: usize, last: bool) -> Option<Option<(usize, bool)>> {
        if self.seen_line {
            return None;
        }
        let name =
            text.iter().take(KEY_HEADER_BYTES_MAX).take_while(|&&b| b.is_ascii_alphabetic() || b == b'-').count();
        if name < len || name == 0 || name == KEY_HEADER_BYTES_MAX {
            return None;
        }
        match text.get(name..name + 2) {
            Some(b": ") => {}
            Some(_) => return None,
            None if last || !agrees(b": ", &text[name..]) => return None,
            None => return Some(None),
        }
        match text.iter().take(KEY_HEADER_BYTES_MAX).position(|&byte| byte == b'\n') {
            Some(end) => Some(Some((end, true))),
            None if text.len() >= KEY_HEADER_BYTES_MAX || last => None,
            None => Some(None),
        }
    }
}

/// The length of the line ends and the indentation at the start of the text; a line end may be escaped as in a string.
fn line_break(text: &[u8]) -> usize {
    let mut len = 0;
    loop {
        match &text[len..] {
            [b'\n' | b'\r' | b' ' | b'\t', ..] => len += 1,
            [b'\\', b'n' | b'r', ..] => len += 2,
            // More bytes may make it one of the above.
            [b'\\'] => return len + 1,
            _ => return len,
        }
    }
}
