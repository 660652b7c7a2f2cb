//! CREATE, ALTER and DROP DATABASE.
//!
//! A new database is a row and what its template has (`copy_database`); of one in which nothing was made that is the
//! schema `public` alone. Dropping one deletes every row of
//! the catalog's tables whose key begins with it, and drops its storages when the transaction has committed, as DROP
//! TABLE does; so a crash finds all of it or nothing. Nobody is in the database meanwhile, and nobody enters
//! ([`DatabaseUsage`](logstead_sql_catalog::database_usage)).
//!
//! Who changes the list of databases has the lock of their table alone; who says something of one, its privileges or a
//! comment, shares it. Whoever takes it and the lock of privileges takes that one first.

use super::database_options::{self as options, DatabaseOptions};
use super::object_address::plain_name;
use super::{DdlContext, copy_database, def_elem, owners};
use crate::missing_object::no_database;
use crate::table_rewrite::{SCAN_ROWS, yield_once};
use logstead_engine::{ScanCursor, TableLock};
use logstead_sql_catalog::change::{CatalogChange, is_stored};
use logstead_sql_catalog::classes::PG_DATABASE;
use logstead_sql_catalog::database::Database;
use logstead_sql_catalog::database_usage::CloseReason;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::publish::public_row;
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_catalog::storages;
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::SHARED;
use logstead_sql_catalog::stored::{
    COMMENTS, DATABASES, OBJECT_TABLES, ObjectKey, ObjectRow, RIGHTS, ROLES, SCHEMAS,
};
use logstead_sql_catalog::{RelationKind, large_objects};
use logstead_sql_parse::ast::{
    AlterDatabaseRefreshCollStmt, AlterDatabaseStmt, CreatedbStmt, DropdbStmt, RenameStmt,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{DatabaseOid, RoleId};
use logstead_types::{Rid, SqlState, TableId};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long a database may be left by those who have ended their sessions, or were told to: PostgreSQL's number.
const PATIENCE: Duration = Duration::from_secs(5);

/// What comes of it within [`PATIENCE`].
async fn within_patience<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    // Most need not wait, nor a timer.
    let at_once = poll_fn(|task| Poll::Ready(work.as_mut().poll(task))).await;
    match at_once {
        Poll::Ready(done) => Some(done),
        Poll::Pending => tokio::time::timeout(PATIENCE, work).await.ok(),
    }
}

fn exists(name: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_DATABASE,
        format!("database \"{name}\" already exists"),
    )
}

fn in_use(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::OBJECT_IN_USE, message)
}

