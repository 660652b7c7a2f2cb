//! Threads that read and write temporary files, so that no worker ever does.
//!
//! A file's jobs go to one queue and are done in the order in which they came: who asks for a block that it has written
//! before reads what it wrote. Every job has a [`SpillTicket`], which is done when the job is, whatever becomes of it.
//!
//! Invariants: a job that is not run (the server stops) finishes its ticket with an error; nobody waits for ever. On
//! simulated files there are no threads: a job runs when it is handed in, so a seed gives one history.

use logstead_env::Env;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Threads, and so queues: the disk's own queue is behind them.
const THREADS: usize = 2;

/// How often a thread that waits for a job looks whether it still should.
const LOOK: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    more: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// A thread works on this queue.
    started: bool,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module.
pub(super) struct SpillThreadPool {
    queues: Vec<Arc<Queue>>,
    env: Env,
}

impl SpillThreadPool {
    pub(super) fn new(env: Env) -> SpillThreadPool {
        SpillThreadPool {
            queues: (0..THREADS).map(|_| Arc::default()).collect(),
            env,
        }
    }

    /// Has a job done, after all that came for the same file before. Its thread is started when it first has something
    /// to do.
    pub(super) fn submit(&self, file: u64, job: Job) {
        let at = usize::try_from(file).unwrap_or(0) % self.queues.len().max(1);
        let Some(queue) = self.queues.get(at) else {
            return;
        };
        if self.env.files.is_simulated() {
            return job();
        }
        let mut jobs = lock(&queue.jobs);
        if !jobs.started {
            let mine = Arc::clone(queue);
            // Without a thread the job is done here: slower for the others, and right.
            if self.env.spawn("spill", None, move || work(&mine)).is_err() {
                drop(jobs);
                return job();
            }
            jobs.started = true;
        }
        jobs.waiting.push_back(job);
        drop(jobs);
        queue.more.notify_one();
    }
}

impl Drop for SpillThreadPool {
    fn drop(&mut self) {
        for queue in &self.queues {
            lock(&queue.jobs).closed = true;
            queue.more.notify_one();
        }
    }
}

fn work(queue: &Queue) {
    let mut jobs = lock(&queue.jobs);
    loop {
        if let Some(job) = jobs.waiting.pop_front() {
            drop(jobs);
            job();
            jobs = lock(&queue.jobs);
        } else if jobs.closed {
            return;
        } else {
            jobs = queue
                .more
                .wait(jobs)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[derive(Default)]
struct TicketState {
    done: bool,
    /// What a reading job has read.
    bytes: Option<io::Result<Vec<u8>>>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct SharedTicket {
    state: Mutex<TicketState>,
    changed: Condvar,
}

/// A job that somebody may wait for.
#[derive(Clone)]
pub struct SpillTicket(Arc<SharedTicket>);

/// The other half: finishes the ticket, at the latest when it is dropped.
pub(super) struct TicketCompletion(Arc<SharedTicket>);

/// A ticket and what finishes it.
pub(super) fn ticket() -> (SpillTicket, TicketCompletion) {
    let shared: Arc<SharedTicket> = Arc::default();
    (SpillTicket(Arc::clone(&shared)), TicketCompletion(shared))
}

impl TicketCompletion {
    /// The job is done and has read this.
    pub(super) fn with(self, bytes: io::Result<Vec<u8>>) {
        lock(&self.0.state).bytes = Some(bytes);
    }
}

impl Drop for TicketCompletion {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.done = true;
        let waker = state.waker.take();
        drop(state);
        self.0.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl SpillTicket {
    /// Has the job been done?
    pub(crate) fn is_done(&self) -> bool {
        lock(&self.0.state).done
    }

    /// What the job has read; an error if it came to nothing.
    pub(super) fn take(&self) -> io::Result<Vec<u8>> {
        let bytes = lock(&self.0.state).bytes.take();
        bytes.unwrap_or_else(|| Err(io::Error::other("the server stops")))
    }

    /// Waits for the job.
    pub(crate) async fn wait(&self) {
        poll_fn(|task| {
            let mut state = lock(&self.0.state);
            if state.done {
                return Poll::Ready(());
            }
            state.waker = Some(task.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits for the job and has the thread wait with it, where nothing can be begun again; unless `go_on`, which is
    /// asked now and then, fails.
    pub fn wait_here<E>(&self, go_on: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let mut state = lock(&self.0.state);
        while !state.done {
            go_on()?;
            let waited = self.0.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_never_run_finishes_its_ticket() {
        let (waits, finish) = ticket();
        assert!(!waits.is_done());
        drop(finish);
        assert!(waits.is_done());
        waits.wait_here(|| Ok::<_, ()>(())).unwrap();
        assert!(waits.take().is_err());
    }

    #[test]
    fn jobs_of_one_file_are_done_in_order() {
        let pool = SpillThreadPool::new(Env::real());
        let order = Arc::new(Mutex::new(Vec::new()));
        for n in 0..100 {
            let order = Arc::clone(&order);
            pool.submit(7, Box::new(move || lock(&order).push(n)));
        }
        let (last, finish) = ticket();
        pool.submit(7, Box::new(move || drop(finish)));
        last.wait_here(|| Ok::<_, ()>(())).unwrap();
        assert_eq!(*lock(&order), (0..100).collect::<Vec<_>>());
    }
}
