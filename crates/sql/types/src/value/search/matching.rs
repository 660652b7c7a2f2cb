//! Does a text match a query?
//!
//! Owns: [`matches()`]. Outside of phrases a query is a formula over "this word is in the text". Inside of one, each
//! part is the set of places
//! at which it ends, or, behind a negation, all places but those ([`PositionSet`]); `a <2> b` is the places of `b` that
//! are two behind a place of `a`. Whether a text without places has a phrase or a weight cannot be told; PostgreSQL
//! says no to the phrase and yes to the weight, and so do we.

use super::query::{Node, Op, Query, Word};
use super::vector::{Lexeme, Vector};

/// A set of places of a text.
#[derive(Clone, Debug, Default)]
pub struct PositionSet {
    /// Ascending.
    pub at: Vec<u32>,
    /// All places but these.
    pub negated: bool,
    /// How many places in front of its end the match begins.
    pub width: u32,
}

/// A part of a query inside of a phrase.
#[derive(Clone, Debug)]
pub enum PhraseMatch {
    /// It is not in the text.
    Nowhere,
    /// It may be: the text has no positions.
    Perhaps,
    /// It is at these.
    At(PositionSet),
}

impl PhraseMatch {
    /// At these places, in any order.
    pub fn among(mut at: Vec<u32>) -> PhraseMatch {
        if at.is_empty() {
            return PhraseMatch::Nowhere;
        }
        at.sort_unstable();
        at.dedup();
        PhraseMatch::At(PositionSet {
            at,
            negated: false,
            width: 0,
        })
    }
}

/// What a query is asked of.
pub trait MatchTarget {
    /// Is the word in it?
    fn has(&self, word: &Word) -> bool;
    /// Where is the word?
    fn places(&self, word: &Word) -> PhraseMatch;
}

impl Vector<'_> {
    fn candidates<'v>(&'v self, word: &Word) -> impl Iterator<Item = &'v Lexeme<'v>> {
        let (one, many): (Option<&Lexeme<'_>>, &[Lexeme<'_>]) = if word.prefix {
            (None, self.beginning(&word.text))
        } else {
            (self.find(&word.text), &[])
        };
        one.into_iter().chain(many)
    }
}

impl MatchTarget for Vector<'_> {
    fn has(&self, word: &Word) -> bool {
        self.candidates(word).any(|lexeme| {
            let mut places = lexeme.places.iter();
            word.weights == 0
                || lexeme.places.is_empty()
                || places.any(|p| word.weights >> p.weight & 1 == 1)
        })
    }

    fn places(&self, word: &Word) -> PhraseMatch {
        let mut at = Vec::new();
        for lexeme in self.candidates(word) {
            if lexeme.places.is_empty() {
                return PhraseMatch::Perhaps;
            }
            let wanted = |w: u8| word.weights == 0 || word.weights >> w & 1 == 1;
            let places = lexeme.places.iter().filter(|p| wanted(p.weight));
            at.extend(places.map(|p| u32::from(p.at)));
        }
        PhraseMatch::among(at)
    }
}

/// Which of the places of two sets are taken.
#[derive(Clone, Copy)]
struct PhraseEmit {
    left: bool,
    both: bool,
    right: bool,
}

/// The places of two sets, moved forward by their shifts.
fn merge(
    l: &PositionSet,
    r: &PositionSet,
    left_shift: u32,
    right_shift: u32,
    take: PhraseEmit,
) -> Vec<u32> {
    let mut out = Vec::new();
    let mut a = l.at.iter().map(|p| p + left_shift).peekable();
    let mut b = r.at.iter().map(|p| p + right_shift).peekable();
    loop {
        let (at, taken) = match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return out,
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
                (x, take.both)
            }
            (Some(x), y) if y.is_none_or(|y| x < y) => {
                a.next();
                (x, take.left)
            }
            (_, Some(y)) => {
                b.next();
                (y, take.right)
            }
            (Some(_), None) => return out,
        };
        if taken {
            out.push(at);
        }
    }
}

fn found(at: Vec<u32>, negated: bool, width: u32) -> PhraseMatch {
    if at.is_empty() && !negated {
        return PhraseMatch::Nowhere;
    }
    PhraseMatch::At(PositionSet { at, negated, width })
}

/// The intersection of two sets, of which either may be negated.
fn intersect(
    l: &PositionSet,
    r: &PositionSet,
    left_shift: u32,
    right_shift: u32,
    width: u32,
) -> PhraseMatch {
    let take = PhraseEmit {
        left: r.negated,
        both: l.negated == r.negated,
        right: l.negated,
    };
    let negated = l.negated && r.negated;
    found(merge(l, r, left_shift, right_shift, take), negated, width)
}

