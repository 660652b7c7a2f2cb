//! tsquery: words joined by operators.
//!
//! Owns: [`Query`], its text form, its stored form, and what becomes of operators whose words are dropped. A query is a
//! list of nodes, operands before their operator, so nothing here recurses, however deep a query is.
//!
//! Like a tsvector it is kept as bytes whose order is PostgreSQL's order of queries: number of nodes, size in
//! PostgreSQL, then the nodes from the last to the first (each operator before its right and then its left operand):
//! `0xfd` for an operator, the complement of its number, its operands, and for a phrase the complement of the distance;
//! `0xfe` for a word, the complement of its checksum, its bytes and a zero byte. Weights and prefix marks follow at the
//! end, two bytes for each word, and four bytes that say how many words there are: queries that differ in nothing else
//! are equal ([`ordered`]).

use super::vector::{LEXEME_BYTES_MAX, PLACE_MAX, quote};
use crate::error::{Result, SqlError};
use crate::value::Datum;
use logstead_types::SqlState;
use std::sync::Arc;

/// The largest distance of a phrase operator.
pub const DISTANCE_MAX: u16 = PLACE_MAX + 1;
/// Bytes of all words of a query.
const BYTES_MAX: usize = (1 << 20) - 1;

/// A word of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The lexeme.
    pub text: String,
    /// A bit for each weight that will do (1 is D, 8 is A); 0 for any.
    pub weights: u8,
    /// Anything that begins so will do.
    pub prefix: bool,
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `!`
    Not,
    /// `&`
    And,
    /// `|`
    Or,
    /// The right operand stands so many places behind the left one.
    Phrase(u16),
}

impl Op {
    /// PostgreSQL's number.
    fn number(self) -> u8 {
        match self {
            Op::Not => 1,
            Op::And => 2,
            Op::Or => 3,
            Op::Phrase(_) => 4,
        }
    }

    fn of_number(number: u8) -> Option<Op> {
        Some(match number {
            1 => Op::Not,
            2 => Op::And,
            3 => Op::Or,
            4 => Op::Phrase(0),
            _ => return None,
        })
    }

    /// Higher binds tighter.
    pub fn priority(self) -> u8 {
        match self {
            Op::Or => 1,
            Op::And => 2,
            Op::Phrase(_) => 3,
            Op::Not => 4,
        }
    }

    /// How many it takes.
    pub fn operands(self) -> usize {
        if self == Op::Not { 1 } else { 2 }
    }
}

/// A node of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// An operand.
    Word(Word),
    /// What joins the operands before it.
    Op(Op),
}

/// A tsquery: its nodes, operands before their operator. None at all is the query that nothing matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Operands before their operator.
    pub nodes: Vec<Node>,
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a stored tsquery is damaged")
}

/// PostgreSQL's checksum of a word: CRC-32's table, run the other way round.
fn checksum(text: &str) -> u32 {
    let mut crc = u32::MAX;
    for &b in text.as_bytes() {
        let mut entry = (crc >> 24) ^ u32::from(b);
        for _ in 0..8 {
            entry = if entry & 1 == 1 {
                entry >> 1 ^ 0xedb8_8320
            } else {
                entry >> 1
            };
        }
        crc = entry ^ crc << 8;
    }
    !crc
}

/// What of a stored form counts when queries are compared: all but weights and prefix marks.
pub fn ordered(stored: &[u8]) -> &[u8] {
    let Some((head, words)) = stored.split_last_chunk::<4>() else {
        return stored;
    };
    let marks = 2 * u32::from_be_bytes(*words) as usize;
    head.len()
        .checked_sub(marks)
        .map_or(stored, |end| &head[..end])
}

fn distance_error() -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!(
            "distance in phrase operator must be an integer value between zero and {DISTANCE_MAX} inclusive"
        ),
    )
}

