//! Changes of the list of members while the home is in use.
//!
//! Somebody writes the list that is wanted into the register ([`WANTED`]); who has the lease makes it so, one home
//! after the other. A member whose place is empty (a new disk) is replaced by itself, without being asked.
//!
//! 1. The home that is new comes into a vacant slot. It is brought up as members are that come back
//!    ([`catch_up`](super::catch_up)): it has everything that was acknowledged, and is given everything new, but
//!    counts for nothing. The list is what it was.
//! 2. *Both lists count* ([`Membership::next`](super::membership::Membership)): what is stored from now on has a write
//!    quorum of either.
//! 3. It is waited until what was durable before has a write quorum of the next list too, and until what had begun
//!    before is over.
//! 4. The register names the next list, with the one before as *leaving*; and then the next one alone.
//! 5. The next list alone counts. Who is no member any more is not asked any more.
//!
//! **Why nothing is lost.**
//! - *Whichever list a start goes by has everything.* The next list is proposed only when everything that was
//!   acknowledged has a write quorum of both, and whatever is acknowledged from then on has one of both until the
//!   register is known to name the next list alone. So it does not matter if the answer to 4 is lost: both count until
//!   a later attempt tells.
//! - *Nobody decides by one list what another decides by the other.* The register's value between names both, and takes
//!   majorities of both ([`caspaxos`](super::caspaxos)).
//! - *It can be taken back* at any moment before 4: the members of before count all the while, and the one that is to
//!   go is given everything as long as it is up. So nothing is lost by suspecting a member that comes back.
//! - *Who was fenced out stays so (T3).* A start fences a read quorum of the list that the register names, and looks
//!   again at that list when it has the lease; nobody else changes it then. The server of before counted by that list
//!   before the register could name it: it has no write quorum any more, whatever it still reaches of other lists.
//!
//! **Repair.** A member that somebody wants compared with the others counts as ever while its objects are looked at,
//! which may take hours. Then it is left out, and comes back as one that was away: that compares the log, which is
//! short, and gives it better copies of the objects that were found. It is not left out while the others are too few
//! without it. A change of the list, and whoever was emptied, go first: the look begins anew after that.
//!
//! Does not: choose new homes, or change who must acknowledge (`ack`): the next start does that.

mod list;
#[cfg(test)]
mod tests;

use super::catch_up::Opened;
use super::child::{Source, Standing};
use super::lane::AppendOutcome;
use super::membership::{Membership, Quorum, Quorums};
use super::open::{finish_change, same_members};
use super::state::Member;
use super::{Inner, Opener};
use crate::{HomeError, ObjectId};
pub use list::MemberList;
pub(crate) use list::repair_of;
use list::{MemberSwap, next_swap, urls_to_repair, wanted_urls, without_repair};
use logstead_env::Instant;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Between two looks whether what is waited for has come.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// After an attempt at the register that had no answer.
const PROPOSE_PAUSE: Duration = Duration::from_secs(1);

/// Opens the home of a member by its URL.
pub type MemberOpener = Arc<dyn Fn(&str) -> Opener + Send + Sync>;

/// How far a change is.
#[derive(Default)]
enum Phase {
    /// Another server has taken over.
    Never,
    #[default]
    Idle,
    /// The new home gets everything.
    CatchingUp { slot: usize, swap: MemberSwap },
    /// A member's objects are looked at, while it counts as ever.
    Examining {
        examined: Examined,
        to_mend: mpsc::Receiver<Result<Vec<ObjectId>, HomeError>>,
        /// Nobody wants to know any more.
        cancelled: Arc<AtomicBool>,
    },
    /// It is known of which others have better copies. It is left out when the others are enough without it.
    Examined {
        examined: Examined,
        to_mend: Arc<[ObjectId]>,
    },
    /// It comes back, and its lanes are compared with the others' and these objects mended on the way: when it is up in
    /// an attachment after this one, that is done.
    Mending {
        examined: Examined,
        to_mend: Arc<[ObjectId]>,
    },
    /// Both lists count; operations from this one on.
    Both {
        slot: Option<usize>,
        swap: MemberSwap,
        next: Vec<Member>,
        operations: u64,
        /// The register may have it.
        proposed: bool,
    },
}

/// A member that somebody wants compared with the others.
#[derive(Clone)]
struct Examined {
    child: usize,
    url: String,
    generation: u64,
}