impl DdlContext<'_> {
    /// Nobody drops or renames a database before the transaction ends.
    pub(super) async fn lock_databases_shared(&mut self) -> Result<()> {
        self.lock_storage(DATABASES, TableLock::RowExclusive)
            .await?;
        self.txn.begin_statement();
        Ok(())
    }

    /// Nobody else changes databases before the transaction ends. Privileges that go with it are held first.
    pub(crate) async fn lock_databases(&mut self) -> Result<()> {
        self.lock_storage(RIGHTS, TableLock::RowExclusive).await?;
        self.lock_storage(DATABASES, TableLock::AccessExclusive)
            .await?;
        self.txn.begin_statement();
        Ok(())
    }

    /// Stores a database that has changed.
    pub(crate) async fn update_database(&mut self, database: Database) -> Result<()> {
        let row = stored::databases::encode(&database);
        if !self
            .change_row(DATABASES, SHARED, database.oid.get(), Some(&row))
            .await?
        {
            return Err(exists(&database.name));
        }
        self.state
            .push(CatalogChange::PutDatabase(Arc::new(database)));
        Ok(())
    }

    /// Waits until nobody is in the database, and keeps everybody out of it until the transaction ends. 55006 if they
    /// stay.
    async fn close_database(&mut self, database: &Database) -> Result<()> {
        if self.state.has_closed(database.oid) {
            return Ok(());
        }
        self.close_for(database, CloseReason::Change).await
    }

    /// The same, for whatever it is.
    pub(super) async fn close_for(
        &mut self,
        database: &Database,
        closing: CloseReason,
    ) -> Result<()> {
        let users = Arc::clone(&self.store.in_use);
        if let Some(closed) = users.close(database.oid, closing) {
            self.state.close(closed);
            return Ok(());
        }
        let mut patience = pin!(tokio::time::sleep(PATIENCE));
        let mut late = false;
        loop {
            if let Some(closed) = users.close(database.oid, closing) {
                self.state.close(closed);
                return Ok(());
            }
            if late {
                let name = &database.name;
                let (what, own) = match closing {
                    CloseReason::Change => ("database", false),
                    CloseReason::Copy { own } => ("source database", own),
                };
                let error = in_use(format!(
                    "{what} \"{name}\" is being accessed by other users"
                ));
                let sessions = users.sessions(database.oid);
                return Err(match sessions.saturating_sub(usize::from(own)) {
                    0 => error,
                    1 => error.detail("There is 1 other session using the database."),
                    n => error.detail(format!("There are {n} other sessions using the database.")),
                });
            }
            self.cancel.check()?;
            yield_once().await;
            late = poll_fn(|task| {
                if patience.as_mut().poll(task).is_ready() {
                    return Poll::Ready(true);
                }
                users.poll_left(database.oid, closing, task).map(|()| false)
            })
            .await;
        }
    }

    /// Deletes a comment on what all databases share where older builds have stored it: with the database in which it
    /// was made.
    pub(super) async fn delete_older_comments(&mut self, key: &ObjectKey) -> Result<()> {
        let databases = Arc::clone(&self.catalog()?.notes.databases);
        for database in databases.all().map(|database| database.oid) {
            let older = ObjectKey {
                database,
                ..key.clone()
            };
            if let Some((rid, row)) = self.named_row(COMMENTS, &older).await? {
                self.store.remember(COMMENTS, database, row.oid, rid);
                self.change_row(COMMENTS, database, row.oid, None).await?;
            }
        }
        Ok(())
    }

    /// What the rows of a table of the catalog say that are of a database.
    pub(super) async fn objects_of(
        &mut self,
        id: TableId,
        database: DatabaseOid,
    ) -> Result<Vec<ObjectRow>> {
        let rows = self.rows_of(id, database).await?;
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// The rows of a table of the catalog that are of a database.
    async fn rows_of(
        &mut self,
        id: TableId,
        database: DatabaseOid,
    ) -> Result<Vec<(Rid, ObjectRow)>> {
        let table = self.store.table(id)?;
        let mut found = Vec::new();
        self.txn.begin_statement();
        let mut cursor = ScanCursor::new(&table);
        loop {
            let mut absent = None;
            {
                let guard = self.txn.pin();
                for _ in 0..SCAN_ROWS {
                    match self.txn.scan_next(&mut cursor, &guard) {
                        Ok(Some(row)) => {
                            // A look at the key's first part spares the rows of the others.
                            if ObjectRow::database(row.bytes) == Some(database) {
                                found.push((row.rid, ObjectRow::decode(row.bytes)?));
                            }
                        }
                        Ok(None) => return Ok(found),
                        Err(missing) => {
                            absent = Some(missing);
                            break;
                        }
                    }
                }
            }
            match absent {
                Some(absent) => self.wait(absent).await?,
                None => self.cancel.check()?,
            }
            yield_once().await;
        }
    }
}

/// Superusers may make databases, and who was told so.
fn may_make(cx: &mut DdlContext<'_>) -> Result<bool> {
    let catalog = cx.catalog()?;
    let role = catalog.roles.get(cx.session.current_role());
    Ok(role.is_some_and(|role| role.superuser || role.create_db))
}

pub(crate) fn find(name: &str, cx: &mut DdlContext<'_>) -> Result<Arc<Database>> {
    let catalog = cx.catalog()?;
    let found = catalog.notes.databases.by_name(name);
    found.cloned().ok_or_else(|| no_database(name))
}

/// 42501 unless the database is the asker's.
pub(crate) fn must_own(database: &Database, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, database.oid))? {
        true => Ok(()),
        false => Err(denied(format!(
            "must be owner of database {}",
            database.name
        ))),
    }
}

/// A database of the asker's.
fn owned(name: &str, cx: &mut DdlContext<'_>) -> Result<Arc<Database>> {
    let found = find(name, cx)?;
    must_own(&found, cx)?;
    Ok(found)
}

