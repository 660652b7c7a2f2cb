//! Syntax trees back to text, as PostgreSQL prints stored expressions (`pg_get_expr`, `\d`).

use crate::deparse::plain::{argument, plain};
use crate::type_name::sql_type;
use logstead_sql_parse::fold_ident;
use logstead_sql_parse::lowered::{self as ast, BinaryOperator as B, Expr as Ast, Value};
use logstead_sql_types::value::{Bits, info};

/// The text of a default or check expression in PostgreSQL's normal form: operators in parentheses, casts as `::type`,
/// string literals typed.
pub fn expr_to_sql(expr: &Ast) -> String {
    print(expr, true)
}

/// `typed`: a bare string literal carries `::text`, as it does where nothing else gives it a type.
fn print(expr: &Ast, typed: bool) -> String {
    match expr {
        Ast::Nested(inner) => print(inner, typed),
        Ast::Identifier(ident) => quote_ident(ident),
        Ast::CompoundIdentifier(parts) => {
            parts.iter().map(quote_ident).collect::<Vec<_>>().join(".")
        }
        Ast::Value(value) => match &value.value {
            Value::String(text) => {
                let literal = format!("'{}'", text.replace('\'', "''"));
                if typed {
                    format!("{literal}::text")
                } else {
                    literal
                }
            }
            Value::Boolean(value) => value.to_string(),
            Value::Bits(_) | Value::HexBits(_) => bit_literal(&value.value),
            Value::Null => "NULL".to_owned(),
            other => other.to_string(),
        },
        Ast::Cast {
            expr: inner,
            data_type,
            ..
        } => {
            let ty = sql_type(data_type).map_or_else(|_| data_type.to_string(), info::format_type);
            let operand = logstead_sql_parse::strip(inner);
            match operand {
                Ast::Value(_)
                | Ast::Identifier(_)
                | Ast::CompoundIdentifier(_)
                | Ast::Function(_) => {
                    let text = print(operand, false);
                    let bare = matches!(operand, Ast::Value(_));
                    let call = matches!(operand, Ast::Function(_));
                    if bare || call {
                        format!("{text}::{ty}")
                    } else {
                        format!("({text})::{ty}")
                    }
                }
                other => {
                    let text = print(other, true);
                    if text.starts_with('(') {
                        format!("{text}::{ty}")
                    } else {
                        format!("({text})::{ty}")
                    }
                }
            }
        }
        Ast::BinaryOp { .. } => binary(expr),
        Ast::UnaryOp { op, expr: inner } => match op {
            ast::UnaryOperator::Not => format!("(NOT {})", print(inner, true)),
            ast::UnaryOperator::Minus | ast::UnaryOperator::Plus => {
                match logstead_sql_parse::strip(inner) {
                    Ast::Value(value) if matches!(value.value, Value::Number(..)) => {
                        let sign = if *op == ast::UnaryOperator::Minus {
                            "-"
                        } else {
                            ""
                        };
                        format!(
                            "'{sign}{}'::{}",
                            print(inner, false),
                            number_type(&value.value)
                        )
                    }
                    other => format!("({op} {})", print(other, true)),
                }
            }
            other => format!("({other} {})", print(inner, true)),
        },
        Ast::IsNull(inner) => format!("({} IS NULL)", print(inner, true)),
        Ast::IsNotNull(inner) => format!("({} IS NOT NULL)", print(inner, true)),
        Ast::IsTrue(inner) => format!("({} IS TRUE)", print(inner, true)),
        Ast::IsNotTrue(inner) => format!("({} IS NOT TRUE)", print(inner, true)),
        Ast::IsFalse(inner) => format!("({} IS FALSE)", print(inner, true)),
        Ast::IsNotFalse(inner) => format!("({} IS NOT FALSE)", print(inner, true)),
        Ast::IsUnknown(inner) => format!("({} IS UNKNOWN)", print(inner, true)),
        Ast::IsNotUnknown(inner) => format!("({} IS NOT UNKNOWN)", print(inner, true)),
        Ast::IsDistinctFrom(a, b) => {
            format!("({} IS DISTINCT FROM {})", print(a, true), print(b, true))
        }
        Ast::IsNotDistinctFrom(a, b) => format!(
            "(NOT ({} IS DISTINCT FROM {}))",
            print(a, true),
            print(b, true)
        ),
        Ast::Between {
            expr: inner,
            negated,
            symmetric,
            low,
            high,
        } => {
            let (value, low, high) = (print(inner, true), print(low, true), print(high, true));
            if *symmetric {
                let not = if *negated { "NOT " } else { "" };
                format!("({value} {not}BETWEEN SYMMETRIC {low} AND {high})")
            } else if *negated {
                format!("(({value} < {low}) OR ({value} > {high}))")
            } else {
                format!("(({value} >= {low}) AND ({value} <= {high}))")
            }
        }
        Ast::InList {
            expr: inner,
            list,
            negated,
        } => {
            let items: Vec<String> = list.iter().map(|e| print(e, true)).collect();
            let value = print(inner, true);
            match (items.as_slice(), negated) {
                ([one], false) => format!("({value} = {one})"),
                ([one], true) => format!("({value} <> {one})"),
                (_, false) => format!("({value} = ANY (ARRAY[{}]))", items.join(", ")),
                (_, true) => format!("({value} <> ALL (ARRAY[{}]))", items.join(", ")),
            }
        }
        Ast::Like {
            negated,
            expr: inner,
            pattern,
            ..
        } => {
            format!(
                "({} {} {})",
                print(inner, true),
                if *negated { "!~~" } else { "~~" },
                print(pattern, true)
            )
        }
        Ast::ILike {
            negated,
            expr: inner,
            pattern,
            ..
        } => {
            format!(
                "({} {} {})",
                print(inner, true),
                if *negated { "!~~*" } else { "~~*" },
                print(pattern, true)
            )
        }
        Ast::SimilarTo {
            negated,
            expr: inner,
            pattern,
            escape_char,
        } => {
            let escape = escape_char
                .as_ref()
                .map(|e| format!(", {}", print(e, true)));
            format!(
                "({} {} similar_to_escape({}{}))",
                print(inner, true),
                if *negated { "!~" } else { "~" },
                print(pattern, true),
                escape.unwrap_or_default()
            )
        }
        Ast::Function(function) => call(function),
        Ast::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            let mut text = "CASE".to_owned();
            if let Some(operand) = operand {
                text.push_str(&format!(" {}", print(operand, true)));
            }
            for arm in conditions {
                text.push_str(&format!(
                    " WHEN {} THEN {}",
                    print(&arm.condition, true),
                    print(&arm.result, true)
                ));
            }
            let otherwise = else_result
                .as_ref()
                .map_or_else(|| "NULL".to_owned(), |e| print(e, true));
            text.push_str(&format!(" ELSE {otherwise} END"));
            text
        }
        Ast::Array(array) => {
            format!(
                "ARRAY[{}]",
                array
                    .elem
                    .iter()
                    .map(|e| print(e, true))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        other => plain(other),
    }
}

fn number_type(value: &Value) -> &'static str {
    match value {
        Value::Number(digits) if digits.parse::<i32>().is_ok() => "integer",
        Value::Number(digits) if digits.parse::<i64>().is_ok() => "bigint",
        _ => "numeric",
    }
}

