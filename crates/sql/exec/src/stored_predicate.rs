//! Conditions that a column's stored bytes decide: `column op constant` of numbers, days, times and texts, of which no
//! value has to be made.
//!
//! Invariant: what is decided is what evaluating the condition would come to. Where the bytes are not what they should
//! be, or the row lacks the column, nothing is decided and the condition is evaluated.

use crate::StoredColumn;
use logstead_engine::RowRef;
use logstead_sql_func::{self as func, Comparison, date_moment, timestamp_moment};
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, Numeric, oid, stored, trim_blanks};
use std::cmp::Ordering;
use std::sync::Arc;

/// See the module.
pub(super) struct StoredPredicate {
    /// The scan's column.
    pub(super) column: usize,
    op: Comparison,
    constant: Constant,
}

/// What the column is compared with, as its stored form is read.
enum Constant {
    /// Integers of any width, days, microseconds.
    Integer(i64),
    /// The moment of a timestamp, with which days are compared.
    Moment(i128),
    Numeric(Numeric),
    Text(Arc<str>),
    /// A `char(n)`, whose blanks at the end do not count.
    Padded(Arc<str>),
}

impl StoredPredicate {
    /// A condition that may be decided so.
    pub(super) fn of(condition: &Expr, columns: &[StoredColumn]) -> Option<StoredPredicate> {
        let Expr::Call { function, args, .. } = condition else {
            return None;
        };
        let [left, right] = args.as_slice() else {
            return None;
        };
        let (op, types) = match func::operator_class(function.oid) {
            Some((op, left, right)) => (op, Some((left, right))),
            None => (with_days(function.name)?, None),
        };
        let (column, op, constant) = match (left, right) {
            (left, Expr::Const(constant, _)) => (column_of(left)?, op, constant),
            (Expr::Const(constant, _), right) => (column_of(right)?, op.commuted(), constant),
            _ => return None,
        };
        let ty = columns.get(column)?.ty.oid;
        let constant = Constant::of(ty, constant, types)?;
        Some(StoredPredicate {
            column,
            op,
            constant,
        })
    }

    /// Whether the condition is true for a row; `None` if it has to be evaluated.
    #[inline]
    pub(super) fn holds(&self, columns: &[StoredColumn], row: RowRef<'_>) -> Option<bool> {
        let position = columns.get(self.column)?.position;
        let Some(bytes) = row.column(position) else {
            // A comparison with NULL is not true.
            return (!row.is_missing(position)).then_some(false);
        };
        let order = match &self.constant {
            Constant::Integer(constant) => integer(bytes)?.cmp(constant),
            Constant::Moment(constant) => {
                date_moment(i32::from_le_bytes(bytes.try_into().ok()?)).cmp(constant)
            }
            Constant::Numeric(constant) => stored::decode_numeric(bytes).ok()?.compare(constant),
            Constant::Text(constant) => bytes.cmp(constant.as_bytes()),
            Constant::Padded(constant) => without_blanks(bytes).cmp(constant.as_bytes()),
        };
        Some(match self.op {
            Comparison::Lt => order == Ordering::Less,
            Comparison::Le => order != Ordering::Greater,
            Comparison::Eq => order == Ordering::Equal,
            Comparison::Ge => order != Ordering::Less,
            Comparison::Gt => order == Ordering::Greater,
            Comparison::Ne => order != Ordering::Equal,
        })
    }
}

impl Constant {
    /// A constant that a column of this stored type is compared with, by an operator of these types; without, by one of
    /// days and timestamps.
    fn of(ty: TypeId, constant: &Datum, types: Option<(TypeId, TypeId)>) -> Option<Constant> {
        let Some(types) = types else {
            return match (ty, constant) {
                (oid::DATE, Datum::Timestamp(v)) => Some(Constant::Moment(timestamp_moment(*v))),
                _ => None,
            };
        };
        Some(match (ty, constant) {
            (oid::INT2 | oid::INT4 | oid::INT8, Datum::Int2(v)) => Constant::Integer((*v).into()),
            (oid::INT2 | oid::INT4 | oid::INT8, Datum::Int4(v)) => Constant::Integer((*v).into()),
            (oid::INT2 | oid::INT4 | oid::INT8, Datum::Int8(v)) => Constant::Integer(*v),
            (oid::DATE, Datum::Date(v)) => Constant::Integer((*v).into()),
            (oid::TIMESTAMP, Datum::Timestamp(v)) | (oid::TIMESTAMPTZ, Datum::TimestampTz(v)) => {
                Constant::Integer(*v)
            }
            (oid::NUMERIC, Datum::Numeric(v)) => Constant::Numeric(v.clone()),
            (oid::TEXT | oid::VARCHAR, Datum::Text(v)) if types == (oid::TEXT, oid::TEXT) => {
                Constant::Text(Arc::clone(v))
            }
            (oid::BPCHAR, Datum::Text(v)) if types == (oid::BPCHAR, oid::BPCHAR) => {
                Constant::Padded(trim_blanks(v).into())
            }
            _ => return None,
        })
    }
}

