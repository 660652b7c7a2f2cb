//! LISTEN, NOTIFY, UNLISTEN: messages between sessions.
//!
//! Owns: who listens to what ([`Channels`]), the way from a commit to the listeners, and what a transaction has asked
//! for.
//!
//! The life of a notification: a statement puts it into its transaction's list ([`PendingNotifies`]), where a rollback
//! takes it away and a second one like it adds nothing. At commit the transaction draws its CSN and takes its place in
//! the queue under one lock, so that the queue is in commit order. When its commit is durable it is marked so, and
//! everything at the head of the queue that is durable goes to the listeners of that moment. A session tells its client
//! of it when it is outside a transaction.
//!
//! Invariants:
//! - Nothing is delivered of a transaction that a crash may still take back.
//! - Listeners get notifications in commit order, those of one transaction in the order they were asked for.
//! - What waits for a client is bounded ([`WAITING_BYTES_MAX`]): beyond it nobody can notify that channel.

use super::{Reply, Session};
use crate::mailbox::Notification;
use logstead_engine::{CommitWait, Engine};
use logstead_sql_parse::ast::Stmt;
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{Mutex as Turns, MutexGuard as Turn};

use super::signals::Signals;

/// Length of a channel's name, as of all names.
const NAME_BYTES_MAX: usize = 63;
/// PostgreSQL's limit of a payload.
const PAYLOAD_BYTES_MAX: usize = 7999;
/// What may wait for one session's client.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// What one that a transaction has asked for takes besides its texts.
const NOTIFICATION_BYTES: usize = 160;

/// The channels of a server.
#[derive(Default)]
pub(super) struct Channels {
    /// Held from the drawing of a CSN until its place in the queue is taken.
    turns: Turns<()>,
    state: Mutex<NotifyQueue>,
}

#[derive(Default)]
struct NotifyQueue {
    /// Listeners of a database's channels, by process number.
    listeners: HashMap<(DatabaseOid, Arc<str>), BTreeMap<i32, Arc<Signals>>>,
    queue: VecDeque<Entry>,
    next: u64,
}

struct Entry {
    ticket: u64,
    database: DatabaseOid,
    durable: bool,
    notifications: Vec<Notification>,
}

/// A transaction's place in the queue. Dropped without having become durable, it is given up.
pub(super) struct QueueTicket<'c> {
    channels: &'c Channels,
    ticket: u64,
    durable: bool,
}

impl Channels {
    pub(super) async fn turn(&self) -> Turn<'_, ()> {
        self.turns.lock().await
    }

    /// Can all of these be delivered, as things are?
    fn has_room(&self, database: DatabaseOid, notifications: &[Notification]) -> bool {
        let state = self.state.lock();
        let channels: BTreeSet<&Arc<str>> = notifications.iter().map(|n| &n.channel).collect();
        channels.into_iter().all(|channel| {
            let listeners = state.listeners.get(&(database, Arc::clone(channel)));
            let mut listeners = listeners.into_iter().flat_map(BTreeMap::values);
            listeners.all(|signals| signals.mailbox().bytes < WAITING_BYTES_MAX)
        })
    }

    fn take_place(
        &self,
        _turn: &Turn<'_, ()>,
        database: DatabaseOid,
        notifications: Vec<Notification>,
    ) -> QueueTicket<'_> {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        state.queue.push_back(Entry {
            ticket,
            database,
            durable: false,
            notifications,
        });
        QueueTicket {
            channels: self,
            ticket,
            durable: false,
        }
    }

    /// Delivers what is durable at the head of the queue.
    fn deliver(state: &mut NotifyQueue) {
        while state.queue.front().is_some_and(|entry| entry.durable)
            && let Some(entry) = state.queue.pop_front()
        {
            let mut woken: BTreeMap<i32, Arc<Signals>> = BTreeMap::new();
            for notification in entry.notifications {
                let channel = (entry.database, Arc::clone(&notification.channel));
                for (pid, signals) in state.listeners.get(&channel).into_iter().flatten() {
                    signals.mailbox().put(notification.clone());
                    woken.entry(*pid).or_insert_with(|| Arc::clone(signals));
                }
            }
            for signals in woken.into_values() {
                signals.notified();
            }
        }
    }

    fn listen(&self, database: DatabaseOid, channel: &Arc<str>, pid: i32, signals: &Arc<Signals>) {
        let mut state = self.state.lock();
        let listeners = state.listeners.entry((database, Arc::clone(channel)));
        let listeners = listeners.or_default();
        listeners.insert(pid, Arc::clone(signals));
    }

    fn unlisten(&self, database: DatabaseOid, channel: &Arc<str>, pid: i32) {
        let mut state = self.state.lock();
        let key = (database, Arc::clone(channel));
        if let Some(listeners) = state.listeners.get_mut(&key) {
            listeners.remove(&pid);
            if listeners.is_empty() {
                state.listeners.remove(&key);
            }
        }
    }
}

