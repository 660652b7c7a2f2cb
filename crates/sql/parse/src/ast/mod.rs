//! The tree of a statement: PostgreSQL 15's raw parse tree (`parsenodes.h`), typed.
//!
//! Owns: what a statement says, word by word, and where it says it. Knows no catalog: names are as they were written,
//! folded; nothing is looked up.
//!
//! # Shape
//!
//! A node has PostgreSQL's name and fields. Where PostgreSQL has a `Node *` of several kinds there is an enum:
//! [`Stmt`], [`Expr`], [`TableRef`]. Where its fields mean different things by another field there are different
//! nodes: LIKE, IN and BETWEEN are nodes of their own beside [`AExpr`]. What PostgreSQL's grammar turns into
//! something else (a recursive view into WITH RECURSIVE, `SET TIME ZONE` into a setting) is turned here in the same
//! way, unless the words are needed to print it.
//!
//! # Boxes, not an arena
//!
//! Nodes own their children. An index arena would drop, copy and compare without recursion whatever its depth, but
//! everyone who reads a node would need the arena at hand, and binding reads trees of several texts at once (the
//! statement, views, defaults, bodies of functions) and makes nodes of its own. So the children are boxes, [`NodeBox`],
//! which see to the stack themselves: dropping, copying, comparing and printing count how deep they are and go on in
//! a new segment of stack every so many levels ([`logstead_fiber::with_stack`]). A chain of a hundred thousand `+` is
//! made in a loop and dropped in bounded stack. AND and OR are lists, as in PostgreSQL. Who walks a tree otherwise
//! asks [`RawStmt::levels`] how deep it is.
//!
//! # References by number, and what the catalog keeps
//!
//! A stored text must mean the same object whatever is renamed, so it names objects by number. Such references are
//! variants of the enums that name things: [`FuncName::Stored`], [`TypeRef::Stored`], [`RelationName::Source`]. In
//! texts they are names in quotes that begin with a control character (a mark), which only the lexer's entry for
//! stored texts lets through ([`Lexer::stored`](crate::lexer::Lexer::stored)); a client's text that has one is
//! refused, so the variants can come only from the catalog. Stored texts stay texts, in the form that they have
//! today: databases of older servers open as they are, a dump of the catalog can be read by a person, and the format
//! does not depend on how a tree is laid out in memory. A printer writes the variants back as marks for the catalog,
//! and as current names for people; nobody searches texts for marks any more.
//!
//! - `"\u{1}N"`: the Nth source of a view ([`RelationName::Source`])
//! - `"\u{2}N"`: the type with OID N ([`TypeRef::Stored`])
//! - `"\u{3}N:name"`: the function with OID N, called by this name ([`FuncName::Stored`])

mod access;
mod define;
mod expr;
mod make_funcs;
mod names;
mod node_funcs;
mod object;
mod query;
mod routine;
mod table;
mod tag;
mod utility;
mod walk;

pub use access::*;
pub use define::*;
pub use expr::*;
pub use names::*;
pub(crate) use names::{FUNCTION_MARK, cross_database};
pub use object::*;
pub use query::*;
pub use routine::*;
pub use table::*;
pub use utility::*;
pub use walk::*;

use crate::lexer::TruncatedName;
use logstead_fiber::with_stack;
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Levels that go on one segment of stack.
const SEGMENT_LEVELS: u32 = 64;
/// Stack for so many levels of dropping, copying, comparing or printing, where nothing is optimized.
const SEGMENT_BYTES: usize = 1 << 20;

thread_local! {
    /// Levels of [`NodeBox`] that are being dropped, copied, compared or printed.
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}

/// Runs what goes a level down a tree, on a new segment of stack every [`SEGMENT_LEVELS`] levels.
fn a_level_down<T>(run: impl FnOnce() -> T) -> T {
    let level = LEVEL.get();
    LEVEL.set(level + 1);
    let mut run = Some(run);
    let mut go = || run.take().map(|run| run());
    let done = match level % SEGMENT_LEVELS == SEGMENT_LEVELS - 1 {
        // Without memory for a segment it goes on where it is: so does everything else that allocates, as long as
        // that lasts.
        true => with_stack(SEGMENT_BYTES, &mut go).unwrap_or_else(|_| go()),
        false => go(),
    };
    LEVEL.set(level);
    match done {
        Some(done) => done,
        None => unreachable!("it runs once"),
    }
}

/// A node that another one owns, in a tree of any depth.
pub struct NodeBox<T>(Option<Box<T>>);

