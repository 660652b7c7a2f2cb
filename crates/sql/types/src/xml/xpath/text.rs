//! Texts that expressions come to.

use crate::error::Result;
use crate::value::build::{Builder, Room};
use std::ops::Deref;

/// A text that is charged as long as it is there: expressions that are nested hold one at each level.
#[derive(Debug, Default)]
pub struct Text {
    text: String,
    _room: Room,
}

impl Text {
    /// What has been built.
    pub fn built(out: Builder) -> Result<Text> {
        let text = out.finish_string()?;
        let room = Room::of(text.capacity())?;
        Ok(Text { text, _room: room })
    }

    /// A copy.
    pub fn copied(text: &str) -> Result<Text> {
        let mut out = Builder::default();
        out.push_str(text)?;
        Text::built(out)
    }

    /// The text alone, for who charges it, or holds it for a moment.
    pub fn into_string(self) -> String {
        self.text
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}
