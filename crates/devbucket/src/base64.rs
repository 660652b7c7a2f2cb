//! Base64 (RFC 4648, with padding): of Content-MD5, and of continuation tokens.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for piece in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..piece.len()].copy_from_slice(piece);
        let word = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for digit in 0..4 {
            let index = word >> (18 - 6 * digit) & 63;
            let padding = digit > piece.len();
            text.push(match padding {
                true => '=',
                false => char::from(DIGITS[index as usize]),
            });
        }
    }
    text
}

/// `None`: it is none.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let (mut bytes, mut word, mut bits) = (Vec::new(), 0u32, 0);
    for byte in digits.bytes() {
        let digit = DIGITS.iter().position(|known| *known == byte)?;
        word = word << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    (word == 0).then_some(bytes)
}

pub(crate) fn decode_text(text: &str) -> Option<String> {
    String::from_utf8(decode(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for wrong in ["Z", "Zg=", "Zg", "Z===", "Zh==", "Z!==", "===="] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
