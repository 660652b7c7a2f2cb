//! Which children are members, and how lists of them change.
//!
//! A start opens the children of its list and reads their records. The register's value says which of them are members;
//! a majority of the members must be in the list and answer. Until recovery has made every copy complete, the recorded
//! members count and no others: what was acknowledged, was acknowledged by them. Then ([`Inner::settle_members`]) the
//! list takes their place, if all of it is there; a child that cannot be reached stays a member, marked as incomplete.
//!
//! A child that is new, or a member again after it was taken from a list, or marked, is completed block by block by
//! recovery before it counts. When the list changes, all children are: what was acknowledged by the members of old is
//! then on all of the new.

use super::child::{Child, Opener, ReplyTimeouts, ask_each, no_answer};
use super::objects::ReadOrder;
use super::quorum::{AcceptorState, is_quorum};
use super::register::{RECORD, Register, sets_of, voters_of};
use super::returning::{self, Returns};
use super::state::{Member, RegisterState, StoredAcceptor, WriteConcern};
use super::{Inner, OpenPurpose, ReplicatedHome, ReplicatedOptions};
use crate::{HomeCapabilities, HomeError, LogHome, Rollover, Tag};
use logstead_env::Env;
use logstead_types::{Epoch, LaneId};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// With this begins the manifest of a home that is a log by itself.
const MANIFEST_MAGIC: &[u8] = b"logstead manifest ";
/// Further looks at a record that cannot be read.
const LOOKS: u32 = 3;

/// A child to be opened.
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

/// Who counts, as the register has it.
pub(super) struct Membership {
    /// The member that each child is; 0: it could not be asked.
    ids: Vec<u64>,
    ack: WriteConcern,
    members: Vec<Member>,
    /// Named by the settings; recorded once all copies are complete.
    ack_wanted: WriteConcern,
}

impl Membership {
    /// Which children are members.
    pub(super) fn votes(&self, children: usize) -> Vec<bool> {
        let mut votes = vec![false; children];
        for child in voters_of(&self.members, &self.ids).into_iter().flatten() {
            votes[child] = true;
        }
        votes
    }

    /// How many members make an append durable.
    pub(super) fn needed(&self) -> usize {
        self.ack.needed(self.members.len())
    }

    /// How many members must be fenced and read.
    pub(super) fn readers(&self) -> usize {
        self.members.len() - self.needed() + 1
    }

    /// Which children are members that have all that was acknowledged.
    pub(super) fn complete(&self, children: usize) -> Vec<bool> {
        let mut complete = vec![false; children];
        let voters = voters_of(&self.members, &self.ids);
        for (member, child) in self.members.iter().zip(voters) {
            if let Some(child) = child {
                complete[child] = member.complete;
            }
        }
        complete
    }

    /// How many members are waited for with all patience, where `enough` of them would do: without `needed` nothing can
    /// be stored later on, so it helps nobody to leave those out that are slow.
    pub(super) fn waited_for(&self, enough: usize) -> usize {
        enough.max(self.needed())
    }

    /// The member that a child is, if it is known: 0 if not.
    pub(super) fn id(&self, child: usize) -> u64 {
        self.ids[child]
    }

    /// A child that could not be asked at the start is this member, unless another child is.
    pub(super) fn learn_id(&mut self, child: usize, id: u64) -> bool {
        let is_member = self.members.iter().any(|member| member.id == id);
        let is_new = is_member && !self.ids.contains(&id);
        if is_new {
            self.ids[child] = id;
        }
        is_new
    }

    /// Notes what the register says of a member.
    pub(super) fn mark(&mut self, id: u64, complete: bool) {
        for member in self.members.iter_mut().filter(|member| member.id == id) {
            member.complete = complete;
        }
    }

    fn is_listed(&self) -> bool {
        let listed: BTreeSet<u64> = self.ids.iter().copied().collect();
        listed == self.members.iter().map(|member| member.id).collect()
    }
}

fn wrong(url: &str, what: impl Into<String>) -> HomeError {
    HomeError::Url {
        url: url.to_owned(),
        what: what.into(),
    }
}

fn no_log_in(url: &str) -> HomeError {
    HomeError::Missing(format!("a Logstead log in {url}"))
}