/// Runs CREATE DATABASE.
pub(super) async fn create(stmt: &CreatedbStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let wanted = options::of_create(&stmt.options, cx)?;
    let owner = match &wanted.owner {
        Some(name) => cx.role_named(name)?.oid,
        None => cx.session.current_role(),
    };
    if !may_make(cx)? {
        return Err(denied("permission denied to create database"));
    }
    owners::must_be_member(owner, cx)?;
    let catalog = cx.catalog()?;
    let template = wanted.template.as_deref().unwrap_or("template1");
    let source = catalog.notes.databases.by_name(template).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_CATALOG_NAME,
            format!("template database \"{template}\" does not exist"),
        )
    })?;
    if !source.is_template
        && !cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, source.oid))?
    {
        return Err(denied(format!(
            "permission denied to copy database \"{template}\""
        )));
    }
    let (collate, ctype) = options::locales(&wanted, source)?;
    let name = stmt.dbname.to_string();
    if catalog.notes.databases.by_name(&name).is_some() {
        return Err(exists(&name));
    }
    // It stays as it is, and what it is, until the transaction ends.
    cx.close_template(source).await?;
    let from = cx.store.current_by_oid(source.oid);
    let from = from.filter(|from| from.database_name == template);
    let from = from.ok_or_else(|| no_database(template))?;
    cx.depends_on(from.csn);
    let has_large_objects = { from.relations.values() }
        .filter(|r| large_objects::is_kept(r))
        .filter_map(|r| cx.store.engine().table(r.storage))
        .any(|table| table.row_count_estimate() > 0);
    if has_large_objects {
        return Err(SqlError::unsupported(format!(
            "CREATE DATABASE with the template \"{template}\", which has large objects,"
        )));
    }
    cx.txn.depends_on_everything();
    cx.txn.begin_statement();
    let mut database = Database::new(DatabaseOid::new(cx.new_oid()?), name);
    database.is_template = wanted.is_template.unwrap_or(false);
    database.allow_connections = wanted.allow_connections.unwrap_or(true);
    database.connection_limit = wanted.connection_limit.unwrap_or(-1);
    database.collate = collate;
    database.ctype = ctype;
    let oid = database.oid;
    let contents = match from.is_untouched() {
        true => None,
        false => Some(copy_database::copy(&from, &database, cx).await?),
    };
    // Others change databases while this one is copied.
    // The template is closed meanwhile: who keeps the list locked does not keep it shut.
    within_patience(cx.lock_databases()).await.ok_or_else(|| {
        SqlError::new(
            SqlState::LOCK_NOT_AVAILABLE,
            "the list of databases is being changed by other transactions",
        )
    })??;
    if !cx
        .insert_row(DATABASES, &stored::databases::encode(&database))
        .await?
    {
        return Err(exists(&database.name));
    }
    cx.state
        .push(CatalogChange::PutDatabase(Arc::new(database)));
    let (system, engine) = (cx.store.system(), cx.store.engine());
    for storage in storages::make_large_object_storages(system, engine, cx.worker, oid)? {
        cx.state.made(storage);
    }
    match contents {
        Some(contents) => {
            let filled = contents.store(cx).await?;
            cx.state.push(filled);
        }
        None => {
            if !cx.insert_row(SCHEMAS, &public_row(oid)).await? {
                return Err(SqlError::internal("a new database has a schema"));
            }
        }
    }
    cx.own_new_as(owner, oid, None, AclKind::Database).await
}

/// Runs ALTER DATABASE of options.
pub(super) async fn alter(stmt: &AlterDatabaseStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = &*stmt.dbname;
    // SET TABLESPACE is an option as well.
    if let [option] = stmt.options.as_slice()
        && moves_database(stmt)
    {
        let found = owned(name, cx)?;
        options::tablespace(&def_elem::get_string(option)?)?;
        return match found.oid == cx.catalog()?.database {
            true => Err(in_use(
                "cannot change the tablespace of the currently open database",
            )),
            false => Ok(()),
        };
    }
    let wanted = options::of_alter(&stmt.options, cx.text)?;
    alter_options(name, &wanted, cx).await
}

/// Does ALTER DATABASE move the database to a tablespace, which nobody does in a transaction block?
pub fn moves_database(stmt: &AlterDatabaseStmt) -> bool {
    match stmt.options.as_slice() {
        [option] => &*option.name == "tablespace" && option.arg.is_some(),
        _ => false,
    }
}

/// Runs ALTER DATABASE ... REFRESH COLLATION VERSION.
pub(super) fn refresh_collation(
    stmt: &AlterDatabaseRefreshCollStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    owned(&stmt.dbname, cx)?;
    cx.notice(SqlState::SUCCESSFUL_COMPLETION, "version has not changed");
    Ok(())
}

