//! Places in a text.

use std::cell::OnceCell;

/// The byte at which a character of the text begins, counted from 1; the text's end for one behind it.
pub fn byte_of(text: &str, character: usize) -> usize {
    let before = character.saturating_sub(1);
    // ASCII texts, the usual ones, need no walk.
    if text.len() >= before && text.as_bytes()[..before].is_ascii() {
        return before;
    }
    text.char_indices()
        .nth(before)
        .map_or(text.len(), |(at, _)| at)
}

/// How many characters a text has, for who asks for many positions in it: it is looked through once.
#[derive(Debug, Default)]
pub struct TextLength(OnceCell<usize>);

impl TextLength {
    /// A character's position as error responses give it; the end for one behind it. `text` is the same each time.
    pub fn position_of(&self, text: &str, character: usize) -> usize {
        /// So few bytes are looked at once more each time.
        const NEAR: usize = 256;
        if (1..NEAR).contains(&character)
            && text
                .as_bytes()
                .get(..character - 1)
                .is_some_and(<[u8]>::is_ascii)
        {
            return character;
        }
        let all = self.0.get_or_init(|| text.chars().count());
        character.clamp(1, all + 1)
    }
}

/// A character's position as error responses give it; the end for one behind it.
pub(crate) fn position_of(text: &str, character: usize) -> usize {
    text[..byte_of(text, character)].chars().count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_asked_one_by_one_and_of_a_text_agree() {
        for text in ["", "a", "a\nbc\n\ndäf\r\ng", "ä\n", "\n\n"] {
            let length = TextLength::default();
            for character in 0..text.chars().count() + 4 {
                assert_eq!(
                    length.position_of(text, character),
                    position_of(text, character),
                    "{text:?} {character}"
                );
            }
        }
    }

    #[test]
    fn characters_begin_at_bytes() {
        for text in ["", "a", "däf", "ääx"] {
            let bytes = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            for (character, byte) in (1..).zip(bytes) {
                assert_eq!(byte_of(text, character), byte, "{text:?} {character}");
            }
        }
    }
}