/// Chains of AND / OR print as one list; everything else in pairs, each in parentheses.
fn binary(expr: &Ast) -> String {
    let Ast::BinaryOp { op: outer, .. } = expr else {
        return plain(expr);
    };
    if matches!(outer, B::And | B::Or) {
        let mut parts = Vec::new();
        let mut head = expr;
        while let Ast::BinaryOp { left, op, right } = head
            && op == outer
        {
            parts.push(print(right, true));
            head = logstead_sql_parse::strip(left);
        }
        parts.push(print(head, true));
        parts.reverse();
        return format!(
            "({})",
            parts.join(if *outer == B::And { " AND " } else { " OR " })
        );
    }
    let mut pairs = Vec::new();
    let mut head = expr;
    while let Ast::BinaryOp { left, op, right } = head
        && !matches!(op, B::And | B::Or)
    {
        pairs.push((op, right));
        head = left;
    }
    let mut text = print(head, true);
    while let Some((op, right)) = pairs.pop() {
        text = format!("({text} {op} {})", print(right, true));
    }
    text
}

fn call(function: &ast::Function) -> String {
    let name = function.name.0.iter().map(quote_ident);
    let name = name.collect::<Vec<_>>().join(".");
    let keyword = matches!(
        name.as_str(),
        "current_date"
            | "current_timestamp"
            | "current_time"
            | "localtime"
            | "localtimestamp"
            | "current_user"
            | "session_user"
            | "current_role"
            | "user"
    );
    if keyword {
        return match &function.args {
            ast::FunctionArguments::List(list) if !list.args.is_empty() => {
                format!("{}({})", name.to_uppercase(), args(list, &name))
            }
            _ => name.to_uppercase(),
        };
    }
    match &function.args {
        ast::FunctionArguments::List(list) => {
            let shown = match name.as_str() {
                "coalesce" | "nullif" | "greatest" | "least" => name.to_uppercase(),
                _ => name.clone(),
            };
            format!("{shown}({})", args(list, &name))
        }
        _ => super::plain::call(function),
    }
}

fn args(list: &ast::FunctionArgumentList, function: &str) -> String {
    // Sequences are named by regclass constants.
    let sequence = matches!(function, "nextval" | "currval" | "setval");
    list.args
        .iter()
        .enumerate()
        .map(|(i, arg)| match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => {
                match logstead_sql_parse::strip(expr) {
                    Ast::Value(value)
                        if sequence && i == 0 && matches!(value.value, Value::String(_)) =>
                    {
                        format!("{}::regclass", print(expr, false))
                    }
                    other => print(other, true),
                }
            }
            other => argument(other),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn quote_ident(ident: &ast::Ident) -> String {
    let name = fold_ident(ident);
    let plain = name.chars().enumerate().all(|(i, c)| {
        c.is_ascii_lowercase() || c == '_' || (i > 0 && (c.is_ascii_digit() || c == '$'))
    });
    if plain && !name.is_empty() {
        name
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// A string of bits as it is shown: its digits, and the type of one without a length.
pub(super) fn bit_literal(value: &ast::Value) -> String {
    let digits = match value {
        ast::Value::Bits(digits) => format!("b{digits}"),
        ast::Value::HexBits(digits) => format!("x{digits}"),
        other => return other.to_string(),
    };
    let mut shown = Vec::new();
    let written = Bits::parse(&digits).and_then(|bits| bits.write(&mut shown));
    if written.is_err() {
        return value.to_string();
    }
    format!("'{}'::\"bit\"", String::from_utf8_lossy(&shown))
}
