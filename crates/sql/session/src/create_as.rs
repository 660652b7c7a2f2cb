//! CREATE TABLE AS of a query, or of what is executed.
//!
//! Of a query that calls functions which the session runs the table is made without rows, and an INSERT puts them in:
//! what is defined runs apart from the session and cannot stop before a call; a statement that is planned can.

use super::cached_plan::{Parameters, Statement, given_to};
use super::client::{Client, LocalFuture};
use super::run::RunOutcome;
use super::{Reply, Session};
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_ddl::StatementParameters;
use logstead_sql_ddl::pg_catalog::calls;
use logstead_sql_exec::Execution;
use logstead_sql_parse::ast::{
    self, CreateAsQuery, CreateTableAsStmt, ExecuteStmt, RangeVar, Stmt, TextRange,
};
use logstead_sql_parse::{self as parse, Parsed};
use logstead_sql_plan::walk;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

impl Session {
    /// Types of the parameters that a statement was given.
    pub(super) fn types_given(
        &mut self,
        statement: &Statement,
        params: &[Datum],
    ) -> Result<Vec<Option<TypeId>>> {
        if params.is_empty() || statement.variables.is_some() {
            return Ok(Vec::new());
        }
        let description = self.describe(statement)?;
        Ok(description
            .param_types
            .iter()
            .map(|ty| Some(ty.oid))
            .collect())
    }

    /// CREATE TABLE AS.
    pub(super) async fn create_table_as(
        &mut self,
        stmt: &CreateTableAsStmt,
        statement: &Statement,
        parsed: &Parsed,
        params: &[Datum],
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let text = &statement.text.text;
        let query = match &stmt.query {
            CreateAsQuery::Select(query) => query,
            CreateAsQuery::Execute(execute) => {
                return self
                    .create_as_execute(stmt, execute, parsed, text, client)
                    .await;
            }
        };
        let tree = parsed.statement.part(Stmt::Select(query.clone()));
        let types = self.types_given(statement, params)?;
        let given = StatementParameters {
            types: &types,
            values: params,
            variables: statement.variables.as_ref(),
            query: Some((&tree, text)),
        };
        self.create_of_query(stmt, parsed, text, given, client)
            .await
    }

