//! CREATE TABLE AS of a query that calls functions which the session runs: the table is made without rows, and an
//! INSERT puts them in.
//!
//! What is defined runs apart from the session and cannot stop before a call; a statement that is planned can.

use super::client::{Client, LocalFuture};
use super::run::RunOutcome;
use super::statement::{Parameters, Statement, given_to};
use super::{Reply, Session};
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_ddl::StatementParameters;
use logstead_sql_exec::Execution;
use logstead_sql_parse::lowered as ast;
use logstead_sql_parse::{self as parse, Parsed};
use logstead_sql_plan::walk;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid};
use std::rc::Rc;
use std::sync::Arc;

impl Session {
    /// Types of the parameters that a statement was given.
    pub(super) fn types_given(
        &mut self,
        statement: &Statement,
        params: &[Datum],
    ) -> Result<Vec<Option<Oid>>> {
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

    /// Runs what CREATE TABLE AS says in two parts, if its query calls such functions; none is left to DDL.
    pub(super) fn create_as<'a>(
        &'a mut self,
        parsed: &'a Parsed,
        text: &'a Rc<str>,
        given: StatementParameters<'a>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Option<Reply>>> {
        Box::pin(async move {
            let ast::Statement::CreateTable(table) = &**parsed.statement else {
                return Ok(None);
            };
            let Some(query) = table.query.as_ref().filter(|_| !table.no_data) else {
                return Ok(None);
            };
            let catalog = self.catalog()?;
            if catalog.routines.is_empty() {
                return Ok(None);
            }
            let path = self.context.path_in(&catalog);
            let inner = parse::StatementTree::from(ast::Statement::Query(query.clone()));
            let parameters = Parameters {
                variables: given.variables.map(|variables| &**variables),
                ..Parameters::of(given.types)
            };
            let planned = self.plan_tree(&inner, text, parameters, &path, &catalog);
            // What is wrong with it DDL says.
            if !planned.is_ok_and(|planned| planned.plan.describe(walk::has_routine)) {
                return Ok(None);
            }
            let insert = match self
                .create_empty(parsed, table, text, given, client)
                .await?
            {
                Ok(insert) => insert,
                // IF NOT EXISTS
                Err(reply) => return Ok(Some(reply)),
            };
            let mut statement = Statement::once(Rc::clone(text), insert, given.types.to_vec());
            statement.variables = given.variables.cloned();
            let plan = self.prepare_run(&statement).await?;
            let params = given_to(&plan, &statement, given.values);
            let mut execution = Execution::new(Arc::clone(&plan.prepared));
            let ran = self
                .run(&plan, &mut execution, &params, true, 0, client)
                .await?;
            match ran {
                RunOutcome::Done { rows } => Ok(Some(Reply::Tag(format!("SELECT {rows}")))),
                RunOutcome::Suspended => Err(SqlError::internal("an INSERT that did not end")),
            }
        })
    }

    /// Makes the table without rows; the INSERT that puts those of its query in, or what there is to say if it is
    /// there.
    pub(super) fn create_empty<'a>(
        &'a mut self,
        parsed: &'a Parsed,
        table: &'a ast::CreateTable,
        text: &'a Rc<str>,
        given: StatementParameters<'a>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Result<Arc<parse::StatementTree>, Reply>>> {
        Box::pin(async move {
            // EXPLAIN has not waited: it did not know that it writes.
            self.follow_prior(false).await?;
            let before = self.named(&table.name)?;
            let mut empty = table.clone();
            empty.no_data = true;
            let empty = Parsed {
                statement: Arc::new(ast::Statement::CreateTable(empty).into()),
                ..parsed.clone()
            };
            let reply = self.ddl_given(&empty, text, given, client).await?;
            let made = self.named(&table.name)?;
            let Some((_, name)) = made.filter(|made| before.as_ref() != Some(made)) else {
                return Ok(Err(reply));
            };
            let mut insert = parse::parse(&format!("INSERT INTO {name} VALUES (1)"))?;
            let insert = insert.pop().map(|parsed| (*parsed.statement).clone());
            let Some(ast::Statement::Insert(mut insert)) = insert else {
                return Err(SqlError::internal("an INSERT that is none"));
            };
            insert.source.clone_from(&table.query);
            Ok(Ok(Arc::new(ast::Statement::Insert(insert).into())))
        })
    }

    /// The table of that name, and its name as SQL has it.
    pub(super) fn named(&mut self, name: &ast::ObjectName) -> Result<Option<(Oid, String)>> {
        let catalog = self.catalog()?;
        let path = self.context.path_in(&catalog);
        let (schema, name) = logstead_sql_parse::schema_and_name(name, &catalog.database_name)?;
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
pub(super) fn query_of(statement: &Statement, parsed: &Parsed) -> Option<Statement> {
    let ast::Statement::CreateTable(table) = &**parsed.statement else {
        return None;
    };
    let query = ast::Statement::Query(table.query.clone()?);
    let text = Rc::clone(&statement.text.text);
    let declared = statement.declared.clone();
    let mut query = Statement::once(text, Arc::new(query.into()), declared);
    query.takes_parameters = statement.takes_parameters;
    query.variables.clone_from(&statement.variables);
    Some(query)
}
