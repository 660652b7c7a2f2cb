//! A child: one home of several, and the threads that wait for it, so that nobody else has to.
//!
//! Invariant: a child that is down stays so until the home is opened again.
//!
//! Does not: know what its answers mean together.

use crate::{HomeError, LogHome};
use logstead_env::Env;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

/// Requests to one child that are waited for at the same time.
const THREADS: usize = 4;
/// Objects that are moved to or from one child at the same time.
const BULK_THREADS: usize = 2;
/// Removals from one child that are waited for at the same time.
const REMOVAL_THREADS: usize = 1;

/// What a request waits behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestClass {
    /// Other short ones.
    Short,
    /// Other large ones.
    Bulk,
    /// Other removals: a segment may be thousands of objects, and nobody is in a hurry.
    Removal,
}

/// How a child is opened.
pub type Opener = Box<dyn FnOnce() -> Result<LogHome, HomeError> + Send>;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    more: Condvar,
}

impl Queue {
    fn run(&self) {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.0.pop_front() {
                drop(jobs);
                job();
                jobs = self.jobs.lock();
            } else if jobs.1 {
                return;
            } else {
                self.more.wait(&mut jobs);
            }
        }
    }
}

/// One for each line.
#[derive(Default)]
struct Queues {
    short: Arc<Queue>,
    bulk: Arc<Queue>,
    removal: Arc<Queue>,
}

impl Queues {
    fn of(&self, line: RequestClass) -> &Arc<Queue> {
        match line {
            RequestClass::Short => &self.short,
            RequestClass::Bulk => &self.bulk,
            RequestClass::Removal => &self.removal,
        }
    }
}

/// See the module's documentation.
pub(super) struct Child {
    /// As it was given, for people.
    pub(super) url: String,
    home: OnceLock<LogHome>,
    /// Without threads whoever asks waits, as tests in virtual time want it.
    queues: Option<Queues>,
    up: AtomicBool,
    why_down: Mutex<Option<String>>,
}

impl Child {
    pub(super) fn new(url: String, env: &Env, threads: bool) -> Result<Child, HomeError> {
        let queues = threads.then(Queues::default);
        if let Some(queues) = &queues {
            for (line, threads) in [
                (RequestClass::Short, THREADS),
                (RequestClass::Bulk, BULK_THREADS),
                (RequestClass::Removal, REMOVAL_THREADS),
            ] {
                let queue = queues.of(line);
                for _ in 0..threads {
                    let queue = Arc::clone(queue);
                    env.spawn("replica", None, move || queue.run())
                        .map_err(|error| HomeError::io("starting a replica's thread", error))?;
                }
            }
        }
        Ok(Child {
            url,
            home: OnceLock::new(),
            queues,
            up: AtomicBool::new(true),
            why_down: Mutex::default(),
        })
    }

    /// Does something on a thread of the child.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.run_in(RequestClass::Short, job);
    }

    /// The same, for requests that move much.
    pub(super) fn run_in(&self, line: RequestClass, job: impl FnOnce() + Send + 'static) {
        match &self.queues {
            None => job(),
            Some(queues) => {
                let queue = queues.of(line);
                queue.jobs.lock().0.push_back(Box::new(job));
                queue.more.notify_one();
            }
        }
    }

    /// The home, once it is open.
    pub(super) fn home(&self) -> Option<&LogHome> {
        self.home.get()
    }

    pub(super) fn opened(&self, home: LogHome) {
        // It is opened once.
        let _first = self.home.set(home);
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::SeqCst)
    }

    /// True if it was up.
    pub(super) fn take_down(&self, why: String) -> bool {
        let was = self.up.swap(false, Ordering::SeqCst);
        if was {
            tracing::warn!("log: {} is left out until the next start: {why}", self.url);
            *self.why_down.lock() = Some(why);
        }
        was
    }

    pub(super) fn why_down(&self) -> Option<String> {
        self.why_down.lock().clone()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(queues) = &self.queues {
            for line in [
                RequestClass::Short,
                RequestClass::Bulk,
                RequestClass::Removal,
            ] {
                let queue = queues.of(line);
                // A thread that still waits for an answer ends when that has come.
                queue.jobs.lock().1 = true;
                queue.more.notify_all();
            }
        }
    }
}

/// What children answered, by their index; `None`: nothing yet.
pub(super) type Replies<T> = Vec<Option<Result<T, HomeError>>>;

/// An error for a child that did not answer.
pub(super) fn no_answer(what: &str) -> HomeError {
    let why = io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    HomeError::io(what, why)
}

/// What a child is asked, on a thread of its own.
pub(super) type Request<T> = Box<dyn FnOnce() -> Result<T, HomeError> + Send>;

/// How long children are waited for.
#[derive(Clone, Copy)]
pub(super) struct ReplyTimeouts {
    /// In any case no longer than this.
    pub(super) patience: Duration,
    /// Once enough have answered, no longer than this.
    pub(super) grace: Duration,
}

/// Asks each child that `ask` makes a job for, and waits for all of them as `waits` says; `enough` tells when enough
/// have answered.
pub(super) fn ask_each<T: Send + 'static>(
    children: &[Arc<Child>],
    env: &Env,
    waits: ReplyTimeouts,
    enough: &dyn Fn(&Replies<T>) -> bool,
    ask: &dyn Fn(usize) -> Option<Request<T>>,
) -> Replies<T> {
    ask_each_in(children, env, RequestClass::Short, waits, enough, ask)
}

/// The same, in one of the lines.
pub(super) fn ask_each_in<T: Send + 'static>(
    children: &[Arc<Child>],
    env: &Env,
    line: RequestClass,
    waits: ReplyTimeouts,
    enough: &dyn Fn(&Replies<T>) -> bool,
    ask: &dyn Fn(usize) -> Option<Request<T>>,
) -> Replies<T> {
    let (tell, told) = mpsc::channel();
    let mut answers: Replies<T> = children.iter().map(|_| None).collect();
    let mut open = 0;
    for (index, child) in children.iter().enumerate() {
        if let Some(job) = ask(index) {
            open += 1;
            let tell = tell.clone();
            // Who asked may have gone on.
            child.run_in(line, move || drop(tell.send((index, job()))));
        }
    }
    let begun = env.clock.monotonic();
    let mut satisfied = None;
    while open > 0 {
        let now = env.clock.monotonic();
        if satisfied.is_none() && enough(&answers) {
            satisfied = Some(now);
        }
        let left = match satisfied {
            Some(since) => waits.grace.saturating_sub(now.since(since)),
            None => waits.patience.saturating_sub(now.since(begun)),
        };
        // What has been answered already counts, however late it is.
        match told.try_recv().or_else(|_| told.recv_timeout(left)) {
            Ok((index, answer)) => {
                answers[index] = Some(answer);
                open -= 1;
            }
            Err(_) => break,
        }
    }
    answers
}