/// Changes of the list of members.
#[derive(Default)]
pub(super) struct Changes {
    phase: Mutex<Phase>,
    /// The slot of the home that is new, until it is a member.
    candidate: Mutex<Option<usize>>,
    /// Members whose places were found empty.
    emptied: Mutex<BTreeSet<usize>>,
    /// Why nothing is done about the list that is wanted, for people.
    hindered: Mutex<Option<String>>,
    /// After something that was in vain.
    not_before: Mutex<Option<Instant>>,
}

impl Changes {
    pub(super) fn is_candidate(&self, child: usize) -> bool {
        *self.candidate.lock() == Some(child)
    }

    pub(super) fn note_emptied(&self, child: usize) {
        self.emptied.lock().insert(child);
    }

    pub(super) fn note_found(&self, child: usize) {
        self.emptied.lock().remove(&child);
    }

    pub(super) fn hindered(&self) -> Option<String> {
        self.hindered.lock().clone()
    }
}

impl Inner {
    /// Does what is due. Back comes after which time there may be more; `None`: when something changes.
    pub(super) fn step_change(self: &Arc<Inner>) -> Option<Duration> {
        let now = self.env.clock.monotonic();
        let pauses_until = *self.changes.not_before.lock();
        if let Some(until) = pauses_until.filter(|until| now < *until) {
            return Some(until.since(now));
        }
        let mut phase = std::mem::take(&mut *self.changes.phase.lock());
        let mut wait = None;
        // Each step that is done may be followed by another one.
        for _ in 0..8 {
            let (next, waits) = self.take_change_step(phase);
            phase = next;
            if let Some(waits) = waits {
                wait = waits;
                break;
            }
        }
        *self.changes.phase.lock() = phase;
        // Others that come back have this looked at more often.
        let pause = wait.filter(|wait| *wait == PROPOSE_PAUSE);
        *self.changes.not_before.lock() = pause.map(|pause| now + pause);
        wait
    }