/// Errors that another try does not cure, and that are about what was asked for.
fn is_final(error: &HomeError) -> bool {
    matches!(
        error,
        HomeError::Url { .. }
            | HomeError::Unsupported(_)
            | HomeError::Misuse { .. }
            | HomeError::InUse(_)
            | HomeError::Exposed(_)
            | HomeError::Fenced(_)
    )
}

/// The record of a child; one that has none and no log becomes a child with an empty record.
///
/// A child that holds a log of its own was named by mistake, and nothing begins. A damaged record says nothing of that
/// kind: such a child is out of reach like one that does not answer, and a majority does without. Whoever only reads
/// does without one that has no record, too.
fn record_of(
    home: &LogHome,
    url: &str,
    member: u64,
    purpose: OpenPurpose,
) -> Result<StoredAcceptor, HomeError> {
    let damaged = |why: &str| {
        let what = format!("read the record of {url} as one of several homes");
        let why = format!(
            "{why}. To give it up: empty that place; the next start with all homes fills it again"
        );
        HomeError::io(
            what,
            std::io::Error::new(std::io::ErrorKind::InvalidData, why),
        )
    };
    let read = || {
        let mut looks = 0;
        loop {
            let Some((bytes, _)) = home.names.get(RECORD)? else {
                return Ok(None);
            };
            match StoredAcceptor::decode(&bytes) {
                Ok(kept) => return Ok(Some(kept)),
                Err(_) if bytes.starts_with(MANIFEST_MAGIC) => {
                    let what = "it cannot be one of several homes: it holds a log of its own";
                    return Err(wrong(url, what));
                }
                // It may have been cut short on its way.
                Err(_) if looks < LOOKS => looks += 1,
                Err(why) => return Err(damaged(why)),
            }
        }
    };
    if let Some(kept) = read()? {
        return Ok(kept);
    }
    if purpose == OpenPurpose::Reading {
        return Err(no_log_in(url));
    }
    if !home.segments.list_lanes()?.is_empty() {
        return Err(damaged("it is gone, and the lanes of a log are there"));
    }
    let kept = StoredAcceptor {
        member,
        record: AcceptorState::default(),
    };
    match home.names.put_if_absent(RECORD, &kept.encode()) {
        Ok(_) => Ok(kept),
        // Somebody else's was quicker, or it is ours and the answer was lost.
        Err(HomeError::Conflict(_)) => {
            read()?.ok_or_else(|| HomeError::Missing(format!("the record in {url}")))
        }
        Err(error) => Err(error),
    }
}

/// What all of them can, and the rollover rule that suits all.
fn common_capabilities(
    homes: &[Option<(HomeCapabilities, Rollover)>],
    urls: &[String],
    ack: WriteConcern,
) -> Result<(HomeCapabilities, Rollover), HomeError> {
    let mut common: Option<(HomeCapabilities, Rollover)> = None;
    for (capabilities, rollover) in homes.iter().flatten() {
        let (mut both, smallest) = common.unwrap_or((*capabilities, *rollover));
        both.block_alignment = both.block_alignment.max(capabilities.block_alignment);
        both.block_size_preferred = both
            .block_size_preferred
            .max(capabilities.block_size_preferred);
        both.room_size_bytes_max = both
            .room_size_bytes_max
            .min(capabilities.room_size_bytes_max)
            .min(rollover.size_bytes);
        common = Some((both, smallest.min(*rollover)));
    }
    let (mut common, rollover) = common.ok_or_else(|| no_answer("opening the log's homes"))?;
    for (capabilities, url) in homes.iter().zip(urls) {
        let alignment = capabilities.map_or(1, |(capabilities, _)| capabilities.block_alignment);
        if !common.block_alignment.is_multiple_of(alignment) {
            return Err(wrong(url, "its alignment does not go with the others'"));
        }
    }
    // As good as `needed` of them are.
    let mut known: Vec<HomeCapabilities> = homes.iter().flatten().map(|home| home.0).collect();
    let needed = ack.needed(homes.len()).clamp(1, known.len());
    known.sort_by_key(|capabilities| std::cmp::Reverse(capabilities.appends_in_flight_max));
    common.appends_in_flight_max = known[needed - 1].appends_in_flight_max;
    known.sort_by_key(|capabilities| capabilities.append_latency_expected_us);
    common.append_latency_expected_us = known[needed - 1].append_latency_expected_us;
    // No kernel's lock holds all of them, and numbers of segments must not come twice after a child was away.
    common.leased = true;
    Ok((common, rollover))
}

