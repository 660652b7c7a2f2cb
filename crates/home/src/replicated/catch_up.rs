//! Children that come back while the home is in use.
//!
//! A child that is down is tried again: after a second, and then after twice the time each time, up to half a minute.
//! What is done, in this order ([`Phase`]):
//!
//! 1. It is *opened* anew, and its record says that it is the member that it was.
//! 2. What was opened before is *closed*: no request of it begins any more.
//! 3. What it has is listed. Then it is marked as incomplete in the register, by who still has the lease.
//! 4. It is *fenced* as this life's start has fenced the others.
//! 5. The *cut*. From here on it is given everything new: each lane from an append on that begins a segment, side
//!    segments and objects that begin later, removals. It is asked for nothing and counts for nothing; if it fails, it
//!    is down again, and nobody else notices.
//! 6. What had begun before the cut ends: a child that is up and complete has stored the appends, side segments,
//!    objects and removals are over.
//! 7. It is *copied* what it lacks from children that are up and complete, on a thread of its own; or fetches that from
//!    them by itself, if it can ([`orders`]). What these do not list any more is removed.
//! 8. It is marked as complete in the register. Then it is up, and counts.
//!
//! **Why nothing is lost.**
//! - *A mark says the truth.* The mark of 3 is chosen before anything behind a gap reaches the child (5), and that of 8
//!   after the gap is closed. Whoever starts meanwhile finds it incomplete, and compares it block by block. Other
//!   changes of the register mark who is not up, and it is locked while it says who is
//!   ([`Inner::set`](super::Inner)): no mark is decided before 8 and written after it.
//! - *It counts for an append only if it has all earlier ones (T2).* Those from the cut on it was given in order. Those
//!   before the cut are in segments before that of the cut: all children end their segments there, so an append is
//!   either before the cut and in an earlier segment, or neither. When 6 is over, no append changes those segments any
//!   more at a child that has them all, and only such children are copied from. They need not be durable yet: with too
//!   few members up none becomes durable, and those are the ones that this child makes so when it counts.
//! - *Places are the same everywhere.* The segment of the cut follows the last one at all children. If the child has
//!   made it ahead in an earlier attachment, no append has gone there, anywhere: it is removed and made anew.
//! - *Who was fenced out stays so (T3).* A server that was overtaken by this one may still write to a child that was
//!   away: 4 ends that before anything is copied, and long before the child counts. A server that overtakes this one
//!   takes the lease first, and then fences: if that was before 8, then 8 fails, and the child never counts here; if it
//!   was after, then its fences meet a child that does nothing unusual any more.
//! - *Who fetches does what is copied otherwise.* It is told to fetch only what would be copied to it, from whom that
//!   would be read, and 8 waits for its answers. An order names this life's epoch: from the moment on when a child has
//!   a fence of a later server, it writes nothing into segments for this one.
//! - *What it has is durable (T7).* An append that it was given and never answered may be there to be read and gone
//!   after a crash. Of segments that may hold such appends, and of those of earlier lives if no start has completed it,
//!   bytes that are there already are written again.
//! - *Nothing is removed that somebody needs.* Only what the child had in 3, or was copied, and what no complete child
//!   lists after 6, and what was not given to the child since its cut. What it had in 3 is of servers up to this one,
//!   since this one still had the lease afterwards.
//! - *What comes late is harmless.* A request of an earlier attachment that is still on its way when that is closed is
//!   like one of a process that has died. An append puts the bytes at its place that are copied there; objects have one
//!   content; answers of other attachments than the present one are not heard.
//!
//! Bytes of lanes are copied as they are at the other child, and read again. Damage is copied too: blocks and checksums
//! are recovery's. Of an object a copy is taken that is not damaged, if there is one.
//!
//! A home that is to be a member comes up in the same way ([`membership_change`](super::membership_change)): it is
//! marked nowhere, because no register names it yet.
//!
//! Does not: notice that a child fails or is too far behind (`leave_out` and `do_without` in [`super`], `append` in
//! [`home`](super::home) for `lag_bytes_max`), say who is a member, or bring back lanes that have failed.

mod copying;
mod orders;
#[cfg(test)]
pub(super) mod tests;

