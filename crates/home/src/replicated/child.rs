//! A child: one home of several, and the threads that wait for it, so that nobody else has to.
//!
//! A child that fails is *down*. When it is opened anew it has another home ([`Attachment`]), with threads of its own:
//! one that waits for an answer of the home before may wait for ever. It *catches up*, and then is up again
//! ([`catch_up`](super::catch_up)).
//!
//! Invariants:
//! - Only a home that was attached last is asked for anything new.
//! - What is said of an attachment (that it failed, that it has all) changes nothing if there has been another since.
//!
//! Does not: know what its answers mean together, or when a child comes back.

use crate::{HomeError, HomeUsage, LogHome, ObjectId};
use logstead_env::{Condvar, Env, Instant, channel};
use logstead_types::LaneId;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// How a child is opened: at the start, and anew each time that it is to come back.
pub type Opener = Arc<dyn Fn() -> Result<LogHome, HomeError> + Send + Sync>;

/// A child to be opened.
#[derive(Clone)]
pub struct Source {
    /// Its URL, without credentials.
    pub url: String,
    /// Opens it, on a thread of its own: at the start, and each time that it is to come back.
    pub open: Opener,
}

impl Source {
    /// A home that is open.
    pub fn of(home: LogHome) -> Source {
        Source {
            url: home.describe(),
            open: Arc::new(move || Ok(home.clone())),
        }
    }
}

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

impl Queues {
    fn start(env: &Env) -> Result<Queues, HomeError> {
        let queues = Queues::default();
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
        Ok(queues)
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        for line in [
            RequestClass::Short,
            RequestClass::Bulk,
            RequestClass::Removal,
        ] {
            let queue = self.of(line);
            // A thread that still waits for an answer ends when that has come.
            queue.jobs.lock().1 = true;
            queue.more.notify_all();
        }
    }
}

/// A child's home as it was opened once.
#[derive(Clone)]
pub(super) struct Attachment {
    /// Counts how often the child was opened.
    pub(super) generation: u64,
    home: Arc<LogHome>,
}

impl Attachment {
    /// Does somebody else hold it, to ask it something or to wait for its answer?
    pub(super) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.home) > 1
    }
}

impl Deref for Attachment {
    type Target = LogHome;

    fn deref(&self) -> &LogHome {
        &self.home
    }
}

/// Whether a child is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is asked for everything, and counts if it is a member.
    Up,
    /// It is given everything new, and what it lacks. It is asked for nothing, and counts for nothing.
    CatchingUp,
    /// It is asked for nothing, but as one of the register's acceptors.
    Down,
}

/// What a child that catches up is given since its cut, which nobody may copy to it or remove from it; and what has
/// been removed everywhere since, which may still be copied to it from whoever is slow to remove it.
#[derive(Default)]
pub(super) struct SinceCut {
    pub(super) sides: BTreeSet<(LaneId, u64)>,
    pub(super) objects: BTreeSet<ObjectId>,
    pub(super) removed: BTreeSet<Removable>,
}

/// What a home can be asked to remove. No name is used for another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Removable {
    Segment(LaneId, u64),
    Side(LaneId, u64),
    Object(ObjectId),
}

struct ChildState {
    /// `None`: a slot that no home has.
    source: Option<Source>,
    /// Counts how often one was opened in this slot.
    generation: u64,
    attached: Option<Attachment>,
    standing: Standing,
    /// Why it went down, or could not come back, and when it went down.
    why_down: Option<(String, Instant)>,
    /// Bytes that have been copied to it, and that are to be.
    copied: (u64, u64),
    /// What it has of earlier lives is durable there: it was up when a start, or who brought it back, had completed it.
    completed: bool,
    /// What was asked of attachments that are closed.
    used_before: Vec<HomeUsage>,
}

/// See the module's documentation.
pub(super) struct Child {
    env: Env,
    /// Counts the homes that came and went: an odd number, and there is one.
    tenant: AtomicU64,
    /// Without threads whoever asks waits, as tests in virtual time want it.
    queues: RwLock<Option<Arc<Queues>>>,
    threads: bool,
    state: RwLock<ChildState>,
    pub(super) since_cut: Mutex<SinceCut>,
}

impl Child {
    /// A slot for the home of a source, or one that is vacant.
    pub(super) fn new(
        source: Option<Source>,
        env: &Env,
        threads: bool,
    ) -> Result<Child, HomeError> {
        let queues = match threads && source.is_some() {
            true => Some(Arc::new(Queues::start(env)?)),
            false => None,
        };
        Ok(Child {
            env: env.clone(),
            tenant: AtomicU64::new(u64::from(source.is_some())),
            queues: RwLock::new(queues),
            threads,
            state: RwLock::new(ChildState {
                standing: match source {
                    Some(_) => Standing::Up,
                    None => Standing::Down,
                },
                source,
                generation: 0,
                attached: None,
                why_down: None,
                copied: (0, 0),
                completed: false,
                used_before: Vec::new(),
            }),
            since_cut: Mutex::default(),
        })
    }

