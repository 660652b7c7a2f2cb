//! How deep a statement's tree may be, and on how much stack it is handled.
//!
//! PostgreSQL counts the bytes of stack that it uses (`max_stack_depth`) and takes chains of thousands of operators. Here the depth of a tree is bounded from its
//! tokens, before there is a tree: it is made, bound, planned and dropped by functions that call themselves, most of which the compiler has written. A statement
//! whose depth is no more than [`SHALLOW`] is handled on a session's ordinary stack. A deeper query gets as much as it needs, on a segment that continues the
//! stack ([`logstead_fiber::with_stack`]). What is kept (a view, a condition of CHECK) is never deep: it is read at places that have ordinary stacks.
//!
//! Invariant: whatever the text, nothing overflows a stack. 54001 instead.

use super::position_of;
use logstead_fiber::{NoStack, with_stack};
use logstead_sql_types::error::Result;
use logstead_sql_types::error::too_deep;
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// Levels that any stack has room for.
pub(super) const SHALLOW: usize = 500;
/// The same of chains in parentheses of chains, together.
const SHALLOW_IN_ALL: usize = 4 * SHALLOW;
/// Levels of a query's tree, about as many as PostgreSQL has with the usual `max_stack_depth`.
const LEVELS_MAX: usize = 10_000;
/// Nesting of what is kept: parentheses, subqueries and prefix operators.
pub(super) const NESTING_MAX: usize = 200;
/// AND / OR in a row at one level (flattened when bound).
const CONJUNCTIONS_MAX: usize = 10_000;
/// Stack for a level: what binding one takes at most, where nothing is optimized.
const LEVEL_BYTES: usize = 32 << 10;
/// Stack for the deepest plans.
const PLAN_STACK_BYTES: usize = 256 << 20;
/// What a subquery adds beside its parentheses: its parts are bound by more functions.
const QUERY_LEVELS: usize = 3;

/// The depth of a statement's tree, or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    /// All.
    pub(super) levels: usize,
    /// Is there more in it than what is kept may have?
    pub(super) deep: bool,
}

impl Depth {
    /// Stack for the statement; 0 if any has it.
    pub(super) fn stack_bytes(self) -> usize {
        match self.deep {
            true => (self.levels + SHALLOW) * LEVEL_BYTES,
            false => 0,
        }
    }

    /// For the parser, which counts several for one.
    pub(super) fn recursion_limit(self) -> usize {
        match self.deep {
            true => NESTING_MAX + 4 * self.levels,
            false => NESTING_MAX,
        }
    }
}

/// Runs what handles a deep tree. 54001 if the system has no memory for the stack.
pub fn on_enough_stack<T>(bytes: usize, run: impl FnOnce() -> Result<T>) -> Result<T> {
    match bytes {
        0 => run(),
        _ => with_stack(bytes, run).unwrap_or_else(|NoStack| Err(too_deep())),
    }
}

/// Plans a statement whose tree takes so much stack. What comes of the tree may be deeper than it is: views and WITH in each other become one plan. If
/// that does not fit, it is planned once more, with as much stack as any plan may take.
pub fn planned_on_enough_stack<T>(tree_bytes: usize, plan: impl Fn() -> Result<T>) -> Result<T> {
    let planned = on_enough_stack(tree_bytes, &plan);
    match &planned {
        Err(error)
            if error.code() == SqlState::STATEMENT_TOO_COMPLEX && tree_bytes < PLAN_STACK_BYTES =>
        {
            on_enough_stack(PLAN_STACK_BYTES, plan)
        }
        _ => planned,
    }
}

/// A statement's tree.
#[derive(Debug)]
pub struct Tree {
    statement: ast::Statement,
    /// See [`Depth::stack_bytes`].
    stack_bytes: usize,
}

impl Tree {
    pub(super) fn new(statement: ast::Statement, depth: Depth) -> Tree {
        Tree {
            statement,
            stack_bytes: depth.stack_bytes(),
        }
    }

    /// Stack that is needed by whoever goes through all of it; 0 if any has it.
    pub fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    /// A part of a tree: a query that is explained, or prepared.
    pub fn part(&self, statement: &ast::Statement) -> Result<Tree> {
        let stack_bytes = self.stack_bytes;
        on_enough_stack(stack_bytes, || {
            Ok(Tree {
                statement: statement.clone(),
                stack_bytes,
            })
        })
    }

    /// The statement, of a tree that is not deep.
    pub fn into_statement(tree: std::sync::Arc<Tree>) -> ast::Statement {
        (**tree).clone()
    }
}

impl From<ast::Statement> for Tree {
    /// A tree that is not deep.
    fn from(statement: ast::Statement) -> Tree {
        Tree::new(statement, Depth::default())
    }
}

impl Deref for Tree {
    type Target = ast::Statement;