    /// The outer `None`: the next step may follow.
    fn take_change_step(self: &Arc<Inner>, phase: Phase) -> (Phase, Option<Option<Duration>>) {
        match phase {
            Phase::Never => (Phase::Never, Some(None)),
            Phase::Idle => match self.begin_change().or_else(|| self.begin_examining()) {
                Some(phase) => (phase, None),
                None => (Phase::Idle, Some(None)),
            },
            Phase::Examining {
                examined,
                to_mend,
                cancelled,
            } => {
                let instead = self.instead_of_examining(&examined);
                if let Some(phase) = instead {
                    cancelled.store(true, Ordering::SeqCst);
                    return (phase, None);
                }
                match to_mend.try_recv() {
                    Ok(Ok(to_mend)) => {
                        let to_mend = to_mend.into();
                        (Phase::Examined { examined, to_mend }, None)
                    }
                    Err(mpsc::TryRecvError::Empty) => {
                        let examining = Phase::Examining {
                            examined,
                            to_mend,
                            cancelled,
                        };
                        // Whoever looks says when it is done.
                        (examining, Some(None))
                    }
                    Ok(Err(error)) => self.examined_in_vain(&examined, &error.to_string()),
                    Err(mpsc::TryRecvError::Disconnected) => {
                        self.examined_in_vain(&examined, "the thread that looks has ended")
                    }
                }
            }
            Phase::Examined { examined, to_mend } => {
                if let Some(phase) = self.instead_of_examining(&examined) {
                    return (phase, None);
                }
                let why = "it is to be compared with the others";
                if self.do_without(examined.child, examined.generation, why) {
                    *self.changes.hindered.lock() = None;
                    return (Phase::Mending { examined, to_mend }, Some(None));
                }
                self.hinder("too few of the others are there");
                (Phase::Examined { examined, to_mend }, Some(None))
            }
            Phase::Mending { examined, to_mend } => {
                let attached = self.up(examined.child);
                let attached = attached.map_or(0, |attached| attached.generation);
                let is_wanted = self.wants_comparing().contains(&examined.url);
                // What is filled anew is compared, too.
                let is_emptied = self.changes.emptied.lock().contains(&examined.child);
                let is_done = attached > examined.generation || is_emptied;
                if is_wanted && !is_done {
                    // What keeps it away may last: then a change goes first, and the look begins anew after that.
                    let is_away = self.children[examined.child].standing() == Standing::Down;
                    let instead = is_away.then(|| self.begin_change()).flatten();
                    return match instead {
                        Some(phase) => (phase, None),
                        None => (Phase::Mending { examined, to_mend }, Some(None)),
                    };
                }
                match self.edit_members(&|present| Ok(without_repair(present, &examined.url))) {
                    Ok(_) => (Phase::Idle, None),
                    Err(error) => {
                        tracing::warn!("log: the list of the log's homes: {error}");
                        let mending = Phase::Mending { examined, to_mend };
                        (mending, Some(Some(PROPOSE_PAUSE)))
                    }
                }
            }
            Phase::CatchingUp { slot, swap } => {
                if !self.is_still_wanted(&swap) {
                    self.vacate(slot);
                    return (Phase::Idle, None);
                }
                let is_absent = self.children[slot].home().is_none();
                if is_absent && self.is_anyone_emptied(&swap) {
                    // One that does not answer keeps no other one waiting.
                    self.vacate(slot);
                    return (Phase::Idle, None);
                }
                let is_up = self.children[slot].standing() == Standing::Up;
                match is_up.then(|| self.begin_both(Some(slot), &swap)).flatten() {
                    Some(phase) => (phase, None),
                    None => (Phase::CatchingUp { slot, swap }, Some(None)),
                }
            }
            Phase::Both {
                slot,
                swap,
                next,
                operations,
                proposed,
            } => {
                let is_up = slot.is_none_or(|slot| self.children[slot].standing() == Standing::Up);
                if !is_up && !proposed {
                    self.count_by(None);
                    let slot = slot.unwrap_or_default();
                    return (Phase::CatchingUp { slot, swap }, Some(None));
                }
                let both = |proposed| Phase::Both {
                    slot,
                    swap: swap.clone(),
                    next: next.clone(),
                    operations,
                    proposed,
                };
                if !proposed && !self.has_both(operations) {
                    return (both(false), Some(Some(LOOK_INTERVAL)));
                }
                let urls = [swap.add.clone(), self.recorded_url(swap.remove)];
                match self.decide(&next) {
                    Ok(()) => {
                        self.end_change(slot, &swap, &urls);
                        (Phase::Idle, None)
                    }
                    // Who has taken over goes by what the register says; this server learns it by its lease, and
                    // changes nothing any more.
                    Err(HomeError::Fenced(_)) => (Phase::Never, Some(None)),
                    Err(error) => {
                        tracing::warn!("log: the list of the log's homes: {error}");
                        (both(!self.is_undecided()), Some(Some(PROPOSE_PAUSE)))
                    }
                }
            }
        }
    }

    /// Has the register the list of before, for good, whatever became of earlier attempts? Else it may have the next.
    fn is_undecided(&self) -> bool {
        let mut register = self.register.lock();
        let before = self.membership.lock().members.clone();
        let chosen = register.propose(&|_| None).ok().flatten();
        chosen
            .is_some_and(|state| same_members(&state.members, &before) && state.leaving.is_empty())
    }

    fn next_swap(&self) -> Option<MemberSwap> {
        let wanted = self.register.lock().wanted().map(wanted_urls);
        let membership = self.membership.lock();
        let child_of = |id: u64| membership.ids.iter().position(|other| *other == id);
        let is_up = |child: usize| self.children[child].standing() == Standing::Up;
        let stands = |member: &Member| child_of(member.id).is_some_and(is_up);
        let members = membership
            .members
            .iter()
            .map(|member| (member, stands(member)));
        let members: Vec<(&Member, bool)> = members.collect();
        let emptied = self.emptied_members(&membership);
        next_swap(&members, &emptied, wanted.as_deref())
    }

    /// The members whose places are empty. One that was away since the start is known by its URL.
    fn emptied_members(&self, membership: &Membership) -> Vec<u64> {
        let member = |&child: &usize| {
            let (id, url) = (membership.id(child), self.children[child].url());
            let is_it = |member: &&Member| match id {
                0 => member.url == url && !membership.ids.contains(&member.id),
                id => member.id == id,
            };
            membership
                .members
                .iter()
                .find(is_it)
                .map(|member| member.id)
        };
        self.changes
            .emptied
            .lock()
            .iter()
            .filter_map(member)
            .collect()
    }

