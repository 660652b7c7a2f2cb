//! Where a node stands in the text.

/// The characters of the text from which and up to which something stands, from 1. Both are 0 where it stands nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its first character.
    pub start: usize,
    /// The character behind its last one.
    pub end: usize,
}

impl Span {
    /// The span from one character up to another one.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The span of what stands nowhere.
    pub fn empty() -> Span {
        Span::default()
    }

    /// Does it stand nowhere?
    pub fn is_empty(self) -> bool {
        self == Span::empty()
    }

    /// What covers both. One that is nowhere adds nothing.
    pub fn union(self, other: Span) -> Span {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Span {
                start: self.start.min(other.start),
                end: self.end.max(other.end),
            },
        }
    }
}

/// The span of a word or sign of a node. It says nothing of what the node means: all are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenSpan(pub Span);

impl TokenSpan {
    /// The span of a token that stands nowhere.
    pub fn empty() -> TokenSpan {
        TokenSpan::default()
    }
}

impl PartialEq for TokenSpan {
    fn eq(&self, _: &TokenSpan) -> bool {
        true
    }
}

impl Eq for TokenSpan {}
