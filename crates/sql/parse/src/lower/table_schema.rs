//! CREATE SCHEMA.

use super::table::ddl;
use super::{Lower, Lowered};
use crate::ast::{CreateSchemaStmt, Location, RoleSpec, RoleSpecKind, Stmt, TextRange};
use crate::depth::StatementTree;
use crate::lowered as library;
use crate::{Parsed, StatementKind};
use logstead_sql_types::error::{Result, SqlError};
use std::sync::Arc;

/// The order in which the parts of CREATE SCHEMA are done, whatever the order in which they stand: each may need those
/// before it (`transformCreateSchemaStmt`).
fn rank(element: &Stmt) -> u8 {
    match element {
        Stmt::CreateSeq(_) => 0,
        Stmt::Create(_) => 1,
        Stmt::View(_) => 2,
        Stmt::Index(_) => 3,
        Stmt::CreateTrig(_) => 4,
        _ => 5,
    }
}

impl Lower<'_> {
    pub(super) fn create_schema(&self, create: &CreateSchemaStmt) -> Result<Lowered> {
        let name = create.schemaname.as_ref();
        let name = name.map(|name| self.ident(name, Location::UNKNOWN));
        let name = name.map(|name| library::ObjectName::from(vec![name]));
        let role = create.authrole.as_ref().map(|role| self.role_ident(role));
        let schema_name = match (name, role) {
            (Some(name), None) => library::SchemaName::Simple(name),
            (Some(name), Some(role)) => library::SchemaName::NamedAuthorization(name, role),
            (None, Some(role)) => library::SchemaName::UnnamedAuthorization(role),
            (None, None) => return Err(SqlError::internal("CREATE SCHEMA without a name")),
        };
        let statement = library::Statement::CreateSchema {
            schema_name,
            if_not_exists: create.if_not_exists,
        };
        let lowered = ddl(statement, "CREATE SCHEMA");
        if create.schema_elts.is_empty() {
            return Ok(lowered);
        }
        let mut elements = Vec::with_capacity(create.schema_elts.len());
        for (element, range) in &create.schema_elts {
            elements.push((rank(element), self.schema_element(element, *range)?));
        }
        elements.sort_by_key(|(rank, _)| *rank);
        let elements = elements.into_iter().map(|(_, parsed)| parsed).collect();
        Ok(Lowered {
            kind: StatementKind::SchemaElements(Arc::new(elements)),
            ..lowered
        })
    }

    /// What is made in a schema, as a statement of its own.
    fn schema_element(&self, element: &Stmt, range: TextRange) -> Result<Parsed> {
        let lowered = self.statement(element)?;
        let (start, end) = range.bytes().unwrap_or_default();
        Ok(Parsed {
            statement: Arc::new(StatementTree::from(lowered.statement)),
            start,
            end,
            kind: lowered.kind,
            as_of: lowered.as_of,
        })
    }

    /// A role as a name: those that are words are without quotes.
    fn role_ident(&self, role: &RoleSpec) -> library::Ident {
        let word = match &role.kind {
            RoleSpecKind::Named(name) => return self.ident(name, role.location),
            RoleSpecKind::CurrentRole => "current_role",
            RoleSpecKind::CurrentUser => "current_user",
            RoleSpecKind::SessionUser => "session_user",
            RoleSpecKind::Public => "public",
        };
        library::Ident {
            value: word.to_owned(),
            quote_style: None,
            span: self.span(role.location),
        }
    }
}
