//! The database that a session begins in.

use super::instance::Instance;
use logstead_sql_catalog::role::Role;
use logstead_sql_catalog::role::acl::privilege::CONNECT;
use logstead_sql_catalog::settings::SessionSettings;
use logstead_sql_catalog::{Catalog, DatabaseConnection};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::future::poll_fn;
use std::sync::Arc;

fn unknown(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_CATALOG_NAME,
        format!("database \"{name}\" does not exist"),
    )
}

/// Enters the database of this name: from here on it is neither dropped nor renamed. Or says why the role may not; the
/// server's `own` sessions may.
/// The catalog of a database that a session is in already.
pub(super) fn of_member(instance: &Instance, entered: &DatabaseConnection) -> Result<Arc<Catalog>> {
    let catalog = instance.store.current_by_oid(entered.database());
    catalog.ok_or_else(|| SqlError::internal("the database of a session is gone"))
}

pub(super) fn enter(
    instance: &Instance,
    name: &str,
    role: &Role,
    own: bool,
) -> Result<(Arc<Catalog>, DatabaseConnection)> {
    let store = &instance.store;
    let found = store.current(name).ok_or_else(|| unknown(name))?;
    let gone = || unknown(name).detail("It seems to have just been dropped or renamed.");
    let entered = store.in_use.enter(found.database).ok_or_else(gone)?;
    // As it is now that nobody can take it away.
    let catalog = store
        .current_by_oid(found.database)
        .filter(|catalog| catalog.database_name == name)
        .ok_or_else(gone)?;
    let known = catalog.notes.databases.get(catalog.database);
    let database = known.ok_or_else(gone)?;
    if own {
        return Ok((catalog, entered));
    }
    if !database.allow_connections {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("database \"{name}\" is not currently accepting connections"),
        ));
    }
    let acl_checker = catalog.acl_checker(&catalog.roles);
    if acl_checker.on_database(role.oid, catalog.database, CONNECT) == 0 {
        return Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for database \"{name}\""),
        )
        .detail("User does not have CONNECT privilege."));
    }
    let limit = usize::try_from(database.connection_limit).unwrap_or(usize::MAX);
    if !role.superuser && store.in_use.sessions(catalog.database) > limit {
        return Err(SqlError::new(
            SqlState::TOO_MANY_CONNECTIONS,
            format!("too many connections for database \"{name}\""),
        ));
    }
    Ok((catalog, entered))
}

/// A replication connection is to no database. Its session looks at settings and roles in whichever there is, and does
/// not keep anybody from dropping that.
pub(super) fn of_replication(instance: &Instance) -> Result<(String, Arc<Catalog>)> {
    let all = instance.store.catalogs();
    let of_postgres = all
        .iter()
        .find(|catalog| catalog.database_name == "postgres");
    let catalog = of_postgres
        .or(all.first())
        .ok_or_else(|| unknown("postgres"))?;
    Ok((catalog.database_name.clone(), Arc::clone(catalog)))
}

/// Waits until a database that is copied, or about to be dropped or renamed, may be entered again.
pub(super) async fn until_open(instance: &Instance, name: &str) {
    let store = &instance.store;
    let Some(found) = store.current(name) else {
        return;
    };
    poll_fn(|task| store.in_use.poll_open(found.database, task)).await;
}

/// Sets what a role's sessions in the database begin with: what is said of the database, over that what is said of the
/// role, over that what is said of both.
pub(super) fn begin_settings(catalog: &Catalog, role: &Role, settings: &mut SessionSettings) {
    let database = catalog.notes.databases.get(catalog.database);
    let of = |role: Option<RoleId>| {
        let found = database.and_then(|database| database.settings.get(&role));
        found.into_iter().flatten()
    };
    for (name, value) in of(None).chain(&role.settings).chain(of(Some(role.oid))) {
        // What was good when it was set may not be any more; that keeps nobody out.
        if let Err(error) = settings.set_initial(name, value) {
            tracing::warn!(
                "a setting of role \"{}\" or database \"{}\" is not used: {}",
                role.name,
                catalog.database_name,
                error.fields().message
            );
        }
    }
}
