//! What is made of a query: CREATE TABLE AS, views, materialized views and REFRESH.

use super::table::{ddl, refused, tablespace};
use super::{Lower, Lowered};
use crate::ast::{
    Alias, ColumnRef, CommonTableExpr, Const, CreateAsQuery, CreateTableAsStmt, Deep, Expr,
    IntoClause, Location, Name, Persistence, RangeSubselect, RangeVar, RefreshMatViewStmt,
    RelationName, ResTarget, SelectBody, SelectCore, SelectStmt, Stmt, TableRef, TextRange, Value,
    ViewCheckOption, ViewStmt, WithClause,
};
use crate::depth::StatementTree;
use crate::lowered as library;
use crate::views::{CheckOption, CreateView, ViewCommand};
use crate::{NAMED_QUERY, StatementKind};
use logstead_sql_types::error::{Result, SqlError};
use std::sync::Arc;

/// SELECT with these columns FROM these tables, which no text has.
fn select(target_list: Vec<ResTarget>, from: Vec<TableRef>, location: Location) -> SelectStmt {
    SelectStmt {
        with_clause: None,
        body: SelectBody::Select(Box::new(SelectCore {
            target_list,
            from_clause: from,
            location,
            ..SelectCore::default()
        })),
        sort_clause: Vec::new(),
        limit: None,
        locking_clause: Vec::new(),
        as_of: None,
        location,
    }
}

/// An item of SELECT.
fn target(val: Expr, location: Location) -> ResTarget {
    ResTarget {
        name: None,
        indirection: Vec::new(),
        subscript_ranges: Vec::new(),
        val: Some(val),
        location,
    }
}

/// `*`, or a column.
fn column_ref(name: Option<&Name>, location: Location) -> Expr {
    Expr::ColumnRef(Box::new(ColumnRef {
        fields: name.into_iter().cloned().collect(),
        star: name.is_none(),
        location,
    }))
}

/// `SELECT * FROM (query) AS query (names)`
fn with_column_names(query: &SelectStmt, names: &[Name]) -> SelectStmt {
    let location = query.location;
    let from = TableRef::Subselect(Deep::new(RangeSubselect {
        lateral: false,
        subquery: query.clone(),
        alias: Some(Box::new(Alias {
            name: NAMED_QUERY.into(),
            colnames: names.to_vec(),
            location,
        })),
        location,
    }));
    let all = target(column_ref(None, location), location);
    select(vec![all], vec![from], location)
}

/// `WITH RECURSIVE name (columns) AS (query) SELECT columns FROM name`
fn recursive(name: &Name, columns: &[Name], query: &SelectStmt) -> SelectStmt {
    let location = query.location;
    let targets = columns.iter();
    let targets = targets.map(|column| target(column_ref(Some(column), location), location));
    let from = TableRef::RangeVar(Box::new(RangeVar {
        name: RelationName::Named {
            catalog: None,
            schema: None,
            name: name.clone(),
        },
        inh: true,
        persistence: Persistence::Permanent,
        alias: None,
        location,
    }));
    let with = WithClause {
        recursive: true,
        ctes: vec![CommonTableExpr {
            ctename: name.clone(),
            aliascolnames: columns.to_vec(),
            materialized: None,
            ctequery: Deep::new(Stmt::Select(Box::new(query.clone()))),
            search_clause: None,
            cycle_clause: None,
            location,
        }],
        location,
    };
    SelectStmt {
        with_clause: Some(Box::new(with)),
        ..select(targets.collect(), vec![from], location)
    }
}

