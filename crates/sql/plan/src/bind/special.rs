//! Functions with a syntax of their own: EXTRACT, SUBSTRING, TRIM, POSITION, OVERLAY, CEIL, FLOOR.

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_parse::lowered::{self as ast, Expr as Ast};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};

impl Binder<'_> {
    pub(crate) fn special_syntax(&mut self, expr: &Ast) -> Result<Expr> {
        let at = self.at(expr.location());
        match expr {
            Ast::Extract {
                field,
                expr: operand,
                ..
            } => {
                let field = field.to_string();
                let field = Expr::Const(Datum::text(field), SqlType::of(oid::TEXT));
                let value = self.expr(operand)?;
                self.named_call("extract", vec![field, value], at)
            }
            Ast::Ceil(operand) => self.rounding("ceil", operand, at),
            Ast::Floor(operand) => self.rounding("floor", operand, at),
            Ast::Position {
                expr: needle,
                r#in: haystack,
            } => {
                let needle = self.expr(needle)?;
                let haystack = self.expr(haystack)?;
                self.named_call("position", vec![haystack, needle], at)
            }
            Ast::Substring {
                expr: operand,
                substring_from,
                substring_for,
                shorthand,
                ..
            } => {
                let mut args = vec![self.expr(operand)?];
                match (substring_from, substring_for) {
                    (Some(from), None) => args.push(self.expr(from)?),
                    (Some(from), Some(length)) => {
                        args.push(self.expr(from)?);
                        args.push(self.expr(length)?);
                    }
                    (None, Some(length)) => {
                        args.push(Expr::Const(Datum::Int4(1), SqlType::of(oid::INT4)));
                        args.push(self.expr(length)?);
                    }
                    (None, None) => {}
                }
                self.named_call(if *shorthand { "substr" } else { "substring" }, args, at)
            }
            Ast::Trim {
                trim_where,
                trim_what,
                expr: operand,
                trim_characters,
            } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    None => "btrim",
                };
                let mut args = vec![self.expr(operand)?];
                if let Some(what) = trim_what {
                    args.push(self.expr(what)?);
                }
                for what in trim_characters.iter().flatten() {
                    args.push(self.expr(what)?);
                }
                self.named_call(name, args, at)
            }
            Ast::Overlay {
                expr: operand,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut args = vec![
                    self.expr(operand)?,
                    self.expr(overlay_what)?,
                    self.expr(overlay_from)?,
                ];
                if let Some(length) = overlay_for {
                    args.push(self.expr(length)?);
                }
                self.named_call("overlay", args, at)
            }
            _ => Err(SqlError::internal("no function with a syntax of its own")),
        }
    }

    fn rounding(&mut self, name: &str, operand: &Ast, at: Option<usize>) -> Result<Expr> {
        let operand = self.expr(operand)?;
        self.named_call(name, vec![operand], at)
    }
}
