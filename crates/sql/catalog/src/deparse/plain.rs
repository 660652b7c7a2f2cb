//! Expressions as text as they stand: no parentheses and no types but those that are written.

use crate::deparse::expr::Printer;
use crate::deparse::query::subquery;
use crate::deparse::special::sql_syntax;
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
        Expr::FuncCall(node) => call(node),
        Expr::Indirection(node) => {
            let parts = node.indirection.iter().map(access);
            format!("{}{}", plain(&node.arg), parts.collect::<String>())
        }
        Expr::CaseExpr(node) => {
            let mut text = format!("CASE{}", behind(" ", node.arg.as_ref()));
            for arm in &node.args {
                let (condition, result) = (plain(&arm.expr), plain(&arm.result));
                text.push_str(&format!(" WHEN {condition} THEN {result}"));
            }
            format!("{text}{} END", behind(" ELSE ", node.defresult.as_ref()))
        }
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

/// A call.
fn call(call: &ast::FuncCall) -> String {
    if let Some(text) = sql_syntax(call, &plain, &plain) {
        return text;
    }
    let distinct = if call.agg_distinct { "DISTINCT " } else { "" };
    let mut text = format!("{}({distinct}{}", call.funcname, arguments(call, &plain));
    let order = match call.agg_order.as_slice() {
        [] => String::new(),
        keys => format!("ORDER BY {}", sorted(keys)),
    };
    match (order.is_empty(), call.agg_within_group) {
        (true, _) => text.push(')'),
        (false, false) => text.push_str(&format!(" {order})")),
        (false, true) => text.push_str(&format!(") WITHIN GROUP ({order})")),
    }
    if let Some(filter) = &call.agg_filter {
        text.push_str(&format!(" FILTER (WHERE {})", plain(filter)));
    }
    if let Some(window) = &call.over {
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

/// The arguments of a call, by what prints values.
pub(super) fn arguments(call: &ast::FuncCall, value: &dyn Fn(&Expr) -> String) -> String {
    let array = call.args.len().checked_sub(1);
    let array = array.filter(|_| call.func_variadic);
    let args = call.args.iter().enumerate().map(|(at, arg)| {
        let variadic = if array == Some(at) { "VARIADIC " } else { "" };
        let name = arg.name.as_ref().map(|(name, _)| {
            let name = names_shown(std::slice::from_ref(name));
            format!("{name} => ")
        });
        format!(
            "{variadic}{}{}",
            name.unwrap_or_default(),
            value(&arg.value)
        )
    });
    let star = call.agg_star.then(|| "*".to_owned());
    args.chain(star).collect::<Vec<_>>().join(", ")
}
