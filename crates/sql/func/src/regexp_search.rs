//! Where PostgreSQL finds a regular expression's matches in a text, one after the other.

use logstead_sql_types::error::Result;
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::regex::{Captures, Compiled, INTERRUPT_MATCHES};

/// Matches from a position on. Behind a match that is not empty an empty one counts, which the library's own iterator
/// passes over; and one that begins before the position hides none behind it.
pub(super) struct RegexMatches<'r, 't> {
    regex: &'r Compiled,
    text: &'t str,
    /// Where to look next; none at the end.
    from: Option<usize>,
    /// How many were found.
    found: usize,
}

impl<'r, 't> RegexMatches<'r, 't> {
    /// From the character with number `start` on (from 1); none if the text ends before it.
    pub(super) fn new(regex: &'r Compiled, text: &'t str, start: i32) -> Self {
        let before = usize::try_from(start).unwrap_or(1).saturating_sub(1);
        let mut places = text.char_indices().map(|(at, _)| at);
        let from = places
            .by_ref()
            .nth(before)
            .or_else(|| (text.chars().count() == before).then_some(text.len()));
        RegexMatches {
            regex,
            text,
            from,
            found: 0,
        }
    }
}

impl<'t> Iterator for RegexMatches<'_, 't> {
    type Item = Result<Captures<'t>>;

    fn next(&mut self) -> Option<Result<Captures<'t>>> {
        self.found += 1;
        if self.found.is_multiple_of(INTERRUPT_MATCHES)
            && let Err(error) = check_for_interrupts()
        {
            self.from = None;
            return Some(Err(error));
        }
        let found = match self.regex.find_at(self.text, self.from.take()?) {
            Ok(found) => found?,
            Err(error) => return Some(Err(error)),
        };
        let whole = found.get(0)?;
        self.from = if whole.is_empty() {
            let next = self
                .text
                .get(whole.end()..)
                .and_then(|rest| rest.chars().next());
            next.map(|c| whole.end() + c.len_utf8())
        } else {
            Some(whole.end())
        };
        Some(Ok(found))
    }
}
