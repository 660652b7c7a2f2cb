//! A session that goes on at another worker of its server, where its transactions' keys lead.
//!
//! Steps: a transaction is over, and `placement` wishes the session elsewhere; its answers have been sent; the session
//! takes a place there and becomes a [`MovingSession`], which the other worker's thread makes a session again. Its
//! client's socket and what has come from it go along, so nothing of it is seen from outside.
//!
//! Invariants:
//! - A session moves outside a transaction, with all its answers sent, and only if it can be serialized. What belongs
//!   to its worker (temporary tables, held cursors, advisory locks, a transaction that is undone behind it, a past that
//!   it reads) keeps it where it is.
//! - On its way it is a session of the server all the time: its process number and its secret, its place among the
//!   sessions, its database, its channels and its signals stay. So a request to cancel, an order to end and a
//!   notification that come meanwhile are not lost: who registers its waker at the other worker looks at them then.
//! - What its answers told without waiting for it goes along: later transactions depend on it as before, and so does
//!   who gets an advisory lock from it.
//!
//! Does not: know sockets. Whoever serves clients carries the session over.

use crate::Session;
use crate::backend_status::BackendStatus;
use crate::instance::{Instance, SessionSlot};
use crate::instance_status::{MovingPlace, SessionAtWorker};
use crate::placement::SessionPlacement;
use crate::reply_dependencies::ReplyDependencies;
use crate::serialized_session::SerializedSession;
use crate::signals::Signals;
use crate::worker_sessions::WorkerSessions;
use logstead_engine::{InstanceId, Txn, WorkerId};
use logstead_sql_catalog::DatabaseConnection;
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::Result;
use logstead_types::Csn;
use std::rc::Rc;
use std::sync::Arc;

/// No session has this process number.
const NO_SESSION: i32 = 0;

/// A session on its way to another worker. Dropped, it ends.
pub struct MovingSession {
    /// None once it has arrived.
    parts: Option<Box<MovingParts>>,
}

struct MovingParts {
    instance: Arc<Instance>,
    from: SerializedSession,
    database: DatabaseOid,
    signals: Arc<Signals>,
    live: Arc<BackendStatus>,
    entered: Option<DatabaseConnection>,
    reply_dependencies: ReplyDependencies,
    /// Its newest commit, for whoever gets an advisory lock from it.
    committed: Csn,
    placement: Option<Box<SessionPlacement>>,
    place: SessionAtWorker,
}

impl MovingSession {
    /// The worker that it goes to.
    pub fn to(&self) -> Option<WorkerId> {
        self.parts.as_ref().map(|parts| parts.place.worker)
    }

    /// Did its client come by a socket of the file system?
    pub fn is_local(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.from.local)
    }
}

impl Drop for MovingSession {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            parts.instance.lost(parts.database, &parts.from);
        }
    }
}

impl Instance {
    /// A session does not arrive: nothing of it stays.
    fn lost(&self, database: DatabaseOid, session: &SerializedSession) {
        self.channels
            .unlisten_all(database, &session.channels, session.pid());
        self.forget(session.pid());
    }
}

impl Session {
    /// The session has begun at its worker: it is counted there, and where its transactions lead is followed.
    pub(super) fn at_its_worker(mut self) -> Session {
        let worker = self.worker.worker.id();
        if let Some(status) = &self.worker.instance.instances {
            self.placement = status.threshold().map(|_| Box::default());
            self.at_worker = Some(SessionAtWorker::new(status, worker));
        }
        self
    }

    /// A transaction is over: where it has led tells where the session belongs.
    #[inline]
    pub(super) fn follow_keys(&mut self, txn: &Txn) {
        if let Some(placement) = &mut self.placement
            && let Some(status) = &self.worker.instance.instances
            && let Some(threshold) = status.threshold()
        {
            let instances = self.worker.instance.engine.instances();
            let home = instances.of_worker(self.worker.worker.id());
            placement.transaction(home, txn.instances_touched(), threshold);
        }
    }

    /// Is the session to go on at another worker? To be asked when its last answer was ReadyForQuery.
    #[inline]
    pub fn wants_to_move(&self) -> bool {
        let placement = self.placement.as_ref();
        placement.is_some_and(|placement| placement.wish().is_some()) && !self.in_transaction()
    }

