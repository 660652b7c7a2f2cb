//! Expressions as text as they stand: no parentheses and no types but those that are written.

use crate::deparse::expr::Printer;
use crate::deparse::query::subquery;
use logstead_sql_parse::lowered::{self as ast, Expr};

fn list(exprs: &[Expr]) -> String {
    exprs.iter().map(plain).collect::<Vec<_>>().join(", ")
}

fn query(query: &ast::Query) -> String {
    subquery(query, 0, false, true)
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

/// What stands behind words that have it or not.
fn behind(words: &str, expr: Option<&Expr>) -> String {
    expr.map_or_else(String::new, |expr| format!("{words}{}", plain(expr)))
}

/// An expression as it stands.
pub fn plain(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.to_string(),
        Expr::CompoundIdentifier(names) => {
            let names = names.iter().map(ToString::to_string);
            names.collect::<Vec<_>>().join(".")
        }
        Expr::Value(value) => value.value.to_string(),
        Expr::Nested(inner) => format!("({})", plain(inner)),
        Expr::IsFalse(inner) => format!("{} IS FALSE", plain(inner)),
        Expr::IsNotFalse(inner) => format!("{} IS NOT FALSE", plain(inner)),
        Expr::IsTrue(inner) => format!("{} IS TRUE", plain(inner)),
        Expr::IsNotTrue(inner) => format!("{} IS NOT TRUE", plain(inner)),
        Expr::IsNull(inner) => format!("{} IS NULL", plain(inner)),
        Expr::IsNotNull(inner) => format!("{} IS NOT NULL", plain(inner)),
        Expr::IsUnknown(inner) => format!("{} IS UNKNOWN", plain(inner)),
        Expr::IsNotUnknown(inner) => format!("{} IS NOT UNKNOWN", plain(inner)),
        Expr::IsDistinctFrom(left, right) => {
            format!("{} IS DISTINCT FROM {}", plain(left), plain(right))
        }
        Expr::IsNotDistinctFrom(left, right) => {
            format!("{} IS NOT DISTINCT FROM {}", plain(left), plain(right))
        }
        Expr::IsNormalized {
            expr,
            form,
            negated,
        } => {
            let form = form.map_or_else(String::new, |form| format!("{form} "));
            format!("{} IS {}{form}NORMALIZED", plain(expr), not(*negated))
        }
        Expr::IsDocument { expr, negated } => {
            format!("{} IS {}DOCUMENT", plain(expr), not(*negated))
        }
        Expr::InList {
            expr,
            list: all,
            negated,
        } => format!("{} {}IN ({})", plain(expr), not(*negated), list(all)),
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => format!("{} {}IN ({})", plain(expr), not(*negated), query(subquery)),
        Expr::Between {
            expr,
            negated,
            symmetric,
            low,
            high,
        } => format!(
            "{} {}BETWEEN {}{} AND {}",
            plain(expr),
            not(*negated),
            if *symmetric { "SYMMETRIC " } else { "" },
            plain(low),
            plain(high)
        ),
        Expr::Like {
            negated,
            expr,
            pattern,
            escape_char,
        } => matched(expr, *negated, "LIKE", pattern, escape_char.as_deref()),
        Expr::ILike {
            negated,
            expr,
            pattern,
            escape_char,
        } => matched(expr, *negated, "ILIKE", pattern, escape_char.as_deref()),
        Expr::SimilarTo {
            negated,
            expr,
            pattern,
            escape_char,
        } => matched(
            expr,
            *negated,
            "SIMILAR TO",
            pattern,
            escape_char.as_deref(),
        ),
        Expr::BinaryOp { .. } => chain(expr),
        Expr::AnyOp {
            left,
            compare_op,
            right,
        } => format!("{} {compare_op} ANY ({})", plain(left), inside(right)),
        Expr::AllOp {
            left,
            compare_op,
            right,
        } => format!("{} {compare_op} ALL ({})", plain(left), inside(right)),
        Expr::UnaryOp { op, expr } => match op {
            ast::UnaryOperator::Plus | ast::UnaryOperator::Minus => match &**expr {
                Expr::UnaryOp { .. } => format!("{op} {}", plain(expr)),
                operand => format!("{op}{}", plain(operand)),
            },
            op => format!("{op} {}", plain(expr)),
        },
        Expr::Cast { expr, data_type } => match &**expr {
            Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => {
                format!("CAST({} AS {data_type})", plain(expr))
            }
            operand => format!("{}::{data_type}", plain(operand)),
        },
        Expr::AtTimeZone {
            timestamp,
            time_zone,
        } => format!("{} AT TIME ZONE {}", plain(timestamp), plain(time_zone)),
        Expr::Collate { expr, collation } => format!("{} COLLATE {collation}", plain(expr)),
        Expr::Exists { subquery, negated } => {
            format!("{}EXISTS ({})", not(*negated), query(subquery))
        }
        Expr::Subquery(subquery) => format!("({})", query(subquery)),
        Expr::Tuple(items) => format!("({})", list(items)),
        Expr::Array(array) => {
            let word = if array.named { "ARRAY" } else { "" };
            format!("{word}[{}]", list(&array.elem))
        }
        Expr::QualifiedWildcard(name) => format!("{name}.*"),
        Expr::CurrentOf(cursor) => format!("CURRENT OF {cursor}"),
        Expr::Function(function) => call(function),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let chain = access_chain.iter().map(access);
            format!("{}{}", plain(root), chain.collect::<String>())
        }
        Expr::Case { .. }
        | Expr::Extract { .. }
        | Expr::Ceil(_)
        | Expr::Floor(_)
        | Expr::Position { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Overlay { .. }
        | Expr::Interval(_) => by_words(expr),
    }
}

