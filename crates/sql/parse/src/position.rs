//! Places in a text.

use crate::ast::Location;
use std::cell::OnceCell;

/// The characters of a text, for who asks for many positions in it: it is looked through once.
#[derive(Debug, Default)]
pub struct TextPositions(OnceCell<Vec<usize>>);

impl TextPositions {
    /// Where something stands, as error responses give it; the end for what is behind it. `text` is the same each
    /// time, or empty.
    pub fn of(&self, text: &str, location: Location) -> Option<usize> {
        /// So few bytes are looked at once more each time.
        const NEAR: usize = 256;
        let byte = location.byte()?;
        if byte < NEAR && text.as_bytes().get(..byte).is_some_and(<[u8]>::is_ascii) {
            return Some(byte + 1);
        }
        if byte > text.len() {
            return Some(text.chars().count() + 1);
        }
        // Where characters begin, of a text that is not ASCII.
        let characters = self.0.get_or_init(|| match text.is_ascii() {
            true => Vec::new(),
            false => text.char_indices().map(|(at, _)| at).collect(),
        });
        let before = match characters.is_empty() {
            true => byte,
            false => characters.partition_point(|at| *at < byte),
        };
        Some(before + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_asked_one_by_one_and_of_a_text_agree() {
        let long = format!("{}ä{}", "a\n".repeat(200), "b".repeat(200));
        for text in ["", "a", "a\nbc\n\ndäf\r\ng", "ä\n", "\n\n", &long] {
            let positions = TextPositions::default();
            let bytes = text.char_indices().map(|(at, _)| at);
            for byte in bytes.chain([text.len()]) {
                let location = u32::try_from(byte).map(Location::at).expect("a short text");
                let one = location.character(text);
                assert_eq!(positions.of(text, location), one, "{text:?} {byte}");
                assert_eq!(positions.of("", location), Some(1), "{text:?} {byte}");
            }
            assert_eq!(positions.of(text, Location::UNKNOWN), None);
        }
    }
}