    /// Its URL as it was given, for people.
    pub(super) fn url(&self) -> String {
        let state = self.state.read();
        let source = state.source.as_ref();
        source.map_or_else(String::new, |source| source.url.clone())
    }

    pub(super) fn source(&self) -> Option<Source> {
        self.state.read().source.clone()
    }

    /// Is there no home in this slot?
    pub(super) fn is_vacant(&self) -> bool {
        self.tenant().is_none()
    }

    /// Tells the home in this slot from those that were there before.
    pub(super) fn tenant(&self) -> Option<u64> {
        Some(self.tenant.load(Ordering::Acquire)).filter(|tenant| tenant % 2 == 1)
    }

    /// A home comes into a vacant slot. It is down.
    pub(super) fn occupy(&self, source: Source) {
        let mut state = self.state.write();
        state.source = Some(source);
        state.standing = Standing::Down;
        self.tenant.fetch_add(1, Ordering::Release);
    }

    /// The home goes: nobody asks it anything any more. Its threads end when another one comes.
    pub(super) fn vacate(&self) {
        let mut state = self.state.write();
        if state.source.take().is_none() {
            return;
        }
        state.standing = Standing::Down;
        let attached = state.attached.take();
        if let Some(attached) = &attached {
            state.used_before = added(attached.status.usage(), &state.used_before);
        }
        state.why_down = None;
        state.completed = false;
        self.tenant.fetch_add(1, Ordering::Release);
        drop(state);
        // A home that is closed tells whoever waits for it, who comes back here.
        drop(attached);
    }

