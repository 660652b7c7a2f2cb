//! CREATE SCHEMA with what is to be made in it, and CREATE TABLE AS EXECUTE: statements that consist of others, each parsed as if it stood alone.

use super::StatementTree;
use crate::lowered::{self as ast, Statement};
use logstead_sql_types::error::{Result, SqlError};

/// The statement with this query in the place of the one that stood for EXECUTE.
pub fn with_query(table: &StatementTree, query: ast::Query) -> Result<StatementTree> {
    let mut statement = Statement::clone(table);
    let Statement::CreateTable(create) = &mut statement else {
        return Err(SqlError::internal("CREATE TABLE AS of another statement"));
    };
    let wanted = create
        .query
        .as_mut()
        .ok_or_else(|| SqlError::internal("CREATE TABLE AS without a query"))?;
    // Where columns have names the query is a subquery: see `create_as`.
    let inner = match wanted.body.as_mut() {
        ast::SetExpr::Select(select) => match select.from.as_mut_slice() {
            [from] => match &mut from.relation {
                ast::TableFactor::Derived { subquery, .. } => Some(subquery),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    match inner {
        Some(inner) => **inner = query,
        None => **wanted = query,
    }
    Ok(StatementTree::from(statement))
}