/// What ANY and ALL have in their parentheses.
fn inside(expr: &Expr) -> String {
    match expr {
        Expr::Subquery(subquery) => query(subquery),
        array => plain(array),
    }
}

fn matched(
    expr: &Expr,
    negated: bool,
    words: &str,
    pattern: &Expr,
    escape: Option<&Expr>,
) -> String {
    format!(
        "{} {}{words} {}{}",
        plain(expr),
        not(negated),
        plain(pattern),
        behind(" ESCAPE ", escape)
    )
}

/// A chain of operators, which leans to the left, in a loop.
fn chain(expr: &Expr) -> String {
    let mut pairs = Vec::new();
    let mut head = expr;
    while let Expr::BinaryOp { left, op, right } = head {
        pairs.push((op, right));
        head = left;
    }
    let mut text = plain(head);
    while let Some((op, right)) = pairs.pop() {
        text.push_str(&format!(" {op} {}", plain(right)));
    }
    text
}

fn access(access: &ast::AccessExpr) -> String {
    match access {
        ast::AccessExpr::Dot(field) => format!(".{}", plain(field)),
        ast::AccessExpr::Star => ".*".to_owned(),
        ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
            format!("[{}]", plain(index))
        }
        ast::AccessExpr::Subscript(ast::Subscript::Slice {
            lower_bound,
            upper_bound,
        }) => format!(
            "[{}:{}]",
            behind("", lower_bound.as_ref()),
            behind("", upper_bound.as_ref())
        ),
    }
}