/// A phrase operator of a distance that somebody asks for.
pub fn phrase(distance: i64) -> Result<Op> {
    match u16::try_from(distance) {
        Ok(d) if d <= DISTANCE_MAX => Ok(Op::Phrase(d)),
        _ => Err(distance_error()),
    }
}

impl Query {
    /// Words, in the order they are written in.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        self.nodes.iter().filter_map(|n| match n {
            Node::Word(word) => Some(word),
            Node::Op(_) => None,
        })
    }

    /// Is it the query that nothing matches?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Two queries under one operator; an empty one gives way.
    pub fn join(mut self, right: Query, op: Op) -> Query {
        if right.is_empty() {
            return self;
        }
        if self.is_empty() {
            return right;
        }
        self.nodes.extend(right.nodes);
        self.nodes.push(Node::Op(op));
        self
    }

    /// What does not match.
    pub fn negated(mut self) -> Query {
        if !self.is_empty() {
            self.nodes.push(Node::Op(Op::Not));
        }
        self
    }

    /// Where the operands of the node at `end` begin: `(left, right)`; of a negation both are its operand's.
    pub fn starts(&self) -> Vec<usize> {
        let mut starts = Vec::with_capacity(self.nodes.len());
        let mut open: Vec<usize> = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let start = match node {
                Node::Word(_) => i,
                Node::Op(op) => {
                    let mut start = i;
                    for _ in 0..op.operands() {
                        start = open.pop().unwrap_or(start);
                    }
                    start
                }
            };
            open.push(start);
            starts.push(start);
        }
        starts
    }

    /// True if every operator has its operands and one node is left.
    fn is_whole(&self) -> bool {
        let mut open = 0usize;
        for node in &self.nodes {
            match node {
                Node::Word(_) => open += 1,
                Node::Op(op) if open < op.operands() => return false,
                Node::Op(op) => open = open + 1 - op.operands(),
            }
        }
        open == 1 || self.nodes.is_empty()
    }

    /// Reads a stored form.
    pub fn of_stored(b: &[u8]) -> Result<Query> {
        let (head, mut rest) = b.split_first_chunk::<8>().ok_or_else(damaged)?;
        let count = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if count > b.len() {
            return Err(damaged());
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(count);
        // Operators whose operands are being read: their places in `nodes`, and how many operands are still to come.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for _ in 0..count {
            let (&kind, tail) = rest.split_first().ok_or_else(damaged)?;
            match kind {
                0xfd => {
                    let (&number, tail) = tail.split_first().ok_or_else(damaged)?;
                    let op = Op::of_number(!number).ok_or_else(damaged)?;
                    open.push((nodes.len(), op.operands()));
                    nodes.push(Node::Op(op));
                    rest = tail;
                }
                0xfe => {
                    let tail = tail.get(4..).ok_or_else(damaged)?;
                    let end = tail.iter().position(|&c| c == 0).ok_or_else(damaged)?;
                    let text = std::str::from_utf8(&tail[..end]).map_err(|_| damaged())?;
                    nodes.push(Node::Word(Word {
                        text: text.to_owned(),
                        weights: 0,
                        prefix: false,
                    }));
                    rest = &tail[end + 1..];
                    while let Some((at, left)) = open.last_mut() {
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                        if let Some(Node::Op(Op::Phrase(distance))) = nodes.get_mut(*at) {
                            let (d, tail) = rest.split_first_chunk::<2>().ok_or_else(damaged)?;
                            *distance = !u16::from_be_bytes(*d);
                            rest = tail;
                        }
                        open.pop();
                    }
                }
                _ => return Err(damaged()),
            }
        }
        for node in &mut nodes {
            if let Node::Word(word) = node {
                let (marks, tail) = rest.split_first_chunk::<2>().ok_or_else(damaged)?;
                word.weights = marks[0];
                word.prefix = marks[1] != 0;
                rest = tail;
            }
        }
        nodes.reverse();
        let query = Query { nodes };
        let words = (query.words().count() as u32).to_be_bytes();
        if rest != words || !query.is_whole() {
            return Err(damaged());
        }
        Ok(query)
    }

    /// The query that a value holds.
    pub fn of_datum(d: &Datum) -> Result<Query> {
        Query::of_stored(d.as_tsquery()?)
    }

    /// The value; an error if it is larger than tsqueries may be.
    pub fn datum(&self) -> Result<Datum> {
        let area: usize = self.words().map(|w| w.text.len() + 1).sum();
        if area > BYTES_MAX || self.nodes.len() > BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "tsquery is too large",
            ));
        }
        let size = 8 + 12 * self.nodes.len() + area;
        let mut out = Vec::with_capacity(size);
        out.extend_from_slice(&(self.nodes.len() as u32).to_be_bytes());
        out.extend_from_slice(&(size as u32).to_be_bytes());
        let mut open: Vec<(Op, usize)> = Vec::new();
        for node in self.nodes.iter().rev() {
            match node {
                Node::Op(op) => {
                    out.extend_from_slice(&[0xfd, !op.number()]);
                    open.push((*op, op.operands()));
                }
                Node::Word(word) => {
                    out.push(0xfe);
                    let ordered = !(checksum(&word.text) ^ 1 << 31);
                    out.extend_from_slice(&ordered.to_be_bytes());
                    out.extend_from_slice(word.text.as_bytes());
                    out.push(0);
                    while let Some((op, left)) = open.last_mut() {
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                        if let Op::Phrase(distance) = op {
                            out.extend_from_slice(&(!*distance).to_be_bytes());
                        }
                        open.pop();
                    }
                }
            }
        }
        for node in self.nodes.iter().rev() {
            if let Node::Word(word) = node {
                out.extend_from_slice(&[word.weights, u8::from(word.prefix)]);
            }
        }
        out.extend_from_slice(&(self.words().count() as u32).to_be_bytes());
        Ok(Datum::TsQuery(Arc::from(out)))
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        // What has been written of each operand, and the operator on top of it.
        let mut parts: Vec<(Vec<u8>, Option<Op>)> = Vec::new();
        let wrap = |(mut text, top): (Vec<u8>, Option<Op>), op: Op, right: bool| {
            let phrases = matches!((op, top), (Op::Phrase(_), Some(Op::Phrase(_))));
            if top.is_some_and(|t| t.priority() < op.priority()) || (right && phrases) {
                text.splice(0..0, *b"( ");
                text.extend_from_slice(b" )");
            }
            text
        };
        for node in &self.nodes {
            match node {
                Node::Word(word) => {
                    let mut text = Vec::new();
                    write_word(word, &mut text);
                    parts.push((text, None));
                }
                Node::Op(Op::Not) => {
                    let mut text = wrap(parts.pop().unwrap_or_default(), Op::Not, false);
                    text.insert(0, b'!');
                    parts.push((text, Some(Op::Not)));
                }
                Node::Op(op) => {
                    let right = wrap(parts.pop().unwrap_or_default(), *op, true);
                    let mut text = wrap(parts.pop().unwrap_or_default(), *op, false);
                    match op {
                        Op::Or => text.extend_from_slice(b" | "),
                        Op::Phrase(1) => text.extend_from_slice(b" <-> "),
                        Op::Phrase(d) => text.extend_from_slice(format!(" <{d}> ").as_bytes()),
                        _ => text.extend_from_slice(b" & "),
                    }
                    text.extend_from_slice(&right);
                    parts.push((text, Some(*op)));
                }
            }
        }
        for (text, _) in parts {
            out.extend_from_slice(&text);
        }
    }

    /// What an index could look for: the query without what is negated. `None`: everything.
    pub fn positive(&self) -> Option<Query> {
        let mut parts: Vec<Option<Vec<Node>>> = Vec::new();
        for node in &self.nodes {
            let part = match node {
                Node::Word(_) => Some(vec![node.clone()]),
                Node::Op(Op::Not) => {
                    parts.pop();
                    None
                }
                Node::Op(op) => {
                    let right = parts.pop().flatten();
                    let left = parts.pop().flatten();
                    match (left, right) {
                        (Some(left), Some(right)) => Some(joined(left, right, *op)),
                        (left, right) if *op != Op::Or => left.or(right),
                        _ => None,
                    }
                }
            };
            parts.push(part);
        }
        let nodes = parts.pop().flatten()?;
        Some(Query { nodes })
    }
}

