//! DDL: statements that change the catalog.
//!
//! Owns: CREATE, ALTER, DROP, TRUNCATE, COMMENT and what they do to stored rows. Everything happens in the session's
//! transaction: catalog rows are rows, new storages and indexes are dropped again when undone ([`DdlState`]), and
//! others see nothing before the commit. Messages, codes, notices and invented names are PostgreSQL's.
//!
//! Locks: ACCESS EXCLUSIVE on a table that is altered, dropped or truncated, unless plans do not depend on what is
//! altered (`alter_table::lock_level`); ACCESS SHARE on one that gets an index, which writers maintain from the moment
//! it is attached. After a wait the catalog is looked at again. A schema's row is shared by who makes something in the
//! schema, and locked by who drops it. Two transactions that make one name meet at the catalog's unique index: the
//! second waits for the first.

#![forbid(unsafe_code)]

mod aggregates;
mod alter_column;
mod alter_index;
mod alter_table;
mod alter_table_cmd;
mod alter_view;
mod analyze;
mod cascade_messages;
mod catalog_rows;
mod choose_name;
mod column_defaults;
mod column_removal;
mod columns;
mod comment;
mod comment_system;
mod composites;
mod constraints;
mod copy_database;
mod create_as;
mod create_table;
mod create_table_like;
mod database_options;
mod databases;
mod db_role_setting;
pub mod def_elem;
mod default_operator_class;
mod distribution;
mod domains;
mod drop;
mod drop_dependents;
mod drop_routine;
mod drop_type;
mod enums;
mod expressions;
mod extensions;
mod find_dependents;
mod foreign_keys;
mod generated;
mod grant;
mod index;
mod index_expression_columns;
mod index_objects;
mod large_objects;
mod materialized;
mod missing_object;
mod namespace;
mod object_address;
mod own_objects;
mod owners;
pub mod permissions;
#[cfg(test)]
mod planner_tests;
mod policies;
mod privileges;
mod ranges;
mod relation_attributes;
mod relations;
mod renames;
pub(crate) mod roles;
mod routine_arguments;
mod routine_lookup;
mod routine_options;
mod routine_types;
mod routines;
mod sequence;
mod set_schema;
mod settings_change;
mod state;
mod storage_parameters;
mod system_relations;
mod table_rewrite;
mod temporary;
mod triggers;
mod type_privileges;
mod types;
mod unlogged;
mod unsupported;
mod using_index;
mod utility;
mod view;

pub use databases::moves_database;
pub use index::is_concurrent as is_concurrent_reindex;
pub use index_expression_columns::{PendingIndexBuild, build};
pub use large_objects::set_privileges as large_object_rights;
pub(crate) use missing_object::no_database;
pub use namespace::named_table;
pub use object_address::{drop_owned_roles, large_objects as large_objects_named};
pub use own_objects::{is_of_own_objects, view_is_own};
pub(crate) use pg_catalog::definitions::with_value;
pub use relations::name_taken;
pub use settings_change::{SettingChange, flatten_set_variable_args};
pub use state::DdlState;
pub use system_relations::pg_catalog;
pub use temporary::{at_commit, discard};

use logstead_engine::{Txn, Worker};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::store::CatalogStore;
use logstead_sql_exec::Cancel;
use logstead_sql_parse::ast::CreateSchemaStmt;
use logstead_sql_parse::{Parsed, StatementTree};
use logstead_sql_plan::bind::Variables;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::{SqlState, TableId};
use std::rc::Rc;
use std::sync::Arc;

/// A notice or warning for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// NOTICE, WARNING, INFO ...
    pub severity: &'static str,
    /// SQLSTATE.
    pub code: SqlState,
    /// Text.
    pub message: String,
    /// Secondary text.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