/// The column of a scan, behind a cast that changes nothing.
fn column_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(at, _) => Some(*at),
        Expr::Relabel(inner, ty) if ty.oid == oid::TEXT => match &**inner {
            Expr::Column(at, from) if from.oid == oid::VARCHAR => Some(*at),
            _ => None,
        },
        _ => None,
    }
}

/// What compares a date with a timestamp, in this order.
fn with_days(function: &str) -> Option<Comparison> {
    Some(match function {
        "date_lt_timestamp" => Comparison::Lt,
        "date_le_timestamp" => Comparison::Le,
        "date_eq_timestamp" => Comparison::Eq,
        "date_ge_timestamp" => Comparison::Ge,
        "date_gt_timestamp" => Comparison::Gt,
        "date_ne_timestamp" => Comparison::Ne,
        _ => return None,
    })
}

#[inline]
fn integer(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        4 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        8 => i64::from_le_bytes(bytes.try_into().ok()?),
        2 => i16::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    })
}

#[inline]
fn without_blanks(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .rposition(|b| *b != b' ')
        .map_or(0, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_engine::RowBuilder;
    use logstead_sql_func::resolve_operator;
    use logstead_sql_types::value::SqlType;
    use logstead_sql_types::value::user::UserTypes;

    #[test]
    fn bytes_say_what_values_say() {
        let int = |v: i32| Datum::Int4(v);
        let text = |v: &str| Datum::text(v);
        let numeric = |v: &str| Datum::numeric(Numeric::parse(v).unwrap());
        let days = [i32::MIN, -1, 0, 1, 9_000, i32::MAX];
        let moment = |v: i64| Datum::Timestamp(v);
        let day_us = 86_400_000_000;
        // A column's type and values, and what they are compared with.
        let cases: [(TypeId, Vec<Datum>, TypeId, Vec<Datum>); 8] = [
            (
                oid::INT4,
                vec![int(-7), int(0), int(i32::MAX)],
                oid::INT4,
                vec![int(0), int(-7)],
            ),
            (
                oid::INT2,
                vec![Datum::Int2(-3)],
                oid::INT8,
                vec![Datum::Int8(-3), Datum::Int8(1 << 40)],
            ),
            (
                oid::INT8,
                vec![Datum::Int8(1 << 40)],
                oid::INT4,
                vec![int(5)],
            ),
            (
                oid::DATE,
                days.map(Datum::Date).to_vec(),
                oid::DATE,
                days.map(Datum::Date).to_vec(),
            ),
            (
                oid::DATE,
                days.map(Datum::Date).to_vec(),
                oid::TIMESTAMP,
                [i64::MIN, -1, 0, 1, day_us, i64::MAX].map(moment).to_vec(),
            ),
            (
                oid::NUMERIC,
                vec![numeric("1.50"), numeric("NaN"), numeric("-1e40")],
                oid::NUMERIC,
                vec![numeric("1.5"), numeric("0"), numeric("Infinity")],
            ),
            (
                oid::TEXT,
                vec![text(""), text("a"), text("a ")],
                oid::TEXT,
                vec![text("a")],
            ),
            (
                oid::BPCHAR,
                vec![text("a  "), text("b  ")],
                oid::BPCHAR,
                vec![text("a"), text("a    ")],
            ),
        ];
        for (ty, values, other, constants) in cases {
            let (ty, other) = (SqlType::of(ty), SqlType::of(other));
            let columns = [StoredColumn {
                position: 0,
                ty,
                missing: Datum::Null,
            }];
            for (op, constant) in ["<", "<=", "=", ">=", ">", "<>"]
                .iter()
                .flat_map(|op| constants.iter().map(move |c| (op, c)))
            {
                let resolved =
                    resolve_operator(op, Some(ty), other, UserTypes::default().lookup(&[]))
                        .unwrap();
                let condition = Expr::Call {
                    function: resolved.function,
                    args: vec![Expr::Column(0, ty), Expr::Const(constant.clone(), other)],
                    ty: resolved.result,
                };
                let quick = StoredPredicate::of(&condition, &columns).expect(op);
                let mut builder = RowBuilder::new();
                for value in &values {
                    builder.start(1, 1);
                    let mut bytes = Vec::new();
                    stored::encode(value, &mut bytes);
                    builder.push(Some(&bytes));
                    let args = [value.clone(), constant.clone()];
                    let said = resolved.function.call_pure(&args).unwrap().unwrap();
                    let found = quick.holds(&columns, RowRef::new(builder.finish()));
                    assert_eq!(
                        found.map(Datum::Bool),
                        Some(said),
                        "{value:?} {op} {constant:?}"
                    );
                }
                builder.start(1, 1);
                builder.push(None);
                let null = RowRef::new(builder.finish());
                assert_eq!(quick.holds(&columns, null), Some(false));
                builder.start(1, 0);
                let missing = RowRef::new(builder.finish());
                assert_eq!(quick.holds(&columns, missing), None);
            }
        }
    }
}
