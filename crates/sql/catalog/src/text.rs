//! Names and expressions as SQL text: quoting, splitting qualified names, the columns an expression mentions.

use super::{Catalog, Relation};
use crate::name_lookup::NameLookup;
use logstead_sql_parse::ast::{Expr, Visit, Visitor};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
pub use logstead_sql_types::value::names::{
    NAME_LENGTH_MAX, quote_identifier as quote_ident, quote_literal, split_qualified, truncate_name,
};
use logstead_types::SqlState;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Where the first of a character stands that is neither in double quotes nor, if those count, in parentheses or
/// brackets.
/// `None` if there is none; 22P02 if the text ends within any of these.
fn first_outside(text: &str, wanted: char, nests: bool) -> Result<Option<usize>> {
    let (mut quoted, mut depth) = (false, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            c if c == wanted && depth == 0 => return Ok(Some(at)),
            '(' | '[' if nests => depth += 1,
            ')' | ']' if nests => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    match nests && (quoted || depth > 0) {
        true => Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "improper type name",
        )),
        false => Ok(None),
    }
}

/// The text of a name and the types in parentheses behind it, as `regprocedure` and `regoperator` read them; 0 stands
/// for NONE, where that may
/// stand.
pub fn name_and_types<'t>(
    text: &'t str,
    allows_none: bool,
    lookup: NameLookup<'_>,
) -> Result<(&'t str, Vec<Oid>)> {
    let wrong = |what: &str| SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, what);
    let open = first_outside(text, '(', false)?;
    let open = open.ok_or_else(|| wrong("expected a left parenthesis"))?;
    let (name, rest) = text.split_at(open);
    let inner = rest.get(1..).unwrap_or_default().trim_end();
    let inner = inner.strip_suffix(')');
    let inner = inner.ok_or_else(|| wrong("expected a right parenthesis"))?;
    let mut types = Vec::new();
    let mut rest = Some(inner.trim_start()).filter(|inner| !inner.is_empty());
    while let Some(part) = rest {
        if part.is_empty() {
            return Err(wrong("expected a type name"));
        }
        let comma = first_outside(part, ',', true)?;
        let named = part.get(..comma.unwrap_or(part.len())).unwrap_or_default();
        let named = named.trim_end();
        types.push(match allows_none && named.eq_ignore_ascii_case("none") {
            true => 0,
            false => crate::type_name::type_by_text(named, lookup)?,
        });
        rest = comma.map(|comma| part.get(comma + 1..).unwrap_or_default().trim_start());
    }
    Ok((name, types))
}

/// Positions of the columns that a stored expression mentions, in the order of the table.
pub fn columns_in(text: &str, relation: &Relation) -> Vec<usize> {
    let Ok(expr) = logstead_sql_parse::parse_expr(text) else {
        return Vec::new();
    };
    columns_of(&expr, relation)
}

/// Positions of the columns that an expression mentions, in the order of the table.
pub fn columns_of(expr: &Expr, relation: &Relation) -> Vec<usize> {
    struct Names<'a>(&'a Relation, BTreeSet<usize>);
    impl Visitor for Names<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Some(name) = expr.column_names().and_then(<[_]>::last)
                && let Some(position) = self
                    .0
                    .columns
                    .iter()
                    .position(|c| !c.dropped && *c.name == **name)
            {
                self.1.insert(position);
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(relation, BTreeSet::new());
    let _ = expr.visit(&mut names);
    names.1.into_iter().collect()
}

/// Does a stored expression take the table's whole row: by the table's name, or as `name.*`?
pub fn takes_row(text: &str, relation: &Relation) -> bool {
    struct Rows<'a>(&'a Relation);
    impl Visitor for Rows<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_row = match expr {
                Expr::ColumnRef(column) if column.star => true,
                Expr::ColumnRef(column) => {
                    let is_name = |name: &str| matches!(&*column.fields, [own] if **own == *name);
                    let mut columns = self.0.columns.iter();
                    is_name(&self.0.name) && !columns.any(|c| !c.dropped && is_name(&c.name))
                }
                _ => false,
            };
            match is_row {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    let expr = logstead_sql_parse::parse_expr(text);
    expr.is_ok_and(|expr| expr.visit(&mut Rows(relation)).is_break())
}

/// Name of a relation or index as regclass output prints it: qualified only if the path does not find it.
pub fn relation_text(catalog: &Catalog, relation: Oid, path: &[String]) -> Option<String> {
    let (schema, name) = catalog.name_of(relation)?;
    let found = catalog.object_by_name(None, name, path) == Some(relation);
    Some(if found {
        quote_ident(name)
    } else {
        format!("{}.{}", quote_ident(schema), quote_ident(name))
    })
}