use super::child::{Attachment, Source, Standing, no_answer};
use super::home::from_room;
use super::lane::AppendOutcome;
use super::open::{no_fixed_size, record_of};
use super::register::{RECORD, Register};
use super::state::StoredAcceptor;
use super::{Inner, OpenLane, OpenPurpose, ReplicatedHome};
use crate::{HomeError, LogHome};
use copying::Inventory;
use logstead_env::{Condvar, Instant};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

/// Between two tries at most.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Between two looks whether what is waited for has come.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A fence of this life.
#[derive(Clone)]
pub(super) struct Fence {
    pub(super) lane: LaneId,
    pub(super) first_segment: u64,
    pub(super) by: String,
    /// Children that have it.
    pub(super) done: BTreeSet<usize>,
}

/// What is under way that children are given: which of it has begun before a moment, and is not over.
#[derive(Default)]
pub(super) struct OperationsInFlight(Mutex<UnderWay>);

#[derive(Default)]
struct UnderWay {
    next: u64,
    numbers: BTreeSet<u64>,
}

/// Something that is under way until this is dropped. Made before it is decided which children are given it.
pub(super) struct OperationInFlight {
    of: Arc<OperationsInFlight>,
    number: u64,
}

impl OperationsInFlight {
    pub(super) fn begin(self: &Arc<OperationsInFlight>) -> OperationInFlight {
        let mut under_way = self.0.lock();
        let number = under_way.next;
        under_way.next += 1;
        under_way.numbers.insert(number);
        drop(under_way);
        OperationInFlight {
            of: Arc::clone(self),
            number,
        }
    }

    /// The number of what begins next.
    pub(super) fn next(&self) -> u64 {
        self.0.lock().next
    }

    pub(super) fn are_over_before(&self, number: u64) -> bool {
        let under_way = self.0.lock();
        under_way
            .numbers
            .first()
            .is_none_or(|&first| first >= number)
    }
}

impl Drop for OperationInFlight {
    fn drop(&mut self) {
        self.of.0.lock().numbers.remove(&self.number);
    }
}

/// How far a child is on its way back.
#[derive(Default)]
enum Phase {
    /// It is up, or nobody has seen yet that it is not.
    #[default]
    Up,
    /// It is tried again then.
    Pausing(Instant),
    /// It is being opened.
    Opening(mpsc::Receiver<Result<Opened, HomeError>>),
    /// What was opened before is still being asked for something.
    Closing {
        attached: Attachment,
        before: Option<Attachment>,
    },
    /// It is given what is new; operations from this one on.
    CatchingUp {
        attached: Attachment,
        had: Inventory,
        operations: u64,
    },
    /// It is given what it lacks.
    Copying {
        attached: Attachment,
        copied: mpsc::Receiver<Result<(), HomeError>>,
    },
    /// Another server has taken over: this one changes nothing any more.
    Never,
}

/// A child's home, and its record there; none where there is nothing of a log.
pub(super) struct Opened {
    pub(super) home: LogHome,
    pub(super) record: Option<StoredAcceptor>,
}

struct Return {
    /// The home in the slot.
    tenant: Option<u64>,
    phase: Phase,
    /// After the next failure.
    pause: Duration,
}

/// The children that come back, and who brings them.
#[derive(Default)]
pub(super) struct Returns {
    signal: Arc<Signal>,
    children: Mutex<Vec<Return>>,
    /// Homes whose slots were vacated, by their places, as long as somebody asks them something: whoever is copied to
    /// notices late that it is no member. The place may come back, in whatever slot.
    pub(super) lingering: Mutex<Vec<(String, Attachment)>>,
}

#[derive(Default)]
struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    woken: bool,
    closed: bool,
}

