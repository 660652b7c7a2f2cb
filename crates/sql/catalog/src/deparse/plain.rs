//! Expressions as text as they stand: no parentheses and no types but those that are written.

use crate::deparse::expr::Printer;
use crate::deparse::query::subquery;
use logstead_sql_parse::ast::{AExprKind, BoolOp, LikeKind};
use logstead_sql_parse::lowered::{self as ast, Expr, SubLinkKind};
use logstead_sql_parse::names_shown;

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
        Expr::ColumnRef(column) if column.star => format!("{}.*", names_shown(&column.fields)),
        Expr::ColumnRef(column) => names_shown(&column.fields),
        Expr::SetToDefault(_) => "DEFAULT".to_owned(),
        Expr::SqlValueFunction(node) => node.to_string(),
        Expr::ParamRef(node) => format!("${}", node.number),
        Expr::Const(node) => node.value.to_string(),
        Expr::Nested(inner) => format!("({})", plain(inner)),
        Expr::NullTest(node) => format!("{} IS {}NULL", plain(&node.arg), not(node.negated)),
        Expr::BooleanTest(node) => format!(
            "{} IS {}{}",
            plain(&node.arg),
            not(node.negated),
            node.kind.word()
        ),
        Expr::BoolExpr(node) => match (node.op, node.args.as_slice()) {
            (BoolOp::Not, args) => format!("NOT {}", list(args)),
            (BoolOp::And, args) => args.iter().map(plain).collect::<Vec<_>>().join(" AND "),
            (BoolOp::Or, args) => args.iter().map(plain).collect::<Vec<_>>().join(" OR "),
        },
        Expr::AExpr(node) => operator(node),
        Expr::Overlaps(node) => {
            let [a, b, c, d] = &node.args;
            format!(
                "({}, {}) OVERLAPS ({}, {})",
                plain(a),
                plain(b),
                plain(c),
                plain(d)
            )
        }
        Expr::IsNormalized {
            expr,
            form,
            negated,
        } => {
            let form = form.map_or_else(String::new, |form| format!("{form} "));
            format!("{} IS {}{form}NORMALIZED", plain(expr), not(*negated))
        }
        Expr::XmlExpr(node) => super::xml::xml_expr(node, &plain, &plain),
        Expr::XmlSerialize(node) => super::xml::xml_serialize(node, &plain),
        Expr::In(node) => format!(
            "{} {}IN ({})",
            plain(&node.expr),
            not(node.negated),
            list(&node.list)
        ),
        Expr::Between(node) => format!(
            "{} {}BETWEEN {}{} AND {}",
            plain(&node.expr),
            not(node.negated),
            if node.symmetric { "SYMMETRIC " } else { "" },
            plain(&node.low),
            plain(&node.high)
        ),
        Expr::Like(node) => {
            let words = match node.kind {
                LikeKind::Like => "LIKE",
                LikeKind::ILike => "ILIKE",
                LikeKind::SimilarTo => "SIMILAR TO",
            };
            format!(
                "{} {}{words} {}{}",
                plain(&node.expr),
                not(node.negated),
                plain(&node.pattern),
                behind(" ESCAPE ", node.escape.as_ref())
            )
        }
        Expr::TypeCast(node) => match (&node.arg, &node.type_name) {
            (operand @ (Expr::BoolExpr(_) | Expr::AExpr(_)), ty) => {
                format!("CAST({} AS {ty})", plain(operand))
            }
            (operand, ty) => format!("{}::{ty}", plain(operand)),
        },
        Expr::AtTimeZone {
            timestamp,
            time_zone,
            ..
        } => format!("{} AT TIME ZONE {}", plain(timestamp), plain(time_zone)),
        Expr::CollateClause(node) => {
            format!(
                "{} COLLATE {}",
                plain(&node.arg),
                names_shown(&node.collname)
            )
        }
        Expr::SubLink(node) => {
            let inner = query(&node.subselect);
            match &node.kind {
                SubLinkKind::Exists => format!("EXISTS ({inner})"),
                SubLinkKind::Expr => format!("({inner})"),
                SubLinkKind::Array => format!("array({inner})"),
                SubLinkKind::Any { test, op: None } => format!("{} IN ({inner})", plain(test)),
                SubLinkKind::NotIn { test } => format!("{} NOT IN ({inner})", plain(test)),
                SubLinkKind::Any { test, op: Some(op) } => {
                    format!("{} {op} ANY ({inner})", plain(test))
                }
                SubLinkKind::All { test, op } => format!("{} {op} ALL ({inner})", plain(test)),
            }
        }
        Expr::RowExpr(node) => {
            let row = if node.is_explicit { "ROW" } else { "" };
            format!("{row}({})", list(&node.args))
        }
        Expr::CoalesceExpr(node) => format!("COALESCE({})", list(&node.args)),
        Expr::MinMaxExpr(node) => format!("{}({})", node.word(), list(&node.args)),
        Expr::GroupingFunc(node) => format!("GROUPING({})", list(&node.args)),
        Expr::ArrayExpr(array) => format!("ARRAY[{}]", list(&array.elements)),
        Expr::CurrentOf(node) => {
            format!(
                "CURRENT OF {}",
                names_shown(std::slice::from_ref(&node.cursor_name))
            )
        }
        Expr::Function(function) => call(function),
        Expr::Indirection(node) => {
            let parts = node.indirection.iter().map(access);
            format!("{}{}", plain(&node.arg), parts.collect::<String>())
        }
        Expr::CaseExpr(_)
        | Expr::Extract { .. }
        | Expr::Ceil(_)
        | Expr::Floor(_)
        | Expr::Position { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Overlay { .. } => by_words(expr),
    }
}

