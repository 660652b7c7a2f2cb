//! Locking clauses: FOR UPDATE, NO KEY UPDATE, SHARE, KEY SHARE with OF and a list.
//!
//! The grammar library knows two strengths and one name after OF. What it lacks travels in that name: its first part says
//! the strength, the others are the listed names. Parts made here begin with a NUL, which no text of a client contains.

use super::rewrite::{is_word, words};
use logstead_engine::RowLock;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// (What follows FOR, what the grammar knows it as, the part that stands for it.)
const STRENGTHS: [(&[&str], usize, &str, RowLock); 4] = [
    (
        &["no", "key", "update"],
        2,
        "\0no key update",
        RowLock::NoKeyUpdate,
    ),
    (&["key", "share"], 1, "\0key share", RowLock::KeyShare),
    (&["update"], 0, "\0update", RowLock::Update),
    (&["share"], 0, "\0share", RowLock::Share),
];
/// Stands before a name that was written with a qualifier, which is an error that the binder tells.
const QUALIFIED: &str = "\0qualified";

/// Rewrites a locking clause whose FOR stands before `at`.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let found = STRENGTHS
        .iter()
        .find(|(spelling, ..)| words(tokens, at, spelling));
    let Some((spelling, surplus, part, _)) = found else {
        return;
    };
    let mut end = at + spelling.len();
    let lists = is_word(tokens.get(end), "of");
    if !lists && is_without_from(tokens, at.saturating_sub(1)) {
        // Nothing is locked; the grammar would take FOR for a name.
        if is_word(tokens.get(end), "nowait") {
            end += 1;
        } else if words(tokens, end, &["skip", "locked"]) {
            end += 2;
        }
        tokens.drain(at.saturating_sub(1)..end.min(tokens.len()));
        return;
    }
    if !lists && *surplus == 0 {
        return;
    }
    let span = tokens[at].span;
    let quoted = |value: &str, span| TokenWithSpan {
        token: Token::Word(Word {
            value: value.to_owned(),
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        }),
        span,
    };
    let of = Word {
        value: "OF".to_owned(),
        quote_style: None,
        keyword: Keyword::OF,
    };
    let mut clause = vec![
        tokens[end - 1].clone(),
        TokenWithSpan {
            token: Token::Word(of),
            span,
        },
        quoted(part, span),
    ];
    if lists {
        end += 1;
        loop {
            // Anything but a name is left for the grammar to complain about.
            let Some(Token::Word(name)) = tokens.get(end).map(|t| &t.token) else {
                return;
            };
            let at = tokens[end].span;
            let period = || TokenWithSpan {
                token: Token::Period,
                span: at,
            };
            let folded = if name.quote_style.is_some() {
                name.value.clone()
            } else {
                name.value.to_lowercase()
            };
            end += 1;
            while matches!(tokens.get(end).map(|t| &t.token), Some(Token::Period)) {
                clause.extend([period(), quoted(QUALIFIED, at)]);
                end += 2;
            }
            clause.extend([period(), quoted(&folded, at)]);
            if !matches!(tokens.get(end).map(|t| &t.token), Some(Token::Comma)) {
                break;
            }
            end += 1;
        }
    }
    let end = end.min(tokens.len());
    tokens.splice(at..end, clause);
}

/// Does the SELECT that a clause at `at` belongs to have no FROM?
fn is_without_from(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0_usize;
    for token in tokens.get(..at).unwrap_or_default().iter().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            // The clause stands alone in its parentheses, or belongs to what they hold.
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if is_word(Some(token), "from") || is_word(Some(token), "values") => return false,
            _ if is_word(Some(token), "select") => return true,
            _ => {}
        }
    }
    false
}

/// What a locking clause says.
pub struct LockingClause<'a> {
    /// The strength.
    pub lock: RowLock,
    /// The names after OF; empty: everything in FROM.
    pub of: &'a [ast::ObjectNamePart],
}

impl LockingClause<'_> {
    /// As error messages name it.
    pub fn name(&self) -> &'static str {
        match self.lock {
            RowLock::KeyShare => "FOR KEY SHARE",
            RowLock::Share => "FOR SHARE",
            RowLock::NoKeyUpdate => "FOR NO KEY UPDATE",
            RowLock::Update => "FOR UPDATE",
        }
    }

    /// Was this part written with a qualifier?
    pub fn is_qualified(part: &ast::Ident) -> bool {
        part.value == QUALIFIED
    }
}

/// Reads a clause of the tree.
pub fn locking_clause(clause: &ast::LockClause) -> LockingClause<'_> {
    let mut lock = match clause.lock_type {
        ast::LockType::Share => RowLock::Share,
        ast::LockType::Update => RowLock::Update,
    };
    let mut of = clause.of.as_ref().map_or(&[][..], |name| &name.0);
    if let Some((first, names)) = of.split_first()
        && let Some(first) = first.as_ident()
        && let Some((.., strength)) = STRENGTHS.iter().find(|(.., part, _)| first.value == *part)
    {
        lock = *strength;
        of = names;
    }
    LockingClause { lock, of }
}
