//! Regular expressions: PostgreSQL's, translated to the library's syntax (`parse`).
//!
//! Matching takes linear time, but for patterns with lookaround or back references, whose matching is bounded
//! (`compiled`).
//! Compiled expressions are kept per thread, a few dozen of them and a bounded number of bytes.
//!
//! Does not: know SQL's functions of regular expressions, or LIKE.

mod compiled;
mod lex;
mod match_preference;
mod parse;

pub use compiled::{Captures, Compiled};
pub use lex::{Flavor, Syntax};

use crate::error::Result;
use compiled::Options;
use lex::{RegexError, TOO_COMPLEX};
use parse::translate;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Matches between two looks for interrupts.
pub const INTERRUPT_MATCHES: usize = 256;

/// Flags of the regexp functions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// How the expression is read.
    pub syntax: Syntax,
    /// All matches, not the first one.
    pub global: bool,
}

/// Most expressions that a thread keeps compiled, and most bytes that those take: more than one of them ever does.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 72 << 20;

thread_local! {
    static COMPILED: RefCell<HashMap<(String, Flags), Rc<Compiled>>> = RefCell::new(HashMap::new());
}

/// Forgets all expressions if there are too many, or too large ones with one of so many bytes.
fn make_room(kept: &mut HashMap<(String, Flags), Rc<Compiled>>, more: usize) {
    let bytes: usize = kept.values().map(|regex| regex.bytes()).sum();
    if kept.len() >= KEPT_MAX + usize::from(more == 0) || bytes + more > KEPT_BYTES_MAX {
        kept.clear();
    }
}

/// An expression, compiled, or as it was kept.
pub fn compile(pattern: &str, flags: Flags) -> Result<Rc<Compiled>> {
    let key = (pattern.to_owned(), flags);
    if compiled::grew() {
        COMPILED.with(|c| make_room(&mut c.borrow_mut(), 0));
    }
    if let Some(r) = COMPILED.with(|c| c.borrow().get(&key).cloned()) {
        return Ok(r);
    }
    let translated = translate(pattern, flags.syntax).map_err(RegexError::error)?;
    let options = Options {
        ignore_case: translated.syntax.ignore_case,
        newline_stops: translated.syntax.newline_stops,
        newline_anchors: translated.syntax.newline_anchors,
        backtracks: translated.backtracks,
        shortest: translated.shortest,
        groups: translated.groups,
    };
    // What is wrong with an expression has been told. What is left is too large for the library.
    let regex = Compiled::new(&translated.text, options).map_err(|_| TOO_COMPLEX.error())?;
    let regex = Rc::new(regex);
    COMPILED.with(|c| {
        let mut c = c.borrow_mut();
        make_room(&mut c, regex.bytes());
        c.insert(key, regex.clone());
    });
    Ok(regex)
}

/// An expression with XQuery's flags, as `like_regex` of a jsonpath has them: without "s" a dot stops at newlines, with
/// "m" lines have anchors.
pub fn like_regex(pattern: &str, flags: &str) -> Result<Rc<Compiled>> {
    let literal = flags.contains('q');
    let syntax = Syntax {
        ignore_case: flags.contains('i'),
        literal,
        newline_stops: !literal && !flags.contains('s'),
        newline_anchors: !literal && flags.contains('m'),
        ..Syntax::default()
    };
    let flags = Flags {
        syntax,
        global: false,
    };
    compile(pattern, flags)
}

/// The error of such an expression, if it is none.
pub fn check_like_regex(pattern: &str, flags: &str) -> Result<()> {
    like_regex(pattern, flags).map(|_| ())
}
