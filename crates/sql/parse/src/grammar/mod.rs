//! PostgreSQL's grammar (`gram.y`): from tokens to the tree of [`ast`](crate::ast).
//!
//! # How a statement is read
//!
//! By recursive descent over tokens that are all there ([`lexer`](crate::lexer)). A function reads a rule of `gram.y`
//! and has its name, or the name is beside it. The first words of a statement decide which function reads it
//! (`statement`). Where PostgreSQL's generated parser keeps several rules open until a later token decides, a
//! function looks ahead, or reads what the rules have in common and decides then. Nothing is read twice: what stands
//! in parentheses is a query, an expression or a row by what follows it (`Parser::in_parentheses`), and what is in
//! parentheses in FROM likewise.
//!
//! # Precedence
//!
//! `expr` climbs by PostgreSQL's table of precedence. An operand is read for the operator on its left: an operator
//! that binds tighter belongs to the operand, one that binds less ends it, and one of the same level ends it, or is
//! an error if that level has no associativity (`a = b = c`). `b_expr` is the same without the operators that may
//! stand behind one.
//!
//! # Depth
//!
//! Chains (`a + b + c`, UNION, JOIN, AND) are read in loops, so they may be of any length. What nests is read by
//! functions that call themselves. Each such step (`Parser::nested`) counts; every few steps go on in a new segment
//! of stack, and more than [`DEPTH_MAX`] of them are refused with 54001. PostgreSQL's parser has about as many (its
//! `YYMAXDEPTH`), and its other limits come earlier. The same steps measure the tree's height ([`RawStmt::levels`]),
//! with which whoever walks the tree asks for stack.
//!
//! # Errors and positions
//!
//! A syntax error is told at the first token that no statement could go on with, as PostgreSQL tells it: nothing is
//! decided by a token that has not been looked at. What `gram.y` refuses in its actions is refused here in the
//! function of the rule, with its message, its code and its position. An error of the lexer is told when the grammar
//! comes to where it is. Positions are bytes in the tree and characters in errors.

#![allow(
    clippy::wrong_self_convention,
    reason = "the rules of gram.y give the functions their names"
)]

mod access;
mod alter;
mod alter_table;
mod as_of;
mod constraint;
mod copy;
mod create;
mod create_table;
mod cursor;
mod define;
mod dml;
mod expr;
mod foreign;
mod from;
mod function;
mod grant;
mod names;
mod object;
mod operator_class;
mod operators;
mod parentheses;
mod primary;
mod routine;
mod select;
mod settings;
mod special_function;
mod statement;
mod text_search;
mod trigger;
mod types;
mod utility;
mod window;
mod xml;

use crate::ast::{Expr, Location, Name, RawStmt, TextRange, TypeName};
use crate::lexer::{Keyword, Lexer, LexerOptions, Token, TokenKind, Tokens, TruncatedName, near};
use logstead_fiber::with_stack;
use logstead_sql_types::error::{Result, SqlError, too_deep};
use logstead_types::SqlState;

/// A condition, if there is one, and where it is in its parentheses.
type Condition = (Option<Expr>, TextRange);

/// Steps of nesting that a statement may have.
pub const DEPTH_MAX: u32 = 12_000;
/// Steps that go on one segment of stack.
const SEGMENT_STEPS: u32 = 32;
/// Stack for so many steps, where nothing is optimized.
const SEGMENT_BYTES: usize = 2 << 20;

/// Reads the statements of a text that a client has sent. Empty statements vanish.
pub fn parse(text: &str) -> Result<Vec<RawStmt>> {
    parse_with(text, LexerOptions::default())
}

/// The same with settings that change what a text means.
pub fn parse_with(text: &str, options: LexerOptions) -> Result<Vec<RawStmt>> {
    Parser::new(Lexer::client(text, options)).statements()
}

/// Reads the statements of a text that the catalog keeps, where names may be references by number.
pub fn parse_stored(text: &str) -> Result<Vec<RawStmt>> {
    Parser::of_stored(text).statements()
}

/// Reads an expression that stands alone, of a client's text.
pub fn parse_expr(text: &str) -> Result<Expr> {
    Parser::new(Lexer::client(text, LexerOptions::default())).alone(Parser::a_expr)
}

/// Reads an expression that the catalog keeps.
pub fn parse_stored_expr(text: &str) -> Result<Expr> {
    Parser::of_stored(text).alone(Parser::a_expr)
}

/// The same with the levels of its tree.
pub(crate) fn parse_stored_expr_of_levels(text: &str) -> Result<(Expr, usize)> {
    Parser::of_stored(text).alone(|parser| {
        let expr = parser.a_expr()?;
        Ok((expr, parser.levels as usize))
    })
}