impl Lower<'_> {
    pub(super) fn create_table_as(&self, create: &CreateTableAsStmt) -> Result<Lowered> {
        let into = &create.into;
        if create.is_materialized_view {
            return self.create_mat_view(create);
        }
        if into.access_method.as_deref().is_some_and(|m| m != "heap") {
            return Ok(refused("an access method"));
        }
        // EXECUTE stands apart, and another query in its place.
        let mut execute = None;
        let one;
        let query = match &create.query {
            CreateAsQuery::Select(query) => &**query,
            CreateAsQuery::Execute(stmt) => {
                execute = Some(self.utility(&Stmt::Execute(stmt.clone()))?);
                let location = create.query_range.start;
                let number = Expr::Const(Const {
                    value: Value::Integer(1),
                    location,
                });
                one = select(vec![target(number, location)], Vec::new(), location);
                &one
            }
        };
        let query = match into.col_names.as_slice() {
            [] => self.query(query)?,
            names => self.query(&with_column_names(query, names))?,
        };
        let options = match &into.table_space_name {
            Some(name) if into.options.is_empty() => tablespace(name),
            _ => self.with_options(&into.options),
        };
        let table = library::CreateTable {
            if_not_exists: create.if_not_exists,
            no_data: into.skip_data,
            table_options: options,
            on_commit: into.on_commit,
            query: Some(Box::new(query)),
            ..self.new_table(&into.rel, into.global)
        };
        let statement = library::Statement::CreateTable(table);
        let lowered = ddl(statement, "SELECT");
        Ok(match execute {
            None => lowered,
            Some(execute) => Lowered {
                kind: StatementKind::TableOfExecute(Arc::new(StatementTree::from(
                    execute.statement,
                ))),
                ..lowered
            },
        })
    }

    fn create_mat_view(&self, create: &CreateTableAsStmt) -> Result<Lowered> {
        let into: &IntoClause = &create.into;
        if into.rel.persistence == Persistence::Unlogged {
            let message = "materialized views cannot be unlogged";
            return Err(SqlError::unsupported_text(message));
        }
        let CreateAsQuery::Select(query) = &create.query else {
            return Err(SqlError::internal("a materialized view of no query"));
        };
        Ok(view(CreateView {
            materialized: true,
            or_replace: false,
            if_not_exists: create.if_not_exists,
            temporary: false,
            name: self.relation_name(&into.rel),
            columns: self.names_of(&into.col_names),
            options: into.options.clone(),
            query: Box::new(self.query_of_view(query)?),
            range: range(create.query_range)?,
            around: None,
            check: None,
            data: !into.skip_data,
        }))
    }

    pub(super) fn create_view(&self, stmt: &ViewStmt) -> Result<Lowered> {
        if stmt.view.persistence == Persistence::Unlogged {
            return Err(SqlError::unsupported_text(
                "views cannot be unlogged because they do not have storage",
            ));
        }
        let columns = self.names_of(&stmt.aliases);
        let (query, around) = match (stmt.recursive, &stmt.view.name) {
            (true, RelationName::Named { name, .. }) => {
                let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
                let names = names.join(", ");
                let shown = self.ident(name, Location::UNKNOWN);
                let before = format!("WITH RECURSIVE {shown} ({names}) AS (");
                let after = format!(") SELECT {names} FROM {shown}");
                let query = recursive(name, &stmt.aliases, &stmt.query);
                (self.query_of_view(&query)?, Some((before, after)))
            }
            _ => (self.query_of_view(&stmt.query)?, None),
        };
        Ok(view(CreateView {
            materialized: false,
            or_replace: stmt.replace,
            if_not_exists: false,
            temporary: stmt.view.persistence == Persistence::Temporary,
            name: self.relation_name(&stmt.view),
            columns,
            options: stmt.options.clone(),
            query: Box::new(query),
            range: range(stmt.query_range)?,
            around,
            check: match stmt.with_check_option {
                ViewCheckOption::None => None,
                ViewCheckOption::Local => Some(CheckOption::Local),
                ViewCheckOption::Cascaded => Some(CheckOption::Cascaded),
            },
            data: true,
        }))
    }

    /// The query of a view, which makes no table.
    fn query_of_view(&self, query: &SelectStmt) -> Result<library::Query> {
        match into_clause(query) {
            true => Err(SqlError::unsupported_text(
                "views must not contain SELECT INTO",
            )),
            false => self.query(query),
        }
    }

    pub(super) fn refresh_mat_view(&self, refresh: &RefreshMatViewStmt) -> Lowered {
        let command = ViewCommand::Refresh {
            name: self.relation_name(&refresh.relation),
            concurrently: refresh.concurrent,
            data: !refresh.skip_data,
        };
        Lowered::command(StatementKind::View(Box::new(command)))
    }
}

/// Is this a SELECT INTO?
fn into_clause(query: &SelectStmt) -> bool {
    match &query.body {
        SelectBody::Select(core) => core.into_clause.is_some(),
        _ => false,
    }
}

fn view(create: CreateView) -> Lowered {
    Lowered::command(StatementKind::View(Box::new(ViewCommand::Create(create))))
}

fn range(range: TextRange) -> Result<(usize, usize)> {
    let bytes = range.bytes();
    bytes.ok_or_else(|| SqlError::internal("a query that stands nowhere"))
}
