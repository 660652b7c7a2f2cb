//! ROWS FROM (f(...), g(...)): functions side by side, NULL where one has no more rows.
//!
//! It is bound as the subquery that gives the same: each function WITH ORDINALITY, joined FULL by that number, in its order.

use super::Binder;
use super::query::FromList;
use crate::catalog::text::quote_ident;
use crate::error::{Result, SqlError};
use sqlparser::ast::{self, SetExpr, TableFactor};
use std::fmt::Write as _;

/// What functions and their columns are called in the subquery: names that nobody can write.
const FUNCTION: &str = "\u{1}function";
const COLUMN: &str = "\u{1}column";
const NUMBER: &str = "\u{1}number";

/// Puts a function that was written into the place of one that was not.
fn put(factor: &mut TableFactor, function: &ast::Function) {
    if let TableFactor::Table {
        name,
        args: Some(args),
        ..
    } = factor
    {
        *name = function.name.clone();
        args.args = match &function.args {
            ast::FunctionArguments::List(list) => list.args.clone(),
            _ => Vec::new(),
        };
    }
}

/// A query of functions called `f`, with those that were written instead.
fn query_of(text: &str, functions: &[ast::Function]) -> Result<ast::Query> {
    let parsed = crate::parse::parse_kept(text)?;
    let statement = parsed.first().map(|p| ast::Statement::clone(&p.statement));
    let Some(ast::Statement::Query(mut query)) = statement else {
        return Err(SqlError::internal("ROWS FROM is no query"));
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::internal("ROWS FROM is no SELECT"));
    };
    let mut functions = functions.iter();
    for table in &mut select.from {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut table.relation).chain(joined) {
            if let Some(function) = functions.next() {
                put(factor, function);
            }
        }
    }
    Ok(*query)
}

impl Binder<'_> {
    /// The names of a function's columns in FROM, the number of its rows left out.
    fn function_columns(&mut self, function: &ast::Function) -> Result<Vec<String>> {
        let query = query_of(
            "SELECT * FROM f() WITH ORDINALITY",
            std::slice::from_ref(function),
        )?;
        let (body, _) = self.with_own(|b| b.deeper(|b| b.query_body(&query, true)))?;
        let columns = self.body_columns(&body);
        let mut names: Vec<String> = columns.into_iter().map(|c| c.name).collect();
        names.pop();
        Ok(names)
    }

    /// Functions side by side.
    pub(super) fn rows_from(
        &mut self,
        functions: &[ast::Function],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<FromList> {
        if self.recorded.is_some() {
            return Err(SqlError::unsupported("ROWS FROM in a view"));
        }
        if let [function] = functions
            && let ast::FunctionArguments::List(list) = &function.args
        {
            return self.table_function(&function.name, &list.args, ordinality, alias);
        }
        let mut outputs = Vec::new();
        let mut from = String::new();
        for (i, function) in functions.iter().enumerate() {
            let names = self.function_columns(function)?;
            let own = quote_ident(&format!("{FUNCTION}{i}"));
            let mut columns = Vec::with_capacity(names.len() + 1);
            for (at, name) in names.iter().enumerate() {
                let column = quote_ident(&format!("{COLUMN}{at}"));
                outputs.push(format!("{own}.{column} AS {}", quoted(name)));
                columns.push(column);
            }
            let number = quote_ident(NUMBER);
            columns.push(number.clone());
            let join = if i == 0 { "" } else { " FULL JOIN " };
            let _ = write!(
                from,
                "{join}f() WITH ORDINALITY AS {own}({})",
                columns.join(", ")
            );
            if i > 0 {
                let _ = write!(from, " USING ({number})");
            }
        }
        let number = quote_ident(NUMBER);
        if ordinality {
            outputs.push(format!("{number} AS ordinality"));
        }
        let text = format!(
            "SELECT {} FROM {from} ORDER BY {number}",
            outputs.join(", ")
        );
        let query = query_of(&text, functions)?;
        let own;
        let alias = match alias {
            Some(alias) => alias,
            None => {
                own = ast::TableAlias {
                    explicit: true,
                    name: ast::Ident::with_quote('"', FUNCTION),
                    columns: Vec::new(),
                    at: None,
                };
                &own
            }
        };
        self.derived(true, &query, Some(alias))
    }
}

/// A name in quotes, whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
