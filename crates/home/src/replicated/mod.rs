//! A home of homes: every append goes to several of them, and the log survives the loss of some.
//!
//! | file | what |
//! |---|---|
//! | `lane` | which append each child gets next, and which are durable; pure |
//! | `quorum` | one register over compare-and-swap of children that may be away; pure |
//! | `state` | what the register holds, as bytes |
//! | `register` | the requests of the register |
//! | `child` | a child and the threads that wait for it |
//! | `objects` | immutable objects, and completing copies with them |
//! | `open` | which children are members, and how lists of them change |
//!
//! **Words.** A *child* is one home of the list that the server was given. A *member* is a child that is recorded in the register: N of
//! them. An append is *acknowledged* when `needed` members have it and all before it in its lane: all N, or a
//! majority, N/2 + 1.
//!
//! **Places.** All children have one rollover rule, the smallest of theirs, so the same appends come to the same places everywhere; a
//! child that gives another place is an error. That is all that the copies need to have in common.
//!
//! **What must be fenced, and what read.** Let `R = N - needed + 1`.
//! - An acknowledged block is on `needed` members. Any R members contain one of those, since `needed + R > N`: whoever has read R members,
//!   each as far as it goes, has met every acknowledged block. Blocks are looked for one by one, so it does not matter
//!   that one copy has a block and another one the next.
//! - Once R members are fenced, fewer than `needed` are left, and nothing can be acknowledged any more by who was fenced out.
//! - So it takes R members that are fenced *and then* read: what was acknowledged before the last of them was fenced is on one
//!   of them, and afterwards nothing was. Members that were not fenced are not read.
//! - A member that fails while it is read is no longer one of the R: from then on it reads as empty, and if fewer than R are left, reading
//!   fails. The end of a lane is judged by what R members, present to that moment, say.
//! - What recovery adopts, it writes to every child that is up; a child that fails is left out. Before the recovery mark, `needed` of the
//!   members that count from then on must be up: so a block that was on one member only does not come and go with it (T7).
//!
//! With `all`, R is 1, and with `majority` of three it is 2. The register always takes majorities, with `all` too: it must go on, and
//! be unique, whatever `needed` is, and a majority is the only rule by which two servers with different members in reach cannot both
//! decide. So a start with `all` after the loss of a child needs a majority of the members, and not only R = 1.
//!
//! **Named things** are in the register, all of them in one: the manifest with its lease, and the list of members itself.
//!
//! Does not: repeat what a child has refused, or place copies by itself.

mod child;
mod lane;
mod objects;
mod open;
mod quorum;
#[cfg(test)]
mod quorum_model;
mod register;
mod side;
mod state;

pub use child::Opener;
pub use open::Source;
pub use state::{Ack, named_in_record};

use crate::{
    Buffer, Completion, Facts, HomeError, HomeUsage, LogHome, NoRoom, ObjectId, ObjectInfo,
    Position, RoomListener, SegmentInfo, SideWriter, Tag,
};
use child::{Answers, Child, Line, Waits, ask_each, ask_each_in, no_answer};
use lane::ReplicatedLane;
use logstead_env::Env;
use logstead_types::LaneId;
use open::Membership;
use parking_lot::{Mutex, RwLock};
use register::Register;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How a replicated home is made.
#[derive(Clone, Debug)]
pub struct ReplicatedOptions {
    /// When an append is durable.
    pub ack: Ack,
    /// Threads wait for the children. Without them (tests in virtual time) the caller does.
    pub threads: bool,
    /// A child that has been given more than this in one lane and has not stored it is left out, where a majority does without.
    pub lag_bytes_max: u64,
    /// How long an answer is waited for.
    pub patience: Duration,
}

