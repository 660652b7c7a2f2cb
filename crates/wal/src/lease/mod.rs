//! The lease: which server may write a home that no kernel's lock keeps, and until when it may answer.
//!
//! Owns: the manifest of such a home while the server runs. Everything that changes the manifest goes through
//! [`Lease::update`], because every state names the lease's owner and comes from the one before by compare and swap.
//!
//! 1. A start claims the lease before it reads anything else (`claim` has the rules of taking it), fences the lanes,
//!    reads, and writes the recovery mark (T3; see [`recovery`](crate::recovery)).
//! 2. A thread renews it, every third of its duration. A request of it that goes without an answer for a sixth counts
//!    as lost and is made again: one that is lost, or two, must not let a server take over that waits for the lease to
//!    run out.
//! 3. An answer leaves while it is valid ([`Lease::valid`], T15): one load and one look at the clock. While it is not,
//!    answers wait. Renewed, they leave; taken over, they never do.
//! 4. An orderly stop gives it back ([`Lease::release`]): the next start need not wait.
//!
//! Invariants:
//! - **Writing is kept apart by fences and by compare and swap, never by a clock.** The clock only keeps answers from
//!   being out of date.
//! - The lease counts from *before* the renewal was sent, less a margin for unequal clocks, on a clock that does not
//!   stand still while the machine is suspended.
//! - It is enough that the lease is valid once between reading and answering, however long the answer then takes to
//!   leave: nobody else had committed anything by then that the answer could have missed.
//! - An attempt whose outcome is not known is never counted; it is settled by reading. Every attempt is a state of its
//!   own (`renewals`), so what is read tells which one it was, and a state never comes back (no ABA).
//! - Attempts of a copy of this process (its machine was copied while it ran) are told from its own: each number is a
//!   random step, in which the clocks are mixed, above the one before. Who finds a number that it never used has lost
//!   the lease. So of two copies at most one is renewed twice.
//! - Once taken over, for good: nothing makes a lost lease valid again.
//! - That it has run out is told when it happens, by whoever looks ([`Lease::look`]): the renewal may be waiting for
//!   the home just then.
//!
//! Does not: fence lanes, or end the process.

pub mod claim;

use crate::error::RecoveryError;
use crate::manifest::{self, LeaseHolder, Manifest};
use claim::{ClaimEvent, ClaimStep, Claimant, LeaseClaim, LeaseGrant, margin, millis};
use logstead_env::{Clock, Condvar, Env, Instant, LongMutex, Processes, Random, RealProcesses};
use logstead_home::{HomeError, LogHome, Tag};
use logstead_types::DatabaseId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The lease is renewed so many times within its duration.
const RENEWALS: u32 = 3;
/// After a renewal that failed, the next attempt comes after this part of the duration.
const AGAIN_PART: u32 = 20;
/// The first request for the manifest is waited for during this part of the duration, the next ones longer. So a
/// renewal that is lost once is repeated at half of the duration, one that is lost twice before it is over.
const ANSWER_PART: u32 = 6;
/// Attempts of unknown outcome that are remembered. One that is forgotten and arrives after all is taken for a copy's,
/// and this server ends.
const ATTEMPTS_MAX: usize = 1024;
/// Seconds from 1970 to 2000.
const SECONDS_1970_TO_2000: i64 = 946_684_800;

/// What happens to a lease, for people.
#[derive(Clone, Debug)]
pub enum LeaseEvent {
    /// Somebody else's lease may run out: waiting for that.
    Watching {
        /// Who has it.
        holder: LeaseHolder,
        /// On this machine that process has ended; if it is a copy of a machine, that proves nothing.
        ended_here: bool,
    },
    /// It was taken from somebody whose server may be alive.
    TakenFrom(LeaseHolder),
    /// Nobody is answered until an earlier lease has surely run out, for so long.
    WaitsFor(Duration),
    /// It ran out before it could be renewed: answers wait.
    Lapsed(String),
    /// It was renewed after that.
    Recovered,
    /// It could not be given back.
    NotReleased(String),
}

