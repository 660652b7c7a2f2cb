//! A home of homes: every append goes to several of them, and the log survives the loss of some.
//!
//! | file | what |
//! |---|---|
//! | `lane` | which append each child gets next, and which are durable; pure |
//! | `caspaxos` | one register over compare-and-swap of children that may be away; pure |
//! | `state` | what the register holds, as bytes |
//! | `register` | the requests of the register |
//! | `child` | a child and the threads that wait for it |
//! | `capabilities` | what all of them can; pure |
//! | `membership` | who counts, and how many of them it takes; pure |
//! | `membership_change` | changes of the list of members while the home is in use |
//! | `home` | what all of this offers: the calls of a home |
//! | `side` | side segments, each with a writer at every child |
//! | `objects` | immutable objects, and completing copies with them |
//! | `group` | what a home of groups asks of each of them |
//! | `open` | at a start: which children are members, and how lists of them change |
//! | `catch_up` | children that come back while the home is in use |
//!
//! **Words.** A *child* is one home of the list that the server was given. A *member* is a child that is recorded in
//! the register: N of them. An append is *acknowledged* when `needed` members have it and all before it in its lane:
//! all N, or a majority, N/2 + 1.
//!
//! **Places.** All children have one rollover rule, the smallest of theirs, so the same appends come to the same places
//! everywhere; a child that gives another place is an error. That is all that the copies need to have in common.
//!
//! **What must be fenced, and what read.** Let `R = N - needed + 1`.
//! - An acknowledged block is on `needed` members. Any R members contain one of those, since `needed + R > N`: whoever
//!   has read R members, each as far as it goes, has met every acknowledged block. Blocks are looked for one by one, so
//!   it does not matter that one copy has a block and another one the next.
//! - Once R members are fenced, fewer than `needed` are left, and nothing can be acknowledged any more by who was
//!   fenced out.
//! - So it takes R members that are fenced *and then* read: what was acknowledged before the last of them was fenced is
//!   on one of them, and afterwards nothing was. Members that were not fenced are not read.
//! - A member that fails while it is read is no longer one of the R: from then on it reads as empty, and if fewer than
//!   R are left, reading fails. The end of a lane is judged by what R members, present to that moment, say.
//! - What recovery adopts, it writes to every child that is up; a child that fails is left out. Before the recovery
//!   mark, `needed` of the members that count from then on must be up: so a block that was on one member only does not
//!   come and go with it (T7).
//!
//! With `all`, R is 1, and with `majority` of three it is 2. The register always takes majorities, with `all` too: it
//! must go on, and be unique, whatever `needed` is, and a majority is the only rule by which two servers with different
//! members in reach cannot both decide. So a start with `all` after the loss of a child needs a majority of the
//! members, and not only R = 1.
//!
//! **Reading beside a server** ([`OpenPurpose::Reading`]) fences nobody, so it finds what was acknowledged before it
//! began to read, and perhaps more: R members, each as far as it goes, as above. Named things are the newest that a
//! majority of the members has accepted. That follows from everything that was chosen before, and what it names was
//! stored before it was proposed; it may be a change that is being made, or that nobody completes any more. How many
//! members must be read (R) is what the newest state says that was read with a named thing: a server that has started
//! since may acknowledge by another rule.
//!
//! **Named things** are in the register, all of them in one: the manifest with its lease, and the list of members
//! itself.
//!
//! **Children that fail** are left out, and come back by themselves ([`catch_up`]): there it says what each is given,
//! and when it counts again. What is said above of members that are up goes for them when they are up again.
//!
//! Does not: repeat what a child has refused, or place copies by itself.

mod capabilities;
mod caspaxos;
#[cfg(test)]
mod caspaxos_model;
mod catch_up;
mod child;
mod group;
mod home;
mod lane;
mod membership;
mod membership_change;
mod objects;
mod open;
mod register;
mod side;
mod state;

pub use child::{Opener, Source};
pub(crate) use group::OWNERSHIP;
pub(crate) use membership_change::repair_of;
pub use membership_change::{MemberList, MemberOpener};
pub use state::{RecordedMembers, WriteConcern, members_in_record, named_in_record};