fn joined(mut left: Vec<Node>, right: Vec<Node>, op: Op) -> Vec<Node> {
    left.extend(right);
    left.push(Node::Op(op));
    left
}

fn write_word(word: &Word, out: &mut Vec<u8>) {
    quote(&word.text, out);
    if word.weights != 0 || word.prefix {
        out.push(b':');
        if word.prefix {
            out.push(b'*');
        }
        for (bit, letter) in [(8, b'A'), (4, b'B'), (2, b'C'), (1, b'D')] {
            if word.weights & bit != 0 {
                out.push(letter);
            }
        }
    }
}

/// A query as it is being read: with places of words that were dropped.
#[derive(Clone, Debug)]
pub enum QueryItem {
    /// What is kept.
    Node(Node),
    /// A word that was dropped, because it is in every text.
    StopWord,
}

/// Takes out what was dropped, and what has lost its operands. A phrase keeps its distances: what was dropped between
/// two words still stood there.
pub fn cleanup_stop_words(parts: Vec<QueryItem>) -> Query {
    /// A subquery, and how many places were dropped at either end of it.
    struct Cleaned {
        nodes: Option<Vec<Node>>,
        left: u32,
        right: u32,
    }
    let nothing = || Cleaned {
        nodes: None,
        left: 0,
        right: 0,
    };
    if !parts.iter().any(|p| matches!(p, QueryItem::StopWord)) {
        let nodes = parts.into_iter().filter_map(|p| match p {
            QueryItem::Node(node) => Some(node),
            QueryItem::StopWord => None,
        });
        return Query {
            nodes: nodes.collect(),
        };
    }
    let mut stack: Vec<Cleaned> = Vec::new();
    for part in parts {
        let cleaned = match part {
            QueryItem::StopWord => nothing(),
            QueryItem::Node(Node::Op(Op::Not)) => {
                let mut operand = stack.pop().unwrap_or_else(nothing);
                if let Some(nodes) = &mut operand.nodes {
                    nodes.push(Node::Op(Op::Not));
                }
                operand
            }
            QueryItem::Node(Node::Op(op)) => {
                let r = stack.pop().unwrap_or_else(nothing);
                let l = stack.pop().unwrap_or_else(nothing);
                let distance = match op {
                    Op::Phrase(d) => Some(u32::from(d)),
                    _ => None,
                };
                match (l.nodes, r.nodes, distance) {
                    (None, None, Some(d)) => Cleaned {
                        nodes: None,
                        left: l.left + d + r.left,
                        right: l.left + d + r.left,
                    },
                    (None, None, None) => Cleaned {
                        nodes: None,
                        left: l.left.max(r.left),
                        right: l.left.max(r.left),
                    },
                    (None, nodes, Some(d)) => Cleaned {
                        nodes,
                        left: l.left + d + r.left,
                        right: r.right,
                    },
                    (None, nodes, None) => Cleaned {
                        nodes,
                        left: r.left,
                        right: r.right,
                    },
                    (nodes, None, Some(d)) => Cleaned {
                        nodes,
                        left: l.left,
                        right: l.right + d + r.right,
                    },
                    (nodes, None, None) => Cleaned {
                        nodes,
                        left: l.left,
                        right: l.right,
                    },
                    (Some(left), Some(right), Some(d)) => {
                        let d = (d + l.right + r.left).min(u32::from(u16::MAX));
                        Cleaned {
                            nodes: Some(joined(left, right, Op::Phrase(d as u16))),
                            left: l.left,
                            right: r.right,
                        }
                    }
                    (Some(left), Some(right), None) => Cleaned {
                        nodes: Some(joined(left, right, op)),
                        left: 0,
                        right: 0,
                    },
                }
            }
            QueryItem::Node(word) => Cleaned {
                nodes: Some(vec![word]),
                left: 0,
                right: 0,
            },
        };
        stack.push(cleaned);
    }
    let nodes = stack.pop().and_then(|c| c.nodes).unwrap_or_default();
    Query { nodes }
}

