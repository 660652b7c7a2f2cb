//! Syntax trees back to text, as PostgreSQL prints stored expressions (`pg_get_expr`, `\d`).

use crate::deparse::expr::{negative, type_text};
use crate::deparse::plain::{PlainPrinter, arguments};
use crate::deparse::special::sql_syntax;
use logstead_sql_parse::ast::{self, AExprKind, BoolOp, Expr as Ast, LikeKind, Value};
use logstead_sql_types::value::Bits;
use logstead_sql_types::value::user::TypeSpelling;

/// The text of a default or check expression in PostgreSQL's normal form: operators in parentheses, casts as `::type`,
/// string literals typed.
pub fn expr_to_sql(expr: &Ast, types: TypeSpelling<'_>) -> String {
    NormalForm { types }.print(expr, true)
}

/// Prints expressions in the normal form.
struct NormalForm<'a> {
    types: TypeSpelling<'a>,
}

impl NormalForm<'_> {
    /// `typed`: a bare string literal carries `::text`, as it does where nothing else gives it a type.
    fn print(&self, expr: &Ast, typed: bool) -> String {
        match expr {
            Ast::ColumnRef(column) if !column.star => {
                let names = column.fields.iter().map(|name| quote_name(name));
                names.collect::<Vec<_>>().join(".")
            }
            Ast::Const(node) => match &node.value {
                Value::String(_) if typed => format!("{}::text", node.value),
                Value::Bits(_) | Value::HexBits(_) => bit_literal(&node.value),
                value => negative(value).unwrap_or_else(|| value.to_string()),
            },
            Ast::TypeCast(cast) => {
                let name = &cast.type_name;
                let ty = type_text(name, self.types);
                let operand = &cast.arg;
                match operand {
                    Ast::Const(_)
                    | Ast::ParamRef(_)
                    | Ast::ColumnRef(_)
                    | Ast::SqlValueFunction(_)
                    | Ast::FuncCall(_)
                        if operand
                            .constant()
                            .is_none_or(|value| negative(value).is_none()) =>
                    {
                        let text = self.print(operand, false);
                        let bare = matches!(operand, Ast::Const(_) | Ast::ParamRef(_));
                        let call = matches!(operand, Ast::FuncCall(_) | Ast::SqlValueFunction(_));
                        if bare || call {
                            format!("{text}::{ty}")
                        } else {
                            format!("({text})::{ty}")
                        }
                    }
                    other => {
                        let text = self.print(other, true);
                        if text.starts_with('(') {
                            format!("{text}::{ty}")
                        } else {
                            format!("({text})::{ty}")
                        }
                    }
                }
            }
            Ast::AExpr(node) => self.operator(node),
            Ast::BoolExpr(node) => match (node.op, node.args.as_slice()) {
                (BoolOp::Not, [arg]) => format!("(NOT {})", self.print(arg, true)),
                _ => {
                    let mut parts = Vec::with_capacity(node.args.len());
                    self.conjuncts(node, &mut parts);
                    format!("({})", parts.join(&format!(" {} ", node.op.word())))
                }
            },
            Ast::NullTest(node) => {
                let not = if node.negated { "NOT " } else { "" };
                format!("({} IS {not}NULL)", self.print(&node.arg, true))
            }
            Ast::BooleanTest(node) => {
                let not = if node.negated { "NOT " } else { "" };
                format!(
                    "({} IS {not}{})",
                    self.print(&node.arg, true),
                    node.kind.word()
                )
            }
            Ast::Between(node) => {
                let value = self.print(&node.expr, true);
                let (low, high) = (self.print(&node.low, true), self.print(&node.high, true));
                match (node.symmetric, node.negated) {
                    (true, true) => format!("({value} NOT BETWEEN SYMMETRIC {low} AND {high})"),
                    (true, false) => format!("({value} BETWEEN SYMMETRIC {low} AND {high})"),
                    (false, true) => format!("(({value} < {low}) OR ({value} > {high}))"),
                    (false, false) => format!("(({value} >= {low}) AND ({value} <= {high}))"),
                }
            }
            Ast::In(node) => {
                let items: Vec<String> = node.list.iter().map(|e| self.print(e, true)).collect();
                let value = self.print(&node.expr, true);
                match (items.as_slice(), node.negated) {
                    ([one], false) => format!("({value} = {one})"),
                    ([one], true) => format!("({value} <> {one})"),
                    (_, false) => format!("({value} = ANY (ARRAY[{}]))", items.join(", ")),
                    (_, true) => format!("({value} <> ALL (ARRAY[{}]))", items.join(", ")),
                }
            }
            Ast::Like(node) => {
                let (value, pattern) = (
                    self.print(&node.expr, true),
                    self.print(&node.pattern, true),
                );
                let op = node.kind.operator(node.negated);
                match (node.kind, &node.escape) {
                    (LikeKind::SimilarTo, Some(escape)) => format!(
                        "({value} {op} similar_to_escape({pattern}, {}))",
                        self.print(escape, true)
                    ),
                    (LikeKind::SimilarTo, None) => {
                        format!("({value} {op} similar_to_escape({pattern}))")
                    }
                    (LikeKind::Like | LikeKind::ILike, _) => format!("({value} {op} {pattern})"),
                }
            }
            Ast::FuncCall(node) => self.call(node),
            Ast::CoalesceExpr(node) => format!("COALESCE({})", self.list(&node.args)),
            Ast::MinMaxExpr(node) => format!("{}({})", node.word(), self.list(&node.args)),
            Ast::CaseExpr(node) => {
                let mut text = "CASE".to_owned();
                if let Some(operand) = &node.arg {
                    text.push_str(&format!(" {}", self.print(operand, true)));
                }
                for arm in &node.args {
                    text.push_str(&format!(
                        " WHEN {} THEN {}",
                        self.print(&arm.expr, true),
                        self.print(&arm.result, true)
                    ));
                }
                let otherwise = node
                    .defresult
                    .as_ref()
                    .map_or_else(|| "NULL".to_owned(), |e| self.print(e, true));
                text.push_str(&format!(" ELSE {otherwise} END"));
                text
            }
            Ast::ArrayExpr(array) => {
                format!(
                    "ARRAY[{}]",
                    array
                        .elements
                        .iter()
                        .map(|e| self.print(e, true))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            }
            other => self.plain().plain(other),
        }
    }

    fn list(&self, exprs: &[Ast]) -> String {
        let exprs = exprs.iter().map(|e| self.print(e, true));
        exprs.collect::<Vec<_>>().join(", ")
    }

    /// What AND or OR is of. One that begins with another one is one list with it.
    fn conjuncts(&self, node: &ast::BoolExpr, parts: &mut Vec<String>) {
        for (at, arg) in node.args.iter().enumerate() {
            match arg {
                Ast::BoolExpr(inner) if at == 0 && inner.op == node.op => {
                    self.conjuncts(inner, parts)
                }
                _ => parts.push(self.print(arg, true)),
            }
        }
    }

    /// An operator. A chain of them leans to the left, and is printed in a loop, each pair in parentheses.
    fn operator(&self, node: &ast::AExpr) -> String {
        let mut chain = vec![node];
        let mut first = node;
        while let Some(Ast::AExpr(left)) = &first.lexpr
            && left.kind == AExprKind::Op
            && left.lexpr.is_some()
        {
            first = left;
            chain.push(left);
        }
        let Some(left) = &first.lexpr else {
            return format!("({} {})", first.op, self.print(&first.rexpr, true));
        };
        let mut text = self.print(left, true);
        for node in chain.into_iter().rev() {
            let (op, right) = (&node.op, || self.print(&node.rexpr, true));
            text = match node.kind {
                AExprKind::Op => format!("({text} {op} {})", right()),
                AExprKind::Distinct => format!("({text} IS DISTINCT FROM {})", right()),
                AExprKind::NotDistinct => format!("(NOT ({text} IS DISTINCT FROM {}))", right()),
                AExprKind::NullIf => format!("NULLIF({text}, {})", right()),
                AExprKind::OpAny | AExprKind::OpAll => self.plain().operator(node),
            };
        }
        text
    }

    fn call(&self, call: &ast::FuncCall) -> String {
        let value = |e: &Ast| self.print(e, true);
        if let Some(text) = sql_syntax(call, self.types, &value, &value) {
            return text;
        }
        // Sequences are named by regclass constants.
        let sequence = match (call.funcname.called(), call.args.first()) {
            (Some(name), Some(first)) if matches!(&**name, "nextval" | "currval" | "setval") => {
                Some(&first.value)
            }
            _ => None,
        };
        let sequence = sequence.filter(|name| name.literal().is_some());
        let args = arguments(call, &|e| match e {
            name if sequence.is_some_and(|sequence| std::ptr::eq(sequence, name)) => {
                format!("{}::regclass", self.print(name, false))
            }
            other => self.print(other, true),
        });
        format!("{}({args})", call.funcname)
    }

    fn plain(&self) -> PlainPrinter<'_> {
        PlainPrinter { types: self.types }
    }
}

fn quote_name(name: &str) -> String {
    let plain = name.chars().enumerate().all(|(i, c)| {
        c.is_ascii_lowercase() || c == '_' || (i > 0 && (c.is_ascii_digit() || c == '$'))
    });
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// A string of bits as it is shown: its digits, and the type of one without a length.
pub(super) fn bit_literal(value: &Value) -> String {
    let digits = match value {
        Value::Bits(digits) => format!("b{digits}"),
        Value::HexBits(digits) => format!("x{digits}"),
        other => return other.to_string(),
    };
    let mut shown = Vec::new();
    let written = Bits::parse(&digits).and_then(|bits| bits.write(&mut shown));
    if written.is_err() {
        return value.to_string();
    }
    format!("'{}'::\"bit\"", String::from_utf8_lossy(&shown))
}
