//! `((SELECT ...) UNION (SELECT ...))` as an operand: the grammar library takes what begins with two parentheses for
//! an expression,
//! except where only a query may stand.
//!
//! A WITH in front says that it is a query; [`plain`] takes it away again. Nothing else changes what the query means.
//!
//! A query in parentheses that begins the list of IN is an item of it, or begins one, where more follows it: `1 IN
//! ((SELECT 1), 2)`. It travels as the
//! argument of a call whose name users cannot write.

use super::parentheses::end_of;
use super::rewrite::is_word;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query, VisitMut,
    VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::ControlFlow;

/// The name of the query in such a WITH. Texts of users cannot hold it.
const MARK: &str = "\u{1}operand";

/// What stands behind a query's parentheses if more of the query follows them.
const FOLLOWS: [&str; 7] = [
    "union",
    "intersect",
    "except",
    "order",
    "limit",
    "offset",
    "fetch",
];

/// Words behind which the library expects a query, or a table, by itself.
const QUERY_EXPECTED: [&str; 8] = [
    "from", "join", "lateral", "as", "exists", "array", "union", "except",
];

/// Puts the WITH where it is needed. Says whether there was any such place.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut found = false;
    let mut at = 1;
    while at + 2 < tokens.len() {
        if tokens[at].token != Token::LParen {
            at += 1;
            continue;
        }
        let behind = tokens[at..]
            .iter()
            .position(|token| token.token != Token::LParen);
        let Some(run) = behind else {
            break;
        };
        let is_query = ["select", "values", "with", "table"]
            .iter()
            .any(|word| is_word(tokens.get(at + run), word));
        if !is_query {
            at += run;
            continue;
        }
        if run > 1
            && is_word(tokens.get(at - 1), "in")
            && let Some(close) = end_of(tokens, at + 1)
            && begins_item(tokens.get(close + 1))
        {
            let span = tokens[at].span;
            let mark = Token::Word(Word {
                value: MARK.to_owned(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
            let end = TokenWithSpan {
                token: Token::RParen,
                span: tokens[close].span,
            };
            tokens.insert(close + 1, end);
            let open = [mark, Token::LParen].map(|token| TokenWithSpan { token, span });
            tokens.splice(at + 1..at + 1, open);
            found = true;
            at += run + 2;
            continue;
        }
        if run > 1 && needs_mark(tokens, at) {
            let span = tokens[at].span;
            let word = |value: &str, keyword| {
                Token::Word(Word {
                    value: value.to_owned(),
                    quote_style: (value == MARK).then_some('"'),
                    keyword,
                })
            };
            let marks = [
                word("WITH", Keyword::WITH),
                word(MARK, Keyword::NoKeyword),
                word("AS", Keyword::AS),
                Token::LParen,
                word("SELECT", Keyword::SELECT),
                Token::Number("1".to_owned(), false),
                Token::RParen,
            ];
            let count = marks.len();
            let marks = marks.map(|token| TokenWithSpan { token, span });
            tokens.splice(at + 1..at + 1, marks);
            found = true;
            at += count;
        }
        at += 1;
    }
    found
}

/// Does what follows a query in parentheses say that it is a value, and not a part of a larger query?
fn begins_item(next: Option<&TokenWithSpan>) -> bool {
    let ends = matches!(next.map(|t| &t.token), None | Some(Token::RParen));
    !ends && !FOLLOWS.iter().any(|word| is_word(next, word))
}

/// A query in parentheses stands at `at` whose first part is in parentheses too: does the library take it for an
/// expression?
fn needs_mark(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = tokens.get(at - 1);
    if QUERY_EXPECTED.iter().any(|word| is_word(before, word)) {
        return false;
    }
    if is_target(&tokens[..at]) {
        return false;
    }
    let Some(close) = end_of(tokens, at + 1) else {
        return false;
    };
    FOLLOWS
        .iter()
        .any(|word| is_word(tokens.get(close + 1), word))
}

/// Do these tokens end with the table of an INSERT?
fn is_target(before: &[TokenWithSpan]) -> bool {
    let mut rest = before;
    while let [begin @ .., period, word] = rest
        && period.token == Token::Period
        && matches!(word.token, Token::Word(_))
    {
        rest = begin;
    }
    matches!(rest, [.., into, _] if is_word(Some(into), "into"))
}

/// Takes the WITH away that [`rewrite`] has put in front of queries.
pub(super) fn plain(tree: &mut impl VisitMut) {
    // The visitor never breaks.
    let _ = tree.visit(&mut Plain);
}

struct Plain;

impl VisitorMut for Plain {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let is_mark = query.with.as_ref().is_some_and(|with| {
            with.cte_tables
                .first()
                .is_some_and(|cte| cte.alias.name.value == MARK)
        });
        if is_mark {
            query.with = None;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(query) = marked(expr) {
            *expr = query;
        }
        ControlFlow::Continue(())
    }
}

/// The query that is the argument of a marked call.
fn marked(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(query))] if name.value == MARK => {
            Some(query.clone())
        }
        _ => None,
    }
}
