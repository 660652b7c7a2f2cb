//! CREATE SCHEMA with what is made in it.

use super::client::Client;
use super::{Reply, Session};
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{
    CreateSchemaStmt, RangeVar, RelationName, RoleSpecKind, Stmt, TextRange,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl Session {
    /// Makes the schema, and what is to be in it: with the schema first on the search path, as who is to own all of it.
    pub(super) async fn create_schema(
        &mut self,
        stmt: &CreateSchemaStmt,
        parsed: &Parsed,
        text: &str,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let reply = self.ddl(parsed, text, client).await?;
        let catalog = self.catalog()?;
        let roles = self.context.roles(&catalog);
        let owner = match stmt.authrole.as_ref().map(|role| &role.kind) {
            Some(RoleSpecKind::Named(name)) => roles.by_name(name),
            Some(RoleSpecKind::SessionUser) => {
                let settings = self.context.settings.borrow();
                roles.get(settings.typed().session_role)
            }
            _ => None,
        };
        let name = match (&stmt.schemaname, owner) {
            (Some(name), _) => name.to_string(),
            (None, Some(role)) => role.name.clone(),
            (None, None) => self.context.role_name(self.context.current_role()),
        };
        let elements = elements_of(stmt);
        for (element, _) in &elements {
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
        for (element, range) in elements {
            let element = parsed.element(element.clone(), *range);
            ran = self.ddl(&element, text, client).await.map(|_| ());
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
}

/// What is made in a schema, and where that stands, in the order in which it is done.
fn elements_of(stmt: &CreateSchemaStmt) -> Vec<&(Stmt, TextRange)> {
    let mut elements: Vec<_> = stmt.schema_elts.iter().collect();
    elements.sort_by_key(|(element, _)| rank(element));
    elements
}

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

/// 42P15 for a part of CREATE SCHEMA that names another schema.
fn refuse_other_schema(element: &Stmt, made: &str) -> Result<()> {
    let relation: &RangeVar = match element {
        Stmt::Create(create) => &create.relation,
        Stmt::CreateSeq(create) => &create.sequence,
        Stmt::View(create) => &create.view,
        _ => return Ok(()),
    };
    match &relation.name {
        RelationName::Named {
            schema: Some(schema),
            ..
        } if **schema != *made => Err(SqlError::new(
            SqlState::new(b"42P15"),
            format!(
                "CREATE specifies a schema ({schema}) different from the one being created ({made})"
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_schema_are_done_in_their_order() -> Result<()> {
        let text = "CREATE SCHEMA s GRANT SELECT ON t TO PUBLIC CREATE VIEW v AS SELECT 1 \
                    CREATE TABLE t (a int) CREATE SEQUENCE q";
        let stmt = logstead_sql_parse::parse(text)?.remove(0).statement;
        let Stmt::CreateSchema(create) = &**stmt else {
            panic!("{stmt:?}");
        };
        let shown: Vec<&str> = elements_of(create)
            .into_iter()
            .filter_map(|(_, range)| range.bytes())
            .map(|(start, end)| &text[start..end])
            .collect();
        let wanted = [
            "CREATE SEQUENCE q",
            "CREATE TABLE t (a int)",
            "CREATE VIEW v AS SELECT 1",
            "GRANT SELECT ON t TO PUBLIC",
        ];
        assert_eq!(shown, wanted);
        Ok(())
    }
}