async fn alter_options(
    name: &str,
    wanted: &DatabaseOptions,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    owned(name, cx)?;
    cx.lock_databases().await?;
    // It may be another's by now.
    let mut database = Database::clone(&*owned(name, cx)?);
    if wanted.is_template == Some(false) && database.is_required() {
        return Err(SqlError::unsupported(format!(
            "ALTER DATABASE {name} IS_TEMPLATE false"
        )));
    }
    if wanted.allow_connections == Some(false) && database.oid == cx.catalog()?.database {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot disallow connections for current database",
        ));
    }
    database.is_template = wanted.is_template.unwrap_or(database.is_template);
    database.allow_connections = wanted
        .allow_connections
        .unwrap_or(database.allow_connections);
    database.connection_limit = wanted.connection_limit.unwrap_or(database.connection_limit);
    cx.update_database(database).await
}

/// Runs ALTER DATABASE ... RENAME TO.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = plain_name(&stmt.object)?;
    owned(name, cx)?;
    cx.lock_databases().await?;
    let mut database = Database::clone(&*owned(name, cx)?);
    if !may_make(cx)? {
        return Err(denied("permission denied to rename database"));
    }
    let new = stmt.newname.to_string();
    let catalog = cx.catalog()?;
    if catalog.notes.databases.by_name(&new).is_some() {
        return Err(exists(&new));
    }
    if database.oid == catalog.database {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "current database cannot be renamed",
        ));
    }
    if database.is_required() {
        return Err(SqlError::unsupported(format!(
            "ALTER DATABASE {name} RENAME"
        )));
    }
    // Sessions know theirs by name.
    cx.close_database(&database).await?;
    database.name = new;
    cx.update_database(database).await
}

/// A role is dropped: no database has settings for it.
pub(super) async fn forget_role(role: RoleId, cx: &mut DdlContext<'_>) -> Result<()> {
    let databases = Arc::clone(&cx.catalog()?.notes.databases);
    if databases
        .all()
        .all(|d| !d.settings.contains_key(&Some(role)))
    {
        return Ok(());
    }
    cx.lock_databases().await?;
    let databases = Arc::clone(&cx.catalog()?.notes.databases);
    for database in databases
        .all()
        .filter(|d| d.settings.contains_key(&Some(role)))
    {
        let mut database = Database::clone(database);
        database.settings.remove(&Some(role));
        cx.update_database(database).await?;
    }
    Ok(())
}

/// Runs DROP DATABASE.
pub(super) async fn drop(stmt: &DropdbStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = &*stmt.dbname;
    let (if_exists, force) = (stmt.missing_ok, !stmt.options.is_empty());
    match find(name, cx) {
        Ok(found) => must_own(&found, cx)?,
        Err(_) if if_exists => {}
        Err(error) => return Err(error),
    }
    cx.lock_databases().await?;
    let catalog = cx.catalog()?;
    let Some(database) = catalog.notes.databases.by_name(name) else {
        if !if_exists {
            return Err(no_database(name));
        }
        let message = format!("database \"{name}\" does not exist, skipping");
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    };
    must_own(database, cx)?;
    if database.oid == catalog.database {
        return Err(in_use("cannot drop the currently open database"));
    }
    if database.is_template || database.is_required() {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            "cannot drop a template database",
        ));
    }
    if force {
        cx.session.server()?.terminate_sessions(database.oid)?;
    }
    cx.close_database(database).await?;
    let oid = database.oid;
    let inside = cx.store.current_by_oid(oid);
    let inside = inside.ok_or_else(|| no_database(name))?;
    cx.depends_on(inside.csn);
    for table in OBJECT_TABLES {
        // Those rows are of no database.
        if matches!(table, DATABASES | ROLES) {
            continue;
        }
        for (rid, row) in cx.rows_of(table, oid).await? {
            cx.store.remember(table, oid, row.oid, rid);
            cx.change_row(table, oid, row.oid, None).await?;
        }
    }
    cx.delete_privileges(oid).await?;
    cx.put_comment(PG_DATABASE, oid.get(), 0, None).await?;
    cx.change_row(DATABASES, SHARED, oid.get(), None).await?;
    cx.state.push(CatalogChange::DropDatabase(oid));
    for relation in inside.relations.values() {
        match relation.kind {
            RelationKind::Sequence(_) => cx.state.sequence_unused(relation.storage),
            _ if is_stored(relation) => cx.state.unused(relation.storage),
            _ => {}
        }
    }
    Ok(())
}