impl Signal {
    fn tell(&self, tell: impl FnOnce(&mut SignalState)) {
        tell(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// Waits until there is something to look at. False: the home is closed.
    fn wait(&self, time: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        if !state.woken && !state.closed {
            match time {
                Some(time) => drop(self.changed.wait_for(&mut state, time)),
                None => self.changed.wait(&mut state),
            }
        }
        state.woken = false;
        !state.closed
    }
}

impl Returns {
    /// A child has gone down, or may come back now.
    pub(super) fn wake(&self) {
        self.signal.tell(|state| state.woken = true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.signal.state.lock().closed
    }
}

impl Drop for ReplicatedHome {
    /// Nobody is brought back any more: whoever opens these homes next does that.
    fn drop(&mut self) {
        let signal = &self.inner.returns.signal;
        signal.tell(|state| state.closed = true);
    }
}

/// Starts the thread that brings children back. It ends with the home.
pub(super) fn start(inner: &Arc<Inner>) -> Result<(), HomeError> {
    let (signal, inner_ref) = (Arc::clone(&inner.returns.signal), Arc::downgrade(inner));
    let body = move || {
        let step = |inner: &Weak<Inner>| inner.upgrade().map(|inner| inner.step_returns());
        while let Some(next) = step(&inner_ref) {
            if !signal.wait(next) {
                return;
            }
        }
    };
    let spawned = inner.env.spawn("replica", None, body);
    spawned.map_err(|error| HomeError::io("starting a thread for replicas", error))?;
    Ok(())
}

impl ReplicatedHome {
    /// Does what is due for children that are to come back: what a thread of the home does, if it has threads. True if
    /// there are some that are not back.
    pub fn bring_children_back(&self) -> bool {
        self.inner.step_returns().is_some()
    }
}

/// What became of a step.
enum Step {
    /// The next one may follow.
    Go(Phase),
    /// It is waited for something.
    Wait(Phase),
}

impl Inner {
    pub(super) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::SeqCst)
    }

    /// Back comes after which time there may be more to do; `None`: when somebody says so.
    fn step_returns(self: &Arc<Inner>) -> Option<Duration> {
        // Before, only recovery says who is complete.
        if !self.is_settled() || self.returns.is_closed() {
            return None;
        }
        let mut returns = std::mem::take(&mut *self.returns.children.lock());
        returns.resize_with(self.children.len(), || Return {
            tenant: None,
            phase: Phase::Up,
            pause: self.options.return_pause_min,
        });
        let children = returns.iter_mut().enumerate();
        let waits = children.filter_map(|(child, of)| self.step_return(child, of));
        let next = waits.min();
        let next = next.into_iter().chain(self.step_change()).min();
        *self.returns.children.lock() = returns;
        next
    }

    fn step_return(self: &Arc<Inner>, child: usize, of: &mut Return) -> Option<Duration> {
        let tenant = self.children[child].tenant();
        if tenant != of.tenant {
            // Nothing of the home that was in this slot before goes for this one.
            *of = Return {
                phase: Phase::Up,
                pause: self.options.return_pause_min,
                tenant,
            };
        }
        // A vacant slot.
        tenant?;
        loop {
            let phase = std::mem::take(&mut of.phase);
            let now = self.env.clock.monotonic();
            if matches!(phase, Phase::Up) && self.children[child].standing() == Standing::Up {
                return None;
            }
            let was_catching_up = matches!(phase, Phase::CatchingUp { .. } | Phase::Copying { .. });
            let generation = match &phase {
                Phase::Closing { attached, .. }
                | Phase::CatchingUp { attached, .. }
                | Phase::Copying { attached, .. } => Some(attached.generation),
                _ => None,
            };
            match self.take_step(child, phase, of.pause, now) {
                Ok(Step::Go(phase)) => {
                    if matches!(phase, Phase::Up) {
                        of.pause = self.options.return_pause_min;
                    }
                    of.phase = phase;
                }
                Ok(Step::Wait(phase)) => {
                    let wait = match &phase {
                        Phase::Never => None,
                        Phase::Pausing(until) => Some(until.since(now)),
                        _ => Some(LOOK_INTERVAL),
                    };
                    of.phase = phase;
                    return wait;
                }
                Err(error) => {
                    if let Some(generation) = generation {
                        self.leave_out(child, generation, error.to_string());
                        // Also where somebody else has left it out before all lanes were cut.
                        self.drop_from_lanes(child, generation);
                    }
                    // Else it is known why.
                    if !was_catching_up {
                        self.children[child].stays_down(error.to_string());
                    }
                    if matches!(error, HomeError::Fenced(_)) {
                        of.phase = Phase::Never;
                        return None;
                    }
                    let pause = of.pause;
                    of.phase = Phase::Pausing(now + pause);
                    of.pause = (pause * 2).min(PAUSE_MAX);
                    return Some(pause);
                }
            }
        }
    }

    fn take_step(
        self: &Arc<Inner>,
        child: usize,
        phase: Phase,
        pause: Duration,
        now: Instant,
    ) -> Result<Step, HomeError> {
        Ok(match phase {
            Phase::Up => Step::Go(Phase::Pausing(now + pause)),
            Phase::Never => Step::Wait(Phase::Never),
            Phase::Pausing(until) if now < until => Step::Wait(Phase::Pausing(until)),
            Phase::Pausing(_) => Step::Go(Phase::Opening(self.open_anew(child)?)),
            Phase::Opening(answer) => match answer.try_recv() {
                Ok(opened) => {
                    let (attached, before) = self.attach(child, opened?)?;
                    Step::Go(Phase::Closing { attached, before })
                }
                Err(mpsc::TryRecvError::Empty) => Step::Wait(Phase::Opening(answer)),
                Err(mpsc::TryRecvError::Disconnected) => return Err(no_answer("opening it")),
            },
            Phase::Closing { attached, before } => {
                if before.as_ref().is_some_and(Attachment::is_in_use) || self.lingers(child) {
                    return Ok(Step::Wait(Phase::Closing { attached, before }));
                }
                if let Some(before) = before {
                    self.children[child].retire(&before);
                }
                if self.sources().is_empty() {
                    return Err(no_answer("looking for a home that has everything"));
                }
                let had = self.contents_of(child, &attached)?;
                self.mark(&mut self.register.lock(), child, false)?;
                self.repeat_fences(child, &attached)?;
                let operations = self.cut(child, &attached, &had)?;
                Step::Go(Phase::CatchingUp {
                    attached,
                    had,
                    operations,
                })
            }
            Phase::CatchingUp {
                attached,
                had,
                operations,
            } => {
                self.must_catch_up(child, &attached)?;
                if !self.is_over_before_cut(child, operations)? {
                    return Ok(Step::Wait(Phase::CatchingUp {
                        attached,
                        had,
                        operations,
                    }));
                }
                let copied = self.copy(child, attached.clone(), had)?;
                Step::Go(Phase::Copying { attached, copied })
            }
            Phase::Copying { attached, copied } => match copied.try_recv() {
                Ok(copied) => {
                    copied?;
                    self.count(child, &attached)?;
                    Step::Go(Phase::Up)
                }
                Err(mpsc::TryRecvError::Empty) => {
                    // Whoever copies notices it too.
                    self.must_catch_up(child, &attached)?;
                    Step::Wait(Phase::Copying { attached, copied })
                }
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err(no_answer("copying what it lacks"));
                }
            },
        })
    }

