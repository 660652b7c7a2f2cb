//! Which function runs a statement that changes the catalog (`ProcessUtilitySlow`).

use super::{
    DdlContext, aggregates, alter_index, alter_table, analyze, comment, composites, create_as,
    create_schema, create_table, databases, domains, drop, enums, extensions, grant, index,
    large_objects, materialized, owners, policies, ranges, renames, roles, routines, sequence,
    set_schema, triggers, types, view,
};
use crate::db_role_setting;
use logstead_sql_parse::ast::{
    AlterObjectSchemaStmt, AlterOwnerStmt, AlterTableCmd, AlterTableStmt, ObjectType, RelationKind,
    RenameStmt, Stmt,
};
use logstead_sql_types::error::{Result, SqlError};

/// Runs the statement. Gives the command tag.
pub(super) async fn execute(stmt: &Stmt, cx: &mut DdlContext<'_>) -> Result<String> {
    match stmt {
        Stmt::CreateTableAs(create) if create.is_materialized_view => {
            materialized::create(create, cx).await
        }
        Stmt::CreateTableAs(create) => create_as::execute(create, cx).await,
        _ => definition(stmt, cx).await.map(|()| stmt.tag().to_owned()),
    }
}

/// The same of one that stores no rows.
async fn definition(stmt: &Stmt, cx: &mut DdlContext<'_>) -> Result<()> {
    match stmt {
        Stmt::Create(stmt) => create_table::execute(stmt, cx).await,
        Stmt::Index(stmt) => index::create(stmt, cx).await,
        Stmt::View(stmt) => view::create(stmt, cx).await,
        Stmt::RefreshMatView(stmt) => materialized::refresh(stmt, cx).await,
        Stmt::CreateSchema(stmt) => create_schema(stmt, cx).await,
        Stmt::CreateRole(stmt) => roles::create(stmt, cx).await,
        Stmt::AlterRole(stmt) => roles::alter(stmt, cx).await,
        Stmt::AlterRoleSet(stmt) => db_role_setting::alter_role_set(stmt, cx).await,
        Stmt::DropRole(stmt) => roles::drop(stmt, cx).await,
        Stmt::GrantRole(stmt) => roles::grant_roles(stmt, cx).await,
        Stmt::DropOwned(stmt) => owners::drop_owned(stmt, cx).await,
        Stmt::ReassignOwned(stmt) => owners::reassign(stmt, cx).await,
        Stmt::Grant(stmt) => grant::execute(stmt, cx).await,
        Stmt::AlterDefaultPrivileges(stmt) => grant::defaults(stmt, cx).await,
        Stmt::Createdb(stmt) => databases::create(stmt, cx).await,
        Stmt::AlterDatabase(stmt) => databases::alter(stmt, cx).await,
        Stmt::AlterDatabaseRefreshColl(stmt) => databases::refresh_collation(stmt, cx),
        Stmt::AlterDatabaseSet(stmt) => db_role_setting::alter_database_set(stmt, cx).await,
        Stmt::Dropdb(stmt) => databases::drop(stmt, cx).await,
        Stmt::CreateExtension(stmt) => extensions::create(stmt, cx).await,
        Stmt::AlterExtension(stmt) => extensions::update(stmt, cx),
        Stmt::CreateFunction(stmt) => routines::create(stmt, cx).await,
        Stmt::AlterFunction(stmt) => routines::alter(stmt, cx).await,
        Stmt::Define(stmt) => aggregates::create(stmt, cx).await,
        Stmt::CreateDomain(stmt) => domains::create(stmt, cx).await,
        Stmt::AlterDomain(stmt) => domains::alter(stmt, cx).await,
        Stmt::CompositeType(stmt) => composites::create(stmt, cx).await,
        Stmt::CreateEnum(stmt) => enums::create(stmt, cx).await,
        Stmt::AlterEnum(stmt) => enums::alter(stmt, cx).await,
        Stmt::CreateRange(stmt) => ranges::create(stmt, cx).await,
        Stmt::CreatePolicy(stmt) => policies::create(stmt, cx).await,
        Stmt::AlterPolicy(stmt) => policies::alter(stmt, cx).await,
        Stmt::CreateTrig(stmt) => triggers::create(stmt, cx).await,
        Stmt::Comment(stmt) => comment::execute(stmt, cx).await,
        Stmt::Drop(stmt) => drop::execute(stmt, cx).await,
        Stmt::Truncate(stmt) => drop::truncate(stmt, cx).await,
        Stmt::CreateSeq(stmt) => sequence::create(stmt, cx).await,
        Stmt::AlterSeq(stmt) => sequence::alter(stmt, cx).await,
        Stmt::Cluster(stmt) => index::cluster(stmt, cx),
        Stmt::Reindex(stmt) => index::reindex(stmt, cx).await,
        Stmt::Vacuum(stmt) => analyze::execute(stmt, cx).await,
        Stmt::AlterObjectDepends(stmt) => alter_index::depends_on_extension(stmt, cx),
        Stmt::Rename(stmt) => rename(stmt, cx).await,
        Stmt::AlterObjectSchema(stmt) => alter_schema(stmt, cx).await,
        Stmt::AlterOwner(stmt) => alter_owner(stmt, cx).await,
        Stmt::AlterTable(stmt) => alter_table(stmt, cx).await,
        _ => Err(SqlError::internal("no statement for the catalog")),
    }
}

/// `ExecRenameStmt`
async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    match stmt.rename_type {
        ObjectType::Type | ObjectType::Domain => types::rename(stmt, cx).await,
        ObjectType::Attribute => composites::rename(stmt, cx).await,
        ObjectType::DomConstraint => domains::rename_constraint(stmt, cx).await,
        ObjectType::Policy => policies::rename(stmt, cx).await,
        ObjectType::Trigger => triggers::rename(stmt, cx).await,
        ObjectType::Database => databases::rename(stmt, cx).await,
        ObjectType::Role => roles::rename(stmt, cx).await,
        ObjectType::Table
        | ObjectType::Index
        | ObjectType::Sequence
        | ObjectType::View
        | ObjectType::MatView => renames::rename_relation(stmt, cx).await,
        ObjectType::Column => renames::rename_column(stmt, cx).await,
        ObjectType::TabConstraint => renames::rename_constraint(stmt, cx).await,
        _ => routines::rename(stmt, cx).await,
    }
}

/// `ExecAlterObjectSchemaStmt`
async fn alter_schema(stmt: &AlterObjectSchemaStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    match stmt.object_type {
        ObjectType::Type | ObjectType::Domain => types::set_schema(stmt, cx).await,
        ObjectType::Table | ObjectType::View | ObjectType::MatView => {
            set_schema::of_relation(stmt, cx).await
        }
        _ => routines::set_schema(stmt, cx).await,
    }
}

/// `ExecAlterOwnerStmt`
async fn alter_owner(stmt: &AlterOwnerStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    match stmt.object_type {
        ObjectType::LargeObject => {
            large_objects::alter_owner(&stmt.object, &stmt.newowner, cx).await
        }
        _ => owners::alter(stmt, cx).await,
    }
}

/// ALTER TABLE and its like: an owner alone, and the others by what they alter.
async fn alter_table(stmt: &AlterTableStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    match stmt.cmds.as_slice() {
        [AlterTableCmd::ChangeOwner(owner)] => owners::alter_relation(stmt, owner, cx).await,
        _ if stmt.objtype == RelationKind::Index => alter_index::execute(stmt, cx).await,
        _ if stmt.objtype == RelationKind::Type => composites::alter(stmt, cx).await,
        _ => alter_table::execute(stmt, cx).await,
    }
}