impl Channels {
    /// A session listens to none of these any more.
    pub(super) fn unlisten_all(&self, database: DatabaseOid, channels: &[String], pid: i32) {
        for channel in channels {
            self.unlisten(database, &channel.as_str().into(), pid);
        }
    }
}

impl QueueTicket<'_> {
    fn made_durable(mut self) {
        self.durable = true;
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        let mut state = self.channels.state.lock();
        let at = state.queue.iter().position(|e| e.ticket == self.ticket);
        if let Some(entry) = at.and_then(|at| state.queue.get_mut(at)) {
            // What nobody knows the fate of is not told.
            if !self.durable {
                entry.notifications.clear();
            }
            entry.durable = true;
        }
        Channels::deliver(&mut state);
    }
}

/// What becomes of a session's channels at commit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenAction {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// What a transaction has asked for, each with the number of savepoints that stood then; and what the session listens
/// to.
#[derive(Default)]
pub(super) struct PendingNotifies {
    listen_actions: Vec<(usize, ListenAction)>,
    notifications: Vec<(usize, Arc<str>, Arc<str>)>,
    known: BTreeSet<(Arc<str>, Arc<str>)>,
    /// About what they take; not less after a ROLLBACK TO.
    bytes: usize,
    /// Channels that the session listens to.
    listening: BTreeSet<Arc<str>>,
}

impl PendingNotifies {
    /// NOTIFY, pg_notify().
    pub(super) fn notify(&mut self, channel: &str, payload: &str, level: usize) -> Result<()> {
        let invalid = |what: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what);
        if channel.is_empty() {
            return Err(invalid("channel name cannot be empty"));
        }
        if channel.len() > NAME_BYTES_MAX {
            return Err(invalid("channel name too long"));
        }
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(invalid("payload string too long"));
        }
        let message: (Arc<str>, Arc<str>) = (channel.into(), payload.into());
        if self.known.insert(message.clone()) {
            self.bytes += NOTIFICATION_BYTES + channel.len() + payload.len();
            if self.bytes > WAITING_BYTES_MAX {
                return Err(SqlError::new(
                    SqlState::PROGRAM_LIMIT_EXCEEDED,
                    "too many notifications in a transaction",
                ));
            }
            self.notifications.push((level, message.0, message.1));
        }
        Ok(())
    }

    /// pg_listening_channels().
    pub(super) fn listening(&self) -> Vec<Arc<str>> {
        self.listening.iter().cloned().collect()
    }

    fn is_empty(&self) -> bool {
        self.listen_actions.is_empty() && self.notifications.is_empty()
    }

    pub(super) fn rolled_back(&mut self) {
        self.listen_actions.clear();
        self.notifications.clear();
        self.known.clear();
        self.bytes = 0;
    }

    pub(super) fn rolled_back_to(&mut self, index: usize) {
        self.listen_actions.retain(|(level, _)| *level <= index);
        self.notifications.retain(|(level, ..)| *level <= index);
        let left = self.notifications.iter();
        self.known = left
            .map(|(_, c, p)| (Arc::clone(c), Arc::clone(p)))
            .collect();
    }

    pub(super) fn released(&mut self, index: usize) {
        let listen_actions = self.listen_actions.iter_mut().map(|(level, _)| level);
        let notifications = self.notifications.iter_mut().map(|(level, ..)| level);
        for level in listen_actions.chain(notifications) {
            *level = (*level).min(index);
        }
    }
}