    /// CREATE TABLE AS EXECUTE: the query is that of the prepared statement.
    async fn create_as_execute(
        &mut self,
        stmt: &CreateTableAsStmt,
        execute: &ExecuteStmt,
        parsed: &Parsed,
        text: &Rc<str>,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        if self.create_as_exists(stmt, client)? {
            return Ok(Reply::tag("CREATE TABLE AS"));
        }
        let prepared = self.find_statement(&execute.name)?;
        let tree = prepared
            .parsed()
            .map(|parsed| Arc::clone(&parsed.statement));
        let tree = tree.filter(|tree| matches!(&***tree, ast::Stmt::Select(_)));
        let tree = tree.ok_or_else(|| {
            SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "prepared statement is not a SELECT",
            )
        })?;
        let types = self.parameter_types(&prepared)?;
        let values = self.execute_arguments(execute, &types).await?;
        let types: Vec<Option<TypeId>> = types.iter().map(|ty| Some(ty.oid)).collect();
        let given = StatementParameters {
            types: &types,
            values: &values,
            variables: None,
            query: Some((&tree, &prepared.text.text)),
        };
        let reply = self.create_of_query(stmt, parsed, text, given, client);
        // Of what is executed PostgreSQL says how many rows it gave, though they are not wanted.
        let says_rows = stmt.into.skip_data && !stmt.if_not_exists;
        match reply.await? {
            Reply::Tag(tag) if says_rows && tag == "CREATE TABLE AS" => Ok(Reply::tag("SELECT 0")),
            reply => Ok(reply),
        }
    }

    /// Makes the table and puts the rows of the query in; in two parts, if the query calls functions that the session
    /// runs.
    fn create_of_query<'a>(
        &'a mut self,
        stmt: &'a CreateTableAsStmt,
        parsed: &'a Parsed,
        text: &'a Rc<str>,
        given: StatementParameters<'a>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Reply>> {
        Box::pin(async move {
            if !self.calls_routines(stmt, &given)? {
                return self.ddl_given(parsed, text, given, client).await;
            }
            let insert = match self.create_empty(stmt, parsed, text, given, client).await? {
                Ok(insert) => insert,
                // IF NOT EXISTS
                Err(reply) => return Ok(reply),
            };
            let query_text = given
                .query
                .map_or_else(|| Rc::clone(text), |(_, text)| text.into());
            let mut statement = Statement::once(query_text, insert, given.types.to_vec());
            statement.variables = given.variables.cloned();
            let plan = self.prepare_run(&statement).await?;
            let params = given_to(&plan, &statement, given.values);
            let mut execution = Execution::new(Arc::clone(&plan.prepared));
            let ran = self
                .run(&plan, &mut execution, &params, true, 0, client)
                .await?;
            match ran {
                RunOutcome::Done { rows } => Ok(Reply::Tag(format!("SELECT {rows}"))),
                RunOutcome::Suspended => Err(SqlError::internal("an INSERT that did not end")),
            }
        })
    }

    /// Is the query run, and does it call functions that the session runs?
    fn calls_routines(
        &mut self,
        stmt: &CreateTableAsStmt,
        given: &StatementParameters<'_>,
    ) -> Result<bool> {
        let catalog = self.catalog()?;
        let Some((tree, text)) = given.query else {
            return Ok(false);
        };
        if stmt.into.skip_data || catalog.routines.is_empty() {
            return Ok(false);
        }
        let path = self.context.path_in(&catalog);
        let parameters = Parameters {
            variables: given.variables.map(|variables| &**variables),
            ..Parameters::of(given.types)
        };
        let planned = self.plan_tree(tree, text, parameters, &path, &catalog);
        // What is wrong with it DDL says.
        Ok(planned.is_ok_and(|planned| planned.plan.describe(walk::has_routine)))
    }

    /// Makes the table without rows; the INSERT that puts those of its query in, or what there is to say if it is
    /// there.
    pub(super) fn create_empty<'a>(
        &'a mut self,
        stmt: &'a CreateTableAsStmt,
        parsed: &'a Parsed,
        text: &'a Rc<str>,
        given: StatementParameters<'a>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Result<Arc<parse::StatementTree>, Reply>>> {
        Box::pin(async move {
            // EXPLAIN has not waited: it did not know that it writes.
            self.follow_prior(false).await?;
            let relation = &stmt.into.rel;
            let before = self.named(relation)?;
            let mut empty = stmt.clone();
            empty.into.skip_data = true;
            let empty = parsed.element(Stmt::CreateTableAs(Box::new(empty)), TextRange::default());
            let reply = self.ddl_given(&empty, text, given, client).await?;
            let made = self.named(relation)?;
            let Some((_, name)) = made.filter(|made| before.as_ref() != Some(made)) else {
                return Ok(Err(reply));
            };
            let mut insert = parse::parse(&format!("INSERT INTO {name} VALUES (1)"))?;
            let insert = insert.pop().map(|parsed| Stmt::clone(&parsed.statement));
            let query = given.query.map(|(tree, _)| &**tree);
            match (insert, query) {
                (Some(ast::Stmt::Insert(mut insert)), Some(ast::Stmt::Select(query))) => {
                    insert.source = ast::InsertSource::Select(query.clone());
                    Ok(Ok(Arc::new(ast::Stmt::Insert(insert).into())))
                }
                _ => Err(SqlError::internal("an INSERT that is none")),
            }
        })
    }

    /// Is there a relation of that name, and is that all right? 42P07 if not (`CreateTableAsRelExists`).
    pub(super) fn create_as_exists(
        &mut self,
        stmt: &CreateTableAsStmt,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let relation = &stmt.into.rel;
        if self.named(relation)?.is_none() {
            return Ok(false);
        }
        let (_, name) = calls::name_parts(relation)?;
        if !stmt.if_not_exists {
            return Err(logstead_sql_ddl::name_taken(&name));
        }
        let message = format!("relation \"{name}\" already exists, skipping");
        let notice = SqlError::new(SqlState::DUPLICATE_TABLE, message);
        client.notice("NOTICE", notice.fields());
        Ok(true)
    }

    /// The table of that name, and its name as SQL has it.
    pub(super) fn named(&mut self, name: &RangeVar) -> Result<Option<(RelationId, String)>> {
        let catalog = self.catalog()?;
        let path = self.context.path_in(&catalog);
        let (schema, name) = calls::name_parts(name)?;
        let found = catalog.relation(schema.as_deref(), &name, &path);
        Ok(found.map(|relation| {
            let name = format!(
                "{}.{}",
                quote_ident(&relation.schema_name),
                quote_ident(&relation.name)
            );
            (relation.oid, name)
        }))
    }
}

/// The query of CREATE TABLE AS as a statement of its own: its parameters are those of the whole.
pub(super) fn query_of(
    stmt: &CreateTableAsStmt,
    statement: &Statement,
    parsed: &Parsed,
) -> Result<Option<Statement>> {
    match &stmt.query {
        CreateAsQuery::Select(query) if !stmt.is_materialized_view => {
            let tree = parsed.statement.part(Stmt::Select(query.clone()));
            Ok(Some(statement.part(tree)))
        }
        _ => Ok(None),
    }
}
