//! Answers on their way to a server, and how much its connection may have in progress.
//!
//! A node may pretend to be farther away than it is: then its answers leave later.
//!
//! Invariant: every request that was admitted is released once: when its answer is sent, or the connection has ended.
//!
//! Does not: know what answers say.

use logstead_env::{Clock, Condvar, Instant};
use logstead_home::node::frame::Frame;
use logstead_home::node::message::Reply;
use logstead_home::{HomeError, NoRoom};
use logstead_link::LinkStream;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Requests in progress on one connection, at most.
const REQUESTS_MAX: usize = 1024;
/// Bytes of requests and answers in progress on one connection, at most, but for one that is larger by itself.
const BYTES_MAX: usize = 96 << 20;

#[derive(Default)]
struct State {
    /// Each with the bytes that its request was admitted with, and when it may leave.
    answers: VecDeque<(Frame, usize, Instant)>,
    requests: usize,
    bytes: usize,
    ended: bool,
}

/// See the module's documentation.
pub(crate) struct Outbox {
    clock: Arc<dyn Clock>,
    distance: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

impl Outbox {
    /// Answers leave so much later than they are given.
    pub(crate) fn new(clock: Arc<dyn Clock>, distance: Duration) -> Outbox {
        Outbox {
            clock,
            distance,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits until a request that moves so many bytes may begin; false if the connection has ended.
    pub(crate) fn admit(&self, bytes: usize) -> bool {
        let mut state = self.state.lock();
        while !state.ended
            && state.requests > 0
            && (state.requests >= REQUESTS_MAX || state.bytes.saturating_add(bytes) > BYTES_MAX)
        {
            self.changed.wait(&mut state);
        }
        state.requests += 1;
        state.bytes += bytes;
        !state.ended
    }

    /// The answer to a request that was admitted with so many bytes.
    pub(crate) fn answer(&self, number: u64, reply: Reply, bytes: usize) {
        let due = self.clock.monotonic() + self.distance;
        let mut state = self.state.lock();
        if !state.ended {
            state.answers.push_back((reply.frame(number), bytes, due));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// A request that is not answered is done.
    pub(crate) fn release(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.requests -= 1;
        state.bytes -= bytes;
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing is sent any more.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.answers.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Sends answers until the connection ends.
    pub(crate) fn send(&self, mut stream: LinkStream) {
        loop {
            let mut state = self.state.lock();
            while state.answers.is_empty() && !state.ended {
                self.changed.wait(&mut state);
            }
            if state.ended {
                return;
            }
            let answers = std::mem::take(&mut state.answers);
            drop(state);
            for (frame, bytes, due) in answers {
                let early = due.since(self.clock.monotonic());
                if !early.is_zero() {
                    logstead_env::sleep(early);
                }
                let body = frame.body.as_slice();
                let sent = frame.start().and_then(|start| {
                    stream.write_all(&start)?;
                    stream.write_all(body)
                });
                if sent.is_err() {
                    stream.shut_down();
                    self.end();
                    return;
                }
                self.release(bytes);
            }
        }
    }
}

/// That there is no room, as an answer tells it.
pub(crate) fn home_error(no_room: NoRoom) -> HomeError {
    match no_room {
        NoRoom::Failed(error) => error,
        NoRoom::DiskFull => HomeError::io("store", io::Error::from(io::ErrorKind::StorageFull)),
        NoRoom::Busy | NoRoom::Unavailable => {
            HomeError::io("store", io::Error::from(io::ErrorKind::WouldBlock))
        }
    }
}