impl ReplicatedHome {
    /// Opens the children, and joins them. With `all` every child must be there, unless nothing is to be changed; else
    /// a majority of the members.
    pub fn open(
        sources: Vec<Source>,
        env: &Env,
        options: ReplicatedOptions,
    ) -> Result<ReplicatedHome, HomeError> {
        let urls: Vec<String> = sources.iter().map(|source| source.url.clone()).collect();
        let list = urls.join(",");
        if sources.len() < 2 {
            return Err(wrong(&list, "several homes are two or more"));
        }
        let child = |source: Source| {
            let child = Child::new(source.url, source.open, env, options.threads);
            child.map(Arc::new)
        };
        let children: Vec<Arc<Child>> = sources.into_iter().map(child).collect::<Result<_, _>>()?;
        // On its own thread each: opened, limited, its record read or made.
        let opened: Arc<Mutex<BTreeMap<usize, LogHome>>> = Arc::default();
        let purpose = options.purpose;
        // Also the slow ones: who is left out now stays so.
        let waits = ReplyTimeouts {
            patience: options.patience,
            grace: options.patience,
        };
        let answers = ask_each(&children, env, waits, &|_| false, &|index| {
            let open = Arc::clone(&children[index].open);
            let (opened, url) = (Arc::clone(&opened), urls[index].clone());
            let member = env.random.u64().max(1);
            Some(Box::new(move || {
                let home = open()?;
                if home.rollover.is_none() {
                    return Err(no_fixed_size(&url));
                }
                let kept = record_of(&home, &url, member, purpose)?;
                opened.lock().insert(index, home);
                Ok(kept)
            }))
        });
        let mut kept: Vec<Option<StoredAcceptor>> = Vec::new();
        let mut empty = 0;
        for (index, answer) in answers.into_iter().enumerate() {
            let answer = answer.unwrap_or_else(|| Err(no_answer("opening it")));
            match answer {
                Ok(record) => {
                    if let Some(home) = opened.lock().get(&index) {
                        children[index].opened(home.clone());
                    }
                    kept.push(Some(record));
                }
                Err(error) if is_final(&error) => return Err(error),
                Err(error)
                    if options.ack == WriteConcern::All && purpose != OpenPurpose::Reading =>
                {
                    let what = format!(
                        "with ack = all every one of its homes must answer, and {} does not: {error}",
                        urls[index]
                    );
                    return Err(wrong(&list, what));
                }
                Err(error) => {
                    empty += usize::from(matches!(error, HomeError::Missing(_)));
                    children[index].not_opened(error.to_string());
                    kept.push(None);
                }
            }
        }
        if purpose == OpenPurpose::Reading && 2 * empty > kept.len() {
            return Err(no_log_in(&list));
        }
        let of_child = |child: &Arc<Child>| {
            let home = child.home()?;
            Some((home.capabilities(), home.rollover.as_ref()?.rollover()))
        };
        let capabilities: Vec<_> = children.iter().map(of_child).collect();
        let (common, rollover) = common_capabilities(&capabilities, &urls, options.ack)?;
        for home in children.iter().filter_map(|child| child.home()) {
            if let Some(own) = &home.rollover {
                own.limit_segments(rollover)?;
            }
        }
        let ids: Vec<u64> = kept
            .iter()
            .map(|kept| kept.as_ref().map_or(0, |kept| kept.member))
            .collect();
        no_place_twice(&ids, &urls)?;
        let records: Vec<_> = kept
            .into_iter()
            .map(|kept| kept.map(|k| k.record))
            .collect();
        enough_members(&records, &ids, &urls, purpose)?;
        let mut register = Register::new(children.clone(), &ids, env.clone(), &options);
        let state = match purpose {
            OpenPurpose::Reading => register.get()?.ok_or_else(|| no_log_in(&list))?,
            _ => first_state(&mut register, &ids, &urls, env, options.ack)?,
        };
        let membership = Membership {
            ids,
            ack: state.ack,
            members: state.members,
            ack_wanted: options.ack,
        };
        let latency = |home: &Option<(HomeCapabilities, Rollover)>| match home {
            Some((capabilities, _)) => capabilities.append_latency_expected_us,
            None => u32::MAX,
        };
        let latencies: Vec<u32> = capabilities.iter().map(latency).collect();
        let in_flight_max = capabilities
            .iter()
            .map(|capabilities| {
                capabilities.map_or(1, |(capabilities, _)| capabilities.appends_in_flight_max)
            })
            .collect();
        let inner = Inner {
            env: env.clone(),
            children,
            capabilities: common,
            rollover,
            in_flight_max: Mutex::new(in_flight_max),
            membership: Mutex::new(membership),
            register: Mutex::new(register),
            members_checked: AtomicBool::new(false),
            lanes: RwLock::default(),
            read_order: Mutex::new(ReadOrder::new(&latencies)),
            dropping: Mutex::default(),
            opening: Mutex::default(),
            operations: Arc::default(),
            fences: Mutex::default(),
            settled: AtomicBool::new(false),
            settled_epoch: AtomicU64::new(0),
            name_requests_limit: Mutex::default(),
            returns: Returns::default(),
            options,
        };
        let inner = Arc::new(inner);
        if inner.options.threads && inner.options.purpose != OpenPurpose::Reading {
            returning::start(&inner)?;
        }
        Ok(ReplicatedHome { inner })
    }
}

