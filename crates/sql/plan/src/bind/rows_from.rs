//! ROWS FROM (f(...), g(...)): functions side by side, NULL where one has no more rows.
//!
//! It is bound as the subquery that gives the same: each function WITH ORDINALITY, joined FULL by that number, in its
//! order.

use super::Binder;
use crate::query::FromList;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_parse::lowered::{
    self as ast, SetExpr, TableAliasColumnDef as Column, TableFactor,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::fmt::Write as _;

/// A function of ROWS FROM, with its column definition list.
type RowsFunction = (ast::FuncCall, Vec<Column>);

/// What functions and their columns are called in the subquery: names that nobody can write.
const FUNCTION: &str = "\u{1}function";
const COLUMN: &str = "\u{1}column";
const NUMBER: &str = "\u{1}number";

/// The rows of one function, and the number of each.
const NUMBERED: &str = "SELECT *, pg_catalog.row_number() OVER () AS ordinality FROM";

/// Puts a function that was written into the place of one that was not, with the columns that its definition list says.
fn put(factor: &mut TableFactor, given: &ast::FuncCall, columns: &[Column]) {
    match factor {
        TableFactor::Function {
            function, alias, ..
        } => {
            **function = given.clone();
            if let Some(alias) = alias
                && !columns.is_empty()
            {
                alias.columns = columns.to_vec();
            }
        }
        TableFactor::Derived { subquery, .. } => {
            if let SetExpr::Select(select) = subquery.body.as_mut()
                && let [table] = select.from.as_mut_slice()
            {
                put(&mut table.relation, given, columns);
            }
        }
        _ => {}
    }
}

/// A query of functions called `f`, into whose places `put` puts those that were written.
fn query_of(text: &str, mut put: impl FnMut(&mut TableFactor)) -> Result<ast::Query> {
    let parsed = logstead_sql_parse::parse_stored(text)?;
    let statement = parsed.first().map(|p| ast::Statement::clone(&p.statement));
    let Some(ast::Statement::Query(mut query)) = statement else {
        return Err(SqlError::internal("ROWS FROM is no query"));
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::internal("ROWS FROM is no SELECT"));
    };
    for table in &mut select.from {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        std::iter::once(&mut table.relation)
            .chain(joined)
            .for_each(&mut put);
    }
    Ok(*query)
}

/// An alias without columns.
fn called(name: ast::Ident) -> ast::TableAlias {
    ast::TableAlias {
        name,
        columns: Vec::new(),
    }
}

impl Binder<'_> {
    /// The names of a function's columns in FROM, the number of its rows left out.
    fn function_columns(&mut self, (function, columns): &RowsFunction) -> Result<Vec<String>> {
        if !columns.is_empty() {
            let names = columns.iter().map(|c| c.name.value.to_string());
            return Ok(names.collect());
        }
        let query = query_of("SELECT * FROM f() WITH ORDINALITY", |factor| {
            put(factor, function, &[]);
        })?;
        let (body, _) = self.with_own(|b| b.deeper(|b| b.query_body(&query, true)))?;
        let columns = self.range.body_columns(&body);
        let mut names: Vec<String> = columns.into_iter().map(|c| c.name).collect();
        names.pop();
        Ok(names)
    }

    /// Functions side by side.
    pub(super) fn rows_from(
        &mut self,
        functions: &[RowsFunction],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<FromList> {
        if self.recorded.is_some() {
            return Err(SqlError::unsupported("ROWS FROM in a view"));
        }
        if let [(function, columns)] = functions
            && columns.is_empty()
        {
            return self.table_function(function, ordinality, alias);
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
            let rows = match function.1.is_empty() {
                true => "f() WITH ORDINALITY".to_owned(),
                false => format!("({NUMBERED} f() AS f)"),
            };
            let _ = write!(from, "{join}{rows} AS {own}({})", columns.join(", "));
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
        let mut functions = functions.iter();
        let query = query_of(&text, |factor| {
            if let Some((function, columns)) = functions.next() {
                put(factor, function, columns);
            }
        })?;
        let own = called(ast::Ident::new(FUNCTION));
        self.derived(true, &query, Some(alias.unwrap_or(&own)))
    }

    /// The rows of a function that does not number them itself, WITH ORDINALITY: those of the query that does.
    pub(super) fn numbered(
        &mut self,
        function: &ast::FuncCall,
        alias: Option<&ast::TableAlias>,
        at: Option<usize>,
    ) -> Result<FromList> {
        if alias.is_some_and(|a| a.columns.iter().any(|c| c.data_type.is_some())) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "WITH ORDINALITY cannot be used with a column definition list",
            )
            .hint("Put the column definition list inside ROWS FROM().")
            .at(at));
        }
        let own = match alias {
            Some(alias) => alias.name.clone(),
            None => {
                let called = function.funcname.called();
                ast::Ident::new(called.cloned().unwrap_or_else(|| "f".into()))
            }
        };
        // A function of one column calls it after its alias.
        let text = format!("{NUMBERED} f() AS {}", quoted(&own.value));
        let query = query_of(&text, |factor| put(factor, function, &[]))?;
        let own = called(own);
        self.derived(true, &query, Some(alias.unwrap_or(&own)))
    }
}

/// A name in quotes, whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