use crate::{
    Buffer, DamageCheck, HomeCapabilities, HomeError, LogHome, NoRoom, Position, Rollover,
    RoomListener, RoomRequest,
};
use catch_up::{Fence, OperationsInFlight, Returns};
use child::{
    Attachment, Child, Removable, Replies, ReplyTimeouts, RequestClass, Standing, ask_each,
    ask_each_in, no_answer,
};
use lane::ReplicatedLane;
use logstead_env::{Env, LongMutex};
use logstead_types::LaneId;
use membership::{Membership, Quorum, Quorums};
use membership_change::Changes;
use parking_lot::{Mutex, RwLock};
use register::Register;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What a replicated home is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenPurpose {
    /// Everything. A new log begins with every home of the list.
    #[default]
    Log,
    /// The same, in a place whose name was drawn for it. Nobody else can have a log there, and none of its homes can
    /// have had one before: with `majority` a new log begins with those that answer, if they are most of the list. The
    /// others become members like any home that is added to a list.
    NewPlace,
    /// Reading: nothing is changed, whatever `ack` says, and a majority of the members must answer.
    Reading,
}

/// How a replicated home is made.
#[derive(Clone, Debug)]
pub struct ReplicatedOptions {
    /// When an append is durable.
    pub ack: WriteConcern,
    /// What may be done with it.
    pub purpose: OpenPurpose,
    /// Threads wait for the children. Without them (tests in virtual time) the caller does.
    pub threads: bool,
    /// A child that has been given more than this in one lane and has not stored it is left out, where a majority does
    /// without.
    pub lag_bytes_max: u64,
    /// How long an answer is waited for.
    pub patience: Duration,
    /// After so long it is tried first to bring a child back that is down, and then after twice the time each time.
    pub return_pause_min: Duration,
    /// Tells which copies of objects are damaged. Without it none is, as far as anybody knows.
    pub damage: Option<DamageCheck>,
}

impl Default for ReplicatedOptions {
    fn default() -> ReplicatedOptions {
        ReplicatedOptions {
            ack: WriteConcern::All,
            purpose: OpenPurpose::Log,
            threads: true,
            lag_bytes_max: 16 << 20,
            patience: Duration::from_secs(10),
            return_pause_min: Duration::from_secs(1),
            damage: None,
        }
    }
}

/// A home of homes; see the module's documentation.
pub struct ReplicatedHome {
    inner: Arc<Inner>,
}

/// A lane, its lock, and the spare buffers of its children.
struct OpenLane {
    id: LaneId,
    state: Mutex<ReplicatedLane>,
    spares: Mutex<Vec<Buffer>>,
    /// By child: segments to be removed there when its last append to them is done. Taken before `state`.
    trims: Mutex<Vec<BTreeSet<u64>>>,
}

struct Inner {
    env: Env,
    options: ReplicatedOptions,
    children: Vec<Arc<Child>>,
    capabilities: HomeCapabilities,
    /// Every child's.
    rollover: Rollover,
    /// Children that were opened, what each may have in flight.
    in_flight_max: Mutex<Vec<usize>>,
    membership: LongMutex<Membership>,
    register: LongMutex<Register>,
    /// The members have been read again since the lease was claimed.
    members_checked: AtomicBool,
    lanes: RwLock<BTreeMap<LaneId, Arc<OpenLane>>>,
    read_order: Mutex<objects::ReadOrder>,
    /// Held while it is decided whether a child can be done without.
    dropping: Mutex<()>,
    /// Held while a lane is opened, and while a child begins to be given what is new, or to count: so each lane is open
    /// at such a child either from its beginning or from its cut. Taken before the register and the membership.
    opening: LongMutex<()>,
    operations: Arc<OperationsInFlight>,
    /// The fences of this life.
    fences: Mutex<Vec<Fence>>,
    /// All copies that are up are complete: children may come back.
    settled: AtomicBool,
    /// The newest epoch that had begun when they were.
    settled_epoch: AtomicU64,
    name_requests_limit: Mutex<Option<Duration>>,
    returns: Returns,
    changes: Changes,
    /// Opens homes that become members while this one is in use; without it the list is as it was given.
    open_member: Option<MemberOpener>,
    /// Which group it is of a home that goes by the volume's placement record; by itself it is none.
    group: OnceLock<u32>,
}

/// A request to one child.
type ChildCall<T> = Box<dyn FnOnce(&LogHome) -> Result<T, HomeError> + Send>;

