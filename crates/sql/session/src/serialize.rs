//! A session as text, for another process of this server that takes its client over.
//!
//! Owns: what a client can see of its session between two transactions, all of it, in a form that a newer program
//! reads: fields have names, and one that is missing has a default.
//!
//! Invariants:
//! - A session is serialized outside a transaction, with all its answers sent. What it cannot take along
//!   ([`Session::is_serializable`]) keeps it where it is.
//! - A restored session goes by the cancel key that its client has.
//!
//! Does not: check rights again. Whoever sends a session had let its client in.

use super::instance::SessionSlot;
use super::random::SeededRandom;
use super::statement::{ParsedText, Statement};
use super::{Session, StartupRequest};
use crate::mailbox::Notification;
use crate::worker_sessions::WorkerSessions;
use logstead_sql_catalog::SerializedSequences;
use logstead_sql_catalog::settings::SerializedSettings;
use logstead_sql_parse::StatementKind;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::rc::Rc;

/// What a client can see of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SerializedSession {
    /// The cancel key.
    pub(super) pid: i32,
    pub(super) secret: i32,
    /// The user of the startup packet, and the role that was let in.
    user: String,
    role: Oid,
    database: String,
    client: Option<SocketAddr>,
    server: Option<SocketAddr>,
    /// The client came by a socket of the file system.
    pub local: bool,
    /// When the session began, in microseconds since 2000-01-01 UTC.
    pub(super) begun: i64,
    settings: SerializedSettings,
    statements: Vec<SerializedStatement>,
    /// Channels that it listens to.
    channels: Vec<String>,
    notifications: Vec<SerializedNotification>,
    sequences: SerializedSequences,
    /// What setseed() has begun.
    random: Option<[u64; 2]>,
}

/// A prepared statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct SerializedStatement {
    name: String,
    /// The text that it was sent in.
    text: String,
    /// By PREPARE, which begins at this byte of the text.
    prepare: Option<usize>,
    types: Vec<Option<Oid>>,
    prepared_at: i64,
    runs: i64,
}

/// A notification that the client was not told of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct SerializedNotification {
    pid: i32,
    channel: String,
    payload: String,
}

impl SerializedSession {
    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.pid
    }
}

impl Statement {
    fn serialized(&self, name: &str) -> SerializedStatement {
        let description = self.description.borrow();
        let types = match &*description {
            // What was told of them stays true.
            Some(description) => description
                .param_types
                .iter()
                .map(|ty| Some(ty.oid))
                .collect(),
            None => self.declared.clone(),
        };
        let begins = self.parsed().map(|parsed| parsed.start);
        SerializedStatement {
            name: name.to_owned(),
            text: self.text.text.to_string(),
            prepare: begins.filter(|_| self.from_sql),
            types,
            prepared_at: self.prepared_at,
            runs: self.runs.get(),
        }
    }
}

impl SerializedStatement {
    fn restored(&self, worker: &WorkerSessions) -> Result<Statement> {
        let parsed = worker.caches.borrow_mut().parse(&self.text)?;
        let (text, index) = match self.prepare {
            None => {
                let index = (!parsed.statements.is_empty()).then_some(0);
                (parsed, index)
            }
            Some(begins) => {
                let mut statements = parsed.statements.iter();
                let outer = statements.find(|parsed| parsed.start == begins);
                let gone = || SqlError::internal("a text has no PREPARE where it had one");
                let outer = outer.ok_or_else(gone)?;
                let StatementKind::Utility(stmt) = &outer.kind else {
                    return Err(gone());
                };
                let Stmt::Prepare(prepare) = &**stmt else {
                    return Err(gone());
                };
                let text = ParsedText::of_prepare(&parsed.text, outer, prepare)?;
                (text, Some(0))
            }
        };
        let mut statement = Statement::new(text, index, self.types.clone());
        statement.from_sql = self.prepare.is_some();
        statement.takes_parameters = true;
        statement.runs.set(self.runs);
        Ok(statement)
    }
}

impl Session {
    /// May another process go on with this session? Not with what is this process's alone.
    pub fn is_serializable(&self) -> bool {
        !self.temporary.has_objects()
            && self.cursors.is_empty()
            && self.context.advisory.borrow().is_empty()
            && !self.replication
    }

    /// What its client can see of it. Outside a transaction.
    pub fn serialized(&self) -> SerializedSession {
        let context = &self.context;
        let statements = context.statements.borrow();
        let statements = statements.iter();
        let statements = statements.map(|(name, statement)| statement.serialized(name));
        let notification = |waiting: &Notification| SerializedNotification {
            pid: waiting.pid,
            channel: waiting.channel.to_string(),
            payload: waiting.payload.to_string(),
        };
        let (client, server) = context.live.ends();
        SerializedSession {
            pid: context.pid,
            secret: self.secret,
            user: context.user.clone(),
            role: context.authenticated,
            database: context.database.clone(),
            client,
            server,
            local: context.live.is_local(),
            begun: context.live.begun(),
            settings: context.settings.borrow().serialized(),
            statements: statements.collect(),
            channels: context
                .pending_notifies
                .borrow()
                .listening()
                .iter()
                .map(|channel| channel.to_string())
                .collect(),
            notifications: self.signals.mailbox().iter().map(notification).collect(),
            sequences: context.sequences.borrow().serialized(),
            random: context.random.get().map(SeededRandom::state),
        }
    }

    /// A session that another process has serialized. An error is one of its own: its role or database is gone.
    pub fn restore(worker: &Rc<WorkerSessions>, from: SerializedSession) -> Result<Session> {
        let slot = worker.instance.admit_restored(&worker.scheduler, &from)?;
        let pid = slot.pid;
        let restored = Session::restored(worker, from, slot);
        if restored.is_err() {
            worker.instance.forget(pid);
        }
        restored
    }

    fn restored(
        worker: &Rc<WorkerSessions>,
        from: SerializedSession,
        slot: SessionSlot,
    ) -> Result<Session> {
        let request = StartupRequest {
            user: from.user,
            role: Some(from.role),
            database: from.database,
            client: from.client,
            server: from.server,
            local: from.local,
            // It was let in before.
            own: true,
            ..StartupRequest::default()
        };
        let mut session = Session::admitted(worker, request, slot)?;
        let context = Rc::clone(&session.context);
        context.settings.borrow_mut().restore(from.settings);
        context.refresh_style();
        session.modes = session.default_modes()?;
        for statement in &from.statements {
            let restored = statement.restored(worker).map_err(|error| {
                let why = format!(
                    "prepared statement \"{}\" cannot be taken over: {}",
                    statement.name,
                    error.fields().message
                );
                SqlError::new(SqlState::ADMIN_SHUTDOWN, why)
            })?;
            context.statement_time.set(statement.prepared_at);
            session.keep_statement(statement.name.clone(), restored);
        }
        session.listen_again(&from.channels);
        for waiting in from.notifications {
            session.signals.mailbox().put(Notification {
                pid: waiting.pid,
                channel: waiting.channel.into(),
                payload: waiting.payload.into(),
            });
        }
        context.sequences.borrow_mut().restore(from.sequences);
        context.random.set(from.random.map(SeededRandom::of_state));
        Ok(session)
    }
}