    /// Opens a child anew, on a thread of its own, and reads its record. Nothing is changed there.
    fn open_anew(
        &self,
        child: usize,
    ) -> Result<mpsc::Receiver<Result<Opened, HomeError>>, HomeError> {
        for lane in self.lanes.read().values() {
            if let Some(error) = lane.state.lock().failed() {
                return Err(error.clone());
            }
        }
        let (tell, told) = mpsc::channel();
        let open = self.opening(child)?;
        let job = move || {
            // Nobody waits any more if the home is closed.
            let _heard = tell.send(open());
        };
        self.aside(job)?;
        Ok(told)
    }

    /// Copies what a child lacks, on a thread of its own: others that come back, and changes of the members, do not
    /// wait for that.
    fn copy(
        self: &Arc<Inner>,
        child: usize,
        home: Attachment,
        had: Inventory,
    ) -> Result<mpsc::Receiver<Result<(), HomeError>>, HomeError> {
        // Here, where changes of members are made: whoever copies beside them may find one half made.
        let mended = self.mended_at(child);
        let (tell, told) = mpsc::channel();
        let inner = Arc::clone(self);
        let job = move || {
            let copied = inner.copy_what_it_lacks(child, &home, had, &mended);
            // It is not in use any more when that is heard.
            drop(home);
            let _heard = tell.send(copied);
        };
        self.aside(job)?;
        Ok(told)
    }

    /// Does something on a thread of its own, or here where there are no threads.
    pub(super) fn aside(&self, job: impl FnOnce() + Send + 'static) -> Result<(), HomeError> {
        if !self.options.threads {
            job();
            return Ok(());
        }
        let spawned = self.env.spawn("replica", None, job);
        spawned.map_err(|error| HomeError::io("starting a replica's thread", error))?;
        Ok(())
    }

    /// Is something still asked of this place by way of a slot that it was in before?
    fn lingers(&self, child: usize) -> bool {
        let url = self.children[child].url();
        let mut lingering = self.returns.lingering.lock();
        lingering.retain(|(_, attached)| attached.is_in_use());
        lingering.iter().any(|(place, _)| *place == url)
    }