    /// Is there something that keeps it where it is? Then it asks again after more transactions.
    pub fn must_stay(&mut self) -> bool {
        let must_stay = !self.can_move();
        if must_stay {
            self.stays();
        }
        must_stay
    }

    /// Its wish is dropped; it asks again after more transactions.
    pub fn stays(&mut self) {
        if let Some(placement) = &mut self.placement {
            placement.decided();
        }
    }

    /// Takes a place for it there, once its answers are sent. Nothing if there is no room: it stays.
    pub fn take_place(&mut self) -> Option<MovingPlace> {
        let wish = self.placement.as_ref()?.wish()?;
        let place = self.place_at(wish);
        // It goes or stays: either way the next wish comes later.
        self.stays();
        place
    }

    fn place_at(&self, to: InstanceId) -> Option<MovingPlace> {
        let (instance, from) = (&self.worker.instance, self.worker.worker.id());
        let status = instance.instances.as_ref()?;
        status.place_at(instance.engine.instances(), from, to)
    }

    fn can_move(&self) -> bool {
        let instance = &self.worker.instance;
        let is_undone = |prior: &Rc<crate::background_undo::PriorTransaction>| prior.over.get();
        !self.in_transaction()
            && self.is_serializable()
            && self.as_of_snapshot.is_none()
            && self.as_of_clause.is_none()
            && self.subtransaction.is_none()
            && self.prior.as_ref().is_none_or(is_undone)
            && self.reply_dependencies.waits_for().is_none()
            && instance
                .store
                .roles()
                .get(self.context.authenticated)
                .is_some()
    }

    /// The session leaves its worker, for that place.
    pub fn leave(mut self, MovingPlace { place, leaving }: MovingPlace) -> MovingSession {
        let from = self.serialized();
        self.at_worker = None;
        drop(leaving);
        self.leaves = true;
        // Whoever looks for sessions that must not go on finds it at rest, as it will be when it arrives.
        self.signals.set_resting(true);
        MovingSession {
            parts: Some(Box::new(MovingParts {
                instance: Arc::clone(&self.worker.instance),
                database: self.database,
                signals: Arc::clone(&self.signals),
                live: Arc::clone(&self.context.live),
                entered: self.entered.take(),
                reply_dependencies: std::mem::take(&mut self.reply_dependencies),
                committed: self.context.advisory.borrow().newest_commit(),
                placement: self.placement.take(),
                place,
                from,
            })),
        }
    }

    /// The session is this worker's from now on. An error is one of its own: its role is gone.
    pub fn arrive(worker: &Rc<WorkerSessions>, mut moving: MovingSession) -> Result<Session> {
        let Some(parts) = moving.parts.take() else {
            return Err(logstead_sql_types::SqlError::internal(
                "a session has arrived before",
            ));
        };
        let MovingParts {
            instance,
            mut from,
            database,
            signals,
            live,
            entered,
            reply_dependencies,
            committed,
            placement,
            place,
        } = *parts;
        let signals = Arc::new(signals.at(Arc::clone(&worker.scheduler)));
        let (pid, secret) = (from.pid, from.secret);
        instance.goes_on(pid, &signals);
        let slot = SessionSlot {
            pid,
            secret,
            signals,
            live,
        };
        // They are in its mailbox, which has come along.
        from.notifications.clear();
        let guard = ArrivalGuard {
            instance,
            database,
            session: SerializedSession {
                pid,
                channels: from.channels.clone(),
                ..SerializedSession::default()
            },
        };
        let mut session = Session::restored(worker, from, slot, entered)?;
        guard.arrived();
        session.reply_dependencies.join(reply_dependencies);
        session.context.advisory.borrow_mut().committed(committed);
        session.placement = placement;
        session.at_worker = Some(place);
        Ok(session)
    }
}

/// Dropped before the session has arrived, also by a panic, nothing of it stays.
struct ArrivalGuard {
    instance: Arc<Instance>,
    database: DatabaseOid,
    session: SerializedSession,
}

impl ArrivalGuard {
    /// What is the session's is given back by the session from now on.
    fn arrived(mut self) {
        self.session.pid = NO_SESSION;
    }
}

impl Drop for ArrivalGuard {
    fn drop(&mut self) {
        if self.session.pid != NO_SESSION {
            self.instance.lost(self.database, &self.session);
        }
    }
}
