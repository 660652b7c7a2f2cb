//! The pause of a server's sessions while another process takes them over: PgBouncer's PAUSE and RESUME.
//!
//! Owns: the phase that all sessions are in, how many have come to rest, and what they are for the other process
//! ([`SerializedClient`]).
//!
//! Rules:
//! - A session pauses where its last answer was ReadyForQuery outside a transaction, and nowhere else. What its client
//!   sends meanwhile stays unread, or goes along ([`SerializedClient::input`]).
//! - A paused session stays what it is until its process ends: it goes on by [`Instance::resume`] as if nothing had
//!   happened, also once it was serialized.
//! - What belongs to this process alone (temporary tables, held cursors, advisory locks, encryption, a stream of the
//!   log) is not serialized: such a session pauses too, and is told 57P01 when the others have left.
//!
//! Does not: know how a session is sent, or by whom.

use super::instance::Instance;
use super::serialize::SerializedSession;
use super::{Session, signals::Signals};
use logstead_sql_types::error::{SqlError, shutting_down};
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::Poll;

/// What sessions are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum PausePhase {
    /// Serve their clients.
    Running,
    /// Begin no transaction.
    Pausing,
    /// And say what they are, to be taken over.
    Serializing,
    /// Those that were serialized are another process's; the others end.
    Leaving,
}

/// A client with its session, to be taken over by another process.
pub struct SerializedClient {
    /// Its socket.
    pub descriptor: OwnedFd,
    /// What has come from it and was not looked at.
    pub input: Vec<u8>,
    /// The session.
    pub session: SerializedSession,
}

/// The phase, and who has come to rest.
#[derive(Default)]
pub(super) struct SessionPause {
    phase: AtomicU8,
    paused: AtomicUsize,
    /// Of these: the ones that cannot be serialized.
    staying: AtomicUsize,
    serialized: Mutex<Vec<SerializedClient>>,
}

impl SessionPause {
    fn phase(&self) -> PausePhase {
        match self.phase.load(Ordering::SeqCst) {
            0 => PausePhase::Running,
            1 => PausePhase::Pausing,
            2 => PausePhase::Serializing,
            _ => PausePhase::Leaving,
        }
    }
}

impl Instance {
    fn set_pause_phase(&self, phase: PausePhase) {
        self.pause.phase.store(phase as u8, Ordering::SeqCst);
        self.each_session(|_, _, signals| signals.wake());
    }

    /// Sessions begin no transaction any more, and pause when they have ended the one that is open.
    pub fn pause(&self) {
        self.set_pause_phase(PausePhase::Pausing);
        // A stream of the log has no transaction to end, and its replica connects again.
        self.each_session(|_, live, signals| {
            if live.is_replication() {
                signals.stop();
            }
        });
    }

    /// Sessions that pause.
    pub fn paused_count(&self) -> usize {
        self.pause.paused.load(Ordering::SeqCst)
    }

    /// Those that pause go on.
    pub fn resume(&self) {
        self.set_pause_phase(PausePhase::Running);
        self.pause.serialized.lock().clear();
        self.pause.staying.store(0, Ordering::SeqCst);
    }

    /// Those that pause say what they are; [`Instance::serialized`] has them.
    pub fn serialize(&self) {
        self.set_pause_phase(PausePhase::Serializing);
    }

    /// What the paused sessions are, once all of them have said it.
    pub fn serialized(&self) -> Option<Vec<SerializedClient>> {
        let mut serialized = self.pause.serialized.lock();
        let told = serialized.len() + self.pause.staying.load(Ordering::SeqCst);
        (told >= self.paused_count()).then(|| std::mem::take(&mut *serialized))
    }

    /// Those that were serialized are another process's. The others end.
    pub fn leave(&self) {
        self.set_pause_phase(PausePhase::Leaving);
    }

    /// Paused sessions that are nobody else's.
    pub fn staying_count(&self) -> usize {
        self.pause.staying.load(Ordering::SeqCst)
    }

    /// Ends those that have not paused.
    pub fn terminate_unpaused(&self) {
        self.each_session(|_, _, signals| {
            if !signals.is_paused() {
                signals.terminate();
            }
        });
    }
}

/// What a paused session is woken for.
pub enum PauseEvent {
    /// It goes on.
    Resumed,
    /// It is to be serialized ([`PausedSession::serialized`]).
    Serialize,
    /// It ends.
    Ends(SqlError),
}

/// A session that pauses, for as long as this lives.
pub struct PausedSession {
    instance: Arc<Instance>,
    signals: Arc<Signals>,
    /// What it was asked for, if it has said what it is.
    told: Option<Told>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Serialized,
    Stays,
}

impl Session {
    /// Is this session to pause, once it is at rest?
    #[inline]
    pub fn must_pause(&self) -> bool {
        self.worker.instance.pause.phase() != PausePhase::Running
    }

    /// The session pauses. To be called outside a transaction.
    pub fn pause(&self) -> PausedSession {
        let instance = Arc::clone(&self.worker.instance);
        let signals = self.signals();
        signals.set_paused(true);
        instance.pause.paused.fetch_add(1, Ordering::SeqCst);
        PausedSession {
            instance,
            signals,
            told: None,
        }
    }
}

impl PausedSession {
    /// Waits until something happens. Given its own answer, an event does not come again.
    pub async fn next(&self) -> PauseEvent {
        std::future::poll_fn(|cx| {
            self.signals.register(cx.waker());
            if self.signals.must_end(true) {
                return Poll::Ready(PauseEvent::Ends(self.signals.ending()));
            }
            match self.instance.pause.phase() {
                PausePhase::Running => Poll::Ready(PauseEvent::Resumed),
                PausePhase::Serializing if self.told.is_none() => {
                    Poll::Ready(PauseEvent::Serialize)
                }
                PausePhase::Leaving if self.told != Some(Told::Serialized) => {
                    Poll::Ready(PauseEvent::Ends(shutting_down()))
                }
                PausePhase::Pausing | PausePhase::Serializing | PausePhase::Leaving => {
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// What the session is, with its client; nothing if it cannot be another process's.
    pub fn serialized(&mut self, client: Option<SerializedClient>) {
        let pause = &self.instance.pause;
        match client {
            Some(client) => {
                self.told = Some(Told::Serialized);
                pause.serialized.lock().push(client);
            }
            None => {
                self.told = Some(Told::Stays);
                pause.staying.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

impl Drop for PausedSession {
    fn drop(&mut self) {
        let pause = &self.instance.pause;
        if self.told == Some(Told::Stays) && pause.phase() != PausePhase::Running {
            pause.staying.fetch_sub(1, Ordering::SeqCst);
        }
        pause.paused.fetch_sub(1, Ordering::SeqCst);
        self.signals.set_paused(false);
    }
}