/// Reads the binary form.
pub fn receive(b: &[u8]) -> Result<Datum> {
    let short = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let wrong = |m: &str| SqlError::new(SqlState::INTERNAL_ERROR, format!("invalid tsquery: {m}"));
    let (head, mut rest) = b.split_first_chunk::<4>().ok_or_else(short)?;
    let count = u32::from_be_bytes(*head) as usize;
    if count > b.len() {
        return Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            "invalid size of tsquery",
        ));
    }
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        let (&kind, tail) = rest.split_first().ok_or_else(short)?;
        let node = match kind {
            1 => {
                let (marks, tail) = tail.split_first_chunk::<2>().ok_or_else(short)?;
                let end = tail.iter().position(|&c| c == 0).ok_or_else(short)?;
                let text = crate::value::binary_io::text(&tail[..end])?;
                rest = &tail[end + 1..];
                if marks[0] > 0xf {
                    return Err(wrong("invalid weight bitmap"));
                }
                if text.len() > LEXEME_BYTES_MAX {
                    return Err(wrong("operand too long"));
                }
                Node::Word(Word {
                    text: text.to_owned(),
                    weights: marks[0],
                    prefix: marks[1] != 0,
                })
            }
            2 => {
                let (&number, tail) = tail.split_first().ok_or_else(short)?;
                rest = tail;
                let mut op = Op::of_number(number).ok_or_else(|| {
                    SqlError::new(
                        SqlState::INTERNAL_ERROR,
                        format!("unrecognized operator type: {number}"),
                    )
                })?;
                if let Op::Phrase(distance) = &mut op {
                    let (d, tail) = rest.split_first_chunk::<2>().ok_or_else(short)?;
                    *distance = u16::from_be_bytes(*d);
                    rest = tail;
                }
                Node::Op(op)
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::INTERNAL_ERROR,
                    format!("unrecognized tsquery node type: {kind}"),
                ));
            }
        };
        nodes.push(node);
    }
    nodes.reverse();
    let query = Query { nodes };
    if !query.is_whole() {
        return Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            "malformed tsquery: operand not found",
        ));
    }
    if !rest.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "incorrect binary data format",
        ));
    }
    query.datum()
}

/// Appends the binary form.
pub fn send(stored: &[u8], out: &mut Vec<u8>) {
    let query = Query::of_stored(stored).unwrap_or_default();
    out.extend_from_slice(&(query.nodes.len() as u32).to_be_bytes());
    for node in query.nodes.iter().rev() {
        match node {
            Node::Word(word) => {
                out.extend_from_slice(&[1, word.weights, u8::from(word.prefix)]);
                out.extend_from_slice(word.text.as_bytes());
                out.push(0);
            }
            Node::Op(op) => {
                out.extend_from_slice(&[2, op.number()]);
                if let Op::Phrase(distance) = op {
                    out.extend_from_slice(&distance.to_be_bytes());
                }
            }
        }
    }
}

/// Appends the text form of a stored one. A damaged one, which only a damaged page can hold, is shown as that.
pub fn output(stored: &[u8], out: &mut Vec<u8>) {
    match Query::of_stored(stored) {
        Ok(query) => query.write(out),
        Err(_) => out.extend_from_slice(b"(damaged)"),
    }
}
