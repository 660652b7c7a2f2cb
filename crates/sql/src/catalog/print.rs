//! Expressions as text, as PostgreSQL prints the stored ones: every operation in parentheses, or (pretty) only where needed.
//!
//! Works on syntax trees whose types are explicit (`ddl::typed` makes them so): prints, decides nothing.

use super::text::{fold, quote_ident, quote_literal};
use crate::value::format_type;
use sqlparser::ast::{self, BinaryOperator as B, Expr, UnaryOperator, Value};

/// What an expression stands in: decides whether the pretty form needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    /// Nothing, a function's arguments, an array, CASE.
    Free,
    And,
    Or,
    Not,
    /// The left (true) or right operand of an arithmetic operator of this strength.
    Arithmetic(u8, bool),
    /// Any other operator, a test, a cast.
    Tight,
}

struct Printer {
    pretty: bool,
}

/// The normal form.
pub(crate) fn normal(expr: &Expr) -> String {
    Printer { pretty: false }.print(expr, Parent::Free)
}

/// The form for people, of a stored text; a text that does not parse is given back.
pub(crate) fn pretty(stored: &str) -> String {
    match crate::parse::parse_expr(stored) {
        Ok(expr) => Printer { pretty: true }.print(&expr, Parent::Free),
        Err(_) => stored.to_owned(),
    }
}

/// Strength of an arithmetic operator.
fn arithmetic(op: &B) -> Option<u8> {
    match op {
        B::Plus | B::Minus => Some(1),
        B::Multiply | B::Divide | B::Modulo => Some(2),
        _ => None,
    }
}

impl Printer {
    fn wrap(&self, text: String, bare: bool) -> String {
        if self.pretty && bare {
            text
        } else {
            format!("({text})")
        }
    }

