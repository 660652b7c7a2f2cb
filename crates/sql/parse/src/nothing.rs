//! SELECT without a list. The grammar library knows it in front of FROM only: elsewhere a name that nobody can write stands for the list.

use super::rewrite::is_word;
use sqlparser::ast::{self, SetExpr, Statement, VisitMut, VisitorMut};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::ControlFlow;

const MARK: &str = "\0nothing";

/// What may stand behind a list.
const BEHIND: [&str; 12] = [
    "where",
    "group",
    "having",
    "window",
    "union",
    "intersect",
    "except",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
];

/// Whether there is no list at `at`.
pub(super) fn is_next(tokens: &[TokenWithSpan], at: usize) -> bool {
    match tokens.get(at).map(|t| &t.token) {
        None | Some(Token::RParen | Token::SemiColon | Token::EOF) => true,
        _ => BEHIND.iter().any(|word| is_word(tokens.get(at), word)),
    }
}

/// Puts the mark in the list's place.
pub(super) fn mark(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let Some(span) = at.checked_sub(1).and_then(|before| tokens.get(before)) else {
        return;
    };
    let span = span.span;
    let word = Word {
        value: MARK.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    };
    let token = Token::Word(word);
    tokens.insert(at.min(tokens.len()), TokenWithSpan { token, span });
}

/// Makes the marked lists empty.
pub(super) fn unmark(statement: &mut Statement) {
    let _all = VisitMut::visit(statement, &mut Unmark);
}

struct Unmark;

impl VisitorMut for Unmark {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let mut open = vec![query.body.as_mut()];
        while let Some(body) = open.pop() {
            match body {
                SetExpr::Select(select) => {
                    let marked = matches!(
                        select.projection.as_slice(),
                        [ast::SelectItem::UnnamedExpr(ast::Expr::Identifier(name))] if name.value == MARK
                    );
                    if marked {
                        select.projection.clear();
                    }
                }
                SetExpr::SetOperation { left, right, .. } => {
                    open.push(left.as_mut());
                    open.push(right.as_mut());
                }
                // Queries in parentheses are visited by themselves.
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}
