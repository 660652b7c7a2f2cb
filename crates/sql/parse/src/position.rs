//! Places in a text, and syntax errors that name them as PostgreSQL does.

use sqlparser::tokenizer::Location;

/// Byte offset of a line and column (both from 1, columns in characters).
pub fn byte_of(text: &str, at: Location) -> usize {
    let mut line_start = 0;
    for _ in 1..at.line {
        match text[line_start..].find('\n') {
            Some(i) => line_start += i + 1,
            None => return text.len(),
        }
    }
    let columns = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let rest = &text[line_start..];
    // ASCII lines, the usual ones, need no walk.
    if rest.len() >= columns && rest.as_bytes()[..columns].is_ascii() {
        return line_start + columns;
    }
    rest.char_indices()
        .nth(columns)
        .map_or(text.len(), |(i, _)| line_start + i)
}

/// Positions in one text, for who asks for many: the text is looked through once.
#[derive(Debug, Default)]
pub struct Lines(std::cell::OnceCell<Vec<usize>>);

impl Lines {
    /// As [`position_of`]; `text` is the same each time.
    pub fn position_of(&self, text: &str, at: Location) -> usize {
        /// So few bytes are looked at once more each time.
        const NEAR: usize = 256;
        let column = usize::try_from(at.column).unwrap_or(usize::MAX);
        if at.line == 1
            && (1..NEAR).contains(&column)
            && text
                .as_bytes()
                .get(..column - 1)
                .is_some_and(<[u8]>::is_ascii)
        {
            return column;
        }
        let before = self.0.get_or_init(|| {
            let mut characters = 0;
            let mut before = vec![0];
            before.extend(text.split_inclusive('\n').map(|line| {
                characters += line.chars().count();
                characters
            }));
            before
        });
        let line = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let all = before.last().copied().unwrap_or(0);
        let start = before.get(line).copied().unwrap_or(all);
        start.saturating_add(column).min(all) + 1
    }
}

/// Position in characters from 1, as error responses give it.
pub fn position_of(text: &str, at: Location) -> usize {
    text[..byte_of(text, at)].chars().count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_asked_one_by_one_and_of_lines_agree() {
        for text in ["", "a", "a\nbc\n\ndäf\r\ng", "ä\n", "\n\n"] {
            let lines = Lines::default();
            let (mut line, mut column) = (1, 1);
            for c in text.chars().chain(['\0']) {
                let at = Location { line, column };
                assert_eq!(
                    lines.position_of(text, at),
                    position_of(text, at),
                    "{text:?} {at:?}"
                );
                (line, column) = if c == '\n' {
                    (line + 1, 1)
                } else {
                    (line, column + 1)
                };
            }
        }
    }
}