    fn print(&self, expr: &Expr, parent: Parent) -> String {
        let free = parent == Parent::Free;
        let tight = |e: &Expr| self.print(e, Parent::Tight);
        match expr {
            Expr::Nested(inner) => self.print(inner, parent),
            Expr::Identifier(name) => quote_ident(&fold(name)),
            Expr::CompoundIdentifier(parts) => parts
                .last()
                .map(|p| quote_ident(&fold(p)))
                .unwrap_or_default(),
            Expr::Value(value) => constant(&value.value),
            Expr::TypedString(typed) => {
                let ty = type_text(&typed.data_type);
                format!("{}::{ty}", constant(&typed.value.value))
            }
            Expr::Interval(interval) if interval.leading_field.is_none() => {
                format!("{}::interval", self.print(&interval.value, Parent::Tight))
            }
            Expr::Cast {
                expr: inner,
                data_type,
                ..
            } => self.cast(inner, &type_text(data_type)),
            Expr::BinaryOp {
                left,
                op: op @ (B::And | B::Or),
                right,
            } => {
                let and = *op == B::And;
                let own = if and { Parent::And } else { Parent::Or };
                let mut parts = Vec::new();
                self.chain(left, op, own, &mut parts);
                self.chain(right, op, own, &mut parts);
                let bare = match parent {
                    Parent::Free | Parent::Or => true,
                    Parent::And => and,
                    _ => false,
                };
                self.wrap(parts.join(if and { " AND " } else { " OR " }), bare)
            }
            Expr::BinaryOp { left, op, right } => {
                let strength = arithmetic(op);
                let side =
                    |left: bool| strength.map_or(Parent::Tight, |s| Parent::Arithmetic(s, left));
                let text = format!(
                    "{} {op} {}",
                    self.print(left, side(true)),
                    self.print(right, side(false))
                );
                let bare = match (parent, strength) {
                    (Parent::Free | Parent::And | Parent::Or | Parent::Not, _) => true,
                    (Parent::Arithmetic(outer, left), Some(own)) => {
                        own > outer || (own == outer && left)
                    }
                    _ => false,
                };
                self.wrap(text, bare)
            }
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: inner,
            } => {
                let text = format!("NOT {}", self.print(inner, Parent::Not));
                self.wrap(
                    text,
                    matches!(parent, Parent::Free | Parent::And | Parent::Or),
                )
            }
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: inner,
            } => match negative(inner) {
                Some(text) => text,
                None => self.wrap(format!("- {}", tight(inner)), free),
            },
            Expr::UnaryOp { op, expr: inner } => self.wrap(format!("{op} {}", tight(inner)), free),
            Expr::IsNull(e) => self.test(e, "IS NULL", parent),
            Expr::IsNotNull(e) => self.test(e, "IS NOT NULL", parent),
            Expr::IsTrue(e) => self.test(e, "IS TRUE", parent),
            Expr::IsNotTrue(e) => self.test(e, "IS NOT TRUE", parent),
            Expr::IsFalse(e) => self.test(e, "IS FALSE", parent),
            Expr::IsNotFalse(e) => self.test(e, "IS NOT FALSE", parent),
            Expr::IsUnknown(e) => self.test(e, "IS UNKNOWN", parent),
            Expr::IsNotUnknown(e) => self.test(e, "IS NOT UNKNOWN", parent),
            Expr::IsDistinctFrom(a, b) => {
                let text = format!("{} IS DISTINCT FROM {}", tight(a), tight(b));
                self.wrap(
                    text,
                    matches!(
                        parent,
                        Parent::Free | Parent::And | Parent::Or | Parent::Not
                    ),
                )
            }
            Expr::IsNotDistinctFrom(a, b) => {
                let inner = self.wrap(format!("{} IS DISTINCT FROM {}", tight(a), tight(b)), true);
                self.wrap(
                    format!("NOT {inner}"),
                    matches!(parent, Parent::Free | Parent::And | Parent::Or),
                )
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => {
                let right = self.print(right, Parent::Free);
                self.wrap(
                    format!("{} {compare_op} ANY ({})", tight(left), right),
                    free,
                )
            }
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => {
                let right = self.print(right, Parent::Free);
                self.wrap(
                    format!("{} {compare_op} ALL ({})", tight(left), right),
                    free,
                )
            }
            Expr::Array(array) => {
                let items: Vec<_> = array
                    .elem
                    .iter()
                    .map(|e| self.print(e, Parent::Free))
                    .collect();
                format!("ARRAY[{}]", items.join(", "))
            }
            Expr::Function(function) => self.call(function),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special,
                shorthand,
            } => {
                let part = |e: &Expr| self.print(e, Parent::Free);
                let (from, length) = (substring_from.as_deref(), substring_for.as_deref());
                if *special {
                    let all = std::iter::once(&**expr).chain(from).chain(length);
                    let all: Vec<String> = all.map(part).collect();
                    let name = if *shorthand {
                        "substr"
                    } else {
                        "\"substring\""
                    };
                    return format!("{name}({})", all.join(", "));
                }
                let from = from.map_or_else(String::new, |e| format!(" FROM {}", part(e)));
                let length = length.map_or_else(String::new, |e| format!(" FOR {}", part(e)));
                format!("SUBSTRING({}{from}{length})", part(expr))
            }
            Expr::Trim {
                expr,
                trim_where,
                trim_what,
                trim_characters: None,
            } => {
                let (side, name) = match trim_where {
                    Some(ast::TrimWhereField::Leading) => ("LEADING", "ltrim"),
                    Some(ast::TrimWhereField::Trailing) => ("TRAILING", "rtrim"),
                    _ => ("BOTH", "btrim"),
                };
                let part = |e: &Expr| self.print(e, Parent::Free);
                match trim_what.as_deref() {
                    Some(what) => {
                        format!("TRIM({side} {} FROM {})", part(what), part(expr))
                    }
                    // The parser does not know TRIM(BOTH FROM text).
                    None => format!("{name}({})", part(expr)),
                }
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                // On lines of its own, as PostgreSQL lays it out in either form.
                let mut text = "\nCASE".to_owned();
                if let Some(operand) = operand {
                    text.push_str(&format!(" {}", self.print(operand, Parent::Free)));
                }
                for arm in conditions {
                    let (when, then) = (&arm.condition, &arm.result);
                    text.push_str(&format!(
                        "\n    WHEN {} THEN {}",
                        self.print(when, Parent::Free),
                        self.print(then, Parent::Free)
                    ));
                }
                let otherwise = else_result.as_ref().map(|e| self.print(e, Parent::Free));
                let otherwise = otherwise.unwrap_or_else(|| "NULL".to_owned());
                format!("{text}\n    ELSE {otherwise}\nEND")
            }
            other => crate::bind::expr_to_sql(other),
        }
    }

    fn chain(&self, expr: &Expr, op: &B, own: Parent, parts: &mut Vec<String>) {
        match expr {
            Expr::Nested(inner) => self.chain(inner, op, own, parts),
            Expr::BinaryOp {
                left,
                op: inner,
                right,
            } if inner == op => {
                self.chain(left, op, own, parts);
                self.chain(right, op, own, parts);
            }
            other => parts.push(self.print(other, own)),
        }
    }

    fn test(&self, expr: &Expr, what: &str, parent: Parent) -> String {
        let text = format!("{} {what}", self.print(expr, Parent::Tight));
        self.wrap(
            text,
            matches!(
                parent,
                Parent::Free | Parent::And | Parent::Or | Parent::Not
            ),
        )
    }

    fn cast(&self, inner: &Expr, ty: &str) -> String {
        let inner = stripped(inner);
        if let Expr::Value(value) = inner
            && !matches!(value.value, Value::Number(..) | Value::Boolean(_))
        {
            return format!("{}::{ty}", constant(&value.value));
        }
        let text = self.print(inner, Parent::Tight);
        if self.pretty || text.starts_with('(') && text.ends_with(')') {
            format!("{text}::{ty}")
        } else {
            format!("({text})::{ty}")
        }
    }

    fn call(&self, function: &ast::Function) -> String {
        let ast::FunctionArguments::List(list) = &function.args else {
            return crate::bind::expr_to_sql(&Expr::Function(function.clone()));
        };
        let printed: Option<Vec<String>> = list
            .args
            .iter()
            .map(|arg| match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => {
                    Some(self.print(e, Parent::Free))
                }
                _ => None,
            })
            .collect();
        let name = function.name.to_string().to_lowercase();
        let plain = list.clauses.is_empty()
            && list.duplicate_treatment.is_none()
            && function.filter.is_none();
        match printed {
            Some(args) if plain && !args.is_empty() => {
                let keyword = ["coalesce", "nullif", "greatest", "least"].contains(&name.as_str());
                let name = if keyword { name.to_uppercase() } else { name };
                format!("{name}({})", args.join(", "))
            }
            _ => crate::bind::expr_to_sql(&Expr::Function(function.clone())),
        }
    }
}

fn stripped(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

fn type_text(data_type: &ast::DataType) -> String {
    crate::bind::sql_type(data_type).map_or_else(|_| data_type.to_string(), format_type)
}

fn constant(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => quote_literal(text),
        Value::DollarQuotedString(text) => quote_literal(&text.value),
        Value::Boolean(value) => value.to_string(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    }
}

/// A negative number is a constant in quotes.
fn negative(inner: &Expr) -> Option<String> {
    let Expr::Value(value) = stripped(inner) else {
        return None;
    };
    let Value::Number(digits, _) = &value.value else {
        return None;
    };
    let digits = digits.to_string();
    let ty = match digits.parse::<u64>() {
        Ok(n) if n <= 1 << 31 => "integer",
        Ok(n) if n <= 1 << 63 => "bigint",
        _ => "numeric",
    };
    Some(format!("'-{digits}'::{ty}"))
}
