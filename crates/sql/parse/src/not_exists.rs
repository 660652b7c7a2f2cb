//! `NOT EXISTS (...)`: NOT binds as weakly in front of EXISTS as anywhere else, so `NOT EXISTS (...) IS NULL` is
//! `NOT (EXISTS (...) IS NULL)`. The grammar library takes the two words for one operand.
//!
//! A second NOT keeps them apart: the first one is an operator like any, the second makes the library's operand, of
//! which [`plain`] then takes the negation away again.

use super::rewrite::is_word;
use sqlparser::ast::{Expr, VisitMut, VisitorMut};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::ControlFlow;

/// Doubles NOT in front of EXISTS and its query. Says whether there was any.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut found = false;
    let mut at = 0;
    while at < tokens.len() {
        let is_not_exists = is_word(tokens.get(at), "not")
            && is_word(tokens.get(at + 1), "exists")
            && tokens.get(at + 2).is_some_and(|t| t.token == Token::LParen);
        // A name of a column, `t.not`, is none.
        let is_name = at > 0 && tokens[at - 1].token == Token::Period;
        if is_not_exists && !is_name {
            tokens.insert(at, tokens[at].clone());
            found = true;
            at += 2;
        }
        at += 1;
    }
    found
}

/// Undoes the negation that [`rewrite`] has doubled.
pub(super) fn plain(tree: &mut impl VisitMut) {
    // The visitor never breaks.
    let _ = tree.visit(&mut Plain);
}

struct Plain;

impl VisitorMut for Plain {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Exists { negated, .. } = expr {
            *negated = false;
        }
        ControlFlow::Continue(())
    }
}
