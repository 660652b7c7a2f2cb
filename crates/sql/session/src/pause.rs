//! The pause of a server's sessions while another process, or another instance of this one, takes them over:
//! PgBouncer's PAUSE and RESUME.
//!
//! Owns: the phase that all sessions are in, how many have come to rest, and what they are for the other process
//! ([`SerializedClient`]).
//!
//! Rules:
//! - A session pauses where its last answer was ReadyForQuery outside a transaction, and nowhere else. What its client
//!   sends meanwhile stays unread, or goes along ([`SerializedClient::input`]).
//! - A paused session stays what it is until its process ends, or until it departs: it goes on by [`Instance::resume`]
//!   as if nothing had happened, also once it was serialized.
//! - What belongs to this instance alone (temporary tables, held cursors, advisory locks, a stream of the log) is not
//!   serialized, nor is for another process what belongs to this one (encryption): such a session pauses too, and is
//!   told 57P01 when the others have left.
//!
//! Does not: know how a session is sent, or by whom.

use super::{Session, signals::Signals};
use crate::serialized_session::SerializedSession;
use logstead_sql_types::error::{SqlError, shutting_down};
use parking_lot::Mutex;
use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::Poll;

/// What sessions are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PausePhase {
    /// Serve their clients.
    Running,
    /// Begin no transaction.
    Pausing,
    /// And say what they are, to be taken over.
    Serializing,
    /// Those that were serialized are another process's; the others end.
    Leaving,
    /// Those that were serialized are another instance's of this process, and go without a word; the others end.
    Departing,
}

/// Who takes the sessions over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandoverTarget {
    /// Another process.
    #[default]
    OtherProcess,
    /// Another instance in this process.
    SameProcess,
}

/// What encrypts a client's stream: whoever serves clients knows what it is.
pub type Encryption = Box<dyn Any + Send>;

/// A client with its session, to be taken over.
pub struct SerializedClient {
    /// Its socket.
    pub descriptor: OwnedFd,
    /// What encrypts it; never for another process.
    pub encryption: Option<Encryption>,
    /// What has come from it and was not looked at.
    pub input: Vec<u8>,
    /// So many bytes of it, and of what comes next, are the rest of a message that nobody wants.
    pub unwanted: usize,
    /// The session.
    pub session: SerializedSession,
}

/// The phase, and who has come to rest.
#[derive(Default)]
pub(super) struct SessionPause {
    phase: AtomicU8,
    paused: AtomicUsize,
    round: Mutex<PauseRound>,
}

/// One pause, from its beginning until sessions go on.
#[derive(Default)]
struct PauseRound {
    number: u64,
    target: HandoverTarget,
    serialized: Vec<SerializedClient>,
    /// Paused sessions that cannot be serialized.
    staying: usize,
    /// So many were serialized and are on their way: nobody can follow.
    taken: Option<usize>,
}

impl SessionPause {
    pub(super) fn phase(&self) -> PausePhase {
        match self.phase.load(Ordering::SeqCst) {
            0 => PausePhase::Running,
            1 => PausePhase::Pausing,
            2 => PausePhase::Serializing,
            3 => PausePhase::Leaving,
            _ => PausePhase::Departing,
        }
    }

    /// Sessions are to be serialized for this one. They have to be woken then.
    pub(super) fn serialize(&self, target: HandoverTarget) {
        self.round.lock().target = target;
        self.enter(PausePhase::Serializing);
    }

    /// Sessions have to be woken then.
    pub(super) fn enter(&self, phase: PausePhase) {
        let mut round = self.round.lock();
        if phase == PausePhase::Running {
            *round = PauseRound {
                number: round.number + 1,
                ..PauseRound::default()
            };
        }
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    pub(super) fn paused_count(&self) -> usize {
        self.paused.load(Ordering::SeqCst)
    }

    /// How many sessions have been taken that way.
    pub(super) fn taken_count(&self) -> usize {
        self.round.lock().taken.unwrap_or(0)
    }

    pub(super) fn take_serialized(&self) -> Option<Vec<SerializedClient>> {
        let mut round = self.round.lock();
        if round.serialized.len() + round.staying < self.paused_count() {
            return None;
        }
        round.taken = Some(round.serialized.len());
        Some(std::mem::take(&mut round.serialized))
    }
}

/// What a paused session is woken for.
pub enum PauseEvent {
    /// It goes on.
    Resumed,
    /// It is to be serialized ([`PausedSession::serialized`]), for this one.
    Serialize(HandoverTarget),
    /// It ends.
    Ends(SqlError),
    /// Its client is somebody else's: it is told nothing.
    Departs,
}

/// A session that pauses, for as long as this lives.
pub struct PausedSession {
    pause: Arc<SessionPause>,
    signals: Arc<Signals>,
    /// What it has said when it was asked, and in which pause.
    answer: Option<(u64, PauseAnswer)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PauseAnswer {
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
        let pause = Arc::clone(&self.worker.instance.pause);
        let signals = self.signals();
        signals.set_paused(true);
        pause.paused.fetch_add(1, Ordering::SeqCst);
        PausedSession {
            pause,
            signals,
            answer: None,
        }
    }
}

impl PausedSession {
    /// Waits until something happens.
    pub async fn next(&self) -> PauseEvent {
        std::future::poll_fn(|cx| {
            self.signals.register(cx.waker());
            let round = self.pause.round.lock();
            // One that a later pause finds here has not gone on between the two.
            let answer = self.answer.filter(|(number, _)| *number == round.number);
            let phase = self.pause.phase();
            // Before anything else: whatever is told here, its client would take for the other one's.
            let departs = matches!(
                (phase, answer),
                (PausePhase::Departing, Some((_, PauseAnswer::Serialized)))
            );
            if departs {
                return Poll::Ready(PauseEvent::Departs);
            }
            // One that was serialized may be somebody else's already: only if it goes on here it ends here.
            let is_serialized = matches!(answer, Some((_, PauseAnswer::Serialized)));
            if !is_serialized && self.signals.must_end(true) {
                return Poll::Ready(PauseEvent::Ends(self.signals.ending()));
            }
            match (phase, answer) {
                (PausePhase::Running, _) => Poll::Ready(PauseEvent::Resumed),
                (PausePhase::Serializing, None) => Poll::Ready(PauseEvent::Serialize(round.target)),
                (
                    PausePhase::Leaving | PausePhase::Departing,
                    None | Some((_, PauseAnswer::Stays)),
                ) => Poll::Ready(PauseEvent::Ends(shutting_down())),
                (
                    PausePhase::Pausing
                    | PausePhase::Serializing
                    | PausePhase::Leaving
                    | PausePhase::Departing,
                    Some(_) | None,
                ) => Poll::Pending,
            }
        })
        .await
    }

    /// What the session is, with its client; nothing if it cannot be another process's.
    pub fn serialized(&mut self, client: Option<SerializedClient>) {
        let mut round = self.pause.round.lock();
        let answer = match client.filter(|_| round.taken.is_none()) {
            Some(client) => {
                round.serialized.push(client);
                PauseAnswer::Serialized
            }
            None => {
                round.staying += 1;
                PauseAnswer::Stays
            }
        };
        self.answer = Some((round.number, answer));
    }
}

impl Drop for PausedSession {
    fn drop(&mut self) {
        let mut round = self.pause.round.lock();
        if self.answer == Some((round.number, PauseAnswer::Stays)) {
            round.staying -= 1;
        }
        self.pause.paused.fetch_sub(1, Ordering::SeqCst);
        self.signals.set_resting(false);
        self.signals.set_paused(false);
    }
}