/// How leases are taken and kept.
#[derive(Clone)]
pub struct LeaseOptions {
    /// How long a lease lasts unless it is renewed.
    pub duration: Duration,
    /// Take it, whoever holds it.
    pub take_over: bool,
    /// The owner ([`Lease::owner`]) of a lease that was handed over to this process by one that has ended since: it is
    /// free for this process, and for nobody else before it runs out.
    pub predecessor: Option<u64>,
    /// Nobody ever runs a copy of this machine's memory: the lease of a process of it that has ended is free at once.
    /// See [`claim`].
    pub machine_is_never_copied: bool,
    /// A thread renews it, and another one watches. Without: [`Lease::tick`] does both, when it is called.
    pub threads: bool,
    /// Who knows which processes there are.
    pub processes: Arc<dyn Processes>,
    /// How to let time go by.
    pub pause: Arc<dyn Fn(Duration) + Send + Sync>,
    /// Who is told what happens. Called without any lock held.
    pub events: Arc<dyn Fn(&LeaseEvent) + Send + Sync>,
}

impl Default for LeaseOptions {
    fn default() -> LeaseOptions {
        LeaseOptions {
            duration: Duration::from_secs(10),
            take_over: false,
            predecessor: None,
            machine_is_never_copied: false,
            threads: true,
            processes: Arc::new(RealProcesses),
            pause: Arc::new(logstead_env::sleep),
            events: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for LeaseOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseOptions")
            .field("duration", &self.duration)
            .field("take_over", &self.take_over)
            .field("predecessor", &self.predecessor)
            .field("machine_is_never_copied", &self.machine_is_never_copied)
            .finish_non_exhaustive()
    }
}

/// Another server has the home now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LeaseLost(Arc<str>);

/// Called once, with the reason, when the lease is lost.
type LossListener = Box<dyn FnOnce(&LeaseLost) + Send>;

/// The manifest as it is at the home.
struct LeaseState {
    manifest: Manifest,
    tag: Tag,
    /// Number of the last attempt to write.
    renewals: u64,
    /// Those made since `tag` was found, which may yet arrive; in order, the last so many.
    attempts: VecDeque<u64>,
    /// Until then somebody may hold an earlier lease.
    run_out: Option<Instant>,
    /// When the last attempt that succeeded was sent.
    renewed: Instant,
    released: bool,
}

/// What is known of a lease's troubles.
#[derive(Default)]
struct Watched {
    /// People know that it has run out.
    lapsed: bool,
    /// Why it could not be renewed last time.
    why: Option<String>,
}

/// A lease that is held, or was; see the module's documentation.
pub struct Lease {
    home: LogHome,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: LeaseOptions,
    owner: u64,
    /// Nanoseconds of the clock; 0 once it is lost or given back.
    valid_until: AtomicU64,
    /// Held while the home is asked: changes of the manifest come one after the other.
    state: LongMutex<LeaseState>,
    /// When the request was sent that the home has not answered yet, in nanoseconds of the clock; 0: there is none.
    asked_at: AtomicU64,
    /// What people have been told of it. Never held while the home is asked.
    watched: Mutex<Watched>,
    lost: Mutex<Option<LeaseLost>>,
    listener: Mutex<Option<LossListener>>,
    waiters: Mutex<Vec<Waker>>,
    /// True: the threads are to end.
    stop: Arc<(Mutex<bool>, Condvar)>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("owner", &self.owner)
            .field("valid_until", &self.valid_until)
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// Takes the lease of `home`, or says who has it. On success the manifest is ours: nobody else can change it
    /// without taking the lease. No lane has been fenced yet.
    pub fn claim(
        home: &LogHome,
        env: &Env,
        options: &LeaseOptions,
    ) -> Result<Arc<Lease>, RecoveryError> {
        let owner = env.random.u64().max(1);
        let since = env.clock.now_micros_since_2000().div_euclid(1_000_000) + SECONDS_1970_TO_2000;
        let claimant = Claimant {
            owner,
            process: options.processes.identity(),
            duration: options.duration,
            since: u64::try_from(since).unwrap_or(0),
            take_over: options.take_over,
            predecessor: options.predecessor,
            machine_is_never_copied: options.machine_is_never_copied,
            database: DatabaseId(env.random.u64()),
        };
        let (held, asked) = acquire(home, env.clock.as_ref(), options, claimant)?;
        let lease = Arc::new(Lease {
            home: home.clone(),
            clock: Arc::clone(&env.clock),
            random: Arc::clone(&env.random),
            options: options.clone(),
            owner,
            valid_until: AtomicU64::new(0),
            state: LongMutex::new(LeaseState {
                renewals: held
                    .manifest
                    .holder
                    .as_ref()
                    .map_or(0, |holder| holder.renewals),
                attempts: VecDeque::new(),
                manifest: held.manifest,
                tag: held.tag,
                run_out: held.run_out,
                renewed: asked,
                released: false,
            }),
            asked_at: AtomicU64::new(0),
            watched: Mutex::default(),
            lost: Mutex::default(),
            listener: Mutex::default(),
            waiters: Mutex::default(),
            stop: Arc::default(),
        });
        lease.extend(asked);
        if let Some(before) = held.before
            && held.run_out.is_some()
        {
            (options.events)(&LeaseEvent::TakenFrom(before));
        }
        if options.threads {
            let started = lease
                .spawn(env, "lease", lease.renewed_every(), Lease::tick)
                .and_then(|()| lease.spawn(env, "lease-watch", Duration::ZERO, Lease::look));
            if let Err(error) = started {
                lease.release();
                return Err(HomeError::io("start the threads of the lease", error).into());
            }
        }
        Ok(lease)
    }

