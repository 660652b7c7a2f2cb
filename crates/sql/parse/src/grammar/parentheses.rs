//! What stands in parentheses, where a query, an expression and a row may stand.

use super::Parser;
use crate::ast::{Expr, NodeBox, SelectStmt, SubLink, SubLinkKind};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// What was in parentheses.
pub(super) enum ParenContents {
    /// `select_with_parens`
    Select(Box<SelectStmt>),
    /// `'(' expr_list ')'`
    Exprs(Vec<Expr>),
}

impl Parser<'_> {
    /// Does a query begin here that is not in parentheses?
    pub(super) fn at_select(&self) -> bool {
        self.is_any(&[K::Select, K::Values, K::With, K::Table]) || self.at(T::WithLa)
    }

    /// The same where VALUES may be a name.
    pub(super) fn at_select_or_name(&self) -> bool {
        self.at_select() && (!self.is(K::Values) || self.kind_at(1) == T::LParen)
    }

    /// `select_with_parens`, `'(' a_expr ')'` or, if it may be, `'(' expr_list ')'`: which of them is decided by what
    /// follows each part of it, so nothing is read twice however many parentheses there are.
    pub(super) fn in_parentheses(&mut self, may_be_list: bool) -> Result<ParenContents> {
        self.nested(|parser| parser.in_parentheses_nested(may_be_list))
    }

    fn in_parentheses_nested(&mut self, may_be_list: bool) -> Result<ParenContents> {
        self.expect_token(T::LParen)?;
        if self.at_select_or_name() {
            let select = self.subselect(|parser| parser.select_no_parens())?;
            self.expect_token(T::RParen)?;
            return Ok(ParenContents::Select(Box::new(select)));
        }
        let first = match self.at(T::LParen) {
            false => self.a_expr()?,
            true => {
                let location = self.here();
                match self.in_parentheses(true)? {
                    ParenContents::Select(select) if self.at(T::RParen) => {
                        self.pass();
                        return Ok(ParenContents::Select(select));
                    }
                    ParenContents::Select(select) if self.at_select_continuation() => {
                        let select = self
                            .subselect(|parser| parser.select_no_parens_from(*select, location))?;
                        self.expect_token(T::RParen)?;
                        return Ok(ParenContents::Select(Box::new(select)));
                    }
                    ParenContents::Select(select) => {
                        let operand = self.select_operand(*select, location)?;
                        self.a_expr_from(operand)?
                    }
                    ParenContents::Exprs(exprs) => {
                        let operand = self.parenthesized(exprs, location, true)?;
                        self.a_expr_from(operand)?
                    }
                }
            }
        };
        let mut exprs = vec![first];
        while may_be_list && self.take_token(T::Comma) {
            exprs.push(self.a_expr()?);
        }
        self.expect_token(T::RParen)?;
        Ok(ParenContents::Exprs(exprs))
    }

    /// Does the next token go on with a query whose first part is in parentheses?
    pub(super) fn at_select_continuation(&self) -> bool {
        self.is_any(&[
            K::Union,
            K::Intersect,
            K::Except,
            K::Order,
            K::Limit,
            K::Offset,
            K::Fetch,
            K::For,
        ])
    }

    /// `select_with_parens` as an operand, with what may follow it.
    pub(super) fn select_operand(
        &mut self,
        subselect: SelectStmt,
        location: crate::ast::Location,
    ) -> Result<Expr> {
        let operand = Expr::SubLink(NodeBox::new(SubLink {
            kind: SubLinkKind::Expr,
            subselect,
            location,
        }));
        self.opt_indirection(operand)
    }
}