pub(super) fn no_fixed_size(url: &str) -> HomeError {
    let what = "it cannot be one of several homes: its segments have no fixed size";
    wrong(url, what)
}

fn no_place_twice(ids: &[u64], urls: &[String]) -> Result<(), HomeError> {
    for (index, id) in ids.iter().enumerate() {
        let before = ids[..index].iter().position(|other| other == id);
        if let Some(before) = before.filter(|_| *id != 0) {
            let what = format!("it is the same place as {}", urls[before]);
            return Err(wrong(&urls[index], what));
        }
    }
    Ok(())
}

/// Do the records belong together, and are they enough?
fn enough_members(
    records: &[Option<AcceptorState<RegisterState>>],
    ids: &[u64],
    urls: &[String],
    purpose: OpenPurpose,
) -> Result<(), HomeError> {
    let list = urls.join(",");
    let accepted = |index: usize| records[index].as_ref()?.accepted.as_ref();
    let newest = (0..records.len())
        .filter_map(accepted)
        .max_by_key(|(ballot, _)| *ballot);
    let Some((_, newest)) = newest else {
        let there = ids.iter().filter(|id| **id != 0).count();
        let what = match purpose {
            OpenPurpose::Reading => return Err(no_log_in(&list)),
            OpenPurpose::NewPlace if 2 * there > ids.len() => return Ok(()),
            OpenPurpose::NewPlace => {
                "a new log needs most of its homes, and too few of them answer"
            }
            OpenPurpose::Log if there == ids.len() => return Ok(()),
            OpenPurpose::Log => "a new log needs all of its homes, and not all of them answer",
        };
        return Err(wrong(&list, what));
    };
    for (index, url) in urls.iter().enumerate() {
        if accepted(index).is_some_and(|(_, state)| state.home != newest.home) {
            let what = "it belongs to another log than the others";
            return Err(wrong(url, what));
        }
    }
    if !is_quorum(&sets_of(newest, ids), &|_| true) {
        let members: Vec<_> = newest.members.iter().map(|m| m.url.as_str()).collect();
        let what = format!(
            "a majority of the log's homes ({}) must be among them and answer",
            members.join(", ")
        );
        return Err(wrong(&list, what));
    }
    Ok(())
}

/// The register's value; makes the first, of the children that are there, or ends a change of the list that somebody
/// began.
fn first_state(
    register: &mut Register,
    ids: &[u64],
    urls: &[String],
    env: &Env,
    ack: WriteConcern,
) -> Result<RegisterState, HomeError> {
    let there = ids.iter().zip(urls).filter(|(id, _)| **id != 0);
    let members = there.map(|(&id, url)| Member {
        id,
        complete: true,
        url: url.clone(),
    });
    let first = RegisterState {
        home: env.random.u64(),
        ack,
        members: members.collect(),
        leaving: Vec::new(),
        names: BTreeMap::new(),
    };
    let missing = || HomeError::Missing("the list of members".to_owned());
    let state = match register.get()? {
        Some(state) => state,
        None => {
            let make = |state: Option<&RegisterState>| state.is_none().then(|| first.clone());
            register.propose(&make)?.ok_or_else(missing)?
        }
    };
    if state.leaving.is_empty() {
        return Ok(state);
    }
    // `get` has seen to it that this value is chosen: the second step may follow.
    finish_change(register, &state.members)
}