/// What a DDL statement runs with.
pub struct DdlContext<'a> {
    /// The transaction; the caller has begun the statement in it.
    pub txn: &'a mut Txn,
    /// The worker the session lives on: for the small transactions that reserve OIDs and log sequences.
    pub worker: &'a Worker,
    /// The stored catalog.
    pub store: &'a Arc<CatalogStore>,
    /// What the transaction has changed so far.
    pub state: &'a mut DdlState,
    /// Constraints the transaction has still to check.
    pub events: &'a mut logstead_sql_exec::after_triggers::EventQueue,
    /// The session.
    pub session: &'a dyn Context,
    /// Schemas searched, as the setting has them.
    pub search_path: &'a [String],
    /// Where notices go.
    pub notices: &'a mut Vec<Notice>,
    /// Set to end the statement.
    pub cancel: &'a Cancel,
    /// `work_mem`, for CREATE TABLE AS.
    pub work_mem_bytes: usize,
    /// Where it puts what is more; `None`: nowhere.
    pub spill: Option<logstead_sql_exec::SpillAllowance<'a>>,
    /// Storages that open cursors of the session read.
    pub in_use: &'a [TableId],
    /// The text the statement was parsed from: errors point into it.
    pub text: &'a str,
    /// What the query of CREATE TABLE AS may name.
    pub given: StatementParameters<'a>,
}

/// Parameters of a statement that is not planned: those of the client, or the variables around it.
#[derive(Clone, Copy, Default)]
pub struct StatementParameters<'a> {
    /// Types of the client's.
    pub types: &'a [Option<TypeId>],
    /// Their values, or those of the variables.
    pub values: &'a [Datum],
    /// The variables.
    pub variables: Option<&'a Rc<Variables>>,
    /// The query of CREATE TABLE AS, if who runs it has it, and its text.
    pub query: Option<(&'a StatementTree, &'a str)>,
}

/// The tables that a TRUNCATE is about to empty, which are locked then: for their triggers, in whose bodies they are
/// there still.
pub async fn truncated(
    truncate: &logstead_sql_parse::ast::TruncateStmt,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<RelationId>> {
    drop::truncated(truncate, cx).await
}

/// Runs a DDL statement. Gives the command tag.
pub async fn execute(parsed: &Parsed, cx: &mut DdlContext<'_>) -> Result<String> {
    let name = cx.session.session_info()?.database();
    let current = match cx.store.is_replica() {
        // It may have another name by now.
        true => Some(cx.catalog()?),
        false => cx.store.current(name),
    };
    let database = current.map(|c| c.database).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_CATALOG_NAME,
            format!("database \"{name}\" does not exist"),
        )
    })?;
    cx.state.begin_statement(cx.txn, cx.store, database);
    let stmt = parsed
        .utility()
        .ok_or_else(|| SqlError::internal("no statement for the catalog"))?;
    if let Some(what) = unsupported::refusal(stmt) {
        return Err(SqlError::unsupported(what));
    }
    permissions::check_statement(stmt, cx)?;
    utility::execute(stmt, cx).await
}

/// 0A000 for what is named in the plural.
fn unsupported_all(what: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{what} are not supported"),
    )
}

/// Runs CREATE SCHEMA, apart from what is made in it.
async fn create_schema(stmt: &CreateSchemaStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let owner = match &stmt.authrole {
        Some(role) => cx.find_role(role)?.oid,
        None => cx.session.current_role(),
    };
    let name = match &stmt.schemaname {
        Some(name) => name.to_string(),
        None => {
            let roles = std::sync::Arc::clone(&cx.catalog()?.roles);
            roles
                .get(owner)
                .map_or_else(String::new, |role| role.name.clone())
        }
    };
    owners::must_be_member(owner, cx)?;
    let name = name.to_string();
    if name.starts_with("pg_") {
        return Err(SqlError::new(
            SqlState::RESERVED_NAME,
            format!("unacceptable schema name \"{name}\""),
        )
        .detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    if !cx.create_schema(&name, owner).await? {
        if !stmt.if_not_exists {
            return Err(SqlError::new(
                SqlState::DUPLICATE_SCHEMA,
                format!("schema \"{name}\" already exists"),
            ));
        }
        cx.notice(
            SqlState::DUPLICATE_SCHEMA,
            format!("schema \"{name}\" already exists, skipping"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