    fn deref(&self) -> &ast::Statement {
        &self.statement
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        drop_deep(
            &mut self.statement,
            ast::Statement::UnlockTables,
            self.stack_bytes,
        );
    }
}

/// Drops what may be deep, on a stack that is long enough, and leaves `nothing` in its place. If the system has no memory for one, what is to be dropped
/// stays: better than the process's end.
pub fn drop_deep<T>(value: &mut T, nothing: T, stack_bytes: usize) {
    let value = std::mem::replace(value, nothing);
    if stack_bytes == 0 {
        return;
    }
    let mut value = ManuallyDrop::new(Some(value));
    let _no_memory = with_stack(stack_bytes, || drop(value.take()));
}

/// Refuses what would make a tree too deep to walk.
pub(super) fn depth_of(text: &str, tokens: &[TokenWithSpan]) -> Result<Depth> {
    #[derive(Default, Clone, Copy)]
    struct Level {
        operators: usize,
        conjunctions: usize,
        set_operations: usize,
        /// Of what stands beside: the deepest of it.
        beside: usize,
        /// In parentheses of what stands here, the deepest.
        inside: usize,
        /// Begins with SELECT.
        query: bool,
        /// Between CASE and END, not between parentheses.
        case: bool,
    }
    impl Level {
        fn here(&self) -> usize {
            self.operators + self.inside
        }

        /// The next expression begins.
        fn next(&mut self) {
            self.beside = self.beside.max(self.here());
            self.operators = 0;
            self.conjunctions = 0;
            self.inside = 0;
        }

        fn levels(&self) -> usize {
            let query = if self.query { QUERY_LEVELS } else { 0 };
            1 + query + self.set_operations + self.beside.max(self.here())
        }
    }
    /// Ends the innermost level.
    fn pop(levels: &mut Vec<Level>) -> Option<Level> {
        if levels.len() < 2 {
            return None;
        }
        let level = levels.pop()?;
        if let Some(around) = levels.last_mut() {
            around.inside = around.inside.max(level.levels());
        }
        Some(level)
    }
    let mut levels = vec![Level::default()];
    let mut prefixes = 0;
    let mut depth = Depth::default();
    for token in tokens {
        prefixes = if is_prefix(&token.token) {
            prefixes + 1
        } else {
            0
        };
        let nesting = levels.len();
        let Some(level) = levels.last_mut() else {
            break;
        };
        match &token.token {
            Token::LParen | Token::LBracket => levels.push(Level::default()),
            // A CASE that has no END is a name.
            Token::RParen | Token::RBracket => {
                while pop(&mut levels).is_some_and(|level| level.case) {}
            }
            Token::Comma => level.next(),
            Token::Word(word) if word.quote_style.is_none() => {
                let is = |any: &[&str]| any.iter().any(|w| word.value.eq_ignore_ascii_case(w));
                if is(&["case"]) {
                    levels.push(Level {
                        case: true,
                        ..Level::default()
                    });
                } else if level.case && is(&["end"]) {
                    pop(&mut levels);
                } else if level.case && is(&["when", "then", "else"]) {
                    level.next();
                } else if is(&["and", "or"]) {
                    let conjunctions = level.conjunctions + 1;
                    level.next();
                    level.conjunctions = conjunctions;
                } else if is(&["union", "except", "intersect"]) {
                    level.set_operations += 1;
                    level.next();
                } else if is(&["select", "from", "where", "on"]) {
                    level.query |= is(&["select"]);
                    level.next();
                } else if is(&[
                    "is", "not", "collate", "at", "like", "isnull", "notnull", "in", "between",
                    "ilike", "similar", "operator", "overlaps", "join", "exists",
                ]) {
                    level.operators += 1;
                }
            }
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::EOF => {}
            _ => level.operators += 1,
        }
        let Some(level) = levels.last() else { break };
        let chain = level.operators.max(level.set_operations);
        depth.deep |= chain > SHALLOW || nesting > NESTING_MAX || prefixes > NESTING_MAX / 2;
        // A level that is open is at least as deep as what it holds.
        let open = nesting + level.levels();
        if open > LEVELS_MAX || level.conjunctions > CONJUNCTIONS_MAX {
            return Err(too_deep().at(Some(position_of(text, token.span.start))));
        }
    }
    while levels.len() > 1 {
        pop(&mut levels);
    }
    depth.levels = levels.first().map_or(0, Level::levels);
    if depth.levels > LEVELS_MAX {
        return Err(too_deep());
    }
    depth.deep |= depth.levels > SHALLOW_IN_ALL;
    Ok(depth)
}

/// NOT, CASE and signs open a level of their own each.
fn is_prefix(token: &Token) -> bool {
    match token {
        Token::Minus | Token::Plus | Token::Tilde | Token::ExclamationMark => true,
        Token::Word(word) => {
            word.quote_style.is_none()
                && (word.keyword == Keyword::NOT || word.keyword == Keyword::CASE)
        }
        _ => false,
    }
}
