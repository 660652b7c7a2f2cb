//! The part of a session that any thread may look at: who it is, and what it is doing.
//!
//! Invariant: its lock is held for a copy of a few hundred bytes, never while anything is awaited.
//!
//! Does not: know when it changes (`activity`).

use logstead_engine::{TableLockMask, TxnId};
use logstead_sql_catalog::context::{BackendActivity, ReplicationRow};
use logstead_sql_types::{DatabaseOid, RoleId};
use logstead_types::TableId;
use parking_lot::Mutex;
use std::net::SocketAddr;

/// Of a statement's text, this much is shown (`track_activity_query_size`).
const SHOWN_BYTES_MAX: usize = 1024;

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BackendState {
    /// It has not run anything.
    #[default]
    Idle,
    Active,
    InTransaction,
    Failed,
}

impl BackendState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BackendState::Idle => "idle",
            BackendState::Active => "active",
            BackendState::InTransaction => "idle in transaction",
            BackendState::Failed => "idle in transaction (aborted)",
        }
    }
}

/// The times are in microseconds since 2000-01-01 UTC.
#[derive(Debug, Default)]
pub(crate) struct StatusFields {
    /// Whose session it is, once that is known.
    role: Option<RoleId>,
    user: String,
    database: DatabaseOid,
    database_name: String,
    application_name: String,
    client: Option<SocketAddr>,
    /// The client has come by a socket of the file system.
    local: bool,
    /// Where the client has reached the server.
    server: Option<SocketAddr>,
    begun: i64,
    state: BackendState,
    changed: i64,
    transaction_start: Option<i64>,
    query_start: Option<i64>,
    query: String,
    /// The transaction that is open, or was the last.
    pub(crate) transaction: Option<TxnId>,
    /// Locks of tables that the open transaction held when its last statement was over.
    pub(crate) tables: Vec<(TableId, TableLockMask)>,
    /// The transaction before it, which is being undone behind the session, and the tables that it has locked.
    pub(crate) prior: Option<(TxnId, Vec<(TableId, TableLockMask)>)>,
    /// The running statement waits for the end of that.
    pub(crate) waits_for_prior: bool,
    is_replication: bool,
    /// How far its replica has come, if it is one's.
    replication: Option<ReplicationRow>,
}

/// A session as others see it.
#[derive(Debug, Default)]
pub(crate) struct BackendStatus(pub(crate) Mutex<StatusFields>);

impl BackendStatus {
    pub(crate) fn new(begun: i64) -> BackendStatus {
        BackendStatus(Mutex::new(StatusFields {
            begun,
            changed: begun,
            ..StatusFields::default()
        }))
    }

    /// Who the session is.
    pub(crate) fn set_user(
        &self,
        (role, user): (RoleId, &str),
        (database, database_name): (DatabaseOid, &str),
        (client, server): (Option<SocketAddr>, Option<SocketAddr>),
        local: bool,
    ) {
        let mut now = self.0.lock();
        now.role = Some(role);
        user.clone_into(&mut now.user);
        now.database = database;
        database_name.clone_into(&mut now.database_name);
        now.client = client;
        now.local = local;
        now.server = server;
    }

    pub(crate) fn ends(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let now = self.0.lock();
        (now.client, now.server)
    }

    pub(crate) fn is_local(&self) -> bool {
        self.0.lock().local
    }

    pub(crate) fn begun(&self) -> i64 {
        self.0.lock().begun
    }

    /// It is one of a replication connection.
    pub(crate) fn set_replication(&self) {
        self.0.lock().is_replication = true;
    }

    pub(crate) fn is_replication(&self) -> bool {
        self.0.lock().is_replication
    }

    /// `application_name` may have changed.
    pub(crate) fn set_application_name(&self, application_name: &str) {
        let mut now = self.0.lock();
        if now.application_name != application_name {
            application_name.clone_into(&mut now.application_name);
        }
    }