    /// The manifest as it is.
    pub fn manifest(&self) -> Manifest {
        self.state.lock().manifest.clone()
    }

    /// The number of its owner, for the process that it is handed over to.
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// How this server calls itself at the home.
    pub fn name(&self) -> String {
        let process = self.options.processes.identity();
        format!("{} process {}", process.host, process.process)
    }

    /// May an answer leave now? One load and one look at the clock.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.clock.boot_time().as_nanos() < self.valid_until.load(Ordering::Acquire)
    }

    /// Ready when an answer may leave, or when none ever may.
    #[inline]
    pub fn valid(&self) -> LeaseValidWait<'_> {
        LeaseValidWait(self)
    }

    /// Who has it now, if it is lost.
    pub fn lost(&self) -> Option<LeaseLost> {
        self.lost.lock().clone()
    }

    /// Sets who is told that the lease is lost: at once, if it is.
    pub fn set_loss_listener(&self, listener: impl FnOnce(&LeaseLost) + Send + 'static) {
        *self.listener.lock() = Some(Box::new(listener));
        self.notify_loss();
    }

    /// Changes the manifest, durably, and renews the lease with it. [`HomeError::Fenced`]: it is lost, whether or not
    /// the change was made before. After another error the change may have been made or not, or may be made yet.
    ///
    /// Where an earlier attempt of ours turns out to have arrived late, `change` is applied again, to what that has
    /// left.
    pub fn update(&self, mut change: impl FnMut(&mut Manifest)) -> Result<(), HomeError> {
        let mut state = self.state.lock();
        if state.released {
            // It would be taken again, by a server that is about to end.
            return Err(HomeError::Fenced("the lease was given back".to_owned()));
        }
        let mut attempts = 0;
        let result = loop {
            let expected = state.tag;
            let mut next = state.manifest.clone();
            change(&mut next);
            let result = self.store(&mut state, next, self.options.duration);
            // Whoever finds another state of ours there knows that this attempt failed, and always will.
            let found_another = result.is_err() && state.tag != expected;
            if !found_another || self.lost().is_some() || attempts == manifest::LOOKS {
                break result;
            }
            attempts += 1;
        };
        drop(state);
        self.notify_loss();
        result
    }

    /// Renews the lease if that is due. What goes wrong is told, and tried again at the next call that finds it due.
    /// Gives how long to wait until then.
    pub fn tick(&self) -> Duration {
        let pause = self.renew();
        self.notify_loss();
        if !self.options.threads {
            self.look();
        }
        pause
    }

    fn renew(&self) -> Duration {
        let mut state = self.state.lock();
        let since = self.clock.boot_time().since(state.renewed);
        if state.released || self.lost().is_some() {
            return self.renewed_every();
        }
        if since < self.renewed_every() {
            return self.renewed_every() - since;
        }
        let next = state.manifest.clone();
        match self.store(&mut state, next, self.options.duration) {
            Ok(()) => {
                // It counts from when it was sent: one that took its time is soon due again.
                let since = self.clock.boot_time().since(state.renewed);
                self.renewed_every().saturating_sub(since)
            }
            Err(_) => self.options.duration / AGAIN_PART,
        }
    }

    /// Tells people that the lease has run out, and that it is renewed after that; never waits for the home. Gives how
    /// long to wait until the next look.
    pub fn look(&self) -> Duration {
        let until = self.valid_until.load(Ordering::Acquire);
        if until == 0 {
            // Lost or given back: that is told by others.
            return self.renewed_every();
        }
        let now = self.clock.boot_time().as_nanos();
        let lapsed = now >= until;
        let event = {
            let mut watched = self.watched.lock();
            match (std::mem::replace(&mut watched.lapsed, lapsed), lapsed) {
                (false, true) => Some(LeaseEvent::Lapsed(self.why_not(&watched, now))),
                (true, false) => Some(LeaseEvent::Recovered),
                _ => None,
            }
        };
        if let Some(event) = event {
            (self.options.events)(&event);
        }
        match lapsed {
            true => self.options.duration / AGAIN_PART,
            false => Duration::from_nanos(until - now),
        }
    }

    /// Why it has not been renewed.
    fn why_not(&self, watched: &Watched, now: u64) -> String {
        let asked_at = self.asked_at.load(Ordering::Acquire);
        let waiting = (asked_at != 0).then(|| {
            let seconds = Duration::from_nanos(now.saturating_sub(asked_at)).as_secs_f64();
            let home = self.home.describe();
            format!("{home} has not answered for {seconds:.1} s")
        });
        let why = waiting.or_else(|| watched.why.clone());
        why.unwrap_or_else(|| "it was not renewed in time".to_owned())
    }

    /// Returns when no earlier lease can be valid any more: from then on nobody else answers clients, and this server
    /// may.
    pub fn wait_out(&self) -> Result<(), HomeError> {
        let left = |run_out: Instant| {
            let left = run_out.since(self.clock.boot_time());
            (!left.is_zero()).then_some(left)
        };
        let Some(run_out) = self.state.lock().run_out else {
            return Ok(());
        };
        if let Some(left) = left(run_out) {
            (self.options.events)(&LeaseEvent::WaitsFor(left));
        }
        while let Some(left) = left(run_out) {
            if let Some(lost) = self.lost() {
                return Err(self.fenced(&lost));
            }
            (self.options.pause)(left.min(self.renewed_every()));
            if !self.options.threads {
                self.tick();
            }
        }
        Ok(())
    }

    /// Gives the lease back: nobody is answered any more, and the next server need not wait. After the last flush.
    /// May be repeated.
    pub fn release(&self) {
        self.end_threads();
        let result = {
            let mut state = self.state.lock();
            self.valid_until.store(0, Ordering::SeqCst);
            if state.released || self.lost().is_some() {
                return;
            }
            state.released = true;
            let next = state.manifest.clone();
            self.store(&mut state, next, Duration::ZERO)
        };
        self.notify_loss();
        if let Err(error) = result {
            (self.options.events)(&LeaseEvent::NotReleased(error.to_string()));
        }
    }

    /// Time between two renewals: each is one write to the home, whatever else goes on.
    pub fn renewed_every(&self) -> Duration {
        self.options.duration / RENEWALS
    }

    /// The lease was renewed by what was sent at `asked`.
    fn extend(&self, asked: Instant) {
        let duration = self.options.duration;
        let until = asked + (duration - margin(duration));
        self.valid_until.store(until.as_nanos(), Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // Whoever registers after this sees what was stored before it.
        let waiters = std::mem::take(&mut *self.waiters.lock());
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Writes `next` over the present state, as a lease for `duration` from now on.
    fn store(
        &self,
        state: &mut LeaseState,
        mut next: Manifest,
        duration: Duration,
    ) -> Result<(), HomeError> {
        if let Some(lost) = self.lost() {
            return Err(self.fenced(&lost));
        }
        let asked = self.clock.boot_time();
        state.run_out = state.run_out.filter(|&run_out| asked < run_out);
        state.renewals = self.attempt_after(state.renewals);
        if state.attempts.len() == ATTEMPTS_MAX {
            state.attempts.pop_front();
        }
        state.attempts.push_back(state.renewals);
        let Some(holder) = next.holder.as_mut() else {
            return Err(self.lose("the manifest has lost its lease"));
        };
        holder.renewals = state.renewals;
        holder.duration_ms = millis(duration);
        if state.run_out.is_none() {
            holder.owed_ms = 0;
        }
        self.asked_at
            .store(asked.as_nanos().max(1), Ordering::Release);
        let result = self.ask(state, next, asked, duration);
        self.watched.lock().why = result.as_ref().err().map(HomeError::to_string);
        self.asked_at.store(0, Ordering::Release);
        result
    }

    /// A number above `last`, and another one in a copy of this process. Its random numbers may be the same for a
    /// while; it looks at its clocks a few nanoseconds earlier or later.
    fn attempt_after(&self, last: u64) -> u64 {
        let clocks = self.clock.boot_time().as_nanos().rotate_left(32)
            ^ self.clock.now_micros_since_2000().cast_unsigned();
        let mixed = (self.random.u64() ^ clocks).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        last.saturating_add(1 + (mixed >> 32))
    }

    /// Asks the home to put `next` in place of the present state, and finds out what came of it.
    fn ask(
        &self,
        state: &mut LeaseState,
        next: Manifest,
        asked: Instant,
        duration: Duration,
    ) -> Result<(), HomeError> {
        let bytes = next.encode();
        let error = match self
            .home
            .names
            .compare_and_swap(manifest::NAME, state.tag, &bytes)
        {
            Ok(tag) => {
                self.stored(state, next, tag, asked, duration);
                return Ok(());
            }
            Err(error) => error,
        };
        // What came of it, or of an attempt before, is told by what is there.
        let mut looks = 0;
        let (found, tag) = loop {
            let Some((there, tag)) = self.home.names.get(manifest::NAME)? else {
                return Err(self.lose("the manifest is gone"));
            };
            if there == bytes {
                self.stored(state, next, tag, asked, duration);
                return Ok(());
            }
            if tag == state.tag {
                return Err(error);
            }
            match Manifest::decode(&there) {
                Ok(found) => break (found, tag),
                // It may have been cut short on its way.
                Err(_) if looks < manifest::LOOKS => looks += 1,
                Err(why) => return Err(self.lose(&format!("the manifest was damaged: {why}"))),
            }
        };
        match &found.holder {
            Some(holder) if holder.owner == self.owner && !holder.is_released() => {
                if !state.attempts.contains(&holder.renewals) {
                    return Err(self.lose(
                        "a copy of this server writes there too: its machine was copied while it ran",
                    ));
                }
                // An earlier attempt, which got there late: when it was sent does not matter, nothing is counted for
                // it.
                (state.manifest, state.tag) = (found, tag);
                state.attempts.clear();
                Err(error)
            }
            Some(holder) => Err(self.lose(&format!(
                "the server on host {} (process {}) took over",
                holder.process.host, holder.process.process
            ))),
            None => Err(self.lose("somebody removed the lease from the manifest")),
        }
    }

    fn stored(
        &self,
        state: &mut LeaseState,
        manifest: Manifest,
        tag: Tag,
        asked: Instant,
        duration: Duration,
    ) {
        (state.manifest, state.tag, state.renewed) = (manifest, tag, asked);
        state.attempts.clear();
        if !duration.is_zero() {
            self.extend(asked);
        }
    }

    /// The lease is lost for good. The caller tells it once it has let go of the state.
    fn lose(&self, why: &str) -> HomeError {
        self.valid_until.store(0, Ordering::SeqCst);
        let lost = LeaseLost(format!("{}: {why}", self.home.describe()).into());
        *self.lost.lock() = Some(lost.clone());
        self.wake();
        self.fenced(&lost)
    }

    /// Without any lock held: what is told may ask back.
    fn notify_loss(&self) {
        let Some(lost) = self.lost() else {
            return;
        };
        let listener = self.listener.lock().take();
        if let Some(listener) = listener {
            listener(&lost);
        }
    }

    fn fenced(&self, lost: &LeaseLost) -> HomeError {
        HomeError::Fenced(lost.0.to_string())
    }

    /// A thread that calls `act`, first after `pause`, then when that says, until the lease ends.
    fn spawn(
        self: &Arc<Self>,
        env: &Env,
        name: &str,
        pause: Duration,
        act: fn(&Lease) -> Duration,
    ) -> std::io::Result<()> {
        let (weak, stop) = (Arc::downgrade(self), Arc::clone(&self.stop));
        env.spawn(name, None, move || repeat(&weak, &stop, pause, act))
            .map(drop)
    }

    fn end_threads(&self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end_threads();
    }
}

/// A thread's life.
fn repeat(
    lease: &Weak<Lease>,
    stop: &(Mutex<bool>, Condvar),
    mut pause: Duration,
    act: fn(&Lease) -> Duration,
) {
    // Without it the server would fall silent for no reason that anybody could see.
    let _watch = logstead_env::abort_on_panic("renewing the lease");
    loop {
        let mut stopped = stop.0.lock();
        if !*stopped {
            stop.1.wait_for(&mut stopped, pause);
        }
        if *stopped {
            return;
        }
        drop(stopped);
        let Some(lease) = lease.upgrade() else {
            return;
        };
        pause = act(&lease);
    }
}

/// Goes through a claim; gives what was taken and when that was sent.
fn acquire(
    home: &LogHome,
    clock: &dyn Clock,
    options: &LeaseOptions,
    claimant: Claimant,
) -> Result<(LeaseGrant, Instant), RecoveryError> {
    home.names
        .limit_name_requests(options.duration / ANSWER_PART);
    let is_gone = |process: &_| options.processes.is_gone(process);
    let mut claim = LeaseClaim::new(claimant);
    let mut asked = clock.boot_time();
    let mut event = ClaimEvent::Look;
    let mut watching = false;
    loop {
        let step = claim.next(event, clock.boot_time(), &is_gone);
        let stored = match step {
            ClaimStep::Read => {
                event = match crate::stored_manifest::read_manifest(home)? {
                    Some((manifest, tag)) => ClaimEvent::Manifest(Box::new(manifest), tag),
                    None => ClaimEvent::NoManifest,
                };
                continue;
            }
            ClaimStep::Pause(time, holder) => {
                if !std::mem::replace(&mut watching, true) {
                    let ended_here = is_gone(&holder.process);
                    let holder = *holder;
                    (options.events)(&LeaseEvent::Watching { holder, ended_here });
                }
                (options.pause)(time);
                event = ClaimEvent::Look;
                continue;
            }
            ClaimStep::LeaseGrant(held) => return Ok((*held, asked)),
            ClaimStep::Refused(holder) => {
                return Err(RecoveryError::InUse {
                    home: home.describe(),
                    holder: Box::new(holder),
                });
            }
            ClaimStep::Create(manifest) => {
                // Whoever made lanes meanwhile made a manifest before.
                if !home.segments.list_lanes()?.is_empty()
                    && home.names.get(manifest::NAME)?.is_none()
                {
                    return Err(RecoveryError::NoManifest(home.describe()));
                }
                asked = clock.boot_time();
                home.names.put_if_absent(manifest::NAME, &manifest.encode())
            }
            ClaimStep::Swap(tag, manifest) => {
                asked = clock.boot_time();
                home.names
                    .compare_and_swap(manifest::NAME, tag, &manifest.encode())
            }
        };
        event = match stored {
            Ok(tag) => ClaimEvent::Stored(tag),
            Err(HomeError::Conflict(_)) => ClaimEvent::Conflict,
            Err(error) => return Err(error.into()),
        };
    }
}

/// See [`Lease::valid`].
#[must_use = "a future does nothing unless it is waited for"]
#[derive(Debug)]
pub struct LeaseValidWait<'l>(&'l Lease);

impl Future for LeaseValidWait<'_> {
    type Output = Result<(), LeaseLost>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let lease = self.0;
        if lease.is_valid() {
            return Poll::Ready(Ok(()));
        }
        lease.waiters.lock().push(cx.waker().clone());
        // Registered before the look at what wakes.
        match lease.lost() {
            Some(lost) => Poll::Ready(Err(lost)),
            None if lease.is_valid() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }
}