fn channel_of(channel: &str) -> Arc<str> {
    logstead_sql_types::value::text_io::truncate_name(channel).into()
}

/// What a commit is to do when the transaction has drawn its CSN.
pub(super) struct CommitNotifies {
    database: DatabaseOid,
    notifications: Vec<Notification>,
}

impl Session {
    /// LISTEN, UNLISTEN, NOTIFY.
    pub(super) fn notification_command(&mut self, stmt: &Stmt) -> Result<Reply> {
        let level = self.savepoints.len();
        // It begins the transaction that its commit is part of.
        self.transaction()?;
        let mut pending_notifies = self.context.pending_notifies.borrow_mut();
        match stmt {
            Stmt::Listen(channel) => {
                let action = ListenAction::Listen(channel_of(channel));
                pending_notifies.listen_actions.push((level, action));
                Ok(Reply::tag("LISTEN"))
            }
            Stmt::Unlisten(channel) => {
                let action = match channel {
                    None => ListenAction::UnlistenAll,
                    Some(channel) => ListenAction::Unlisten(channel_of(channel)),
                };
                pending_notifies.listen_actions.push((level, action));
                Ok(Reply::tag("UNLISTEN"))
            }
            Stmt::Notify(notify) => {
                let payload = notify.payload.as_deref().unwrap_or_default();
                pending_notifies.notify(&channel_of(&notify.conditionname), payload, level)?;
                Ok(Reply::tag("NOTIFY"))
            }
            _ => Err(SqlError::internal("no statement about notifications")),
        }
    }

    /// The transaction commits: what it announces, if anything. Fails if there is no room for it.
    pub(super) fn announcement(&self) -> Result<Option<CommitNotifies>> {
        let pending_notifies = self.context.pending_notifies.borrow();
        if pending_notifies.notifications.is_empty() {
            return Ok(None);
        }
        let pid = self.context.pid;
        let notifications = pending_notifies
            .notifications
            .iter()
            .map(|(_, channel, payload)| {
                let (channel, payload) = (Arc::clone(channel), Arc::clone(payload));
                Notification {
                    pid,
                    channel,
                    payload,
                }
            });
        let notifications: Vec<_> = notifications.collect();
        let channels = &self.worker.instance.channels;
        if !channels.has_room(self.database, &notifications) {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "too many notifications in the NOTIFY queue",
            )
            .detail("A session that listens does not read them, or stays in a transaction."));
        }
        Ok(Some(CommitNotifies {
            database: self.database,
            notifications,
        }))
    }

    /// The transaction has committed: from now on the session listens as it asked to.
    pub(super) fn listen_from_now(&mut self) {
        let mut pending_notifies = self.context.pending_notifies.borrow_mut();
        if pending_notifies.is_empty() {
            return;
        }
        let channels = &self.worker.instance.channels;
        let (database, pid) = (self.database, self.context.pid);
        for (_, action) in std::mem::take(&mut pending_notifies.listen_actions) {
            match action {
                ListenAction::Listen(channel) => {
                    channels.listen(database, &channel, pid, &self.signals);
                    pending_notifies.listening.insert(channel);
                }
                ListenAction::Unlisten(channel) => {
                    channels.unlisten(database, &channel, pid);
                    pending_notifies.listening.remove(&channel);
                }
                ListenAction::UnlistenAll => {
                    for channel in std::mem::take(&mut pending_notifies.listening) {
                        channels.unlisten(database, &channel, pid);
                    }
                }
            }
        }
        pending_notifies.rolled_back();
    }

    /// Listens to what the session has listened to in another process.
    pub(super) fn listen_again(&mut self, channels: &[String]) {
        let mut pending_notifies = self.context.pending_notifies.borrow_mut();
        for channel in channels {
            let channel: Arc<str> = channel.as_str().into();
            let (database, pid) = (self.database, self.context.pid);
            let all = &self.worker.instance.channels;
            all.listen(database, &channel, pid, &self.signals);
            pending_notifies.listening.insert(channel);
        }
    }

    /// The session is over, or begins anew: it listens to nothing.
    pub(super) fn unlisten_all(&mut self) {
        let listening = std::mem::take(&mut self.context.pending_notifies.borrow_mut().listening);
        let channels = &self.worker.instance.channels;
        for channel in listening {
            channels.unlisten(self.database, &channel, self.context.pid);
        }
    }

    /// What waits for the client, to be told outside a transaction.
    pub fn take_notifications(&mut self) -> VecDeque<Notification> {
        match self.in_transaction() {
            true => VecDeque::new(),
            false => self.signals.mailbox().take(),
        }
    }
}

