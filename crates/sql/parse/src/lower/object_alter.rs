//! RENAME, SET SCHEMA, DEPENDS ON EXTENSION, OWNER TO.

use super::object::{
    large_object_of, name_and_relation, name_of, of_policy, of_trigger, relation_of, routine_of,
    unexpected_object,
};
use super::role::role_name;
use super::routine_ref::{routine_word, unplaced_name};
use super::unsupported::unsupported_kind;
use super::{Lower, Lowered};
use crate::ast::{
    AlterObjectDependsStmt, AlterObjectSchemaStmt, AlterOwnerStmt, Name, ObjectRef, ObjectType,
    RangeVar, RenameStmt,
};
use crate::lowered::{self as library, AlterTableOperation as Operation};
use crate::{
    AlterDomain, AlterRoutine, AlterSequence, AlterView, DatabaseCommand, IndexAction,
    IndexCommand, LargeObjectCommand, OwnedKind, PolicyAction, RightsCommand, RoleCommand,
    RoleName, RoutineCommand, StatementKind, TriggerAction, TypeCommand, ViewCommand,
};
use logstead_sql_types::error::{Result, SqlError};

fn of_type(command: TypeCommand) -> Lowered {
    Lowered::command(StatementKind::Type(Box::new(command)))
}

fn of_index(command: IndexCommand) -> Lowered {
    Lowered::command(StatementKind::Index(Box::new(command)))
}

fn of_rights(command: RightsCommand) -> Lowered {
    Lowered::command(StatementKind::Rights(Box::new(command)))
}

