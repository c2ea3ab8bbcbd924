//! A second implementation of `REXEC_SANITIZE=strip`: the same rule, without regard for speed or split input.

/// Deletes escape sequences and control characters but tab and newline; a carriage return is a line end, once.
pub(crate) fn strip(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let (mut at, mut returned) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            0x1b => at = after_escape(bytes, at),
            b'\r' => returned = true,
            b'\n' | 0x0b | 0x0c => {
                kept.push(b'\n');
                returned = false;
            }
            b'\t' | 0x20..=0x7e | 0x80.. => {
                if std::mem::take(&mut returned) && kept.last().is_some_and(|&last| last != b'\n') {
                    kept.push(b'\n');
                }
                kept.push(byte);
            }
            _ => {}
        }
    }
    let text = String::from_utf8_lossy(&kept);
    text.chars().filter(|&c| !('\u{80}'..='\u{9f}').contains(&c)).collect::<String>().into_bytes()
}

/// Where the text goes on after an escape sequence whose ESC lies before `at`.
fn after_escape(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at.min(bytes.len())..];
    let Some(&first) = rest.first() else { return at };
    let end = match first {
        b'[' => rest[1..].iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|n| n + 2),
        b']' | b'P' | b'X' | b'^' | b'_' => string_end(rest),
        0x20..=0x2f => rest.iter().position(|byte| (0x30..=0x7e).contains(byte)).map(|n| n + 1),
        _ => Some(1),
    };
    at + end.unwrap_or(rest.len())
}

fn string_end(rest: &[u8]) -> Option<usize> {
    let bell_ends = rest[0] == b']';
    let end = rest.iter().position(|&byte| byte == 0x1b || byte == b'\n' || (bell_ends && byte == 0x07))?;
    Some(match rest[end] {
        0x1b => end + 1 + usize::from(rest.get(end + 1) == Some(&b'\\')),
        b'\n' => end,
        _ => end + 1,
    })
}
