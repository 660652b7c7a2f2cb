//! Reading the text forms of queries: with operators, or as people type into a search field.
//!
//! Owns: [`parse`], [`parse_web`] and [`input`]. Operators wait on a list until their operands have been read, so
//! nothing recurses.

use super::query::{Node, Op, QueryItem, Word, cleanup_stop_words, phrase};
use super::token::{Mode, Tokens, is_operator, is_space};
use super::vector::LEXEME_BYTES_MAX;
use crate::error::{Result, SqlError};
use crate::value::Datum;
use logstead_types::SqlState;

/// Parentheses and negations inside each other.
const NESTING_MAX: usize = 4000;

/// An operator or parenthesis that waits for its operands.
enum StackEntry {
    Op(Op),
    Open,
}

/// Puts the operators of a text behind their operands.
struct OperatorStack {
    parts: Vec<QueryItem>,
    waiting: Vec<StackEntry>,
}

impl OperatorStack {
    fn new() -> OperatorStack {
        OperatorStack {
            parts: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn op(&mut self, op: Op) -> Result<()> {
        if op != Op::Not {
            while let Some(StackEntry::Op(before)) = self.waiting.last() {
                if before.priority() < op.priority() {
                    break;
                }
                let before = *before;
                self.waiting.pop();
                self.parts.push(QueryItem::Node(Node::Op(before)));
            }
        }
        self.waits(StackEntry::Op(op))
    }

    fn waits(&mut self, waiting: StackEntry) -> Result<()> {
        if self.waiting.len() >= NESTING_MAX {
            return Err(crate::error::too_deep());
        }
        self.waiting.push(waiting);
        Ok(())
    }

    /// Ends an open parenthesis; false if there is none.
    fn close(&mut self) -> bool {
        while let Some(waiting) = self.waiting.pop() {
            match waiting {
                StackEntry::Op(op) => self.parts.push(QueryItem::Node(Node::Op(op))),
                StackEntry::Open => return true,
            }
        }
        false
    }
}

/// Turns a word of a query's text, with its weights and prefix mark, into operands of the query, as PostgreSQL's
/// `PushFunction` does.
pub trait PushOperand {
    /// A word with its weights; `prefix`: anything that begins so will do.
    fn word(
        &mut self,
        text: &str,
        weights: u8,
        prefix: bool,
        out: &mut Vec<QueryItem>,
    ) -> Result<()>;
}

/// Words are taken as they are.
pub struct PushAsIs;

impl PushOperand for PushAsIs {
    fn word(
        &mut self,
        text: &str,
        weights: u8,
        prefix: bool,
        out: &mut Vec<QueryItem>,
    ) -> Result<()> {
        out.push(QueryItem::Node(Node::Word(Word {
            text: text.to_owned(),
            weights,
            prefix,
        })));
        Ok(())
    }
}

/// A word that is longer than a query's may be.
pub fn check_word(text: &str, all: &str) -> Result<()> {
    if text.len() >= LEXEME_BYTES_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("word is too long in tsquery: \"{all}\""),
        ));
    }
    Ok(())
}

/// Reads the text form of a query.
pub fn parse(text: &str, words: &mut dyn PushOperand) -> Result<Vec<QueryItem>> {
    let mut tokens = Tokens::new(text, Mode::Query);
    let mut order = OperatorStack::new();
    let mut first = true;
    let mut open = 0usize;
    loop {
        // An operand.
        while tokens.peek().is_some_and(is_space) {
            tokens.step();
        }
        match tokens.peek() {
            Some('!') => {
                tokens.step();
                order.op(Op::Not)?;
                first = false;
                continue;
            }
            Some('(') => {
                tokens.step();
                order.waits(StackEntry::Open)?;
                open += 1;
                first = false;
                continue;
            }
            Some(':') => return Err(tokens.syntax()),
            _ => {}
        }
        let Some(token) = tokens.next()? else {
            if first {
                return Ok(Vec::new());
            }
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("no operand in tsquery: \"{text}\""),
            ));
        };
        first = false;
        let (weights, prefix) = modifiers(&mut tokens);
        words.word(&token.text, weights, prefix, &mut order.parts)?;
        // An operator.
        loop {
            while tokens.peek().is_some_and(is_space) {
                tokens.step();
            }
            match tokens.peek() {
                Some('&') => {
                    tokens.step();
                    order.op(Op::And)?;
                    break;
                }
                Some('|') => {
                    tokens.step();
                    order.op(Op::Or)?;
                    break;
                }
                Some('<') => {
                    let op = phrase_operator(&mut tokens)?;
                    order.op(op)?;
                    break;
                }
                Some(')') if open > 0 => {
                    tokens.step();
                    open -= 1;
                    if !order.close() {
                        return Err(tokens.syntax());
                    }
                }
                None if open == 0 => {
                    order.close();
                    return Ok(order.parts);
                }
                _ => return Err(tokens.syntax()),
            }
        }
    }
}

