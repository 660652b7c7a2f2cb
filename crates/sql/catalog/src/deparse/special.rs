//! Functions that SQL's own words call, rows, and whole rows of FROM items, as PostgreSQL prints them.

use crate::deparse::expr::{Parent, Printer};
use crate::text::quote_ident;
use crate::type_name::sql_type;
use logstead_sql_parse::ast::{Expr, FuncCall, Name, TypeName};
use logstead_sql_types::value::oid;
use logstead_sql_types::value::user::TypeSpelling;

/// `item.*`, which `bind::viewdef` has cast to the type of the row.
fn whole_row(expr: &Expr) -> Option<(&[Name], &TypeName)> {
    let Expr::TypeCast(cast) = expr else {
        return None;
    };
    match &cast.arg {
        Expr::ColumnRef(column) if column.star => Some((&column.fields, &cast.type_name)),
        _ => None,
    }
}

fn star(names: &[Name]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote_ident(name)).collect();
    format!("{}.*", names.join("."))
}

/// The word that a literal stands for, whatever type it was given.
fn word(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::TypeCast(cast) => word(&cast.arg),
        expr => expr.literal(),
    }
}

/// Is it a text, as far as it says so itself?
fn is_text(expr: &Expr, types: TypeSpelling<'_>) -> bool {
    match expr {
        Expr::TypeCast(cast) => {
            sql_type(&cast.type_name, types.types).is_ok_and(|ty| ty.oid == oid::TEXT)
        }
        expr => expr.literal().is_some(),
    }
}

/// A call by SQL's own words (`get_func_sql_syntax`), by what prints arguments, and operands of words; none if it is
/// printed as any other call.
pub(super) fn sql_syntax(
    call: &FuncCall,
    types: TypeSpelling<'_>,
    value: &dyn Fn(&Expr) -> String,
    operand: &dyn Fn(&Expr) -> String,
) -> Option<String> {
    let function = call.sql_syntax()?;
    let args = call.values()?;
    let behind = |words: &str, args: &[&Expr]| {
        let arg = args.first();
        arg.map_or_else(String::new, |arg| format!("{words}{}", value(arg)))
    };
    Some(match (function, args.as_slice()) {
        ("timezone", [zone, timestamp]) => {
            format!("({} AT TIME ZONE {})", operand(timestamp), operand(zone))
        }
        ("overlaps", [a, b, c, d]) => {
            let (a, b, c, d) = (value(a), value(b), value(c), value(d));
            format!("(({a}, {b}) OVERLAPS ({c}, {d}))")
        }
        ("extract", [field, from]) => {
            format!("EXTRACT({} FROM {})", word(field)?, value(from))
        }
        ("is_normalized", [text]) => format!("({} IS NORMALIZED)", operand(text)),
        ("is_normalized", [text, form]) => {
            format!("({} IS {} NORMALIZED)", operand(text), word(form)?)
        }
        ("normalize", [text]) => format!("NORMALIZE({})", value(text)),
        ("normalize", [text, form]) => format!("NORMALIZE({}, {})", value(text), word(form)?),
        ("pg_collation_for", [arg]) => format!("COLLATION FOR ({})", value(arg)),
        ("overlay", [text, what, from, rest @ ..]) if rest.len() < 2 => format!(
            "OVERLAY({} PLACING {} FROM {}{})",
            value(text),
            value(what),
            value(from),
            behind(" FOR ", rest)
        ),
        ("position", [whole, part]) => {
            format!("POSITION(({}) IN ({}))", value(part), value(whole))
        }
        ("substring", [text, pattern, escape]) if is_text(pattern, types) => format!(
            "SUBSTRING({} SIMILAR {} ESCAPE {})",
            value(text),
            value(pattern),
            value(escape)
        ),
        ("substring", [text, from, rest @ ..]) if rest.len() < 2 => format!(
            "SUBSTRING({} FROM {}{})",
            value(text),
            value(from),
            behind(" FOR ", rest)
        ),
        (trim @ ("ltrim" | "rtrim" | "btrim"), [text, rest @ ..]) if rest.len() < 2 => {
            let side = match trim {
                "ltrim" => "LEADING",
                "rtrim" => "TRAILING",
                _ => "BOTH",
            };
            format!("TRIM({side}{} FROM {})", behind(" ", rest), value(text))
        }
        ("xmlexists", [path, document]) => {
            format!("XMLEXISTS(({}) PASSING ({}))", value(path), value(document))
        }
        _ => return None,
    })
}

impl Printer<'_> {
    /// An item of a list in which `item.*` would be the columns and not the row.
    pub(super) fn item(&self, expr: &Expr) -> String {
        match whole_row(expr) {
            Some((parts, ty)) => format!("{}::{}", star(parts), self.type_text(ty)),
            None => self.print(expr, Parent::Free),
        }
    }

    /// Is it `item.*`?
    pub(super) fn is_whole_row(expr: &Expr) -> bool {
        whole_row(expr).is_some()
    }

    /// Is it a row that is written as one?
    pub(super) fn is_row(expr: &Expr) -> bool {
        logstead_sql_parse::row_of(expr).is_some()
    }

    pub(super) fn special(&self, expr: &Expr) -> Option<String> {
        if let Some((parts, _)) = whole_row(expr) {
            return Some(star(parts));
        }
        Some(match expr {
            Expr::RowExpr(node) => {
                let fields = node.args.iter().map(|e| self.item(e));
                format!("ROW({})", fields.collect::<Vec<_>>().join(", "))
            }
            Expr::CoalesceExpr(node) => format!("COALESCE({})", self.listed(&node.args)),
            Expr::MinMaxExpr(node) => format!("{}({})", node.word(), self.listed(&node.args)),
            Expr::GroupingFunc(node) => format!("GROUPING({})", self.listed(&node.args)),
            Expr::FuncCall(node) => self.sql_syntax(node)?,
            _ => return None,
        })
    }

    /// A call by SQL's own words.
    pub(super) fn sql_syntax(&self, call: &FuncCall) -> Option<String> {
        let value = |e: &Expr| self.print(e, Parent::Free);
        sql_syntax(call, self.types(), &value, &|e| {
            self.print(e, Parent::Tight)
        })
    }

    /// Expressions in a list.
    pub(super) fn listed(&self, exprs: &[Expr]) -> String {
        let exprs = exprs.iter().map(|e| self.print(e, Parent::Free));
        exprs.collect::<Vec<_>>().join(", ")
    }
}