impl<T> NodeBox<T> {
    /// Owns a node.
    #[inline]
    pub fn new(node: T) -> NodeBox<T> {
        NodeBox(Some(Box::new(node)))
    }

    /// The node.
    pub fn into_inner(mut self) -> T {
        match self.0.take() {
            Some(node) => *node,
            None => unreachable!("empty only while it is dropped"),
        }
    }
}

impl<T> From<T> for NodeBox<T> {
    fn from(node: T) -> NodeBox<T> {
        NodeBox::new(node)
    }
}

impl<T> Deref for NodeBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(node) => node,
            None => unreachable!("empty only while it is dropped"),
        }
    }
}

impl<T> DerefMut for NodeBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(node) => node,
            None => unreachable!("empty only while it is dropped"),
        }
    }
}

impl<T> Drop for NodeBox<T> {
    fn drop(&mut self) {
        if let Some(node) = self.0.take() {
            a_level_down(|| drop(node));
        }
    }
}

impl<T: Clone> Clone for NodeBox<T> {
    fn clone(&self) -> NodeBox<T> {
        a_level_down(|| NodeBox::new(T::clone(self)))
    }
}

impl<T: PartialEq> PartialEq for NodeBox<T> {
    fn eq(&self, other: &NodeBox<T>) -> bool {
        a_level_down(|| T::eq(self, other))
    }
}

impl<T: fmt::Debug> fmt::Debug for NodeBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        a_level_down(|| T::fmt(self, f))
    }
}

/// Where a node begins: a byte of the text.
///
/// It says nothing of what the node means, so all are equal, as in PostgreSQL's `equal()`: two nodes are equal if they
/// say the same, wherever they stand. Who compares places compares their bytes.
#[derive(Clone, Copy)]
pub struct Location(u32);

impl PartialEq for Location {
    fn eq(&self, _: &Location) -> bool {
        true
    }
}

impl Eq for Location {}

impl Location {
    /// For nodes that the text does not have.
    pub const UNKNOWN: Location = Location(u32::MAX);

    /// The byte at `start`.
    #[inline]
    pub const fn at(start: u32) -> Location {
        Location(start)
    }

    /// Which byte, if it is known.
    pub fn byte(self) -> Option<usize> {
        (self.0 != u32::MAX).then_some(self.0 as usize)
    }

    /// Is it that of a node that the text does not have?
    pub fn is_unknown(self) -> bool {
        self.0 == u32::MAX
    }

    /// The one further left.
    pub fn leftmost(self, other: Location) -> Location {
        Location(self.0.min(other.0))
    }

    /// Which character of `text`, from 1: how errors tell positions.
    pub fn character(self, text: &str) -> Option<usize> {
        Some(crate::lexer::character(text, self.byte()?))
    }
}

impl Default for Location {
    fn default() -> Location {
        Location::UNKNOWN
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.byte() {
            Some(byte) => write!(f, "@{byte}"),
            None => f.write_str("@?"),
        }
    }
}

/// The part of the text that a node is: what is cut out of it is kept by the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TextRange {
    /// Its first byte.
    pub start: Location,
    /// Behind its last byte.
    pub end: Location,
}

impl TextRange {
    /// Its bytes, if they are known.
    pub fn bytes(self) -> Option<(usize, usize)> {
        Some((self.start.byte()?, self.end.byte()?))
    }
}

/// One statement of a text (`RawStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct RawStmt {
    /// What it says.
    pub stmt: Stmt,
    /// Its first byte: behind white space and comments.
    pub start: usize,
    /// Behind its last token; no semicolon.
    pub end: usize,
    /// Levels of its tree, or more: who walks it needs stack for so many.
    pub levels: usize,
    /// Operands of its longest AND or OR, which is one level however long it is.
    pub conjuncts: usize,
    /// Names in it that are longer than names may be: in the tree they are cut.
    pub truncated: Vec<TruncatedName>,
}

#[cfg(test)]
mod tests {
    use crate::grammar;

    #[test]
    fn nodes_are_equal_wherever_they_stand() {
        let stmt = |text| {
            let mut all = grammar::parse(text).expect("a statement");
            all.remove(0).stmt
        };
        let sum = stmt("SELECT a + 1 FROM t");
        assert_eq!(sum, stmt(" SELECT  a  +  1  FROM  t"));
        assert_ne!(sum, stmt("SELECT a - 1 FROM t"));
    }
}
