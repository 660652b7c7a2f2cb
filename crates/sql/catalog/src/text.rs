//! What texts that are kept mention: the columns of an expression, or the whole row; and the name of a relation as
//! text. Quoting and splitting of names is handed on from `sql-types` (`value::names`).

use super::{Catalog, Relation};
use logstead_sql_parse::ast::{Expr, Visit, Visitor};
use logstead_sql_types::RelationId;
pub use logstead_sql_types::value::names::{
    NAME_LENGTH_MAX, quote_identifier as quote_ident, quote_literal, split_qualified, truncate_name,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

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
pub fn relation_text(catalog: &Catalog, relation: RelationId, path: &[String]) -> Option<String> {
    let (schema, name) = catalog.name_of(relation)?;
    let found = catalog.object_by_name(None, name, path) == Some(relation);
    Some(if found {
        quote_ident(name)
    } else {
        format!("{}.{}", quote_ident(schema), quote_ident(name))
    })
}