/// Which children are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    /// Those that are up: for what they have.
    Up,
    /// Those that are given what is new, too, if they are catching up. Whether they do it changes nothing for who asks.
    Receivers,
}

/// Who is asked, and as what.
#[derive(Clone)]
struct Asked {
    attachment: Attachment,
    /// Its answer counts, if it is a member.
    is_up: bool,
}

impl Inner {
    fn up(&self, child: usize) -> Option<Attachment> {
        self.children[child].up()
    }

    fn asked(&self, audience: Audience) -> Vec<Option<Asked>> {
        let asked = |child: &Arc<Child>| {
            let (attachment, is_up) = child.receiver()?;
            let asked = is_up || audience == Audience::Receivers;
            asked.then_some(Asked { attachment, is_up })
        };
        self.children.iter().map(asked).collect()
    }

    /// A child that does not answer is left out where it must, so it is waited for once: that may take longer than a
    /// slow one's repeated requests.
    fn waits(&self) -> ReplyTimeouts {
        ReplyTimeouts {
            patience: self.options.patience,
            grace: self.options.patience / 2,
        }
    }

    fn quorums(&self) -> Quorums {
        self.membership.lock().quorums()
    }

    /// Are members enough up?
    fn has_up(&self, quorum: Quorum) -> bool {
        let is_up = |child: usize| self.children[child].standing() == Standing::Up;
        self.quorums().has(quorum, &is_up)
    }