impl Lower<'_> {
    /// RENAME
    pub(super) fn rename(&self, stmt: &RenameStmt) -> Result<Lowered> {
        let RenameStmt {
            object, newname, ..
        } = stmt;
        let new = newname.to_string();
        if let Some(word) = routine_word(stmt.rename_type) {
            return self.alter_routine(word, object, AlterRoutine::Rename(new));
        }
        let of_domain = |alter| {
            let name = unplaced_name(&name_of(object)?.names);
            Ok(of_type(TypeCommand::AlterDomain { name, alter }))
        };
        match stmt.rename_type {
            ObjectType::Table | ObjectType::View | ObjectType::MatView => {
                let operation = Operation::RenameTable(self.one_name(newname));
                self.alter_renamed(
                    stmt.rename_type,
                    relation_of(object)?,
                    stmt.missing_ok,
                    operation,
                )
            }
            ObjectType::Column => {
                let kind = stmt.relation_type.unwrap_or(ObjectType::Table);
                let operation = Operation::RenameColumn {
                    old_column_name: self.unplaced_ident(subname(stmt)?),
                    new_column_name: self.unplaced_ident(newname),
                };
                self.alter_renamed(kind, relation_of(object)?, stmt.missing_ok, operation)
            }
            ObjectType::TabConstraint => {
                let operation = Operation::RenameConstraint {
                    old_name: self.unplaced_ident(subname(stmt)?),
                    new_name: self.unplaced_ident(newname),
                };
                self.alter_renamed(
                    ObjectType::Table,
                    relation_of(object)?,
                    stmt.missing_ok,
                    operation,
                )
            }
            ObjectType::Index => Ok(of_index(IndexCommand::Rename {
                if_exists: stmt.missing_ok,
                name: self.relation_name(relation_of(object)?),
                new: self.one_name(newname),
            })),
            ObjectType::Sequence => {
                let alter = AlterSequence {
                    if_exists: stmt.missing_ok,
                    name: self.relation_name(relation_of(object)?),
                    restart: None,
                    data_type: None,
                    options: Vec::new(),
                    owned_by: None,
                    rename: Some(self.unplaced_ident(newname)),
                };
                let kind = StatementKind::AlterSequence(Box::new(alter));
                Ok(Lowered::command(kind))
            }
            ObjectType::Type => Ok(of_type(TypeCommand::Rename {
                name: unplaced_name(&name_of(object)?.names),
                new,
            })),
            ObjectType::Attribute => {
                let parts = super::object::relation_parts(relation_of(object)?);
                Ok(of_type(TypeCommand::RenameAttribute {
                    name: unplaced_name(&parts),
                    from: subname(stmt)?.to_string(),
                    to: new,
                }))
            }
            ObjectType::Domain => of_domain(AlterDomain::Rename(new)),
            ObjectType::DomConstraint => of_domain(AlterDomain::RenameConstraint {
                from: subname(stmt)?.to_string(),
                to: new,
            }),
            ObjectType::Policy if stmt.missing_ok => {
                Err(SqlError::unsupported("ALTER POLICY IF EXISTS"))
            }
            ObjectType::Policy => {
                let (name, table) = name_and_relation(object)?;
                Ok(of_policy(name, table, PolicyAction::Rename(new)))
            }
            ObjectType::Trigger => {
                let (name, table) = name_and_relation(object)?;
                Ok(of_trigger(name, table, TriggerAction::Rename(new)))
            }
            ObjectType::Database => {
                let name = one_part(object)?.to_string();
                let command = DatabaseCommand::Rename { name, new };
                Ok(Lowered::command(StatementKind::Database(Box::new(command))))
            }
            ObjectType::Role => {
                let name = RoleName::Name(one_part(object)?.to_string());
                let new = RoleName::Name(new);
                let command = RoleCommand::Rename { name, new };
                Ok(Lowered::command(StatementKind::Role(Box::new(command))))
            }
            other => Ok(Lowered::unsupported(alter_of(other))),
        }
    }

    /// SET SCHEMA
    pub(super) fn set_schema(&self, stmt: &AlterObjectSchemaStmt) -> Result<Lowered> {
        let AlterObjectSchemaStmt { object, .. } = stmt;
        let schema = stmt.newschema.to_string();
        if let Some(word) = routine_word(stmt.object_type) {
            return self.alter_routine(word, object, AlterRoutine::SetSchema(schema));
        }
        match stmt.object_type {
            kind @ (ObjectType::Table | ObjectType::View | ObjectType::MatView) => {
                let operation = Operation::SetSchema(schema);
                self.alter_renamed(kind, relation_of(object)?, stmt.missing_ok, operation)
            }
            ObjectType::Sequence => Err(SqlError::unsupported(
                "ALTER SEQUENCE SET SCHEMA / OWNER TO",
            )),
            ObjectType::Type => Ok(of_type(TypeCommand::SetSchema {
                name: unplaced_name(&name_of(object)?.names),
                schema,
            })),
            ObjectType::Domain => Ok(of_type(TypeCommand::AlterDomain {
                name: unplaced_name(&name_of(object)?.names),
                alter: AlterDomain::SetSchema(schema),
            })),
            other => Ok(Lowered::unsupported(alter_of(other))),
        }
    }

    /// DEPENDS ON EXTENSION
    pub(super) fn depends_on_extension(&self, stmt: &AlterObjectDependsStmt) -> Result<Lowered> {
        Err(SqlError::unsupported(match stmt.object_type {
            ObjectType::Index => {
                return Ok(of_index(IndexCommand::Alter {
                    if_exists: false,
                    name: self.relation_name(relation_of(&stmt.object)?),
                    action: IndexAction::DependsOnExtension,
                }));
            }
            ObjectType::Trigger => "ALTER TRIGGER ... DEPENDS ON EXTENSION",
            ObjectType::MatView => "this form of ALTER MATERIALIZED VIEW",
            _ => "DEPENDS ON EXTENSION",
        }))
    }

    /// OWNER TO
    pub(super) fn owner_to(&self, stmt: &AlterOwnerStmt) -> Result<Lowered> {
        let AlterOwnerStmt { object, .. } = stmt;
        let owner = role_name(&stmt.newowner);
        if let Some(word) = routine_word(stmt.object_type) {
            let target = self.routine_ref(routine_of(object)?)?;
            return Ok(of_rights(RightsCommand::RoutineOwner {
                word,
                target,
                owner,
            }));
        }
        let kind = match stmt.object_type {
            ObjectType::Schema => OwnedKind::Schema,
            ObjectType::Database => OwnedKind::Database,
            ObjectType::Type => OwnedKind::Type,
            ObjectType::Domain => OwnedKind::Domain,
            ObjectType::LargeObject => {
                let object = large_object_of(object)?;
                let command = LargeObjectCommand::Owner { object, owner };
                return Ok(Lowered::command(StatementKind::LargeObject(Box::new(
                    command,
                ))));
            }
            other => return Ok(Lowered::unsupported(alter_of(other))),
        };
        Ok(of_rights(RightsCommand::Owner {
            kind,
            if_exists: false,
            name: unplaced_name(&name_of(object)?.names),
            owner,
        }))
    }

    fn alter_routine(
        &self,
        word: crate::RoutineWord,
        object: &ObjectRef,
        alter: AlterRoutine,
    ) -> Result<Lowered> {
        let target = self.routine_ref(routine_of(object)?)?;
        let command = RoutineCommand::Alter {
            word,
            target,
            alter,
        };
        Ok(Lowered::command(StatementKind::Routine(Box::new(command))))
    }

    /// One operation of ALTER TABLE on a table or a view.
    fn alter_renamed(
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
                return Ok(Lowered::ddl(statement, "ALTER TABLE"));
            }
            ObjectType::View => false,
            ObjectType::MatView => true,
            other => return Ok(Lowered::unsupported(alter_of(other))),
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

/// The column, attribute or constraint that is renamed.
fn subname(stmt: &RenameStmt) -> Result<&Name> {
    stmt.subname.as_ref().ok_or_else(unexpected_object)
}

/// The name of an object that has no schema.
fn one_part(object: &ObjectRef) -> Result<&Name> {
    name_of(object)?.names.last().ok_or_else(unexpected_object)
}

/// What is not supported of objects of a kind in ALTER.
fn alter_of(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::Schema => "ALTER SCHEMA",
        ObjectType::Extension => "this ALTER EXTENSION",
        other => unsupported_kind(other),
    }
}
