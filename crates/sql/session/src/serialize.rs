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

use super::cached_plan::{ParsedText, Statement};
use super::instance::SessionSlot;
use super::random::SeededRandom;
use super::{Session, StartupRequest};
use crate::cached_plan::StatementDescription;
use crate::mailbox::Notification;
use crate::serialized_session::{
    SerializedColumn, SerializedNotification, SerializedSession, SerializedStatement,
};
use crate::worker_sessions::WorkerSessions;
use logstead_sql_catalog::DatabaseConnection;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_sql_types::{RelationId, RoleId, TypeId};
use logstead_types::SqlState;
use std::rc::Rc;

/// Prepared statements and settings that one session may take along.
const TEXT_BYTES_MAX: usize = 32 << 20;

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
        let column = |column: &OutputColumn| SerializedColumn {
            name: column.name.clone(),
            ty: (column.ty.oid.get(), column.ty.typmod),
            domain: column.domain.map(TypeId::get),
            origin: match column.origin {
                Some((table, number)) => (table.get(), number),
                None => (0, 0),
            },
        };
        // One that cannot be run is found out again.
        let told = description.as_ref().filter(|told| told.fails.is_none());
        let begins = self.parsed().map(|parsed| parsed.start);
        SerializedStatement {
            name: name.to_owned(),
            text: self.text.text.to_string(),
            prepare: begins.filter(|_| self.from_sql),
            types: types.iter().map(|ty| ty.map(TypeId::get)).collect(),
            columns: told.map(|told| told.columns.iter().map(column).collect()),
            gives_rows: told.is_some_and(|told| told.gives_rows),
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
                let Stmt::Prepare(prepare) = &**outer.statement else {
                    return Err(gone());
                };
                let text = ParsedText::of_prepare(&parsed.text, outer, prepare)?;
                (text, Some(0))
            }
        };
        let types = self.types.iter().map(|ty| ty.map(TypeId::new)).collect();
        let mut statement = Statement::new(text, index, types);
        statement.from_sql = self.prepare.is_some();
        statement.takes_parameters = true;
        statement.runs.set(self.runs);
        if let Some(columns) = &self.columns {
            let ty = |(oid, typmod)| SqlType {
                oid: TypeId::new(oid),
                typmod,
            };
            let column = |column: &SerializedColumn| OutputColumn {
                name: column.name.clone(),
                ty: ty(column.ty),
                domain: column.domain.map(TypeId::new),
                origin: match column.origin {
                    (0, _) => None,
                    (table, number) => Some((RelationId::new(table), number)),
                },
            };
            let types = self.types.iter().flatten();
            *statement.description.borrow_mut() = Some(Rc::new(StatementDescription {
                param_types: types.map(|oid| ty((*oid, -1))).collect(),
                columns: columns.iter().map(column).collect(),
                gives_rows: self.gives_rows,
                fails: None,
            }));
        }
        Ok(statement)
    }
}

/// A session's place among the others, which is free again if there comes no session, however that is.
struct PlaceGuard<'w>(&'w WorkerSessions, i32);

impl Drop for PlaceGuard<'_> {
    fn drop(&mut self) {
        self.0.instance.forget(self.1);
    }
}

impl Session {
    /// May another process go on with this session? Not with what is this process's alone, nor with more texts than
    /// are sent for one session.
    pub fn is_serializable(&self) -> bool {
        let statements = self.context.statements.borrow();
        let texts = statements.iter();
        let texts = texts.map(|(name, statement)| name.len() + statement.text.text.len());
        let settings = self.context.settings.borrow().size_bytes();
        texts.sum::<usize>() + settings <= TEXT_BYTES_MAX
            && !self.temporary.has_objects()
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
            role: context.authenticated.get(),
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
        let slot = worker.instance.admit_restored(
            &worker.scheduler,
            (from.pid, from.secret),
            from.begun,
        )?;
        let place = PlaceGuard(worker, slot.pid);
        let restored = Session::restored(worker, from, slot, None)?;
        // It is the session's from now on.
        std::mem::forget(place);
        Ok(restored.at_its_worker())
    }

    /// The session in this place, in a database that it is in already or that it enters.
    pub(super) fn restored(
        worker: &Rc<WorkerSessions>,
        from: SerializedSession,
        slot: SessionSlot,
        entered: Option<DatabaseConnection>,
    ) -> Result<Session> {
        let request = StartupRequest {
            user: from.user,
            role: Some(RoleId::new(from.role)),
            database: from.database,
            client: from.client,
            server: from.server,
            local: from.local,
            // It was let in before.
            own: true,
            ..StartupRequest::default()
        };
        let mut session = Session::admitted(worker, request, slot, entered)?;
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
