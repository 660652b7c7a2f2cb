//! Two threads of which one goes on at a time: the machine, and a reader beside it.
//!
//! The reader stops before each of its requests. Whoever drives the machine says when it makes that request and goes on
//! to its next one, and waits for it meanwhile. So nothing happens at the same time, and a seed gives the same run.
//!
//! Invariant: the machine never waits for a reader that has ended, also not for one that has panicked; and a reader
//! whose machine is gone does not wait.

use std::sync::Arc;

use logstead_env::{Env, JoinHandle};
use parking_lot::{Condvar, Mutex};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Machine,
    Reader,
    /// The reader has ended.
    Ended,
    /// Nobody says any more who goes on: the reader does.
    Free,
}

/// Says whose turn it is.
pub(crate) struct Baton {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Baton {
    pub(crate) fn new() -> Arc<Baton> {
        Arc::new(Baton {
            turn: Mutex::new(Turn::Machine),
            changed: Condvar::new(),
        })
    }

    /// The reader's thread begins: waits for its first turn.
    fn wait(&self) {
        let mut turn = self.turn.lock();
        while *turn == Turn::Machine {
            self.changed.wait(&mut turn);
        }
    }

    /// The reader is about to make a request: gives the turn back, and waits for the next one.
    pub(crate) fn pause(&self) {
        let mut turn = self.turn.lock();
        if *turn == Turn::Reader {
            *turn = Turn::Machine;
            self.changed.notify_all();
        }
        while *turn == Turn::Machine {
            self.changed.wait(&mut turn);
        }
    }

    /// The reader makes its request and goes on to the next. False: it has ended, now or before.
    pub(crate) fn step(&self) -> bool {
        let mut turn = self.turn.lock();
        if *turn == Turn::Machine {
            *turn = Turn::Reader;
            self.changed.notify_all();
        }
        while *turn == Turn::Reader {
            self.changed.wait(&mut turn);
        }
        *turn == Turn::Machine
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.turn.lock() == Turn::Ended
    }

    fn set(&self, to: Turn) {
        *self.turn.lock() = to;
        self.changed.notify_all();
    }
}

/// Tells that the reader has ended, however it does.
struct End(Arc<Baton>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.set(Turn::Ended);
    }
}

/// A reader's thread, and what comes of it.
pub(crate) struct Beside<T> {
    pub(crate) baton: Arc<Baton>,
    found: Arc<Mutex<Option<T>>>,
    thread: Option<JoinHandle>,
}

impl<T: Send + 'static> Beside<T> {
    /// Begins `read`, which goes on with [`Baton::step`]. The home that it reads calls [`Baton::pause`] before each
    /// request.
    pub(crate) fn begin(
        env: &Env,
        baton: Arc<Baton>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Beside<T> {
        let found = Arc::new(Mutex::new(None));
        let (end, into) = (End(Arc::clone(&baton)), Arc::clone(&found));
        let body = move || {
            // Told last.
            let end = end;
            end.0.wait();
            let come_of_it = read();
            *into.lock() = Some(come_of_it);
        };
        let thread = env.spawn("reader", None, body).expect("a thread");
        Beside {
            baton,
            found,
            thread: Some(thread),
        }
    }

    /// What came of a reader that has ended. `None`: it has panicked.
    pub(crate) fn found(mut self) -> Option<T> {
        if let Some(thread) = self.thread.take() {
            // Whether it panicked shows below.
            let _joined = thread.join();
        }
        self.found.lock().take()
    }
}

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            if !self.baton.has_ended() {
                self.baton.set(Turn::Free);
            }
            let _joined = thread.join();
        }
    }
}
