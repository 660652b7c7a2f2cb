//! Bound expressions as text, with column names.

use crate::query::expr::{Expr, SubqueryKind};
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::without_session::WithoutSession;
use logstead_sql_func as func;
use logstead_sql_func::Comparison;
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, OutputStyle, SqlType, oid};

/// Names of a row's columns.
pub(crate) type Names = Vec<String>;

/// `alias.column`, or `column` alone.
pub(crate) fn qualified(alias: &str, column: &str, qualify: bool) -> String {
    let column = quote(column);
    if qualify && !alias.is_empty() {
        format!("{}.{column}", quote(alias))
    } else {
        column
    }
}

/// An identifier, quoted if it must be.
fn quote(name: &str) -> String {
    let plain = name.chars().enumerate().all(|(i, c)| {
        c.is_ascii_lowercase() || c == '_' || (i > 0 && (c.is_ascii_digit() || c == '$'))
    });
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The expression as PostgreSQL's EXPLAIN would print it, nearly.
pub(crate) fn expr_text(
    expr: &Expr,
    row: &Names,
    outer: &[Names],
    types: TypeLookup<'_>,
) -> String {
    let sub = |e: &Expr| expr_text(e, row, outer, types);
    let cast = |arg: &Expr, ty: SqlType| cast(&sub(arg), &types.format_type(ty));
    let list = |all: &[Expr]| all.iter().map(sub).collect::<Vec<_>>().join(", ");
    match expr {
        Expr::Const(datum, ty) => constant(datum, *ty, types),
        Expr::Column(index, _) => row
            .get(*index)
            .cloned()
            .unwrap_or_else(|| format!("#{index}")),
        Expr::Outer { level, index, .. } => level
            .checked_sub(1)
            .and_then(|l| outer.get(l))
            .and_then(|names| names.get(*index))
            .cloned()
            .unwrap_or_else(|| format!("#{index}")),
        Expr::Param(index, _) => format!("${}", index + 1),
        Expr::Call { function, args, .. } => match (operator_of(function), args.as_slice()) {
            (Some(op), [left, right]) => format!("({} {op} {})", sub(left), sub(right)),
            (Some(op), [operand]) => format!("({op} {})", sub(operand)),
            _ if is_cast(function.oid, args.len()) => {
                format!(
                    "({})::{}",
                    args.first().map(sub).unwrap_or_default(),
                    types.format_type(expr.ty())
                )
            }
            _ => format!("{}({})", function.name, list(args)),
        },
        Expr::CastViaText(arg, ty) | Expr::Relabel(arg, ty) => cast(arg, *ty),
        Expr::CoerceTypmod { arg, ty, .. } => cast(arg, *ty),
        Expr::Domain(arg, rules) => cast(arg, SqlType::of(rules.declared)),
        Expr::And(all) => format!(
            "({})",
            all.iter().map(sub).collect::<Vec<_>>().join(" AND ")
        ),
        Expr::Or(all) => format!("({})", all.iter().map(sub).collect::<Vec<_>>().join(" OR ")),
        Expr::Not(arg) => format!("(NOT {})", sub(arg)),
        Expr::IsNull(arg, negated) => format!(
            "({} IS {}NULL)",
            sub(arg),
            if *negated { "NOT " } else { "" }
        ),
        Expr::IsBool {
            arg,
            value,
            negated,
        } => {
            let value = match value {
                Some(true) => "TRUE",
                Some(false) => "FALSE",
                None => "UNKNOWN",
            };
            format!(
                "({} IS {}{value})",
                sub(arg),
                if *negated { "NOT " } else { "" }
            )
        }
        Expr::IsDistinct {
            left,
            right,
            negated,
        } => {
            format!(
                "({} IS {}DISTINCT FROM {})",
                sub(left),
                if *negated { "NOT " } else { "" },
                sub(right)
            )
        }
        Expr::Case {
            arms, otherwise, ..
        } => {
            let mut text = "CASE".to_owned();
            for (when, then) in arms {
                text.push_str(&format!(" WHEN {} THEN {}", sub(when), sub(then)));
            }
            if let Some(otherwise) = otherwise {
                text.push_str(&format!(" ELSE {}", sub(otherwise)));
            }
            text.push_str(" END");
            text
        }
        Expr::Coalesce(all, _) => format!("COALESCE({})", list(all)),
        Expr::Extreme(greatest, all, _) => format!(
            "{}({})",
            if *greatest { "GREATEST" } else { "LEAST" },
            list(all)
        ),
        Expr::NullIf { equal, .. } => match equal.as_ref() {
            Expr::Call { args, .. } => format!("NULLIF({})", list(args)),
            other => format!("NULLIF({})", sub(other)),
        },
        Expr::ArrayCompare {
            left,
            array,
            op,
            all,
        } => format!(
            "({} {} {} ({}))",
            sub(left),
            operator_of(op).unwrap_or("="),
            if *all { "ALL" } else { "ANY" },
            sub(array)
        ),
        Expr::InList {
            left,
            list: items,
            negated,
            ..
        } => {
            let (op, word) = if *negated {
                ("<>", "ALL")
            } else {
                ("=", "ANY")
            };
            let values: Option<Vec<String>> = items
                .iter()
                .map(|i| match i {
                    Expr::Const(Datum::Null, _) => Some("NULL".to_owned()),
                    Expr::Const(datum, ty) => Some(plain_text(datum, *ty, types)),
                    _ => None,
                })
                .collect();
            match values {
                Some(values) => {
                    let ty = items.first().map_or(oid::TEXT, |i| i.ty().oid);
                    format!(
                        "({} {op} {word} ('{{{}}}'::{}[]))",
                        sub(left),
                        values.join(","),
                        types.format_type(SqlType::of(ty))
                    )
                }
                None => format!("({} {op} {word} (ARRAY[{}]))", sub(left), list(items)),
            }
        }
        Expr::Array(items, _) => format!("ARRAY[{}]", list(items)),
        Expr::Subscript { array, index, .. } => format!("{}[{}]", sub(array), sub(index)),
        Expr::Subquery(subquery) => subplan(&subquery.kind, &list),
        // No plan has one.
        Expr::SubLink(link) => subplan(&link.kind, &list),
    }
}

fn subplan(kind: &SubqueryKind, list: &dyn Fn(&[Expr]) -> String) -> String {
    match kind {
        SubqueryKind::Scalar => "(SubPlan)".to_owned(),
        SubqueryKind::Exists => "EXISTS(SubPlan)".to_owned(),
        SubqueryKind::Array(_) => "ARRAY(SubPlan)".to_owned(),
        SubqueryKind::Compare {
            left,
            all,
            hashable,
            ..
        } => format!(
            "({} {} ({}SubPlan))",
            list(left),
            if *all { "ALL" } else { "ANY" },
            if *hashable { "hashed " } else { "" }
        ),
    }
}

fn cast(arg: &str, ty: &str) -> String {
    let simple = arg
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '\''));
    if simple {
        format!("({arg})::{ty}")
    } else {
        format!("{arg}::{ty}")
    }
}