/// The union: all places but those that are in neither.
fn unite(
    l: &PositionSet,
    r: &PositionSet,
    left_shift: u32,
    right_shift: u32,
    width: u32,
) -> PhraseMatch {
    let negated = l.negated || r.negated;
    // What is negated is named by what it lacks: of `!a | b` that is `a` without `b`.
    let take = PhraseEmit {
        left: !r.negated,
        both: l.negated == r.negated,
        right: !l.negated,
    };
    found(merge(l, r, left_shift, right_shift, take), negated, width)
}

fn phrase_node(op: Op, left: PhraseMatch, right: PhraseMatch) -> PhraseMatch {
    use PhraseMatch::{At, Nowhere, Perhaps};
    match op {
        Op::Not => match right {
            Nowhere => found(Vec::new(), true, 0),
            Perhaps => Perhaps,
            At(places) => found(places.at, !places.negated, places.width),
        },
        Op::Phrase(distance) => match (left, right) {
            (Nowhere, _) | (_, Nowhere) => Nowhere,
            (Perhaps, _) | (_, Perhaps) => Perhaps,
            (At(l), At(r)) => {
                let shift = u32::from(distance) + r.width;
                intersect(&l, &r, shift, 0, shift + l.width)
            }
        },
        Op::And => match (left, right) {
            (Nowhere, _) | (_, Nowhere) => Nowhere,
            (Perhaps, _) | (_, Perhaps) => Perhaps,
            (At(l), At(r)) => {
                let width = l.width.max(r.width);
                intersect(&l, &r, width - l.width, width - r.width, width)
            }
        },
        Op::Or => match (left, right) {
            (Nowhere, Nowhere) => Nowhere,
            (Perhaps, _) | (_, Perhaps) => Perhaps,
            (At(l), At(r)) => {
                let width = l.width.max(r.width);
                unite(&l, &r, width - l.width, width - r.width, width)
            }
            (At(one), Nowhere) | (Nowhere, At(one)) => At(one),
        },
    }
}

/// What a node comes to: a truth outside of phrases, places inside.
enum Value {
    Truth(bool),
    Places(PhraseMatch),
}

/// Which nodes are inside of a phrase; the outermost phrase itself is not.
fn inside_phrases(query: &Query, starts: &[usize]) -> Vec<bool> {
    let mut inside = vec![false; query.nodes.len()];
    // Nodes from here up to the phrase that is being passed are inside of it.
    let mut from = query.nodes.len();
    for (i, node) in query.nodes.iter().enumerate().rev() {
        if i >= from {
            inside[i] = true;
        } else if matches!(node, Node::Op(Op::Phrase(_))) {
            from = starts[i];
        } else {
            from = query.nodes.len();
        }
    }
    inside
}

/// Does the text match?
pub fn matches(query: &Query, text: &dyn MatchTarget) -> bool {
    let starts = query.starts();
    let inside = inside_phrases(query, &starts);
    let mut stack: Vec<Value> = Vec::new();
    let truth = |stack: &mut Vec<Value>| match stack.pop() {
        Some(Value::Truth(truth)) => truth,
        _ => false,
    };
    let places = |stack: &mut Vec<Value>| match stack.pop() {
        Some(Value::Places(found)) => found,
        _ => PhraseMatch::Nowhere,
    };
    for (node, inside) in query.nodes.iter().zip(inside) {
        let value = match node {
            Node::Word(word) if inside => Value::Places(text.places(word)),
            Node::Word(word) => Value::Truth(text.has(word)),
            Node::Op(op @ Op::Phrase(_)) if !inside => {
                let right = places(&mut stack);
                let left = places(&mut stack);
                // If nobody can tell, that is a no.
                Value::Truth(matches!(phrase_node(*op, left, right), PhraseMatch::At(_)))
            }
            Node::Op(op) if inside => {
                let right = places(&mut stack);
                let left = match op {
                    Op::Not => PhraseMatch::Nowhere,
                    _ => places(&mut stack),
                };
                Value::Places(phrase_node(*op, left, right))
            }
            Node::Op(Op::Not) => Value::Truth(!truth(&mut stack)),
            Node::Op(op) => {
                let (right, left) = (truth(&mut stack), truth(&mut stack));
                Value::Truth(if *op == Op::And {
                    left && right
                } else {
                    left || right
                })
            }
        };
        stack.push(value);
    }
    truth(&mut stack)
}