impl CommitNotifies {
    /// Takes the transaction's place in the queue. In the turn in which it has drawn its CSN.
    pub(super) fn take_place<'c>(
        self,
        channels: &'c Channels,
        turn: &Turn<'_, ()>,
    ) -> QueueTicket<'c> {
        channels.take_place(turn, self.database, self.notifications)
    }
}

/// Delivers when everything that the commit rests on is durable.
pub(super) async fn deliver(place: QueueTicket<'_>, engine: &Engine, waits_for: CommitWait) {
    if engine.is_committed(&waits_for) || engine.acknowledged(waits_for).await.is_ok() {
        place.made_durable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(channel: &str, payload: &str) -> Notification {
        Notification {
            pid: 1,
            channel: channel.into(),
            payload: payload.into(),
        }
    }

    fn payloads(signals: &Signals) -> Vec<String> {
        let waiting = signals.mailbox().take();
        waiting.iter().map(|n| n.payload.to_string()).collect()
    }

    #[tokio::test]
    async fn delivery_is_in_commit_order_and_only_of_what_is_durable() {
        let channels = Channels::default();
        let listener = Arc::new(Signals::of_nobody());
        channels.listen(DatabaseOid::new(5), &"c".into(), 7, &listener);
        let turn = channels.turn().await;
        let first = channels.take_place(
            &turn,
            DatabaseOid::new(5),
            vec![note("c", "1"), note("other", "x")],
        );
        let second = channels.take_place(&turn, DatabaseOid::new(5), vec![note("c", "2")]);
        let elsewhere = channels.take_place(
            &turn,
            DatabaseOid::new(6),
            vec![note("c", "another database")],
        );
        let lost = channels.take_place(&turn, DatabaseOid::new(5), vec![note("c", "never")]);
        let last = channels.take_place(&turn, DatabaseOid::new(5), vec![note("c", "3")]);
        second.made_durable();
        elsewhere.made_durable();
        last.made_durable();
        assert!(
            payloads(&listener).is_empty(),
            "the first is not durable yet"
        );
        first.made_durable();
        assert_eq!(payloads(&listener), ["1", "2"]);
        // One whose fate is unknown holds nobody up, and is not told.
        drop(lost);
        assert_eq!(payloads(&listener), ["3"]);
        channels.unlisten(DatabaseOid::new(5), &"c".into(), 7);
        channels
            .take_place(&turn, DatabaseOid::new(5), vec![note("c", "4")])
            .made_durable();
        assert!(listener.mailbox().is_empty());
        assert!(channels.state.lock().listeners.is_empty());
    }

    #[test]
    fn a_transaction_says_each_thing_once() {
        let mut pending_notifies = PendingNotifies::default();
        pending_notifies.notify("c", "a", 0).unwrap();
        pending_notifies.notify("c", "b", 1).unwrap();
        pending_notifies.notify("c", "a", 1).unwrap();
        assert_eq!(pending_notifies.notifications.len(), 2);
        pending_notifies.rolled_back_to(0);
        assert_eq!(pending_notifies.notifications.len(), 1);
        pending_notifies.notify("c", "b", 0).unwrap();
        assert_eq!(
            pending_notifies.notifications.len(),
            2,
            "what was rolled back can be said again"
        );
        assert!(pending_notifies.notify("", "a", 0).is_err());
        let payload = "x".repeat(7_990);
        let all = (0..100_000).find(|n| {
            pending_notifies
                .notify("c", &format!("{n}{payload}"), 0)
                .is_err()
        });
        assert!(all.is_some_and(|n| n < 9_000), "{all:?}");
        pending_notifies.rolled_back();
        pending_notifies.notify("c", "again", 0).unwrap();
        assert!(pending_notifies.notify("c", &"x".repeat(8000), 0).is_err());
        assert!(pending_notifies.notify("c", &"x".repeat(7999), 0).is_ok());
    }
}