/// The second step of a change of the list, after the first was chosen.
fn finish_change(register: &mut Register, members: &[Member]) -> Result<RegisterState, HomeError> {
    let chosen = register.propose(&|state| {
        let mut state = state?.clone();
        let same = state
            .members
            .iter()
            .map(|m| m.id)
            .eq(members.iter().map(|m| m.id));
        if !same || state.leaving.is_empty() {
            return None;
        }
        state.leaving.clear();
        Some(state)
    })?;
    chosen.ok_or_else(|| HomeError::Missing("the list of members".to_owned()))
}

/// Are they the same, whatever marks they have?
fn same_members(some: &[Member], others: &[Member]) -> bool {
    some.iter().map(|m| m.id).eq(others.iter().map(|m| m.id))
}

impl Inner {
    /// Who opened this has the lease now: are the members still those that were read before?
    pub(super) fn check_members(&self) -> Result<(), HomeError> {
        if self.members_checked.load(Ordering::SeqCst) {
            return Ok(());
        }
        let state = self.register.lock().get()?;
        let state = state.ok_or_else(|| HomeError::Missing("the list of members".to_owned()))?;
        let mut membership = self.membership.lock();
        if !same_members(&state.members, &membership.members)
            || state.ack != membership.ack
            || !state.leaving.is_empty()
        {
            return Err(HomeError::Conflict(
                "the list of the log's homes".to_owned(),
            ));
        }
        // Who is marked has to be completed.
        membership.members = state.members;
        self.members_checked.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Who only reads may have opened this long ago: a server that has started since may acknowledge by another rule,
    /// and then more members must be read. What is read after a named thing is judged by the rule that held when that
    /// was read.
    pub(super) fn read_as(&self, state: &RegisterState) -> Result<(), HomeError> {
        if self.options.purpose != OpenPurpose::Reading {
            return Ok(());
        }
        let mut membership = self.membership.lock();
        if !same_members(&state.members, &membership.members) {
            return Err(HomeError::Conflict(
                "the list of the log's homes".to_owned(),
            ));
        }
        membership.ack = state.ack;
        membership.members.clone_from(&state.members);
        Ok(())
    }

    /// Children that recovery must compare block by block.
    pub(super) fn behind(&self) -> Vec<usize> {
        let membership = self.membership.lock();
        let more_wanted =
            membership.ack_wanted == WriteConcern::All && membership.ack == WriteConcern::Majority;
        let all = more_wanted || !membership.is_listed() && !membership.ids.contains(&0);
        let behind = |&child: &usize| {
            let id = membership.ids[child];
            let member = membership.members.iter().find(|member| member.id == id);
            self.up(child).is_some() && (all || member.is_none_or(|member| !member.complete))
        };
        (0..self.children.len()).filter(behind).collect()
    }

    /// All copies that are up are complete: side segments and objects too, and then the list becomes the members.
    pub(super) fn settle_members(&self, epoch: Epoch) -> Result<(), HomeError> {
        self.complete_sides(epoch)?;
        self.complete_objects()?;
        let up: Vec<bool> = (0..self.children.len())
            .map(|child| self.up(child).is_some())
            .collect();
        let mut register = self.register.lock();
        let mut membership = self.membership.lock();
        let all_up = up.iter().all(|up| *up);
        if membership.ack_wanted == WriteConcern::All && !all_up {
            let what = "with ack = all every one of the log's homes must answer";
            return Err(no_answer(what));
        }
        let complete = |id: u64| {
            let child = membership.ids.iter().position(|other| *other == id);
            child.is_some_and(|child| up[child])
        };
        let members: Vec<Member> = if all_up {
            let listed = membership.ids.iter().zip(&self.children);
            let member = |(&id, child): (&u64, &Arc<Child>)| Member {
                id,
                complete: true,
                url: child.url.clone(),
            };
            listed.map(member).collect()
        } else {
            let recorded = membership.members.iter().cloned();
            let marked = |member: Member| Member {
                complete: complete(member.id),
                ..member
            };
            recorded.map(marked).collect()
        };
        let ack = membership.ack_wanted;
        // Each child that is up has whatever recovery wrote.
        if members.iter().filter(|member| member.complete).count() < ack.needed(members.len()) {
            return Err(no_answer("completing enough of the log's homes"));
        }
        let moves = !membership.is_listed() && all_up;
        let before = membership.members.clone();
        let ack_before = membership.ack;
        // Also where nothing is to change: that what was read at the start is still so, only the register knows.
        let chosen = register.propose_leased(&|state| {
            let mut state = state?.clone();
            // Marks may have come with a change of the lease; an earlier attempt of this may be what is there.
            if !same_members(&state.members, &before)
                || state.ack != ack_before
                || !state.leaving.is_empty()
                || state.members == members && state.ack == ack
            {
                return None;
            }
            state.members.clone_from(&members);
            state.ack = ack;
            if moves {
                state.leaving.clone_from(&before);
            }
            Some(state)
        })?;
        let chosen = chosen.ok_or_else(|| HomeError::Missing("the list of members".to_owned()))?;
        if chosen.members != members || chosen.ack != ack {
            return Err(HomeError::Conflict(
                "the list of the log's homes".to_owned(),
            ));
        }
        if moves {
            finish_change(&mut register, &members)?;
        }
        membership.members = members;
        membership.ack = ack;
        self.children.iter().for_each(|child| child.completed());
        let epoch = u64::from(epoch.get());
        self.settled_epoch.store(epoch, Ordering::SeqCst);
        self.settled.store(true, Ordering::SeqCst);
        self.returns.wake();
        Ok(())
    }

    /// Sets a named thing, and notes which members have been left out meanwhile.
    pub(super) fn set(
        &self,
        name: &str,
        expected: Option<Tag>,
        bytes: &[u8],
    ) -> Result<Tag, HomeError> {
        // Locked before it is looked who is up: else a child that is marked as complete meanwhile, and counts from then
        // on, would be marked again.
        let mut register = self.register.lock();
        let out: Vec<u64> = {
            let membership = self.membership.lock();
            let down = |child: &usize| self.up(*child).is_none();
            let children = (0..self.children.len()).filter(down);
            children.map(|child| membership.ids[child]).collect()
        };
        let amend = |state: &mut RegisterState| {
            for member in &mut state.members {
                member.complete &= !out.contains(&member.id);
            }
        };
        register.set(name, expected, bytes, &amend)
    }

    /// Copies side segments that are whole somewhere to where they are not. Not those of epochs after `epoch`: who
    /// writes them has taken over from this start, and is perhaps just sending the parts that are missing, with borders
    /// of its own.
    fn complete_sides(&self, epoch: Epoch) -> Result<(), HomeError> {
        let lanes = self.list("listing lanes", |home| home.segments.list_lanes())?;
        let lanes: BTreeSet<LaneId> = lanes.into_iter().flat_map(|(_, lanes)| lanes).collect();
        for lane in lanes {
            let listed = self.list("listing side segments", move |home| {
                home.sides.list_side_segments(lane)
            })?;
            let all = listed.iter().flat_map(|(_, ids)| ids).copied();
            let all: BTreeSet<u64> = all
                .filter(|id| id >> 32 <= u64::from(epoch.get()))
                .collect();
            for id in all {
                let whole = self.has_side(lane, id)?;
                let holders = whole.iter().filter(|(_, whole)| *whole);
                let holders: Vec<usize> = holders.map(|(holder, _)| *holder).collect();
                if holders.is_empty() {
                    continue;
                }
                for (child, _) in whole.iter().filter(|(_, whole)| !whole) {
                    if let Some(target) = self.up(*child) {
                        self.copy_side(&holders, (*child, &target), lane, id)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `all` one answer says what there is, but none of the members may be left out for being slow.
    #[test]
    fn who_cannot_be_done_without_is_waited_for() {
        let membership = |ack, count: u64| Membership {
            ids: (1..=count).collect(),
            ack,
            members: (1..=count)
                .map(|id| Member {
                    id,
                    complete: true,
                    url: String::new(),
                })
                .collect(),
            ack_wanted: ack,
        };
        for (ack, count, readers, waited_for) in [
            (WriteConcern::All, 2, 1, 2),
            (WriteConcern::All, 3, 1, 3),
            (WriteConcern::Majority, 3, 2, 2),
            (WriteConcern::Majority, 4, 2, 3),
            (WriteConcern::Majority, 5, 3, 3),
        ] {
            let membership = membership(ack, count);
            assert_eq!(membership.readers(), readers);
            assert_eq!(membership.waited_for(readers), waited_for);
        }
    }
}
