//! Functions with a syntax of their own, rows, and whole rows of FROM items, as PostgreSQL prints them.

use crate::deparse::expr::{Parent, Printer, stripped, type_text};
use crate::text::quote_ident;
use logstead_sql_parse::ast::{Name, TypeName};
use logstead_sql_parse::lowered::{self as ast, Expr};

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

impl Printer {
    /// An item of a list in which `item.*` would be the columns and not the row.
    pub(super) fn item(&self, expr: &Expr) -> String {
        match whole_row(stripped(expr)) {
            Some((parts, ty)) => format!("{}::{}", star(parts), type_text(ty)),
            None => self.print(expr, Parent::Free),
        }
    }

    /// Is it `item.*`?
    pub(super) fn is_whole_row(expr: &Expr) -> bool {
        whole_row(expr).is_some()
    }

    /// Is it a row that is written as one?
    pub(super) fn is_row(expr: &Expr) -> bool {
        logstead_sql_parse::row_of(stripped(expr)).is_some()
    }

    pub(super) fn special(&self, expr: &Expr, parent: Parent) -> Option<String> {
        let part = |e: &Expr| self.print(e, Parent::Free);
        let tight = |e: &Expr| self.print(e, Parent::Tight);
        if let Some((parts, _)) = whole_row(expr) {
            return Some(star(parts));
        }
        Some(match expr {
            Expr::Overlaps(node) => {
                let [a, b, c, d] = &node.args;
                format!(
                    "(({}, {}) OVERLAPS ({}, {}))",
                    part(a),
                    part(b),
                    part(c),
                    part(d)
                )
            }
            Expr::RowExpr(node) => {
                let fields = node.args.iter().map(|e| self.item(e));
                format!("ROW({})", fields.collect::<Vec<_>>().join(", "))
            }
            Expr::CoalesceExpr(node) => format!("COALESCE({})", self.listed(&node.args)),
            Expr::MinMaxExpr(node) => format!("{}({})", node.word(), self.listed(&node.args)),
            Expr::GroupingFunc(node) => format!("GROUPING({})", self.listed(&node.args)),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special,
                shorthand,
            } => {
                let (from, length) = (substring_from.as_deref(), substring_for.as_deref());
                if *special {
                    let all = std::iter::once(&**expr).chain(from).chain(length);
                    let all: Vec<String> = all.map(part).collect();
                    let name = if *shorthand {
                        "substr"
                    } else {
                        "\"substring\""
                    };
                    return Some(format!("{name}({})", all.join(", ")));
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
                let side = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "LEADING",
                    Some(ast::TrimWhereField::Trailing) => "TRAILING",
                    _ => "BOTH",
                };
                let what = trim_what.as_deref();
                let what = what.map_or_else(String::new, |e| format!("{} ", part(e)));
                format!("TRIM({side} {what}FROM {})", part(expr))
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let length = overlay_for.as_deref();
                let length = length.map_or_else(String::new, |e| format!(" FOR {}", part(e)));
                format!(
                    "OVERLAY({} PLACING {} FROM {}{length})",
                    part(expr),
                    part(overlay_what),
                    part(overlay_from)
                )
            }
            Expr::IsNormalized {
                expr,
                form,
                negated,
            } => {
                let form = form.map_or_else(String::new, |form| format!(" {form}"));
                let text = format!("({} IS{form} NORMALIZED)", tight(expr));
                match negated {
                    true => self.wrap(
                        format!("NOT {text}"),
                        matches!(parent, Parent::Free | Parent::And | Parent::Or),
                    ),
                    false => text,
                }
            }
            Expr::AtTimeZone {
                timestamp,
                time_zone,
                ..
            } => format!("({} AT TIME ZONE {})", tight(timestamp), tight(time_zone)),
            Expr::Extract { field, expr, .. } => {
                let field = field.to_string().to_lowercase();
                format!("EXTRACT({field} FROM {})", part(expr))
            }
            Expr::Position { expr, r#in } => {
                format!("POSITION(({}) IN ({}))", part(expr), part(r#in))
            }
            _ => return None,
        })
    }

    /// Expressions in a list.
    pub(super) fn listed(&self, exprs: &[Expr]) -> String {
        let exprs = exprs.iter().map(|e| self.print(e, Parent::Free));
        exprs.collect::<Vec<_>>().join(", ")
    }

    /// `normalize(text, form)` and `normalize(text)`.
    pub(super) fn normalize(&self, args: &[ast::FunctionArg]) -> Option<String> {
        let mut shown = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) = arg else {
                return None;
            };
            shown.push(match (at, stripped(e)) {
                (1, form) => form.bare_name()?.to_uppercase(),
                (_, e) => self.print(e, Parent::Free),
            });
        }
        Some(format!("NORMALIZE({})", shown.join(", ")))
    }
}
