//! Texts that expressions come to.

use crate::error::Result;
use crate::memory::{Builder, MemoryReservation};
use std::ops::Deref;

/// A text that is charged as long as it is there: expressions that are nested hold one at each level.
#[derive(Debug, Default)]
pub struct ChargedText {
    text: String,
    _room: MemoryReservation,
}

impl ChargedText {
    /// What has been built.
    pub fn built(out: Builder) -> Result<ChargedText> {
        let text = out.finish_string()?;
        let room = MemoryReservation::of(text.capacity())?;
        Ok(ChargedText { text, _room: room })
    }

    /// A copy.
    pub fn copied(text: &str) -> Result<ChargedText> {
        let mut out = Builder::default();
        out.push_str(text)?;
        ChargedText::built(out)
    }

    /// The text alone, for who charges it, or holds it for a moment.
    pub fn into_string(self) -> String {
        self.text
    }
}

impl Deref for ChargedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}