/// The operator behind a function, if it is one's.
fn operator_of(function: &func::Function) -> Option<&'static str> {
    if let Some((comparison, _, _)) = func::operator_class(function.oid) {
        return Some(match comparison {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Eq => "=",
            Comparison::Ge => ">=",
            Comparison::Gt => ">",
            Comparison::Ne => "<>",
        });
    }
    func::all_operators()
        .find(|o| o.function == function.oid)
        .map(|o| o.name)
}

fn is_cast(function: FunctionId, args: usize) -> bool {
    args == 1 && func::cast_rows().any(|row| row.function == Some(function))
}

fn plain_text(datum: &Datum, ty: SqlType, types: TypeLookup<'_>) -> String {
    // Constants are shown without a session: times in UTC.
    let without_session = WithoutSession { types: Some(types) };
    let names = ContextAdapter(&without_session);
    let style = OutputStyle {
        names: Some(&names),
        ..OutputStyle::UTC
    };
    logstead_sql_types::value::text_io::message_text(datum, ty, &style)
}

/// A constant: numbers bare, all else quoted with its type.
fn constant(datum: &Datum, ty: SqlType, types: TypeLookup<'_>) -> String {
    match datum {
        Datum::Null => format!("NULL::{}", types.format_type(ty)),
        Datum::Bool(value) => value.to_string(),
        Datum::Int4(n) if *n >= 0 => n.to_string(),
        Datum::Numeric(_) if !plain_text(datum, ty, types).starts_with('-') => {
            plain_text(datum, ty, types)
        }
        _ => {
            let ty_name = if ty.oid == oid::UNKNOWN {
                "unknown".to_owned()
            } else {
                types.format_type(SqlType::of(ty.oid))
            };
            format!(
                "'{}'::{ty_name}",
                plain_text(datum, ty, types).replace('\'', "''")
            )
        }
    }
}
