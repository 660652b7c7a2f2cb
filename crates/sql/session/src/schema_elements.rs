//! CREATE SCHEMA with what is made in it, and CREATE TABLE AS EXECUTE.

use super::client::Client;
use super::{Reply, Session};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::text::{fold, quote_ident};
use logstead_sql_ddl::StatementParameters;
use logstead_sql_parse::ast::{RelationName, Stmt};
use logstead_sql_parse::lowered::{self as ast, SchemaName, Statement};
use logstead_sql_parse::{Parsed, StatementKind, StatementTree, schema_elements};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, format_type, text_io};
use logstead_types::SqlState;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

impl Session {
    /// Makes the schema, and what is to be in it: with the schema first on the search path, as who is to own all of it.
    pub(super) async fn create_schema(
        &mut self,
        parsed: &Parsed,
        elements: &[Parsed],
        text: &Rc<str>,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let head = Parsed {
            kind: StatementKind::Ddl("CREATE SCHEMA"),
            ..parsed.clone()
        };
        let Statement::CreateSchema { schema_name, .. } = &**parsed.statement else {
            return Err(SqlError::internal("CREATE SCHEMA of another statement"));
        };
        let reply = self.ddl(&head, text, client).await?;
        let catalog = self.catalog()?;
        let roles = self.context.roles(&catalog);
        let owner = match schema_name {
            SchemaName::Simple(_) => None,
            SchemaName::NamedAuthorization(_, role) | SchemaName::UnnamedAuthorization(role) => {
                let word = role.value.to_ascii_lowercase();
                match (role.quote_style, word.as_str()) {
                    (None, "current_user" | "current_role") => None,
                    (None, "session_user") => {
                        let settings = self.context.settings.borrow();
                        roles.get(settings.typed().session_role)
                    }
                    _ => roles.by_name(&fold(role)),
                }
            }
        };
        let name = match schema_name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => {
                name.0.last().map(fold).unwrap_or_default()
            }
            SchemaName::UnnamedAuthorization(_) => match owner {
                Some(role) => role.name.clone(),
                None => self.context.role_name(self.context.current_role()),
            },
        };
        for element in elements {
            refuse_other_schema(element, &name)?;
        }
        let owner = owner.map(|role| role.oid);
        let level = self.savepoints.len();
        {
            let mut settings = self.context.settings.borrow_mut();
            settings.savepoint();
            let before = settings.show("search_path").unwrap_or_default();
            let path = match before.as_str() {
                "" => quote_ident(&name),
                before => format!("{}, {before}", quote_ident(&name)),
            };
            settings.set("search_path", &path, true)?;
        }
        let as_role = owner.map(|owner| self.context.enter_role(owner));
        let mut ran = Ok(());
        for element in elements {
            ran = self.ddl(element, text, client).await.map(|_| ());
            if ran.is_err() {
                break;
            }
        }
        if let Some(before) = as_role {
            self.context.act_as(before);
        }
        let mut settings = self.context.settings.borrow_mut();
        settings.rollback_to(level);
        settings.release(level);
        drop(settings);
        ran.map(|()| reply)
    }

    /// CREATE TABLE AS EXECUTE: the query of the prepared statement, with its parameters' values in it.
    pub(super) async fn table_of_execute(
        &mut self,
        parsed: &Parsed,
        execute: &StatementTree,
        text: &Rc<str>,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let Statement::Execute { name, parameters } = &**execute else {
            return Err(SqlError::internal("an EXECUTE that is none"));
        };
        let name = fold(name);
        let inner = self.find_statement(&name)?;
        let query = inner.parsed().map(|parsed| Arc::clone(&parsed.statement));
        let Some(Statement::Query(query)) = query.as_ref().map(|tree| &***tree) else {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "prepared statement is not a SELECT",
            ));
        };
        let types = self.parameter_types(&inner)?;
        if parameters.len() != types.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .detail(format!(
                "Expected {} parameters but got {}.",
                types.len(),
                parameters.len()
            )));
        }
        let values = self.arguments(parameters, &types).await?;
        let mut query = ast::Query::clone(query);
        self.put_values(&mut query, &values, &types)?;
        let statement = schema_elements::with_query(&parsed.statement, query)?;
        let table = Parsed {
            statement: Arc::new(statement),
            kind: StatementKind::Ddl("SELECT"),
            ..parsed.clone()
        };
        let is_new = matches!(
            &**table.statement,
            Statement::CreateTable(table) if table.no_data && !table.if_not_exists
        );
        match self
            .create_as(&table, text, StatementParameters::default(), client)
            .await?
        {
            Some(reply) => Ok(reply),
            None => match self.ddl(&table, text, client).await? {
                // Of what is executed PostgreSQL says how many rows it gave, though they are not wanted.
                Reply::Tag(tag) if is_new && tag == "CREATE TABLE AS" => Ok(Reply::tag("SELECT 0")),
                reply => Ok(reply),
            },
        }
    }

    /// Puts constants in the place of parameters.
    fn put_values(
        &self,
        query: &mut ast::Query,
        values: &[Datum],
        types: &[SqlType],
    ) -> Result<()> {
        let style = self.context.output_style().kept();
        let mut constants = Vec::with_capacity(values.len());
        for (value, ty) in values.iter().zip(types) {
            let literal = match value {
                Datum::Null => "NULL".to_owned(),
                value => {
                    let text = text_io::to_text(value, *ty, &style)?;
                    format!("'{}'", text.replace('\'', "''"))
                }
            };
            let cast = format!("CAST({literal} AS {})", format_type(*ty));
            constants.push(logstead_sql_parse::parse_expr(&cast)?);
        }
        let _: ControlFlow<()> = ast::visit_expressions_mut(query, |expr| {
            if let ast::Expr::Value(value) = expr
                && let ast::Value::Placeholder(name) = &value.value
                && let Some(number) = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
                && let Some(constant) = number.checked_sub(1).and_then(|at| constants.get(at))
            {
                *expr = constant.clone();
            }
            ControlFlow::Continue(())
        });
        Ok(())
    }
}

/// The schema of a name that has one.
fn schema_of(name: &ast::ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [schema, _] => Some(fold(schema)),
        _ => None,
    }
}

/// 42P15 for a part of CREATE SCHEMA that names another schema.
fn refuse_other_schema(element: &Parsed, made: &str) -> Result<()> {
    let schema = match (&**element.statement, &element.kind) {
        (Statement::CreateTable(table), _) => schema_of(&table.name),
        (_, StatementKind::Utility(stmt)) => match &**stmt {
            Stmt::CreateSeq(create) => match &create.sequence.name {
                RelationName::Named { schema, .. } => schema.as_deref().map(str::to_owned),
                RelationName::Source(_) => None,
            },
            _ => None,
        },
        (_, StatementKind::View(command)) => match &**command {
            logstead_sql_parse::ViewCommand::Create(view) => schema_of(&view.name),
            _ => None,
        },
        _ => None,
    };
    let Some(schema) = schema else {
        return Ok(());
    };
    match schema == made {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::new(b"42P15"),
            format!(
                "CREATE specifies a schema ({schema}) different from the one being created ({made})"
            ),
        )),
    }
}