    /// Asks these children. Waits for all; a little after a write quorum has said yes the others can be done without.
    /// Also where fewer would do: without a write quorum nothing can be stored later on, so it helps nobody to leave
    /// those out that are slow.
    fn ask<T: Send + 'static>(
        &self,
        asked: &[Option<Asked>],
        line: RequestClass,
        waits: ReplyTimeouts,
        ask: &dyn Fn(usize) -> ChildCall<T>,
    ) -> Replies<T> {
        let quorums = self.quorums();
        let satisfied = |answers: &Replies<T>| {
            let yes = |child: usize| is_up(&asked[child]) && matches!(answers[child], Some(Ok(_)));
            quorums.has(Quorum::Write, &yes)
        };
        ask_each_in(
            &self.children,
            &self.env,
            line,
            waits,
            &satisfied,
            &|child| {
                let home = asked[child].as_ref()?.attachment.clone();
                let ask = ask(child);
                Some(Box::new(move || ask(&home)))
            },
        )
    }

    /// The same for what enough members must do; children that do not are left out.
    fn must<T: Send + 'static>(
        &self,
        what: &str,
        enough: Quorum,
        audience: Audience,
        ask: &dyn Fn(usize) -> ChildCall<T>,
    ) -> Result<Vec<(usize, T)>, HomeError> {
        let asked = self.asked(audience);
        let (line, waits) = (RequestClass::Short, self.waits());
        self.must_within(what, enough, &asked, line, waits, ask)
    }

    /// The same of these children, for requests of another line, that take another time.
    fn must_within<T: Send + 'static>(
        &self,
        what: &str,
        enough: Quorum,
        asked: &[Option<Asked>],
        line: RequestClass,
        waits: ReplyTimeouts,
        ask: &dyn Fn(usize) -> ChildCall<T>,
    ) -> Result<Vec<(usize, T)>, HomeError> {
        let quorums = self.quorums();
        let mut done = Vec::new();
        let mut failed = Vec::new();
        let answers = self.ask(asked, line, waits, ask);
        for (child, answer) in answers.into_iter().enumerate() {
            let Some(asked) = &asked[child] else { continue };
            match answer {
                Some(Ok(value)) => done.push((child, value)),
                Some(Err(error)) => failed.push((child, asked, error)),
                None => failed.push((child, asked, no_answer(what))),
            }
        }
        // What a child says that is catching up is nobody's error.
        let late = failed.extract_if(.., |(_, asked, _)| !asked.is_up);
        let late: Vec<_> = late.collect();
        for (child, asked, error) in late {
            self.leave_out(
                child,
                asked.attachment.generation,
                format!("{what}: {error}"),
            );
        }
        // About who asks, not about who was asked.
        let of_caller = |error: &HomeError| {
            let conflict = matches!(error, HomeError::Conflict(_));
            conflict || matches!(error, HomeError::Fenced(_))
        };
        if let Some((_, _, error)) = failed.iter().find(|(_, _, error)| of_caller(error)) {
            return Err(error.clone());
        }
        let has = |child: usize| is_up(&asked[child]) && done.iter().any(|(who, _)| *who == child);
        if !quorums.has(enough, &has) {
            let error = failed.into_iter().map(|(_, _, error)| error).next();
            return Err(error.unwrap_or_else(|| no_answer(what)));
        }
        for (child, asked, error) in failed {
            self.leave_out(
                child,
                asked.attachment.generation,
                format!("{what}: {error}"),
            );
        }
        Ok(done)
    }

    /// A child, if it is still attached as it was then, is not used any more until it comes back. With fewer members
    /// than an append needs, appends wait until there are enough again; with none, the lanes fail.
    fn leave_out(&self, child: usize, generation: u64, why: String) {
        let one_at_a_time = self.dropping.lock();
        let was = self.children[child].take_down(generation, why.clone());
        drop(one_at_a_time);
        if was.is_some() {
            self.drop_from_lanes(child, generation);
        }
        if was != Some(Standing::Up) || self.has_up(Quorum::Write) {
            return;
        }
        if self.is_settled() && self.sources().is_empty() {
            // Nobody is left to copy from to who comes back: the next start compares what each of them has.
            let what = "all of the log's homes that have everything are gone at once";
            let error = HomeError::io(what, std::io::Error::other(why));
            let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
            for lane in lanes {
                self.fail_lane(&lane, error.clone());
            }
            return;
        }
        let which = match self.group.get() {
            Some(group) => format!("the homes of group {group}"),
            None => "the log's homes".to_owned(),
        };
        tracing::error!(
            "log: too few of {which} are left to store anything: commits wait until one is back"
        );
    }

    fn drop_from_lanes(&self, child: usize, generation: u64) {
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        for lane in lanes {
            let told = lane.state.lock().drop_child(child, generation);
            told.into_iter().for_each(lane::AppendOutcome::complete);
        }
        self.returns.wake();
    }

    fn fail_lane(&self, lane: &OpenLane, error: HomeError) {
        let told = lane.state.lock().fail(error);
        told.into_iter().for_each(lane::AppendOutcome::complete);
    }

    /// A child cannot go on with appends: it is left out, unless that is because another server took over.
    fn append_failed(&self, child: usize, generation: u64, error: HomeError) {
        let receiver = self.children[child].receiver();
        let Some((_, is_up)) = receiver.filter(|(at, _)| at.generation == generation) else {
            return;
        };
        if is_up && matches!(error, HomeError::Fenced(_)) {
            // Another server took over, or began to. Nothing that is acknowledged from now on would be sure.
            let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
            for lane in lanes {
                self.fail_lane(&lane, error.clone());
            }
            return;
        }
        self.leave_out(child, generation, error.to_string());
    }

    /// Leaves a child out, if enough members are left without it.
    fn do_without(&self, child: usize, generation: u64, why: &str) -> bool {
        let one_at_a_time = self.dropping.lock();
        let quorums = self.quorums();
        let others_up = |other: usize| other != child && self.up(other).is_some();
        let is_needed = || quorums.is_member(child) && !quorums.has(Quorum::Write, &others_up);
        let receiver = self.children[child].receiver();
        match receiver.filter(|(attachment, _)| attachment.generation == generation) {
            None => return true,
            Some((_, true)) if is_needed() => return false,
            Some(_) => {}
        }
        let was = self.children[child].take_down(generation, why.to_owned());
        // Who is told something may come back here.
        drop(one_at_a_time);
        if was.is_some() {
            self.drop_from_lanes(child, generation);
        }
        true
    }

    fn lane(&self, lane: LaneId) -> Option<Arc<OpenLane>> {
        self.lanes.read().get(&lane).cloned()
    }

    /// What a child calls when a lane may have room again there.
    fn pump_again(self: &Arc<Inner>, lane: LaneId, child: usize) -> RoomListener {
        let inner = Arc::downgrade(self);
        Box::new(move || {
            if let Some(inner) = inner.upgrade()
                && let Some(lane) = inner.lane(lane)
            {
                inner.pump(&lane, child);
            }
        })
    }

    /// Hands a child the appends it may have, in order.
    fn pump(self: &Arc<Inner>, lane: &Arc<OpenLane>, child: usize) {
        if !lane.state.lock().begin(child) {
            return;
        }
        loop {
            if let Some((home, _)) = self.children[child].receiver()
                && let Err(error) = self.hand_over(lane, child, &home)
            {
                self.append_failed(child, home.generation, error);
            }
            if lane.state.lock().end(child) {
                return;
            }
        }
    }

    fn hand_over(
        self: &Arc<Inner>,
        lane: &Arc<OpenLane>,
        child: usize,
        home: &Attachment,
    ) -> Result<(), HomeError> {
        loop {
            let Some(issue) = lane.state.lock().next_for(child, home.generation) else {
                return Ok(());
            };
            if issue.ends_segment {
                let rollover = home.rollover.as_ref();
                rollover.map_or(Ok(()), |rollover| rollover.end_segment(lane.id))?;
            }
            // Asked anew each time: no child's room hangs on attempts that a full disk could end (`file:` is none).
            match home
                .appends
                .ensure_room(lane.id, issue.claimed, &mut RoomRequest::default())
            {
                Ok(()) => {}
                // Its listener comes back here.
                Err(NoRoom::Busy | NoRoom::DiskFull | NoRoom::Unavailable) => return Ok(()),
                Err(NoRoom::Failed(error)) => return Err(error),
            }
            let at = home.appends.place(lane.id, issue.claimed)?;
            if at != issue.at {
                let what = format!(
                    "{} puts at {at} what the others put at {}",
                    self.children[child].url(),
                    issue.at
                );
                let kind = std::io::ErrorKind::InvalidData;
                return Err(HomeError::io(what, kind.into()));
            }
            let claimed = usize::try_from(issue.claimed).unwrap_or(usize::MAX);
            let mut spares = lane.spares.lock();
            let fits = spares.iter().position(|spare| spare.capacity() >= claimed);
            let spare = fits.map(|index| spares.swap_remove(index));
            drop(spares);
            let mut block = spare.unwrap_or_else(|| Buffer::zeroed(issue.block.capacity()));
            let bytes = issue.block.as_slice();
            block.as_mut_slice()[..issue.len].copy_from_slice(&bytes[..issue.len]);
            let (number, len, generation) = (issue.number, issue.len, home.generation);
            drop(issue);
            if !lane.state.lock().issued(child, generation) {
                return Ok(());
            }
            let (inner, lane_ref) = (Arc::downgrade(self), Arc::downgrade(lane));
            let done = move |block: Buffer, result: Result<(), HomeError>| {
                let (Some(inner), Some(lane)) = (inner.upgrade(), lane_ref.upgrade()) else {
                    return;
                };
                let from = (child, generation);
                inner.appended(&lane, from, number, len, block, result);
            };
            home.appends.append(lane.id, at, block, len, Box::new(done));
        }
    }

    fn appended(
        self: &Arc<Inner>,
        lane: &Arc<OpenLane>,
        (child, generation): (usize, u64),
        number: u64,
        len: usize,
        block: Buffer,
        result: Result<(), HomeError>,
    ) {
        let mut spares = lane.spares.lock();
        if spares.len() < self.children.len() * self.capabilities.appends_in_flight_max {
            spares.push(block);
        }
        drop(spares);
        match result {
            Ok(()) => {
                let told = lane.state.lock().stored(child, generation, number, len);
                told.into_iter().for_each(lane::AppendOutcome::complete);
                self.trim_passed(lane, child);
                self.pump(lane, child);
            }
            Err(error) => self.append_failed(child, generation, error),
        }
    }

    /// Notes which children still have appends to come in a segment that is to go: one that is slow would be given
    /// them, and find them gone.
    fn postpone_trim(&self, lane: LaneId, segment: u64) -> Vec<bool> {
        let mut postponed = vec![false; self.children.len()];
        if let Some(open) = self.lane(lane) {
            let mut trims = open.trims.lock();
            for (child, postponed) in postponed.iter_mut().enumerate() {
                *postponed = open.state.lock().needs_segment(child, segment);
                if *postponed {
                    trims[child].insert(segment);
                }
            }
        }
        postponed
    }

    /// Removes what a child has not had to wait for any more.
    fn trim_passed(&self, lane: &OpenLane, child: usize) {
        let passed: Vec<u64> = {
            let mut trims = lane.trims.lock();
            if trims[child].is_empty() {
                return;
            }
            let state = lane.state.lock();
            trims[child]
                .extract_if(.., |&segment| !state.needs_segment(child, segment))
                .collect()
        };
        let Some((home, _)) = self.children[child].receiver() else {
            return;
        };
        for segment in passed {
            let (home, id) = (home.clone(), lane.id);
            let url = self.children[child].url();
            self.children[child].run_in(RequestClass::Removal, move || {
                if let Err(error) = home.segments.trim(id, segment) {
                    // It is listed, and removed with the next ones.
                    tracing::warn!(
                        "log: removing segment {segment} of lane {id} in {url}: {error}"
                    );
                }
            });
        }
    }

    /// Reads from one child; a child that fails is left out, and reads as empty if enough members are left to judge by.
    fn read_child(
        &self,
        child: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        if let Some(home) = self.up(child) {
            let result = if self.options.threads {
                let capacity = into.capacity();
                let given = Mutex::new(Some(std::mem::replace(into, Buffer::zeroed(0))));
                let answers = ask_each(
                    std::slice::from_ref(&self.children[child]),
                    &self.env,
                    self.waits(),
                    &|_| false,
                    &|_| {
                        let home = home.clone();
                        let mut buffer = given.lock().take()?;
                        Some(Box::new(move || {
                            let count = home.segments.read(lane, at, &mut buffer)?;
                            Ok((buffer, count))
                        }))
                    },
                );
                let answer = answers.into_iter().next().flatten();
                match answer.unwrap_or_else(|| Err(no_answer("reading the log"))) {
                    Ok((buffer, count)) => {
                        *into = buffer;
                        Ok(count)
                    }
                    Err(error) => {
                        *into = Buffer::zeroed(capacity);
                        Err(error)
                    }
                }
            } else {
                home.segments.read(lane, at, into)
            };
            match result {
                Ok(count) => return Ok(count),
                Err(error) => {
                    self.leave_out(child, home.generation, format!("reading it: {error}"))
                }
            }
        }
        self.enough_to_judge()?;
        Ok(0)
    }

    /// Are enough members up to say what there is?
    fn enough_to_judge(&self) -> Result<(), HomeError> {
        match self.has_up(Quorum::Read) {
            true => Ok(()),
            false => Err(no_answer(
                "reading the log: too few of its homes are left to be sure of what was acknowledged",
            )),
        }
    }

    /// What each child that is up lists; enough of them to be sure.
    fn list<T: Send + 'static>(
        &self,
        what: &str,
        list: impl Fn(&LogHome) -> Result<T, HomeError> + Clone + Send + 'static,
    ) -> Result<Vec<(usize, T)>, HomeError> {
        self.must(what, Quorum::Read, Audience::Up, &|_| {
            Box::new(list.clone())
        })
    }

    /// Removes what nothing needs any more from every child that is given what is new: all of it (`removed`), or an
    /// end. Who is slow with it, or cannot, stays a member: what it keeps is listed, and a later start removes it. So
    /// an error is only told if another server has taken over, or of a caller's mistake.
    fn remove_everywhere(
        &self,
        what: &str,
        removed: Option<Removable>,
        ask: &dyn Fn(usize) -> ChildCall<()>,
    ) -> Result<(), HomeError> {
        let _under_way = self.operations.begin();
        let asked = self.asked(Audience::Receivers);
        for (child, asked) in asked.iter().enumerate() {
            if asked.as_ref().is_some_and(|asked| !asked.is_up) {
                self.children[child]
                    .since_cut
                    .lock()
                    .removed
                    .extend(removed);
            }
        }
        let (line, waits) = (RequestClass::Removal, self.waits());
        let answers = self.ask(&asked, line, waits, ask);
        for (child, answer) in answers.into_iter().enumerate() {
            let Some(Err(error)) = answer else { continue };
            let of_caller = matches!(error, HomeError::Fenced(_) | HomeError::Misuse { .. });
            if of_caller && asked[child].as_ref().is_some_and(|asked| asked.is_up) {
                return Err(error);
            }
            tracing::warn!("log: {what} in {}: {error}", self.children[child].url());
        }
        Ok(())
    }
}

/// Does what a child answers count, if it is a member?
fn is_up(asked: &Option<Asked>) -> bool {
    asked.as_ref().is_some_and(|asked| asked.is_up)
}