/// `:*AB` behind a word.
fn modifiers(tokens: &mut Tokens<'_>) -> (u8, bool) {
    let (mut weights, mut prefix) = (0, false);
    if tokens.peek() != Some(':') {
        return (weights, prefix);
    }
    tokens.step();
    loop {
        match tokens.peek() {
            Some('a' | 'A') => weights |= 8,
            Some('b' | 'B') => weights |= 4,
            Some('c' | 'C') => weights |= 2,
            Some('d' | 'D') => weights |= 1,
            Some('*') => prefix = true,
            _ => return (weights, prefix),
        }
        tokens.step();
    }
}

/// `<->` or `<N>`.
fn phrase_operator(tokens: &mut Tokens<'_>) -> Result<Op> {
    tokens.step();
    let mut distance: i64 = 1;
    match tokens.peek() {
        Some('-') => {
            tokens.step();
        }
        Some(c) if c.is_ascii_digit() => {
            distance = 0;
            while let Some(d) = tokens.peek().and_then(|c| c.to_digit(10)) {
                distance = (distance * 10 + i64::from(d)).min(1 << 40);
                tokens.step();
            }
        }
        _ => return Err(tokens.syntax()),
    }
    // The distance is checked before the end of the operator.
    let op = phrase(distance)?;
    // Nor may it end the text.
    if tokens.step() != Some('>') || tokens.peek().is_none() {
        return Err(tokens.syntax());
    }
    Ok(op)
}

/// Reads what people type into a search field: nothing in it is an error.
pub fn parse_web(text: &str, words: &mut dyn PushOperand) -> Result<Vec<QueryItem>> {
    let mut tokens = Tokens::new(text, Mode::Web);
    let mut order = OperatorStack::new();
    let mut first = true;
    loop {
        // An operand.
        match tokens.peek() {
            Some('-') => {
                tokens.step();
                order.op(Op::Not)?;
                first = false;
                continue;
            }
            Some('"') => {
                tokens.step();
                let rest = &text[tokens.at..];
                let quoted = rest.split('"').next().unwrap_or(rest);
                tokens.at += quoted.len();
                tokens.step();
                words.word(quoted, 0, false, &mut order.parts)?;
                first = false;
            }
            Some(c) if is_operator(c) => {
                tokens.step();
                first = false;
                continue;
            }
            Some(c) if is_space(c) => {
                tokens.step();
                continue;
            }
            _ => match tokens.next()? {
                Some(token) => {
                    words.word(&token.text, 0, false, &mut order.parts)?;
                    first = false;
                }
                None => {
                    if !first {
                        order.parts.push(QueryItem::StopWord);
                        order.close();
                    }
                    return Ok(order.parts);
                }
            },
        }
        // An operator; those of queries mean nothing.
        while tokens.peek().is_some_and(|c| is_space(c) || is_operator(c)) {
            tokens.step();
        }
        if tokens.peek().is_none() {
            order.close();
            return Ok(order.parts);
        }
        if says_or(&text[tokens.at..]) {
            tokens.at += 2;
            order.op(Op::Or)?;
        } else {
            order.op(Op::And)?;
        }
    }
}

/// `or` as a word of its own, with something behind it.
fn says_or(rest: &str) -> bool {
    let Some(word) = rest.get(..2) else {
        return false;
    };
    if !word.eq_ignore_ascii_case("or") {
        return false;
    }
    let mut behind = rest[2..].chars();
    match behind.next() {
        None | Some('-' | '_') => return false,
        Some(c) if c.is_alphabetic() || c.is_ascii_digit() => return false,
        Some(_) => {}
    }
    behind.any(|c| !is_space(c))
}

/// Reads the text form of a value.
pub fn input(text: &str) -> Result<Datum> {
    struct CheckedPush<'a>(&'a str);
    impl PushOperand for CheckedPush<'_> {
        fn word(
            &mut self,
            text: &str,
            weights: u8,
            prefix: bool,
            out: &mut Vec<QueryItem>,
        ) -> Result<()> {
            check_word(text, self.0)?;
            PushAsIs.word(text, weights, prefix, out)
        }
    }
    cleanup_stop_words(parse(text, &mut CheckedPush(text))?).datum()
}
