//! What a replica tells its primary by the stream: a queue, and a thread of its own that sends it.
//!
//! So nobody who follows the log, or receives it, waits for a primary that takes nothing, and no lock is held while it
//! is waited for. Who tells rows waits for room ([`Replies::put_rows`]); all else is short. A primary that takes
//! nothing for [`SEND_TIME`], or for whom more than [`QUEUE_BYTES_MAX`] waits, loses the connection.
//!
//! Does not: know what is said.

use logstead_env::Env;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the primary may take nothing.
pub(super) const SEND_TIME: Duration = Duration::from_secs(5);
/// With more than this in the queue rows wait. An answer is not longer, so that two of them are there at most.
const ROWS_BYTES_MIN: usize = 64 << 10;
/// With more the connection is of no use.
const QUEUE_BYTES_MAX: usize = 4 << 20;

/// Where replies go.
pub(super) trait ReplySink: Send + 'static {
    /// Sends bytes, or fails when that takes too long.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;
}

/// Ends the connection: who sends or reads finds its end.
pub(super) type CloseConnection = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    is_closed: bool,
}

/// See the module's documentation.
pub(super) struct Replies {
    state: Mutex<QueueState>,
    /// There is something to send, or room, or it is closed.
    changed: Condvar,
    hangup: CloseConnection,
}

impl Replies {
    /// Starts the thread. It ends once the queue is closed.
    pub(super) fn start(
        env: &Env,
        mut sink: impl ReplySink,
        hangup: CloseConnection,
    ) -> io::Result<Arc<Replies>> {
        let replies = Arc::new(Replies {
            state: Mutex::default(),
            changed: Condvar::new(),
            hangup,
        });
        let own = Arc::clone(&replies);
        let _ends_by_itself = env.spawn("replica-replies", None, move || {
            while let Some(message) = own.next() {
                if sink.send(&message).is_err() {
                    // Whoever reads finds the end.
                    own.close();
                }
            }
        })?;
        Ok(replies)
    }

    fn locked(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be sent next; nothing if it is closed.
    fn next(&self) -> Option<Vec<u8>> {
        let is_idle = |state: &mut QueueState| !state.is_closed && state.messages.is_empty();
        let waited = self.changed.wait_while(self.locked(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let message = state.messages.pop_front()?;
        state.bytes -= message.len();
        drop(state);
        self.changed.notify_all();
        Some(message)
    }

    fn push(&self, mut state: MutexGuard<'_, QueueState>, message: Vec<u8>) {
        if state.is_closed {
            return;
        }
        if state.bytes + message.len() > QUEUE_BYTES_MAX {
            drop(state);
            return self.close();
        }
        state.bytes += message.len();
        state.messages.push_back(message);
        drop(state);
        self.changed.notify_all();
    }

    /// Has this sent. Waits for nobody.
    pub(super) fn put(&self, message: Vec<u8>) {
        self.push(self.locked(), message);
    }

    /// The same of what may be long: waits until there is room for it, or the connection has ended.
    pub(super) fn put_rows(&self, message: Vec<u8>) {
        let is_full = |state: &mut QueueState| !state.is_closed && state.bytes > ROWS_BYTES_MIN;
        let waited = self.changed.wait_while(self.locked(), is_full);
        self.push(waited.unwrap_or_else(PoisonError::into_inner), message);
    }

    /// Ends the thread and the connection; what was not sent is dropped.
    pub(super) fn close(&self) {
        let mut state = self.locked();
        state.is_closed = true;
        state.messages.clear();
        state.bytes = 0;
        drop(state);
        self.changed.notify_all();
        (self.hangup)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};

    /// A primary that takes a message whenever it is told to; `Err`: it has hung up.
    struct Primary {
        begins: Sender<usize>,
        may: Receiver<io::Result<()>>,
    }

    impl ReplySink for Primary {
        fn send(&mut self, message: &[u8]) -> io::Result<()> {
            self.begins.send(message.len()).expect("the test hears it");
            let told = self.may.recv();
            told.unwrap_or_else(|_| Err(io::Error::other("gone")))
        }
    }

    struct Place {
        replies: Arc<Replies>,
        begins: Receiver<usize>,
        lets: SyncSender<io::Result<()>>,
        hangups: Arc<AtomicUsize>,
    }

    fn place() -> Place {
        let (begins_in, begins) = channel();
        let (lets, may) = sync_channel(100);
        let hangups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&hangups);
        let sink = Primary {
            begins: begins_in,
            may,
        };
        let hangup = Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        Place {
            replies: Replies::start(&Env::real(), sink, hangup).expect("starts"),
            begins,
            lets,
            hangups,
        }
    }

    /// While the primary takes nothing nobody waits but who tells rows, and these come in the order of the queue.
    #[test]
    fn nobody_waits_for_a_primary_that_takes_nothing() {
        let place = place();
        place.replies.put(vec![0; ROWS_BYTES_MIN + 1]);
        assert_eq!(place.begins.recv(), Ok(ROWS_BYTES_MIN + 1));
        // It is being sent, and counts no more.
        place.replies.put_rows(vec![0; ROWS_BYTES_MIN + 2]);
        place.replies.put(vec![0; 3]);
        let replies = Arc::clone(&place.replies);
        let waits = Env::real().spawn("rows", None, move || replies.put_rows(vec![0; 4]));
        assert_eq!(place.begins.try_recv(), Err(TryRecvError::Empty));
        let queued = place.replies.locked().bytes;
        assert_eq!(queued, ROWS_BYTES_MIN + 5, "the rows wait");
        for next in [ROWS_BYTES_MIN + 2, 3, 4] {
            place.lets.send(Ok(())).expect("it waits");
            assert_eq!(place.begins.recv(), Ok(next));
        }
        let waits = waits.expect("starts");
        waits.join().expect("it has room");
        assert_eq!(place.hangups.load(Ordering::SeqCst), 0);
        place.replies.close();
    }

    /// A queue that grows and grows, and a connection that fails, end: who waits for room does not wait for ever.
    #[test]
    fn what_nobody_takes_has_a_bound() {
        let place = place();
        for _ in 0..(2 * QUEUE_BYTES_MAX) >> 20 {
            place.replies.put(vec![0; 1 << 20]);
        }
        assert!(place.replies.locked().is_closed);
        assert_eq!(place.hangups.load(Ordering::SeqCst), 1);
        place.replies.put_rows(vec![0; 1 << 20]);
        assert_eq!(place.replies.locked().bytes, 0);
    }

    #[test]
    fn a_connection_that_fails_ends_and_nobody_waits_for_it() {
        let place = place();
        place.replies.put(vec![0; 1]);
        place.replies.put(vec![0; ROWS_BYTES_MIN + 1]);
        assert_eq!(place.begins.recv(), Ok(1));
        place
            .lets
            .send(Err(io::Error::other("lost")))
            .expect("it waits");
        // There would be room only when that was sent.
        place.replies.put_rows(vec![0; 2]);
        assert!(place.begins.recv().is_err(), "the thread has ended");
        assert_eq!(place.hangups.load(Ordering::SeqCst), 1);
    }
}