/// A function with words of its own.
fn by_words(expr: &Expr) -> String {
    match expr {
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            let mut text = format!("CASE{}", behind(" ", operand.as_deref()));
            for arm in conditions {
                let (condition, result) = (plain(&arm.condition), plain(&arm.result));
                text.push_str(&format!(" WHEN {condition} THEN {result}"));
            }
            format!("{text}{} END", behind(" ELSE ", else_result.as_deref()))
        }
        Expr::Extract { field, expr } => format!("EXTRACT({field} FROM {})", plain(expr)),
        Expr::Ceil(expr) => format!("CEIL({})", plain(expr)),
        Expr::Floor(expr) => format!("FLOOR({})", plain(expr)),
        Expr::Position { expr, r#in } => format!("POSITION({} IN {})", plain(expr), plain(r#in)),
        Expr::Substring {
            expr,
            substring_from,
            substring_for,
            special,
            shorthand,
        } => {
            let name = if *shorthand { "SUBSTR" } else { "SUBSTRING" };
            let (from, length) = match *special {
                true => (", ", ", "),
                false => (" FROM ", " FOR "),
            };
            format!(
                "{name}({}{}{})",
                plain(expr),
                behind(from, substring_from.as_deref()),
                behind(length, substring_for.as_deref())
            )
        }
        Expr::Trim {
            expr,
            trim_where,
            trim_what,
            trim_characters,
        } => {
            let side = match trim_where {
                Some(ast::TrimWhereField::Leading) => "LEADING ",
                Some(ast::TrimWhereField::Trailing) => "TRAILING ",
                None => "",
            };
            let what = trim_what.as_deref();
            let what = what.map_or_else(String::new, |what| format!("{} FROM ", plain(what)));
            let more = trim_characters.as_ref();
            let more = more.map_or_else(String::new, |more| format!(", {}", list(more)));
            format!("TRIM({side}{what}{}{more})", plain(expr))
        }
        Expr::Overlay {
            expr,
            overlay_what,
            overlay_from,
            overlay_for,
        } => format!(
            "OVERLAY({} PLACING {} FROM {}{})",
            plain(expr),
            plain(overlay_what),
            plain(overlay_from),
            behind(" FOR ", overlay_for.as_deref())
        ),
        Expr::Interval(interval) => {
            let digits = |digits: Option<u64>| {
                digits.map_or_else(String::new, |digits| format!(" ({digits})"))
            };
            let mut text = format!("INTERVAL {}", plain(&interval.value));
            if let Some(field) = interval.leading_field {
                text.push_str(&format!(" {field}"));
            }
            text.push_str(&digits(interval.leading_precision));
            if let Some(field) = interval.last_field {
                text.push_str(&format!(" TO {field}"));
            }
            text.push_str(&digits(interval.fractional_seconds_precision));
            text
        }
        other => plain(other),
    }
}

/// A call.
pub(super) fn call(function: &ast::Function) -> String {
    let mut text = function.name.to_string();
    match &function.args {
        ast::FunctionArguments::None => {}
        ast::FunctionArguments::Subquery(subquery) => {
            text.push_str(&format!("({})", query(subquery)));
        }
        ast::FunctionArguments::List(all) => {
            let distinct = match all.duplicate_treatment {
                Some(ast::DuplicateTreatment::Distinct) => "DISTINCT ",
                None => "",
            };
            let args = all.args.iter().map(argument).collect::<Vec<_>>().join(", ");
            text.push_str(&format!("({distinct}{args}"));
            for ast::FunctionArgumentClause::OrderBy(keys) in &all.clauses {
                text.push_str(&format!(" ORDER BY {}", sorted(keys)));
            }
            text.push(')');
        }
    }
    if !function.within_group.is_empty() {
        let keys = sorted(&function.within_group);
        text.push_str(&format!(" WITHIN GROUP (ORDER BY {keys})"));
    }
    if let Some(filter) = &function.filter {
        text.push_str(&format!(" FILTER (WHERE {})", plain(filter)));
    }
    match &function.over {
        None => {}
        Some(ast::WindowType::NamedWindow(name)) => text.push_str(&format!(" OVER {name}")),
        Some(ast::WindowType::WindowSpec(window)) => {
            let window = Printer::of_query(false, 0).window(window);
            text.push_str(&format!(" OVER ({window})"));
        }
    }
    text
}

fn sorted(keys: &[ast::OrderByExpr]) -> String {
    let keys = keys.iter().map(|key| {
        let shown = crate::deparse::sort_shown(&key.options);
        format!("{}{shown}", plain(&key.expr))
    });
    keys.collect::<Vec<_>>().join(", ")
}

/// An argument of a call.
pub(super) fn argument(arg: &ast::FunctionArg) -> String {
    let value = |value: &ast::FunctionArgExpr| match value {
        ast::FunctionArgExpr::Expr(expr) => plain(expr),
        ast::FunctionArgExpr::QualifiedWildcard(name) => format!("{name}.*"),
        ast::FunctionArgExpr::Wildcard => "*".to_owned(),
    };
    match arg {
        ast::FunctionArg::Unnamed(arg) => value(arg),
        ast::FunctionArg::Named { name, arg } => format!("{name} => {}", value(arg)),
        ast::FunctionArg::Variadic(array, _) => format!("VARIADIC {}", plain(array)),
    }
}
