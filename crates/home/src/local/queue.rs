//! A thread and the jobs it does, in order.
//!
//! Invariant: every job pushed is done, also those still waiting when the queue is dropped; the drop waits for that,
//! unless it happens on the queue's own thread.

use logstead_env::{Env, JoinHandle};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) struct Queue<J> {
    shared: Arc<Shared<J>>,
    thread: Option<JoinHandle>,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    jobs: VecDeque<J>,
    closed: bool,
}

impl<J: Send + 'static> Queue<J> {
    pub(super) fn start(
        env: &Env,
        name: &str,
        mut handle: impl FnMut(J) + Send + 'static,
    ) -> std::io::Result<Queue<J>> {
        let state = State {
            jobs: VecDeque::new(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = env.spawn(name, None, move || {
            while let Some(job) = of_thread.next() {
                handle(job);
            }
        })?;
        Ok(Queue {
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn push(&self, job: J) {
        self.shared.state.lock().jobs.push_back(job);
        self.shared.changed.notify_one();
    }
}

impl<J> Shared<J> {
    fn next(&self) -> Option<J> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

impl<J> Drop for Queue<J> {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A job that panicked has been reported on standard error; there is nothing to add here.
            let _panicked = thread.join();
        }
    }
}
