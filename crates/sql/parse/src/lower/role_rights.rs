//! GRANT and REVOKE of privileges, ALTER DEFAULT PRIVILEGES.

use super::Lower;
use super::object::{
    large_object_of, name_of, relation_of, relation_parts, routine_of, unexpected_object,
};
use super::role::{role_name, role_names};
use super::routine_ref::{routine_word, unplaced_name};
use crate::ast::{
    AccessPriv, AlterDefaultPrivilegesStmt, DefArg, DropBehavior, GrantStmt, GrantTarget, Name,
    ObjectRef, ObjectType,
};
use crate::lowered as library;
use crate::{Grant, GrantOn, Privilege, RightsCommand, RoutineWord};
use logstead_sql_types::error::Result;

fn strings(names: &[Name]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// Privileges and the columns of ALL: no privileges are ALL.
fn privileges(all: &[AccessPriv]) -> (Option<Vec<Privilege>>, Vec<String>) {
    let mut privileges = Vec::new();
    for privilege in all {
        let columns = strings(&privilege.cols);
        match &privilege.priv_name {
            Some(name) => privileges.push((name.to_string(), columns)),
            None => return (None, columns),
        }
    }
    let is_all = privileges.is_empty();
    ((!is_all).then_some(privileges), Vec::new())
}

/// Names that no schema is in front of.
fn plain_names(objects: &[ObjectRef]) -> Result<Vec<String>> {
    let names = objects.iter().map(name_of);
    names.map(|name| Ok(name?.names.join("."))).collect()
}

fn relations(objects: &[ObjectRef]) -> Result<Vec<library::ObjectName>> {
    let relations = objects.iter().map(relation_of);
    relations
        .map(|relation| Ok(unplaced_name(&relation_parts(relation?))))
        .collect()
}

fn any_names(objects: &[ObjectRef]) -> Result<Vec<library::ObjectName>> {
    let names = objects.iter().map(name_of);
    names.map(|name| Ok(unplaced_name(&name?.names))).collect()
}

impl Lower<'_> {
    /// GRANT, REVOKE
    pub(super) fn grant(&self, stmt: &GrantStmt) -> Result<Grant> {
        let (privileges, columns) = privileges(&stmt.privileges);
        Ok(Grant {
            revoke: !stmt.is_grant,
            option: stmt.grant_option,
            privileges,
            columns,
            on: self.grant_on(&stmt.target)?,
            grantees: role_names(&stmt.grantees),
            grantor: stmt.grantor.as_ref().map(role_name),
            cascade: stmt.behavior == DropBehavior::Cascade,
        })
    }

    fn grant_on(&self, target: &GrantTarget) -> Result<GrantOn> {
        let (kind, objects) = match target {
            GrantTarget::Objects(kind, objects) => (*kind, objects),
            GrantTarget::AllInSchema(kind, schemas) => return all_in_schema(*kind, schemas),
            GrantTarget::Defaults(kind) => {
                return Ok(GrantOn::Later(match kind {
                    ObjectType::Table => "tables",
                    ObjectType::Sequence => "sequences",
                    ObjectType::Function => "functions",
                    ObjectType::Type => "types",
                    ObjectType::Schema => "schemas",
                    _ => return Err(unexpected_object()),
                }));
            }
        };
        if let Some(word) = routine_word(kind) {
            let routines = objects.iter().map(routine_of);
            let routines = routines.map(|routine| self.routine_ref(routine?));
            return Ok(GrantOn::Routines(word, routines.collect::<Result<_>>()?));
        }
        Ok(match kind {
            ObjectType::Table => GrantOn::Tables(relations(objects)?),
            ObjectType::Sequence => GrantOn::Sequences(relations(objects)?),
            ObjectType::Database => GrantOn::Databases(plain_names(objects)?),
            ObjectType::Schema => GrantOn::Schemas(plain_names(objects)?),
            ObjectType::Language => GrantOn::Languages(plain_names(objects)?),
            ObjectType::Type => GrantOn::Types("type", any_names(objects)?),
            ObjectType::Domain => GrantOn::Types("domain", any_names(objects)?),
            ObjectType::LargeObject => {
                let numbers = objects.iter().map(large_object_of);
                GrantOn::LargeObjects(numbers.collect::<Result<_>>()?)
            }
            ObjectType::Fdw => GrantOn::Other("GRANT on a foreign-data wrapper"),
            ObjectType::ForeignServer => GrantOn::Other("GRANT on a foreign server"),
            ObjectType::Tablespace => GrantOn::Other("GRANT on a tablespace"),
            ObjectType::ParameterAcl => GrantOn::Other("GRANT on a parameter"),
            _ => return Err(unexpected_object()),
        })
    }

    /// ALTER DEFAULT PRIVILEGES
    pub(super) fn alter_default_privileges(
        &self,
        stmt: &AlterDefaultPrivilegesStmt,
    ) -> Result<RightsCommand> {
        let (mut roles, mut schemas) = (None, None);
        for option in &stmt.options {
            match &option.arg {
                Some(DefArg::Roles(named)) => {
                    self.once(&mut roles, role_names(named), option)?;
                }
                Some(DefArg::List(named)) => {
                    let names = named.iter().map(|name| match name {
                        DefArg::String(name) => Ok(name.to_string()),
                        _ => Err(unexpected_object()),
                    });
                    self.once(&mut schemas, names.collect::<Result<_>>()?, option)?;
                }
                _ => return Err(unexpected_object()),
            }
        }
        Ok(RightsCommand::Defaults {
            roles: roles.unwrap_or_default(),
            schemas: schemas.unwrap_or_default(),
            grant: self.grant(&stmt.action)?,
        })
    }
}

fn all_in_schema(kind: ObjectType, schemas: &[Name]) -> Result<GrantOn> {
    let schemas = strings(schemas);
    Ok(match kind {
        ObjectType::Table => GrantOn::AllTables(schemas),
        ObjectType::Sequence => GrantOn::AllSequences(schemas),
        ObjectType::Function => GrantOn::AllRoutines(RoutineWord::Function, schemas),
        ObjectType::Procedure => GrantOn::AllRoutines(RoutineWord::Procedure, schemas),
        ObjectType::Routine => GrantOn::AllRoutines(RoutineWord::Routine, schemas),
        _ => return Err(unexpected_object()),
    })
}