    /// Is another member's place empty?
    fn is_anyone_emptied(&self, swap: &MemberSwap) -> bool {
        let membership = self.membership.lock();
        let emptied = self.emptied_members(&membership);
        swap.remove.is_none_or(|id| !emptied.contains(&id)) && !emptied.is_empty()
    }

    /// Nobody has changed his mind about it.
    fn is_still_wanted(&self, swap: &MemberSwap) -> bool {
        let wanted = self.register.lock().wanted().map(wanted_urls);
        let is_wanted = |url: &String| wanted.as_ref().is_none_or(|wanted| wanted.contains(url));
        let membership = self.membership.lock();
        let emptied = self.emptied_members(&membership);
        let leaves = |id: u64| {
            let mut members = membership.members.iter();
            let member = members.find(|member| member.id == id);
            member.is_some_and(|member| emptied.contains(&id) || !is_wanted(&member.url))
        };
        swap.add.iter().all(is_wanted) && swap.remove.is_none_or(leaves)
    }

    /// Begins the next change, if there is one that can be.
    fn begin_change(self: &Arc<Inner>) -> Option<Phase> {
        *self.changes.hindered.lock() = None;
        let swap = self.next_swap()?;
        let Some(url) = &swap.add else {
            return self.begin_both(None, &swap);
        };
        let same_place = self.children.iter().find_map(|child| {
            let source = child.source()?;
            (source.url == *url).then_some(source.open)
        });
        let by_url = || self.open_member.as_ref().map(|open| open(url));
        let Some(open) = same_place.or_else(by_url) else {
            return self
                .hinder("homes of a list are changed by the list that the next start is given");
        };
        let Some(slot) = self.children.iter().position(|child| child.is_vacant()) else {
            return self.hinder(
                "too many homes have been added since the start: the next one adds the rest",
            );
        };
        tracing::info!("log: {url} is to be one of the log's homes");
        self.children[slot].occupy(Source {
            url: url.clone(),
            open,
        });
        *self.changes.candidate.lock() = Some(slot);
        self.returns.wake();
        Some(Phase::CatchingUp { slot, swap })
    }

    /// The objects of which this child, which comes back, is to be given better copies. Asked between two steps.
    pub(super) fn mended_at(&self, child: usize) -> Arc<[ObjectId]> {
        match &*self.changes.phase.lock() {
            Phase::Mending { examined, to_mend } if examined.child == child => Arc::clone(to_mend),
            _ => Arc::default(),
        }
    }

    fn wants_comparing(&self) -> Vec<String> {
        let register = self.register.lock();
        register.wanted().map(urls_to_repair).unwrap_or_default()
    }

    /// Begins to look at the objects of a member that somebody wants compared: the first one that is up.
    fn begin_examining(self: &Arc<Inner>) -> Option<Phase> {
        let wanted = self.wants_comparing();
        let members: Vec<(usize, String)> = {
            let membership = self.membership.lock();
            let members = membership.members.iter();
            let members = members.filter(|member| wanted.contains(&member.url));
            let child = |member: &Member| {
                let child = membership.ids.iter().position(|id| *id == member.id)?;
                Some((child, member.url.clone()))
            };
            members.filter_map(child).collect()
        };
        let is_wanted = !members.is_empty();
        let up = members.into_iter().find_map(|(child, url)| {
            let generation = self.up(child)?.generation;
            Some(Examined {
                child,
                url,
                generation,
            })
        });
        let Some(examined) = up else {
            return match is_wanted {
                // It is woken when one comes back.
                true => self.hinder("what is to be compared is away"),
                false => None,
            };
        };
        let (tell, to_mend) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let (inner, is_cancelled) = (Arc::clone(self), Arc::clone(&cancelled));
        let (child, generation) = (examined.child, examined.generation);
        let looking = self.aside(move || {
            let goes_on = || !is_cancelled.load(Ordering::SeqCst) && !inner.returns.is_closed();
            let found = inner.objects_to_mend(child, generation, &goes_on);
            let _heard = tell.send(found);
            inner.returns.wake();
        });
        match looking {
            Ok(()) => Some(Phase::Examining {
                examined,
                to_mend,
                cancelled,
            }),
            Err(error) => self.hinder(&error.to_string()),
        }
    }