impl Default for ReplicatedOptions {
    fn default() -> ReplicatedOptions {
        ReplicatedOptions {
            ack: Ack::All,
            threads: true,
            lag_bytes_max: 16 << 20,
            patience: Duration::from_secs(10),
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
    facts: Facts,
    /// Children that were opened, what each may have in flight.
    in_flight_max: Vec<usize>,
    membership: Mutex<Membership>,
    register: Mutex<Register>,
    /// The members have been read again since the lease was claimed.
    members_checked: AtomicBool,
    lanes: RwLock<BTreeMap<LaneId, Arc<OpenLane>>>,
    read_order: Mutex<objects::ReadOrder>,
    /// Held while it is decided whether a child can be done without.
    dropping: Mutex<()>,
}

/// A request to one child.
type Ask<T> = Box<dyn FnOnce(&dyn LogHome) -> Result<T, HomeError> + Send>;

impl Inner {
    fn up(&self, child: usize) -> Option<&Arc<dyn LogHome>> {
        let child = &self.children[child];
        child.home().filter(|_| child.is_up())
    }

    /// A child that does not answer is left out where it must, so it is waited for once: that may take longer than a slow one's
    /// repeated requests.
    fn waits(&self) -> Waits {
        Waits {
            patience: self.options.patience,
            grace: self.options.patience / 2,
        }
    }

    fn votes(&self) -> Vec<bool> {
        self.membership.lock().votes(self.children.len())
    }

    /// Members that are up.
    fn voters_up(&self) -> usize {
        let votes = self.votes();
        (0..votes.len())
            .filter(|&child| votes[child] && self.up(child).is_some())
            .count()
    }

    /// Asks every child that is up. Waits for all; a little after so many members have said yes that the others can be done without.
    fn ask<T: Send + 'static>(
        &self,
        enough: usize,
        line: Line,
        waits: Waits,
        ask: &dyn Fn(usize) -> Ask<T>,
    ) -> Answers<T> {
        let votes = self.votes();
        let enough = self.membership.lock().waited_for(enough);
        let satisfied = |answers: &Answers<T>| {
            let yes = answers.iter().zip(&votes);
            let yes = yes.filter(|(answer, votes)| **votes && matches!(answer, Some(Ok(_))));
            yes.count() >= enough
        };
        ask_each_in(
            &self.children,
            &self.env,
            line,
            waits,
            &satisfied,
            &|child| {
                let home = Arc::clone(self.up(child)?);
                let ask = ask(child);
                Some(Box::new(move || ask(home.as_ref())))
            },
        )
    }

    /// The same for what `enough` members must do; children that do not are left out from now on.
    fn must<T: Send + 'static>(
        &self,
        what: &str,
        enough: usize,
        ask: &dyn Fn(usize) -> Ask<T>,
    ) -> Result<Vec<(usize, T)>, HomeError> {
        self.must_within(what, enough, Line::Short, self.waits(), ask)
    }