    /// What opens a child, and reads its record; or makes it, if it is to be a member.
    pub(super) fn opening(
        &self,
        child: usize,
    ) -> Result<impl FnOnce() -> Result<Opened, HomeError> + Send + 'static, HomeError> {
        let Some(Source { open, url }) = self.children[child].source() else {
            return Err(no_answer("opening it"));
        };
        let member = match self.changes.is_candidate(child) {
            true => self.env.random.u64().max(1),
            false => 0,
        };
        let (rollover, alignment) = (self.rollover, self.capabilities.block_alignment);
        let limit = *self.name_requests_limit.lock();
        Ok(move || {
            let home = open()?;
            let Some(own) = &home.rollover else {
                return Err(no_fixed_size(&url));
            };
            own.limit_segments(rollover)?;
            if !alignment.is_multiple_of(home.capabilities().block_alignment) {
                return Err(HomeError::Unsupported("the alignment of the others"));
            }
            if let Some(first) = limit {
                home.names.limit_name_requests(first);
            }
            if member != 0 {
                let record = record_of(&home, &url, member, OpenPurpose::Log)?;
                let record = Some(record);
                return Ok(Opened { home, record });
            }
            let Some((bytes, _)) = home.names.get(RECORD)? else {
                if home.segments.list_lanes()?.is_empty() {
                    return Ok(Opened { home, record: None });
                }
                return Err(HomeError::Missing(format!(
                    "the record of {url} as one of several homes"
                )));
            };
            let record = StoredAcceptor::decode(&bytes).map_err(|why| {
                let what = format!("read the record of {url} as one of several homes");
                HomeError::io(
                    what,
                    std::io::Error::new(std::io::ErrorKind::InvalidData, why),
                )
            })?;
            let record = Some(record);
            Ok(Opened { home, record })
        })
    }

    /// The child has this home from now on, if it is the member that it was.
    fn attach(
        &self,
        child: usize,
        opened: Opened,
    ) -> Result<(Attachment, Option<Attachment>), HomeError> {
        let Opened { home, record } = opened;
        let refused = |what: &str| {
            let why = std::io::Error::other(what.to_owned());
            Err(HomeError::io(self.children[child].url(), why))
        };
        let Some(record) = record else {
            self.changes.note_emptied(child);
            return refused(
                "it is empty: it becomes a new member in place of the one that was there",
            );
        };
        {
            let mut membership = self.membership.lock();
            let known = membership.id(child);
            if self.changes.is_candidate(child) {
                let accepted = record.record.accepted.as_ref();
                if accepted.is_some_and(|(_, state)| state.home != membership.home) {
                    return refused("it belongs to another log");
                }
                let mut others = membership.ids.iter().enumerate();
                if others.any(|(other, id)| other != child && *id == record.member) {
                    return refused("it is the same place as another of the log's homes");
                }
                membership.ids[child] = record.member;
            } else if known != record.member
                && (known != 0 || !membership.learn_id(child, record.member))
            {
                let accepted = record.record.accepted.as_ref();
                let is_ours = accepted.is_none_or(|(_, state)| state.home == membership.home);
                let mut members = membership.members.iter();
                if is_ours && !members.any(|member| member.id == record.member) {
                    // A change that has not come to its end made this record there.
                    self.changes.note_emptied(child);
                }
                return refused("it is another place than the member that was there");
            }
        }
        self.changes.note_found(child);
        let mut register = self.register.lock();
        let (attached, before) = self.children[child].attach(home)?;
        register.attached(child, record.member, attached.generation);
        Ok((attached, before))
    }

    /// Has the register say whether a child is complete, if it is a member, and if we still have the lease.
    fn mark(&self, register: &mut Register, child: usize, complete: bool) -> Result<(), HomeError> {
        let id = self.membership.lock().id(child);
        // Others that are not up lack what is stored without them: nobody may take one of them for the one that has
        // all.
        let out = self.ids_down();
        register.propose_leased(&|state| {
            let mut state = state?.clone();
            let before = state.members.clone();
            for member in &mut state.members {
                if member.id == id {
                    member.complete = complete;
                } else {
                    member.complete &= !out.contains(&member.id);
                }
            }
            (state.members != before).then_some(state)
        })?;
        self.membership.lock().mark(id, complete);
        Ok(())
    }

    /// Fences lanes at a child as this life has fenced them at others while it was away.
    fn repeat_fences(&self, child: usize, home: &Attachment) -> Result<(), HomeError> {
        let fences = self.fences.lock().clone();
        for (index, fence) in fences.into_iter().enumerate() {
            if fence.done.contains(&child) {
                continue;
            }
            self.ask_attached(child, home, move |home| {
                let segments = &home.segments;
                segments.fence(fence.lane, fence.first_segment, &fence.by)
            })
            .map_err(of_child)?;
            self.fences.lock()[index].done.insert(child);
        }
        Ok(())
    }

    /// From now on the child is given everything new. Back comes the operation that is the first of which it is.
    fn cut(
        self: &Arc<Inner>,
        child: usize,
        home: &Attachment,
        had: &Inventory,
    ) -> Result<u64, HomeError> {
        let in_flight_max = home.capabilities().appends_in_flight_max;
        let mut cuts: Vec<(Arc<OpenLane>, u64)> = Vec::new();
        let operations = {
            let _no_lane_is_opened = self.opening.lock();
            self.in_flight_max.lock()[child] = in_flight_max;
            self.children[child].begin_to_catch_up(home.generation);
            let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
            for lane in lanes {
                lane.trims.lock()[child].clear();
                let cut = lane.state.lock().cut(child, home.generation, in_flight_max);
                cuts.push((Arc::clone(&lane), cut?));
            }
            self.operations.next()
        };
        for (lane, segment) in cuts {
            let id = lane.id;
            // Made ahead, by an attachment that went before the lane got so far.
            let ahead: Vec<u64> = had.segments_of(id, segment..=segment | u64::from(u32::MAX));
            let again = self.pump_again(id, child);
            self.ask_attached(child, home, move |home| {
                for segment in ahead {
                    home.segments.trim(id, segment)?;
                }
                let opened = home.appends.open_lane(id, segment);
                opened.map_err(from_room)?;
                home.appends.set_room_listener(id, again);
                Ok(())
            })
            .map_err(of_child)?;
            lane.state.lock().opened(child, home.generation);
            self.pump(&lane, child);
        }
        Ok(operations)
    }

    /// It has not gone down meanwhile, and the home is in use.
    fn must_catch_up(&self, child: usize, home: &Attachment) -> Result<(), HomeError> {
        match self.children[child].catches_up(home.generation) && !self.returns.is_closed() {
            true => Ok(()),
            false => Err(no_answer("catching up")),
        }
    }

    /// Is everything over that began before the child's cut?
    fn is_over_before_cut(&self, child: usize, operations: u64) -> Result<bool, HomeError> {
        let sources = self.sources();
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        for lane in lanes {
            let state = lane.state.lock();
            if let Some(error) = state.failed() {
                return Err(error.clone());
            }
            let settled = |at: &usize| state.is_settled_before_cut(child, *at);
            if !sources.iter().any(settled) {
                return Ok(false);
            }
        }
        Ok(self.operations.are_over_before(operations))
    }

    /// Children that have everything.
    pub(super) fn sources(&self) -> Vec<usize> {
        let complete = self.membership.lock().complete();
        let is_source = |&child: &usize| complete[child] && self.up(child).is_some();
        (0..self.children.len()).filter(is_source).collect()
    }

    /// The child has everything: it is up, and counts.
    fn count(&self, child: usize, home: &Attachment) -> Result<(), HomeError> {
        let mut told = Vec::new();
        {
            let _no_lane_is_opened = self.opening.lock();
            let mut register = self.register.lock();
            // Who marks members that are down does so under the register's lock: what it was left out for before this
            // is seen here, and what it is left out for later is marked after this.
            self.must_catch_up(child, home)?;
            self.mark(&mut register, child, true)?;
            // One that was away when they were opened has no vote in them yet.
            told.extend(self.count_lanes_by(&self.quorums()));
            if !self.children[child].caught_up(home.generation) {
                return Err(no_answer("catching up"));
            }
            for lane in self.lanes.read().values() {
                told.extend(lane.state.lock().count(child, home.generation));
            }
        }
        told.into_iter().for_each(AppendOutcome::complete);
        tracing::info!("log: {} is back, and complete", self.children[child].url());
        Ok(())
    }
}

/// What a child says is its own trouble: whether another server has taken over, the register says.
fn of_child(error: HomeError) -> HomeError {
    match error {
        HomeError::Fenced(_) => {
            HomeError::io("having it go on", std::io::Error::other(error.to_string()))
        }
        error => error,
    }
}
