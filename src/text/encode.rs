//! Base64 (RFC 4648, section 4), for journal fields that are not UTF-8. Always padded, never broken into lines.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `bytes` in base64, with padding.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            // A group of n bytes fills n + 1 digits; the rest is padding.
            let digit = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes that [`base64`] encoded as `text`; `None` if it never writes such a text.
#[must_use]
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let padding = group.iter().rev().take_while(|&&digit| digit == b'=').count();
        if padding > 2 {
            return None;
        }
        let value = |digit: u8| match digit {
            b'A'..=b'Z' => Some(digit - b'A'),
            b'a'..=b'z' => Some(digit - b'a' + 26),
            b'0'..=b'9' => Some(digit - b'0' + 52),
            b'+' => Some(62),
            b'/' => Some(63),
            _ => None,
        };
        let mut bits = 0_u32;
        for &digit in &group[..group.len() - padding] {
            bits = bits << 6 | u32::from(value(digit)?);
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    (base64(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{base64, from_base64};

    #[test]
    fn the_vectors_of_the_rfc() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
            assert_eq!(from_base64(encoded).as_deref(), Some(plain.as_bytes()));
        }
        for wrong in ["Z", "Zg", "Zg=", "Zh==", "====", "Zm9v\n", "Zg==Zg==", "Z===", "Zm9=vYmE", "Zm 9"] {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_digit_and_every_byte() {
        let all: Vec<u8> = (0..=255).collect();
        let text = base64(&all);
        assert!(text.starts_with("AAECAwQFBgcICQoL") && text.ends_with("+fr7/P3+/w=="));
        assert_eq!(from_base64(&text), Some(all));
        assert_eq!(base64(&[0xff; 3]), "////");
        assert_eq!(base64(&[0xfb, 0xef, 0xbe]), "++++");
    }
}
