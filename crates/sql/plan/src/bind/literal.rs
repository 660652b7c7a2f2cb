//! Literals and parameters.

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_parse::ast::{Const, ParamRef, Value};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Bits, Datum, Numeric, SqlType, oid, user};
use logstead_types::SqlState;

/// Highest parameter number. Bind carries 65,535 values, but a statement with more can be prepared, and who does so is
/// told then; PostgreSQL has half a billion, each of which costs memory here from its number alone.
const PARAMS_MAX: usize = 1 << 17;

impl Binder<'_> {
    pub(crate) fn literal(&mut self, node: &Const) -> Result<Expr> {
        let of = |datum, ty| Ok(Expr::Const(datum, SqlType::of(ty)));
        let bits = |text| bits(text).map_err(|e| e.at(self.at(node.location)));
        match &node.value {
            Value::Integer(number) => of(Datum::Int4(*number), oid::INT4),
            Value::Float(digits) => number(digits).map_err(|e| e.at(self.at(node.location))),
            Value::String(text) => {
                let text: std::sync::Arc<str> = (**text).into();
                // One that lay at the same address is gone.
                self.literals.insert(text.as_ptr().addr(), node.location);
                of(Datum::Text(text), oid::UNKNOWN)
            }
            Value::Boolean(value) => of(Datum::Bool(*value), oid::BOOL),
            Value::Null => of(Datum::Null, oid::UNKNOWN),
            Value::Bits(digits) => bits(format!("b{digits}")),
            Value::HexBits(digits) => bits(format!("x{digits}")),
        }
    }

    pub(super) fn parameter(&mut self, node: ParamRef) -> Result<Expr> {
        let at = self.at(node.location);
        let number = node.number as usize;
        if let Some(arg) = self.numbered_argument(number) {
            return arg.map_err(|e| e.at(at));
        }
        if self.variables().is_some() {
            return self.numbered_variable(&format!("${number}"), at);
        }
        let is_known = !self.cx.parameters_fixed || number <= self.cx.param_types.len();
        if number == 0 || number > PARAMS_MAX || !is_known {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
            )
            .at(at));
        }
        if self.params.len() < number {
            self.params.resize(number, None);
        }
        let ty = self.params[number - 1].unwrap_or(SqlType::of(oid::UNKNOWN));
        match user::domain_in(ty.oid) {
            Some(_) => self.domain_param(number - 1, ty.oid),
            None => Ok(Expr::Param(number - 1, ty)),
        }
    }
}

/// `B'...'`, `X'...'`.
fn bits(text: String) -> Result<Expr> {
    Ok(Expr::Const(
        Datum::Bits(Bits::parse(&text)?),
        SqlType::of(oid::BIT),
    ))
}

/// A number: integer, bigint or numeric, the first that holds it.
fn number(digits: &str) -> Result<Expr> {
    if let Ok(value) = digits.parse::<i32>() {
        return Ok(Expr::Const(Datum::Int4(value), SqlType::of(oid::INT4)));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(Expr::Const(Datum::Int8(value), SqlType::of(oid::INT8)));
    }
    Ok(Expr::Const(
        Datum::numeric(Numeric::parse(digits)?),
        SqlType::of(oid::NUMERIC),
    ))
}