    /// Does something on a thread of the child.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.run_in(RequestClass::Short, job);
    }

    /// The same, for requests that move much.
    pub(super) fn run_in(&self, line: RequestClass, job: impl FnOnce() + Send + 'static) {
        let queues = self.queues.read().clone();
        match queues {
            None => job(),
            Some(queues) => {
                let queue = queues.of(line);
                queue.jobs.lock().0.push_back(Box::new(job));
                queue.more.notify_one();
            }
        }
    }

    /// The home that was opened last, whether it is up or not.
    pub(super) fn home(&self) -> Option<Attachment> {
        self.state.read().attached.clone()
    }

    /// The home, if it is up.
    pub(super) fn up(&self) -> Option<Attachment> {
        let state = self.state.read();
        let is_up = state.standing == Standing::Up;
        state.attached.clone().filter(|_| is_up)
    }

    /// The home, if it is given what is new. The second answer: it is up.
    pub(super) fn receiver(&self) -> Option<(Attachment, bool)> {
        let state = self.state.read();
        let attached = state.attached.clone();
        match state.standing {
            Standing::Up => Some((attached?, true)),
            Standing::CatchingUp => Some((attached?, false)),
            Standing::Down => None,
        }
    }

    pub(super) fn standing(&self) -> Standing {
        self.state.read().standing
    }

    /// It was opened at the start.
    pub(super) fn opened(&self, home: LogHome) {
        let mut state = self.state.write();
        state.generation = 1;
        state.attached = Some(Attachment {
            generation: 1,
            home: Arc::new(home),
        });
    }

    /// It was opened anew, and stays down for now. Back come the new attachment and the one before.
    pub(super) fn attach(
        &self,
        home: LogHome,
    ) -> Result<(Attachment, Option<Attachment>), HomeError> {
        if self.threads {
            *self.queues.write() = Some(Arc::new(Queues::start(&self.env)?));
        }
        let mut state = self.state.write();
        let before = state.attached.take();
        state.generation += 1;
        let attached = Attachment {
            generation: state.generation,
            home: Arc::new(home),
        };
        state.attached = Some(attached.clone());
        state.standing = Standing::Down;
        Ok((attached, before))
    }

    /// An attachment is not used any more: what was asked of it counts with what is asked of the present one.
    pub(super) fn retire(&self, before: &Attachment) {
        let used = before.status.usage();
        let mut state = self.state.write();
        let present = state.attached.as_ref();
        // What is opened anew may be the same home, which counts all by itself.
        if present.is_some_and(|present| !Arc::ptr_eq(&present.status, &before.status)) {
            let all = added(used, &state.used_before);
            state.used_before = all;
        }
    }

    /// What was asked of it since the start.
    pub(super) fn usage(&self) -> Vec<HomeUsage> {
        let state = self.state.read();
        let present = state.attached.as_ref();
        let used = present.map_or_else(Vec::new, |present| present.status.usage());
        added(used, &state.used_before)
    }

    /// Whoever only reads has opened it: it is asked for what it has.
    pub(super) fn is_read(&self, generation: u64) {
        let mut state = self.state.write();
        if is_attached(&state, generation) {
            state.standing = Standing::Up;
        }
    }

    /// From now on it is given what is new.
    pub(super) fn begin_to_catch_up(&self, generation: u64) {
        *self.since_cut.lock() = SinceCut::default();
        let mut state = self.state.write();
        if state.standing == Standing::Down && is_attached(&state, generation) {
            state.standing = Standing::CatchingUp;
            state.copied = (0, 0);
        }
    }

    /// It has all that the others have: true if it is up now, false if it has gone down meanwhile.
    pub(super) fn caught_up(&self, generation: u64) -> bool {
        let mut state = self.state.write();
        let catches_up = state.standing == Standing::CatchingUp && is_attached(&state, generation);
        if catches_up {
            state.standing = Standing::Up;
            state.why_down = None;
            state.completed = true;
            *self.since_cut.lock() = SinceCut::default();
        }
        catches_up
    }

    /// A start has completed it, if it is up.
    pub(super) fn completed(&self) {
        let mut state = self.state.write();
        state.completed |= state.standing == Standing::Up;
    }

    pub(super) fn was_completed(&self) -> bool {
        self.state.read().completed
    }

    pub(super) fn catches_up(&self, generation: u64) -> bool {
        let state = self.state.read();
        state.standing == Standing::CatchingUp && is_attached(&state, generation)
    }

    /// So many bytes more have been copied, and are to be.
    pub(super) fn note_copied(&self, copied: u64, to_copy: u64) {
        let state = &mut self.state.write();
        state.copied.0 += copied;
        state.copied.1 += to_copy;
    }

    /// It was not opened at the start.
    pub(super) fn not_opened(&self, why: String) {
        let mut state = self.state.write();
        state.standing = Standing::Down;
        state.why_down = Some((why, self.env.clock.monotonic()));
    }

    /// Takes this attachment down. Back comes what it was, if it was not down already.
    pub(super) fn take_down(&self, generation: u64, why: String) -> Option<Standing> {
        let mut state = self.state.write();
        if state.standing == Standing::Down || !is_attached(&state, generation) {
            return None;
        }
        let was = std::mem::replace(&mut state.standing, Standing::Down);
        let since = match (&state.why_down, was) {
            (Some((_, since)), Standing::CatchingUp) => *since,
            _ => self.env.clock.monotonic(),
        };
        let told = state.why_down.replace((why.clone(), since));
        drop(state);
        if told.is_none_or(|(before, _)| before != why) {
            tracing::warn!("log: {} is left out until it comes back: {why}", self.url());
        }
        Some(was)
    }

    /// It is down, and could not come back.
    pub(super) fn stays_down(&self, why: String) {
        let mut state = self.state.write();
        if state.standing != Standing::Down {
            return;
        }
        let since = state.why_down.as_ref().map(|(_, since)| *since);
        let since = since.unwrap_or_else(|| self.env.clock.monotonic());
        let told = state.why_down.replace((why.clone(), since));
        drop(state);
        // Once, however often it is tried.
        if told.is_none_or(|(before, _)| before != why) {
            tracing::warn!("log: {} does not come back: {why}", self.url());
        }
    }

    /// Says so if it was not opened at the start.
    pub(super) fn tell_if_left_out(&self) {
        let state = self.state.read();
        if let (Standing::Down, Some((why, _)), Some(source)) =
            (state.standing, &state.why_down, &state.source)
        {
            let url = &source.url;
            tracing::warn!("log: {url} is left out until it comes back: {why}");
        }
    }

    /// For people: how it is, if it is not simply up.
    pub(super) fn trouble(&self) -> Option<String> {
        let state = self.state.read();
        let (why, since) = state.why_down.as_ref()?;
        let (copied, to_copy) = state.copied;
        match state.standing {
            Standing::Up => None,
            Standing::CatchingUp => Some(format!(
                "catching up: {copied} of {to_copy} bytes copied so far; it was left out: {why}"
            )),
            Standing::Down => {
                let seconds = self.env.clock.monotonic().since(*since).as_secs();
                Some(format!("left out: {why} ({seconds} s ago)"))
            }
        }
    }
}

/// What was asked of homes, with what was asked of the same ones before.
fn added(used: Vec<HomeUsage>, before: &[HomeUsage]) -> Vec<HomeUsage> {
    let with = |of: HomeUsage| {
        let before = before.iter().find(|before| before.home == of.home);
        let usage = before.map_or(of.usage, |before| of.usage.after(&before.usage));
        HomeUsage { usage, ..of }
    };
    used.into_iter().map(with).collect()
}

fn is_attached(state: &ChildState, generation: u64) -> bool {
    let attached = state.attached.as_ref();
    attached.is_some_and(|attached| attached.generation == generation)
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
    let (tell, told) = channel();
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