    /// What is to be done in the place of looking at a member: a change that can begin now; or nothing any more, if it
    /// has gone down, or nobody wants it compared.
    fn instead_of_examining(self: &Arc<Inner>, examined: &Examined) -> Option<Phase> {
        let attached = self.up(examined.child);
        let is_same = attached.is_some_and(|attached| attached.generation == examined.generation);
        if !is_same || !self.wants_comparing().contains(&examined.url) {
            return Some(Phase::Idle);
        }
        self.begin_change()
    }

    fn examined_in_vain(
        &self,
        examined: &Examined,
        why: &str,
    ) -> (Phase, Option<Option<Duration>>) {
        tracing::warn!("log: comparing {} with the others: {why}", examined.url);
        (Phase::Idle, Some(Some(PROPOSE_PAUSE)))
    }

    fn hinder(&self, why: &str) -> Option<Phase> {
        *self.changes.hindered.lock() = Some(why.to_owned());
        None
    }

    /// The list as it will be.
    fn list_after(&self, slot: Option<usize>, swap: &MemberSwap) -> Vec<Member> {
        let membership = self.membership.lock();
        let stays = |member: &&Member| Some(member.id) != swap.remove;
        let mut next: Vec<Member> = membership.members.iter().filter(stays).cloned().collect();
        if let (Some(slot), Some(url)) = (slot, &swap.add) {
            next.push(Member {
                id: membership.id(slot),
                complete: true,
                url: url.clone(),
            });
        }
        next
    }

    /// Both lists count, unless with the next one nothing could be stored.
    fn begin_both(self: &Arc<Inner>, slot: Option<usize>, swap: &MemberSwap) -> Option<Phase> {
        let next = self.list_after(slot, swap);
        {
            let membership = self.membership.lock();
            let complete: Vec<bool> = membership.complete();
            let has_all = |child: usize| complete[child] || Some(child) == slot;
            let is_there = |child: usize| has_all(child) && self.up(child).is_some();
            let is_enough = |quorums: Quorums| quorums.has(Quorum::Write, &is_there);
            if !is_enough(membership.quorums_of(&next)) || !is_enough(membership.quorums()) {
                drop(membership);
                return self.hinder("too few of the others are there");
            }
        }
        self.count_by(Some(next.clone()));
        Some(Phase::Both {
            slot,
            swap: swap.clone(),
            next,
            operations: self.operations.next(),
            proposed: false,
        })
    }

    /// Has everything that is acknowledged a write quorum of both lists?
    fn has_both(&self, operations: u64) -> bool {
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        let settled = lanes
            .iter()
            .all(|lane| lane.state.lock().is_settled_by_rule());
        settled && self.operations.are_over_before(operations)
    }

    /// The list beside the present one that counts too.
    fn count_by(&self, next: Option<Vec<Member>>) {
        let mut told: Vec<AppendOutcome> = Vec::new();
        {
            let _no_lane_is_opened = self.opening.lock();
            let quorums = {
                let mut membership = self.membership.lock();
                membership.next = next;
                membership.quorums()
            };
            told.extend(self.count_lanes_by(&quorums));
        }
        told.into_iter().for_each(AppendOutcome::complete);
    }

    pub(super) fn count_lanes_by(&self, quorums: &Quorums) -> Vec<AppendOutcome> {
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        let told = lanes
            .iter()
            .map(|lane| lane.state.lock().count_by(quorums.clone()));
        told.flatten().collect()
    }

    /// Has the register name the next list, alone.
    fn decide(&self, next: &[Member]) -> Result<(), HomeError> {
        let mut register = self.register.lock();
        let before = self.membership.lock().members.clone();
        let out = self.ids_down();
        let chosen = register.propose_leased(&|state| {
            let mut state = state?.clone();
            if !same_members(&state.members, &before) || !state.leaving.is_empty() {
                return None;
            }
            // Marks may have come meanwhile.
            let as_marked = |member: &Member| {
                let marked = state.members.iter().find(|other| other.id == member.id);
                // The new one may have gone since it was complete.
                let unmarked = || Member {
                    complete: !out.contains(&member.id),
                    ..member.clone()
                };
                marked.cloned().unwrap_or_else(unmarked)
            };
            let next = next.iter().map(as_marked).collect();
            state.leaving = std::mem::replace(&mut state.members, next);
            Some(state)
        })?;
        let missing = || HomeError::Missing("the list of members".to_owned());
        let mut chosen = chosen.ok_or_else(missing)?;
        if !same_members(&chosen.members, next) {
            let what = "the list of the log's homes".to_owned();
            return Err(HomeError::Conflict(what));
        }
        if !chosen.leaving.is_empty() {
            chosen = finish_change(&mut register, next)?;
        }
        if !same_members(&chosen.members, next) || !chosen.leaving.is_empty() {
            let what = "the list of the log's homes".to_owned();
            return Err(HomeError::Conflict(what));
        }
        let mut membership = self.membership.lock();
        membership.members = chosen.members;
        Ok(())
    }