    pub(crate) fn runs(&self, text: &str, since: i64, transaction_start: i64) {
        let shown = shown(text);
        let mut now = self.0.lock();
        now.state = BackendState::Active;
        now.changed = since;
        now.query_start = Some(since);
        now.transaction_start = Some(transaction_start);
        if now.query != shown {
            shown.clone_into(&mut now.query);
        }
    }

    /// A transaction has begun.
    pub(crate) fn begins(&self, transaction: TxnId) {
        self.0.lock().transaction = Some(transaction);
    }

    /// None is open: who looks for one, with the lock held, does not find the session.
    pub(crate) fn has_no_transaction(&self) {
        self.0.lock().transaction = None;
    }

    /// A transaction that has locked these tables is undone behind the session, until it is told that there is none.
    pub(crate) fn undoes(&self, prior: Option<(TxnId, Vec<(TableId, TableLockMask)>)>) {
        let mut now = self.0.lock();
        if prior.is_some() {
            // What was the open one's is the former one's.
            now.transaction = None;
            now.tables.clear();
        }
        now.prior = prior;
    }

    /// The running statement waits for that, or does so no more.
    pub(crate) fn waits_for_prior(&self, waits: bool) {
        self.0.lock().waits_for_prior = waits;
    }

    /// It sends the log to a replica, which has come so far; or does so no more.
    pub(crate) fn replicates(&self, progress: Option<ReplicationRow>) {
        let mut now = self.0.lock();
        now.state = match progress {
            Some(_) => BackendState::Active,
            None => BackendState::Idle,
        };
        now.replication = progress;
    }

    /// It holds locks of these tables: others have been given back.
    pub(crate) fn holds(&self, tables: impl Iterator<Item = (TableId, TableLockMask)>) {
        let mut now = self.0.lock();
        now.tables.clear();
        now.tables.extend(tables);
    }

    /// The session waits for its client, and holds locks of these tables.
    pub(crate) fn rests(
        &self,
        state: BackendState,
        since: i64,
        transaction_start: Option<i64>,
        tables: impl Iterator<Item = (TableId, TableLockMask)>,
    ) {
        let mut now = self.0.lock();
        now.tables.clear();
        now.tables.extend(tables);
        if now.state != state || now.transaction_start != transaction_start {
            now.state = state;
            now.changed = since;
            now.transaction_start = transaction_start;
        }
    }

    /// The role that has connected, once that is known.
    pub(crate) fn role(&self) -> Option<RoleId> {
        self.0.lock().role
    }

    /// Whose session it is, and the statement that it is at or was at last.
    pub(crate) fn statement(&self) -> (Option<RoleId>, String) {
        let now = self.0.lock();
        (now.role, now.query.clone())
    }

    /// The database that the session is in.
    pub(crate) fn database(&self) -> DatabaseOid {
        self.0.lock().database
    }

    /// A row of `pg_stat_activity`; without what the session does, if that is none of the asker's business.
    pub(crate) fn row(
        &self,
        pid: i32,
        may_see: impl Fn(Option<RoleId>) -> bool,
    ) -> BackendActivity {
        let now = self.0.lock();
        let mut row = BackendActivity {
            pid,
            database: now.database,
            database_name: now.database_name.clone(),
            role: now.role,
            user: now.user.clone(),
            query: "<insufficient privilege>".to_owned(),
            ..BackendActivity::default()
        };
        if may_see(now.role) {
            row.application_name = Some(now.application_name.clone());
            row.client_address = now
                .client
                .map(|client| client.ip().to_canonical().to_string());
            // PostgreSQL's port of what has none.
            let no_port = now.local.then_some(-1);
            row.client_port = { now.client }
                .map(|client| i32::from(client.port()))
                .or(no_port);
            row.backend_start = Some(now.begun);
            row.transaction_start = now.transaction_start;
            row.query_start = now.query_start;
            row.state_change = Some(now.changed);
            row.state = Some(now.state.name());
            row.query.clone_from(&now.query);
            row.waits_for_client = now.state != BackendState::Active;
            row.replication = now.replication;
        }
        row
    }
}

/// The beginning of a text, cut between characters.
fn shown(text: &str) -> &str {
    let mut end = text.len().min(SHOWN_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}
