//! A thread and the jobs it does, in order; or several threads, and then in any order.
//!
//! Invariant: every job pushed is done, also those still waiting when the queue is dropped; the drop waits for that,
//! unless it happens on one of the queue's own threads (which is left to end by itself).

use crate::{Condvar, Env, JoinHandle, abort_on_panic};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module's documentation.
pub struct JobQueue<J> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle>,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    jobs: VecDeque<J>,
    closed: bool,
}

impl<J: Send + 'static> JobQueue<J> {
    /// One thread called `name`, which does every job with `handle`.
    pub fn start(
        env: &Env,
        name: &str,
        handle: impl Fn(J) + Send + Sync + 'static,
    ) -> std::io::Result<JobQueue<J>> {
        JobQueue::start_pool(env, name, 1, handle)
    }

    /// So many threads.
    pub fn start_pool(
        env: &Env,
        name: &str,
        threads: usize,
        handle: impl Fn(J) + Send + Sync + 'static,
    ) -> std::io::Result<JobQueue<J>> {
        let state = State {
            jobs: VecDeque::new(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        // From here on a failure to start drops the queue, which ends the threads that have started.
        let mut queue = JobQueue {
            shared,
            threads: Vec::new(),
        };
        let handle = Arc::new(handle);
        for _ in 0..threads {
            let (of_thread, handle) = (Arc::clone(&queue.shared), Arc::clone(&handle));
            let thread = env.spawn(name, None, move || {
                // Whoever waits for a job that is not done any more would wait for ever.
                let _watch = abort_on_panic("doing a job");
                while let Some(job) = of_thread.next() {
                    handle(job);
                }
            })?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }

    /// Gives it a job.
    pub fn push(&self, job: J) {
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

impl<J> Drop for JobQueue<J> {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != std::thread::current().id() {
                // It cannot have panicked: that ends the process.
                let _ended = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    const CHILD: &str = "LOGSTEAD_TEST_PANICS";

    /// Nobody is left waiting for a writer thread that is gone: the process ends, and says why.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test runs itself as a child")]
    fn a_job_that_panics_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            let handle = |job: u32| assert!(job < 2, "job {job}");
            let queue = JobQueue::start(&Env::real(), "writer", handle).expect("starts");
            (0..3).for_each(|job| queue.push(job));
            drop(queue);
            return;
        }
        let output = std::process::Command::new(std::env::current_exe().expect("a path"))
            .args([
                "--exact",
                "job_queue::tests::a_job_that_panics_ends_the_process",
            ])
            .arg("--nocapture")
            .env(CHILD, "1")
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(6), "aborted: {said}");
        assert!(said.contains("writer panicked while doing a job"), "{said}");
    }
}
