//! RENAME and SET SCHEMA of tables and views.

use super::{Lower, Lowered};
use crate::ast::{AlterObjectSchemaStmt, Name, ObjectRef, ObjectType, RangeVar, RenameStmt};
use crate::lowered::{self as library, AlterTableOperation as Operation};
use crate::{AlterView, StatementKind, ViewCommand};
use logstead_sql_types::error::{Result, SqlError};

/// An object in another form than its kind has. The grammar gives none.
fn unexpected_object() -> SqlError {
    SqlError::internal("an object of another form than its kind has")
}

fn relation_of(object: &ObjectRef) -> Result<&RangeVar> {
    match object {
        ObjectRef::Relation(relation) => Ok(relation),
        _ => Err(unexpected_object()),
    }
}

impl Lower<'_> {
    /// RENAME
    pub(super) fn rename(&self, stmt: &RenameStmt) -> Result<Lowered> {
        let relation = relation_of(&stmt.object)?;
        let new = &stmt.newname;
        let subname = || {
            let name = stmt.subname.as_ref().ok_or_else(unexpected_object)?;
            Ok(self.unplaced_ident(name))
        };
        let (kind, operation) = match stmt.rename_type {
            ObjectType::Column => (
                stmt.relation_type.unwrap_or(ObjectType::Table),
                Operation::RenameColumn {
                    old_column_name: subname()?,
                    new_column_name: self.unplaced_ident(new),
                },
            ),
            ObjectType::TabConstraint => (
                ObjectType::Table,
                Operation::RenameConstraint {
                    old_name: subname()?,
                    new_name: self.unplaced_ident(new),
                },
            ),
            kind => (kind, Operation::RenameTable(self.one_name(new))),
        };
        self.alter_relation(kind, relation, stmt.missing_ok, operation)
    }

    /// SET SCHEMA
    pub(super) fn set_schema(&self, stmt: &AlterObjectSchemaStmt) -> Result<Lowered> {
        let operation = Operation::SetSchema(stmt.newschema.to_string());
        let relation = relation_of(&stmt.object)?;
        self.alter_relation(stmt.object_type, relation, stmt.missing_ok, operation)
    }

    /// One operation of ALTER TABLE on a table or a view.
    fn alter_relation(
        &self,
        kind: ObjectType,
        relation: &RangeVar,
        if_exists: bool,
        operation: Operation,
    ) -> Result<Lowered> {
        let alter = library::AlterTable {
            name: self.relation_name(relation),
            if_exists,
            operations: vec![operation],
        };
        let materialized = match kind {
            ObjectType::Table => {
                let statement = library::Statement::AlterTable(alter);
                return Ok(super::table::ddl(statement, "ALTER TABLE"));
            }
            ObjectType::View => false,
            ObjectType::MatView => true,
            _ => return Err(unexpected_object()),
        };
        let command = ViewCommand::Alter(AlterView {
            materialized,
            alter,
        });
        Ok(Lowered::command(StatementKind::View(Box::new(command))))
    }

    fn one_name(&self, name: &Name) -> library::ObjectName {
        library::ObjectName::from(vec![self.unplaced_ident(name)])
    }
}