/// An operator. A chain of them leans to the left, and is printed in a loop.
pub(super) fn operator(node: &ast::AExpr) -> String {
    let mut chain = vec![node];
    let mut first = node;
    while let Some(Expr::AExpr(left)) = &first.lexpr
        && left.kind == AExprKind::Op
        && left.lexpr.is_some()
    {
        first = left;
        chain.push(left);
    }
    let mut text = match &first.lexpr {
        Some(left) => plain(left),
        None => return prefix(first),
    };
    for node in chain.into_iter().rev() {
        let (op, right) = (&node.op, &node.rexpr);
        text.push_str(&match node.kind {
            AExprKind::Op => format!(" {op} {}", plain(right)),
            AExprKind::OpAny => format!(" {op} ANY ({})", plain(right)),
            AExprKind::OpAll => format!(" {op} ALL ({})", plain(right)),
            AExprKind::Distinct => format!(" IS DISTINCT FROM {}", plain(right)),
            AExprKind::NotDistinct => format!(" IS NOT DISTINCT FROM {}", plain(right)),
            AExprKind::NullIf => return format!("NULLIF({text}, {})", plain(right)),
        });
    }
    text
}

/// An operator in front of its operand. Two signs are no comment.
fn prefix(node: &ast::AExpr) -> String {
    let (op, operand) = (&node.op, plain(&node.rexpr));
    let is_sign = matches!(op.sign(), Some("+" | "-"));
    match (&node.rexpr, is_sign) {
        (Expr::AExpr(inner), true) if inner.lexpr.is_some() => format!("{op}{operand}"),
        (Expr::AExpr(_) | Expr::BoolExpr(_), _) | (_, false) => format!("{op} {operand}"),
        (_, true) => format!("{op}{operand}"),
    }
}

fn access(access: &ast::Indirection) -> String {
    match access {
        ast::Indirection::Field(name) => format!(".{}", names_shown(std::slice::from_ref(name))),
        ast::Indirection::Star => ".*".to_owned(),
        ast::Indirection::Index(index) => format!("[{}]", plain(index)),
        ast::Indirection::Slice(lower, upper) => {
            format!(
                "[{}:{}]",
                behind("", lower.as_ref()),
                behind("", upper.as_ref())
            )
        }
    }
}

/// A function with words of its own.
fn by_words(expr: &Expr) -> String {
    match expr {
        Expr::CaseExpr(node) => {
            let mut text = format!("CASE{}", behind(" ", node.arg.as_ref()));
            for arm in &node.args {
                let (condition, result) = (plain(&arm.expr), plain(&arm.result));
                text.push_str(&format!(" WHEN {condition} THEN {result}"));
            }
            format!("{text}{} END", behind(" ELSE ", node.defresult.as_ref()))
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
        other => plain(other),
    }
}

/// A call.
pub(super) fn call(function: &ast::Function) -> String {
    let mut text = match function.word() {
        Some(word) => word.to_owned(),
        None => function.name.to_string(),
    };
    match &function.args {
        ast::FunctionArguments::None => {}
        ast::FunctionArguments::List(all) => {
            let distinct = if all.agg_distinct { "DISTINCT " } else { "" };
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
    if let Some(window) = &function.over {
        match &window.name {
            Some(name) => {
                text.push_str(&format!(
                    " OVER {}",
                    names_shown(std::slice::from_ref(name))
                ));
            }
            None => {
                let window = Printer::of_query(false, 0).window(window);
                text.push_str(&format!(" OVER ({window})"));
            }
        }
    }
    text
}

fn sorted(keys: &[ast::SortBy]) -> String {
    let keys = keys.iter().map(|key| {
        let shown = crate::deparse::sort_shown(key);
        format!("{}{shown}", plain(&key.node))
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
        ast::FunctionArg::Named { name, arg } => {
            let name = names_shown(std::slice::from_ref(&name.value));
            format!("{name} => {}", value(arg))
        }
        ast::FunctionArg::Variadic(array, _) => format!("VARIADIC {}", plain(array)),
    }
}