/// Reads the name of a type that stands alone (`MODE_TYPE_NAME`).
pub fn parse_type_name(text: &str) -> Result<TypeName> {
    Parser::new(Lexer::client(text, LexerOptions::default())).alone(Parser::type_name)
}

/// Reads the name of a type that the catalog keeps.
pub fn parse_stored_type_name(text: &str) -> Result<TypeName> {
    Parser::of_stored(text).alone(Parser::type_name)
}

/// Reads tokens.
#[derive(Debug)]
struct Parser<'a> {
    tokens: Tokens<'a>,
    /// Index of the next token.
    at: usize,
    /// Steps of nesting that are open.
    depth: u32,
    /// Height of what has been read since the last step began.
    levels: u32,
    /// Operands of the longest AND or OR of the statement.
    conjuncts: usize,
    /// Names may be references by number.
    is_stored: bool,
    as_of: as_of::AsOfContext,
}

impl<'a> Parser<'a> {
    fn new(tokens: Tokens<'a>) -> Parser<'a> {
        Parser {
            tokens,
            at: 0,
            depth: 0,
            levels: 0,
            conjuncts: 0,
            is_stored: false,
            as_of: as_of::AsOfContext::default(),
        }
    }

    fn of_stored(text: &'a str) -> Parser<'a> {
        Parser {
            is_stored: true,
            ..Parser::new(Lexer::stored(text))
        }
    }

    /// `stmtmulti`
    fn statements(mut self) -> Result<Vec<RawStmt>> {
        let mut statements = Vec::with_capacity(1);
        // Each statement takes those in front of its end: a text of many statements has many.
        let mut truncated = std::mem::take(&mut self.tokens.truncated)
            .into_iter()
            .peekable();
        loop {
            while self.take_token(TokenKind::Semicolon) {}
            if self.at(TokenKind::End) {
                return Ok(statements);
            }
            let start = self.token().start as usize;
            self.levels = 0;
            self.conjuncts = 0;
            let first = self.at;
            self.as_of = as_of::AsOfContext::default();
            let stmt = self.toplevel_stmt().and_then(|stmt| {
                if !self.at(TokenKind::Semicolon) && !self.at(TokenKind::End) {
                    self.refuse_as_of()?;
                    return self.unexpected();
                }
                Ok(stmt)
            });
            let stmt = stmt.map_err(|error| self.unless_time(error, first))?;
            let end = self.last_end();
            let here = |name: &TruncatedName| (name.start as usize) < end;
            statements.push(RawStmt {
                stmt,
                start,
                end,
                levels: self.levels as usize,
                conjuncts: self.conjuncts,
                truncated: std::iter::from_fn(|| truncated.next_if(here)).collect(),
            });
        }
    }

    /// Reads the whole text by one rule.
    fn alone<T>(mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let read = rule(&mut self)?;
        match self.at(TokenKind::End) {
            true => Ok(read),
            false => self.unexpected(),
        }
    }

    /// A step of nesting.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let around = std::mem::replace(&mut self.levels, 0);
        let read = match self.depth % SEGMENT_STEPS {
            0 => with_stack(SEGMENT_BYTES, || rule(self)).unwrap_or_else(|_| Err(too_deep())),
            _ => rule(self),
        };
        self.depth -= 1;
        self.levels = around.max(self.levels + 1);
        read
    }

    #[cold]
    fn too_deep(&self) -> SqlError {
        too_deep().at(self.here().character(self.tokens.text))
    }

    /// A node stands on top of what has been read in this step.
    #[inline]
    fn one_level_more(&mut self) {
        self.levels += 1;
    }

    // Tokens.

    /// The next token. There always is one: the last one ends the text and is never passed.
    #[inline]
    fn token(&self) -> Token {
        self.token_at(0)
    }

    /// The token so far ahead.
    #[inline]
    fn token_at(&self, ahead: usize) -> Token {
        let tokens = &self.tokens.tokens;
        let at = (self.at + ahead).min(tokens.len() - 1);
        tokens[at]
    }

    #[inline]
    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    #[inline]
    fn kind_at(&self, ahead: usize) -> TokenKind {
        self.token_at(ahead).kind
    }

    /// Is the next token this one?
    #[inline]
    fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    /// Is the next token this keyword?
    #[inline]
    fn is(&self, keyword: Keyword) -> bool {
        self.kind() == TokenKind::Keyword(keyword)
    }

    /// Is the token so far ahead this keyword?
    #[inline]
    fn is_at(&self, ahead: usize, keyword: Keyword) -> bool {
        self.kind_at(ahead) == TokenKind::Keyword(keyword)
    }

    /// Are the next tokens these keywords?
    fn are(&self, keywords: &[Keyword]) -> bool {
        let mut all = keywords.iter().enumerate();
        all.all(|(ahead, keyword)| self.is_at(ahead, *keyword))
    }

    /// Is the next token one of these keywords?
    fn is_any(&self, keywords: &[Keyword]) -> bool {
        matches!(self.kind(), TokenKind::Keyword(next) if keywords.contains(&next))
    }

    #[inline]
    fn pass(&mut self) -> Token {
        let token = self.token();
        if self.at + 1 < self.tokens.tokens.len() {
            self.at += 1;
        }
        token
    }

    /// Passes so many tokens, which have been looked at.
    fn pass_all(&mut self, count: usize) {
        for _ in 0..count {
            self.pass();
        }
    }

    /// Passes the token if it is the next one.
    #[inline]
    fn take_token(&mut self, kind: TokenKind) -> bool {
        let is_next = self.at(kind);
        if is_next {
            self.pass();
        }
        is_next
    }

    /// Passes the keyword if it is the next token.
    #[inline]
    fn take(&mut self, keyword: Keyword) -> bool {
        self.take_token(TokenKind::Keyword(keyword))
    }

    /// Passes the keywords if they are the next tokens.
    fn take_all(&mut self, keywords: &[Keyword]) -> bool {
        let are_next = self.are(keywords);
        if are_next {
            self.pass_all(keywords.len());
        }
        are_next
    }

    #[inline]
    fn expect_token(&mut self, kind: TokenKind) -> Result<Token> {
        match self.at(kind) {
            true => Ok(self.pass()),
            false => self.unexpected(),
        }
    }

    #[inline]
    fn expect(&mut self, keyword: Keyword) -> Result<()> {
        self.expect_token(TokenKind::Keyword(keyword)).map(drop)
    }

    fn expect_all(&mut self, keywords: &[Keyword]) -> Result<()> {
        keywords
            .iter()
            .try_for_each(|keyword| self.expect(*keyword))
    }

    /// Where the next token is.
    #[inline]
    fn here(&self) -> Location {
        Location::at(self.token().start)
    }

    /// Where the last token ends that was passed.
    fn last_end(&self) -> usize {
        let last = self
            .at
            .checked_sub(1)
            .and_then(|at| self.tokens.tokens.get(at));
        last.map_or(0, |token| token.end as usize)
    }

    /// The text from `start` to the end of the last token that was passed.
    fn range_from(&self, start: Location) -> TextRange {
        let end = u32::try_from(self.last_end());
        TextRange {
            start,
            end: end.map_or(Location::UNKNOWN, Location::at),
        }
    }

    /// A condition in parentheses, if its word was said.
    fn opt_condition(&mut self, is_said: bool) -> Result<Condition> {
        if !is_said {
            return Ok(Condition::default());
        }
        self.parens(|parser| {
            let start = parser.here();
            let expr = parser.a_expr()?;
            Ok((Some(expr), parser.range_from(start)))
        })
    }

    /// What a token says.
    #[inline]
    fn name_of(&self, token: Token) -> Name {
        self.tokens.value(token).into()
    }

    /// Several, with commas between them.
    fn list<T>(&mut self, mut rule: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![rule(self)?];
        while self.take_token(TokenKind::Comma) {
            all.push(rule(self)?);
        }
        Ok(all)
    }

    /// What stands in parentheses.
    fn parens<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.expect_token(TokenKind::LParen)?;
        let inside = rule(self)?;
        self.expect_token(TokenKind::RParen)?;
        Ok(inside)
    }

    // Errors.

    /// The next token is wrong.
    #[cold]
    fn unexpected<T>(&self) -> Result<T> {
        self.wrong_here("syntax error")
    }

    /// `message at or near` the next token (`parser_yyerror`).
    #[cold]
    fn wrong_here<T>(&self, message: &str) -> Result<T> {
        if let (TokenKind::Error, Some(error)) = (self.kind(), &self.tokens.error) {
            return Err(error.clone());
        }
        let token = self.token();
        let (start, end) = (token.start as usize, token.end as usize);
        Err(near(self.tokens.text, message, start, end))
    }

    /// An error of an action of the grammar, at a place.
    #[cold]
    fn error(&self, code: SqlState, message: impl Into<String>, location: Location) -> SqlError {
        SqlError::new(code, message).at(location.character(self.tokens.text))
    }

    /// 42601 at a place.
    #[cold]
    fn syntax_error(&self, message: impl Into<String>, location: Location) -> SqlError {
        self.error(SqlState::SYNTAX_ERROR, message, location)
    }

    /// 0A000 at a place.
    #[cold]
    fn unsupported(&self, message: impl Into<String>, location: Location) -> SqlError {
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location)
    }
}