    fn recorded_url(&self, member: Option<u64>) -> Option<String> {
        let membership = self.membership.lock();
        let mut members = membership.members.iter();
        let member = members.find(|of| Some(of.id) == member)?;
        Some(member.url.clone())
    }

    /// The register has it.
    fn end_change(
        self: &Arc<Inner>,
        slot: Option<usize>,
        swap: &MemberSwap,
        urls: &[Option<String>],
    ) {
        let gone: Vec<usize> = {
            let membership = self.membership.lock();
            // One that was away since the start is known by its place only.
            let has_gone = |&child: &usize| match membership.id(child) {
                0 => {
                    let source = self.children[child].source();
                    source.is_some_and(|source| urls.contains(&Some(source.url)))
                }
                id => swap.remove == Some(id),
            };
            let others = (0..self.children.len()).filter(|child| Some(*child) != slot);
            others.filter(has_gone).collect()
        };
        *self.changes.candidate.lock() = None;
        self.count_by(None);
        if let Some(url) = &swap.add {
            tracing::info!("log: {url} is one of the log's homes now, and complete");
        }
        for gone in gone {
            tracing::info!(
                "log: {} is none of the log's homes any more",
                self.children[gone].url()
            );
            self.vacate(gone);
        }
    }

    /// Reads from these members from now on. One that cannot be opened is left out, as at the start.
    /// Called by one at a time.
    pub(super) fn read_from(&self, members: &[Member], open_member: &MemberOpener) {
        let ids = self.membership.lock().ids.clone();
        let is_listed = |id: u64| members.iter().any(|member| member.id == id);
        for (slot, id) in ids.iter().enumerate() {
            if !self.children[slot].is_vacant() && !is_listed(*id) {
                self.vacate(slot);
            }
        }
        for member in members.iter().filter(|member| !ids.contains(&member.id)) {
            let mut slots = self.children.iter().enumerate();
            let Some((slot, child)) = slots.find(|(_, child)| child.is_vacant()) else {
                tracing::warn!("log: {} is not read: it is one too many", member.url);
                continue;
            };
            child.occupy(Source {
                url: member.url.clone(),
                open: open_member(&member.url),
            });
            let open = self.opening(slot);
            let attached = open.and_then(|open| {
                let Opened { home, record } = open()?;
                match record {
                    Some(record) if record.member == member.id => child.attach(home),
                    _ => Err(HomeError::Missing(format!("the member in {}", member.url))),
                }
            });
            match attached {
                Ok((attached, _)) => {
                    child.is_read(attached.generation);
                    self.membership.lock().ids[slot] = member.id;
                    let mut register = self.register.lock();
                    register.attached(slot, member.id, attached.generation);
                }
                Err(error) => child.stays_down(error.to_string()),
            }
        }
    }

    /// A home goes that is no member, or not yet.
    fn vacate(&self, slot: usize) {
        if let Some(attached) = self.children[slot].home() {
            self.leave_out(slot, attached.generation, "it is no member".to_owned());
            let mut lingering = self.returns.lingering.lock();
            lingering.retain(|(_, attached)| attached.is_in_use());
            lingering.push((self.children[slot].url(), attached));
        }
        let mut candidate = self.changes.candidate.lock();
        candidate.take_if(|candidate| *candidate == slot);
        drop(candidate);
        self.changes.emptied.lock().remove(&slot);
        self.children[slot].vacate();
        self.membership.lock().ids[slot] = 0;
        for fence in self.fences.lock().iter_mut() {
            fence.done.remove(&slot);
        }
        self.register.lock().detached(slot);
    }
}