    /// The same, for requests of another line, that take another time.
    fn must_within<T: Send + 'static>(
        &self,
        what: &str,
        enough: usize,
        line: Line,
        waits: Waits,
        ask: &dyn Fn(usize) -> Ask<T>,
    ) -> Result<Vec<(usize, T)>, HomeError> {
        let asked: Vec<bool> = (0..self.children.len())
            .map(|child| self.up(child).is_some())
            .collect();
        let votes = self.votes();
        let mut done = Vec::new();
        let mut failed = Vec::new();
        for (child, answer) in self.ask(enough, line, waits, ask).into_iter().enumerate() {
            match answer {
                Some(Ok(value)) => done.push((child, value)),
                Some(Err(error)) => failed.push((child, error)),
                None if asked[child] => failed.push((child, no_answer(what))),
                None => {}
            }
        }
        // About who asks, not about who was asked.
        let of_caller = |error: &HomeError| {
            let conflict = matches!(error, HomeError::Conflict(_));
            conflict || matches!(error, HomeError::Fenced(_))
        };
        if let Some((_, error)) = failed.iter().find(|(_, error)| of_caller(error)) {
            return Err(error.clone());
        }
        let count = done.iter().filter(|(child, _)| votes[*child]).count();
        if count < enough {
            let error = failed.into_iter().map(|(_, error)| error).next();
            return Err(error.unwrap_or_else(|| no_answer(what)));
        }
        for (child, error) in failed {
            self.leave_out(child, format!("{what}: {error}"));
        }
        Ok(done)
    }

    /// A child is not used any more in this life.
    fn leave_out(&self, child: usize, why: String) {
        let one_at_a_time = self.dropping.lock();
        let was_up = self.children[child].take_down(why.clone());
        drop(one_at_a_time);
        if was_up {
            self.drop_from_lanes(child);
            self.fail_without_enough(&why);
        }
    }

    /// With fewer members than an append needs, nobody would ever hear of one again: the lanes fail.
    fn fail_without_enough(&self, why: &str) {
        let needed = self.membership.lock().needed();
        if self.voters_up() >= needed {
            return;
        }
        let error = HomeError::io(
            "too few of the log's homes are left to store anything",
            std::io::Error::other(why.to_owned()),
        );
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        for lane in lanes {
            self.fail_lane(&lane, error.clone());
        }
    }

    fn drop_from_lanes(&self, child: usize) {
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        for lane in lanes {
            let told = lane.state.lock().drop_child(child);
            told.into_iter().for_each(lane::Told::tell);
        }
    }

    fn fail_lane(&self, lane: &OpenLane, error: HomeError) {
        let told = lane.state.lock().fail(error);
        told.into_iter().for_each(lane::Told::tell);
    }

    /// A child cannot go on with appends: it is left out if enough are left without it, else the lane fails.
    fn append_failed(&self, lane: &OpenLane, child: usize, error: HomeError) {
        if matches!(error, HomeError::Fenced(_)) {
            // Another server took over, or began to. Nothing that is acknowledged from now on would be sure.
            let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
            for lane in lanes {
                self.fail_lane(&lane, error.clone());
            }
            return;
        }
        if !self.do_without(child, &error.to_string()) {
            self.fail_lane(lane, error);
        }
    }

    /// Leaves a child out, if enough members are left without it.
    fn do_without(&self, child: usize, why: &str) -> bool {
        let one_at_a_time = self.dropping.lock();
        if !self.children[child].is_up() {
            return true;
        }
        let (votes, needed) = {
            let membership = self.membership.lock();
            (membership.votes(self.children.len()), membership.needed())
        };
        if votes[child] && self.voters_up() <= needed {
            return false;
        }
        let was_up = self.children[child].take_down(why.to_owned());
        // Who is told something may come back here.
        drop(one_at_a_time);
        if was_up {
            self.drop_from_lanes(child);
        }
        true
    }

    fn lane(&self, lane: LaneId) -> Option<Arc<OpenLane>> {
        self.lanes.read().get(&lane).cloned()
    }

    /// Hands a child the appends it may have, in order.
    fn pump(self: &Arc<Inner>, lane: &Arc<OpenLane>, child: usize) {
        if !lane.state.lock().begin(child) {
            return;
        }
        loop {
            if let Err(error) = self.hand_over(lane, child) {
                self.append_failed(lane, child, error);
            }
            if lane.state.lock().end(child) {
                return;
            }
        }
    }

    fn hand_over(self: &Arc<Inner>, lane: &Arc<OpenLane>, child: usize) -> Result<(), HomeError> {
        let Some(home) = self.up(child) else {
            return Ok(());
        };
        loop {
            let Some(issue) = lane.state.lock().next_for(child) else {
                return Ok(());
            };
            match home.ensure_room(lane.id, issue.claimed) {
                Ok(()) => {}
                // Its listener comes back here.
                Err(NoRoom::Busy | NoRoom::DiskFull) => return Ok(()),
                Err(NoRoom::Failed(error)) => return Err(error),
            }
            let at = home.place(lane.id, issue.claimed)?;
            if at != issue.at {
                let what = format!(
                    "{} puts at {at} what the others put at {}",
                    self.children[child].url, issue.at
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
            let (number, len) = (issue.number, issue.len);
            drop(issue);
            lane.state.lock().issued(child);
            let (inner, lane_ref) = (Arc::downgrade(self), Arc::downgrade(lane));
            let done = move |block: Buffer, result: Result<(), HomeError>| {
                let (Some(inner), Some(lane)) = (inner.upgrade(), lane_ref.upgrade()) else {
                    return;
                };
                inner.appended(&lane, child, number, len, block, result);
            };
            home.append(lane.id, at, block, len, Box::new(done));
        }
    }

    fn appended(
        self: &Arc<Inner>,
        lane: &Arc<OpenLane>,
        child: usize,
        number: u64,
        len: usize,
        block: Buffer,
        result: Result<(), HomeError>,
    ) {
        let mut spares = lane.spares.lock();
        if spares.len() < self.children.len() * self.facts.appends_in_flight_max {
            spares.push(block);
        }
        drop(spares);
        match result {
            Ok(()) => {
                let told = lane.state.lock().stored(child, number, len);
                told.into_iter().for_each(lane::Told::tell);
                self.trim_passed(lane, child);
                self.pump(lane, child);
            }
            Err(error) => self.append_failed(lane, child, error),
        }
    }

    /// Notes which children still have appends to come in a segment that is to go: one that is slow would be given them, and find
    /// them gone.
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
        let Some(home) = self.up(child).cloned() else {
            return;
        };
        for segment in passed {
            let (home, id) = (Arc::clone(&home), lane.id);
            let url = self.children[child].url.clone();
            self.children[child].run_in(Line::Removal, move || {
                if let Err(error) = home.trim(id, segment) {
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
                        let home = Arc::clone(home);
                        let mut buffer = given.lock().take()?;
                        Some(Box::new(move || {
                            let count = home.read(lane, at, &mut buffer)?;
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
                home.read(lane, at, into)
            };
            match result {
                Ok(count) => return Ok(count),
                Err(error) => self.leave_out(child, format!("reading it: {error}")),
            }
        }
        self.enough_to_judge()?;
        Ok(0)
    }

    /// Are enough members up to say what there is?
    fn enough_to_judge(&self) -> Result<(), HomeError> {
        let wanted = self.membership.lock().readers();
        match self.voters_up() >= wanted {
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
        list: impl Fn(&dyn LogHome) -> Result<T, HomeError> + Clone + Send + 'static,
    ) -> Result<Vec<(usize, T)>, HomeError> {
        let wanted = self.membership.lock().readers();
        let listed = self.must(what, wanted, &|_| Box::new(list.clone()))?;
        Ok(listed)
    }

    /// Does something to every child that is up.
    fn everywhere(
        &self,
        what: &str,
        act: impl Fn(&dyn LogHome) -> Result<(), HomeError> + Clone + Send + 'static,
    ) -> Result<(), HomeError> {
        let needed = self.membership.lock().needed();
        self.must(what, needed, &|_| Box::new(act.clone()))?;
        Ok(())
    }

    /// Removes what nothing needs any more from every child that is up. Who is slow with it, or cannot, stays a member: what it
    /// keeps is listed, and a later start removes it. So an error is only told if another server has taken over, or of a caller's mistake.
    fn remove(&self, what: &str, ask: &dyn Fn(usize) -> Ask<()>) -> Result<(), HomeError> {
        let needed = self.membership.lock().needed();
        let answers = self.ask(needed, Line::Removal, self.waits(), ask);
        for (child, answer) in answers.into_iter().enumerate() {
            let Some(Err(error)) = answer else { continue };
            if matches!(error, HomeError::Fenced(_) | HomeError::Misuse { .. }) {
                return Err(error);
            }
            tracing::warn!("log: {what} in {}: {error}", self.children[child].url);
        }
        Ok(())
    }
}

impl LogHome for ReplicatedHome {
    fn facts(&self) -> Facts {
        self.inner.facts
    }

    fn describe(&self) -> String {
        let urls: Vec<_> = self.inner.children.iter().map(|c| c.url.as_str()).collect();
        urls.join(",")
    }

    fn report(&self) -> Vec<(String, String)> {
        let inner = &self.inner;
        let ack = match inner.options.ack {
            Ack::All => "all",
            Ack::Majority => "majority",
        };
        let mut report = vec![("ack".to_owned(), ack.to_owned())];
        let votes = inner.votes();
        let lanes: Vec<_> = inner.lanes.read().values().cloned().collect();
        for (index, child) in inner.children.iter().enumerate() {
            let name = |what: &str| format!("replica {index} {what}");
            report.push((name("home"), child.url.clone()));
            let state = match child.why_down() {
                Some(why) => format!("left out: {why}"),
                None if votes[index] => "member".to_owned(),
                None => "not counted yet".to_owned(),
            };
            report.push((name("state"), state));
            let behind = lanes
                .iter()
                .map(|lane| lane.state.lock().queued_bytes(index));
            report.push((name("bytes behind"), behind.sum::<u64>().to_string()));
            if let Some(home) = child.home() {
                let own = home.report().into_iter();
                report.extend(own.map(|(what, value)| (name(&what), value)));
            }
        }
        report
    }

    fn usage(&self) -> Vec<HomeUsage> {
        let homes = self.inner.children.iter().filter_map(|child| child.home());
        homes.flat_map(|home| home.usage()).collect()
    }

    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        self.inner.check_members()?;
        let wanted = self.inner.membership.lock().readers();
        self.inner.must("fencing a lane", wanted, &|_| {
            let by = by.to_owned();
            Box::new(move |home| home.fence(lane, first_segment, &by))
        })?;
        Ok(())
    }

    fn copies(&self) -> usize {
        self.inner.children.len()
    }

    fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        self.inner.read_child(copy, lane, at, into)
    }

    fn has_copy(&self, copy: usize) -> bool {
        self.inner.up(copy).is_some()
    }

    fn copies_behind(&self) -> Vec<usize> {
        self.inner.behind()
    }

    fn rewrite_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let inner = &self.inner;
        let bytes = copied(block, len);
        let answers = ask_each(
            &inner.children,
            &inner.env,
            inner.waits(),
            &|_| false,
            &|child| {
                let home = Arc::clone(inner.up(child).filter(|_| child == copy)?);
                let bytes = Arc::clone(&bytes);
                Some(Box::new(move || home.rewrite(lane, at, &bytes, len)))
            },
        );
        let asked = inner.up(copy).is_some();
        match answers.into_iter().nth(copy).flatten() {
            Some(Ok(())) => return Ok(()),
            None if !asked => return Ok(()),
            Some(Err(error @ HomeError::Fenced(_))) => return Err(error),
            Some(Err(error)) => inner.leave_out(copy, format!("completing it: {error}")),
            None => inner.leave_out(copy, "completing it: no answer in time".to_owned()),
        }
        inner.enough_to_judge()
    }

    fn copies_completed(&self) -> Result<(), HomeError> {
        self.inner.settle_members()
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let inner = &self.inner;
        if inner.lane(lane).is_some() {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "opened at a segment that is not fresh",
            }));
        }
        let needed = inner.membership.lock().needed();
        let listening = Arc::downgrade(inner);
        inner
            .must("opening a lane", needed, &|child| {
                let listening = listening.clone();
                Box::new(move |home| {
                    home.open_lane(lane, first_segment).map_err(from_room)?;
                    let again = move || {
                        let Some(inner) = listening.upgrade() else {
                            return;
                        };
                        if let Some(lane) = inner.lane(lane) {
                            inner.pump(&lane, child);
                        }
                    };
                    home.set_room_listener(lane, Box::new(again));
                    Ok(())
                })
            })
            .map_err(NoRoom::from_home)?;
        let rollover = inner
            .facts
            .rollover
            .ok_or(HomeError::Unsupported("appends"))?;
        let mut state = ReplicatedLane::new(
            first_segment,
            rollover,
            needed,
            inner.votes(),
            inner.in_flight_max.clone(),
        );
        let mut lanes = inner.lanes.write();
        for child in 0..inner.children.len() {
            if inner.up(child).is_none() {
                let _nobody_waits = state.drop_child(child);
            }
        }
        let opened = OpenLane {
            id: lane,
            state: Mutex::new(state),
            spares: Mutex::default(),
            trims: Mutex::new(vec![BTreeSet::new(); inner.children.len()]),
        };
        lanes.insert(lane, Arc::new(opened));
        Ok(())
    }

    // There is always room: each child's own is waited for behind the queue.
    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(&self, lane: LaneId, bytes: u64) -> Result<(), NoRoom> {
        let misuse = |what| Err(NoRoom::Failed(HomeError::Misuse { lane, what }));
        let Some(open) = self.inner.lane(lane) else {
            return misuse("the lane is not open");
        };
        if bytes > self.inner.facts.room_size_bytes_max {
            return misuse("more room asked for than an append may have");
        }
        match open.state.lock().failed() {
            Some(error) => Err(NoRoom::Failed(error.clone())),
            None => Ok(()),
        }
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let misuse = |what| HomeError::Misuse { lane, what };
        let open = self.inner.lane(lane);
        let open = open.ok_or_else(|| misuse("the lane is not open"))?;
        let facts = &self.inner.facts;
        if !len.is_multiple_of(facts.block_alignment as u64) || len > facts.room_size_bytes_max {
            return Err(misuse(
                "length is not aligned or larger than an append may be",
            ));
        }
        open.state.lock().place(len)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let inner = &self.inner;
        let Some(open) = inner.lane(lane) else {
            let what = "the lane is not open";
            return done(block, Err(HomeError::Misuse { lane, what }));
        };
        let told = open.state.lock().give(at, block, len, done);
        if let Some(told) = told {
            return told.tell();
        }
        for child in 0..inner.children.len() {
            inner.pump(&open, child);
        }
        for child in 0..inner.children.len() {
            let queued = open.state.lock().queued_bytes(child);
            if queued > inner.options.lag_bytes_max && inner.up(child).is_some() {
                // Where it cannot be done without, commits wait for it.
                let _dropped = inner.do_without(child, "it cannot follow");
            }
        }
    }

    fn append_inline(
        &self,
        _lane: LaneId,
        _at: Position,
        _block: &Buffer,
        _len: usize,
    ) -> Result<(), HomeError> {
        Err(HomeError::Unsupported("writing in the caller's thread"))
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let bytes = copied(block, len);
        // Who cannot is left out. Whether those that are left are enough for the members to come, `copies_completed` judges.
        let enough = self.inner.membership.lock().readers();
        self.inner
            .must("writing a lane's end again", enough, &|_| {
                let bytes = Arc::clone(&bytes);
                Box::new(move |home| home.rewrite(lane, at, &bytes, len))
            })?;
        Ok(())
    }

    fn lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        let listed = self.inner.list("listing lanes", |home| home.lanes())?;
        let lanes: BTreeSet<_> = listed.into_iter().flat_map(|(_, lanes)| lanes).collect();
        Ok(lanes.into_iter().collect())
    }

    fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let listed = self
            .inner
            .list("listing segments", move |home| home.segments(lane))?;
        let mut longest: BTreeMap<u64, u64> = BTreeMap::new();
        for info in listed.into_iter().flat_map(|(_, segments)| segments) {
            let size = longest.entry(info.segment).or_default();
            *size = info.size_bytes.max(*size);
        }
        let info = |(segment, size_bytes)| SegmentInfo {
            segment,
            size_bytes,
        };
        Ok(longest.into_iter().map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let inner = &self.inner;
        let mut order: Vec<usize> = (0..inner.children.len()).collect();
        // What was acknowledged can be read: who has stored most comes first.
        if let Some(open) = inner.lane(lane) {
            let state = open.state.lock();
            order.sort_by_key(|&child| Reverse(state.stored_to(child)));
        }
        let mut best = 0;
        let mut other = Buffer::zeroed(into.capacity());
        for child in order {
            if inner.up(child).is_none() {
                continue;
            }
            let count = inner.read_child(child, lane, at, &mut other)?;
            if count > best {
                best = count;
                std::mem::swap(into, &mut other);
            }
            if best == into.capacity() {
                break;
            }
        }
        inner.enough_to_judge()?;
        Ok(best)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.inner.remove("sealing a segment", &|_| {
            Box::new(move |home| home.seal(lane, at))
        })
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let inner = &self.inner;
        let postponed = inner.postpone_trim(lane, segment);
        inner.remove("removing a segment", &|child| {
            let now = !postponed[child];
            Box::new(move |home| {
                if now {
                    home.trim(lane, segment)
                } else {
                    Ok(())
                }
            })
        })
    }

    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        let state = self.inner.register.lock().get()?;
        let named = state.and_then(|mut state| state.names.remove(name));
        Ok(named.map(|named| (named.bytes, Tag(named.tag))))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.inner.set(name, None, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.inner.set(name, Some(expected), bytes)
    }

    fn limit_name_requests(&self, first: Duration) {
        // The records of the register are named things of the children.
        for home in self.inner.children.iter().filter_map(|child| child.home()) {
            home.limit_name_requests(first);
        }
    }

    fn begin_side(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        side::begin(&self.inner, lane, id)
    }

    fn get_side(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner.get_side(lane, id, offset, into)
    }

    fn get_side_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner.get_side_copy(copy, lane, id, offset, into)
    }

    fn replace_side_copy(
        &self,
        damaged: usize,
        good: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError> {
        self.inner.replace_side(damaged, good, lane, id)
    }

    fn sides(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        let listed = self
            .inner
            .list("listing side segments", move |home| home.sides(lane))?;
        let ids: BTreeSet<_> = listed.into_iter().flat_map(|(_, ids)| ids).collect();
        Ok(ids.into_iter().collect())
    }

    fn give_up_side(&self, lane: LaneId, id: u64) {
        for child in 0..self.inner.children.len() {
            if let Some(home) = self.inner.up(child) {
                home.give_up_side(lane, id);
            }
        }
    }

    fn remove_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.inner.remove("removing a side segment", &|_| {
            Box::new(move |home| home.remove_side(lane, id))
        })
    }

    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.inner.put_object(id, bytes)
    }

    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.inner.read_object(id, offset, into)
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner.read_object_of(copy, id, offset, into)
    }

    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.inner.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.inner
            .everywhere("removing an object", move |home| home.remove_object(id))
    }
}

fn copied(block: &Buffer, len: usize) -> Arc<Buffer> {
    let mut copy = Buffer::zeroed(len);
    copy.as_mut_slice()
        .copy_from_slice(&block.as_slice()[..len]);
    Arc::new(copy)
}

fn from_room(error: NoRoom) -> HomeError {
    match error {
        NoRoom::Failed(error) => error,
        other => HomeError::Io {
            what: "opening a lane".to_owned(),
            source: Arc::new(std::io::Error::new(
                std::io::ErrorKind::StorageFull,
                other.to_string(),
            )),
        },
    }
}
