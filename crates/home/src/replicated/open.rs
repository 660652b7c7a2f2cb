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

use super::capabilities::common_capabilities;
use super::caspaxos::{AcceptorState, is_quorum};
use super::catch_up::{self, Returns};
use super::child::{Child, Opener, ReplyTimeouts, Source, ask_each, no_answer};
use super::membership::Membership;
use super::membership_change::{Changes, MemberOpener};
use super::objects::ReadOrder;
use super::register::{RECORD, Register, WANTED, sets_of};
use super::state::{Member, NamedValue, RegisterState, StoredAcceptor, WriteConcern};
use super::{Inner, OpenPurpose, ReplicatedHome, ReplicatedOptions};
use crate::{HomeCapabilities, HomeError, LogHome, Rollover, Tag};
use logstead_env::{Env, LongMutex};
use logstead_types::{Epoch, LaneId};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// With this begins the manifest of a home that is a log by itself.
const MANIFEST_MAGIC: &[u8] = b"logstead manifest ";
/// Further looks at a record that cannot be read.
const LOOKS: u32 = 3;
/// Slots for homes that become members while this one is in use.
const SPARE_SLOTS: usize = 4;
/// How often a list that was read may name homes that know of a newer one.
const LISTS_MAX: usize = 4;

pub(super) fn wrong(url: &str, what: impl Into<String>) -> HomeError {
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
pub(super) fn record_of(
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

/// A child, and what its opening has told.
struct OpenedChild {
    child: Arc<Child>,
    kept: Option<StoredAcceptor>,
    /// There is no log.
    is_empty: bool,
}

/// Opens children, each on a thread of its own: opened, its record read, or made if it is for more than reading.
fn open_children(
    sources: Vec<Source>,
    env: &Env,
    options: &ReplicatedOptions,
    purpose: OpenPurpose,
) -> Result<Vec<OpenedChild>, HomeError> {
    let urls: Vec<String> = sources.iter().map(|source| source.url.clone()).collect();
    let openers: Vec<Opener> = sources
        .iter()
        .map(|source| Arc::clone(&source.open))
        .collect();
    let child = |source: Source| Child::new(Some(source), env, options.threads).map(Arc::new);
    let children: Vec<Arc<Child>> = sources.into_iter().map(child).collect::<Result<_, _>>()?;
    let homes: Arc<Mutex<BTreeMap<usize, LogHome>>> = Arc::default();
    // Also the slow ones: who is left out now is brought back only later.
    let waits = ReplyTimeouts {
        patience: options.patience,
        grace: options.patience,
    };
    let answers = ask_each(&children, env, waits, &|_| false, &|index| {
        let (open, homes, url) = (
            Arc::clone(&openers[index]),
            Arc::clone(&homes),
            urls[index].clone(),
        );
        let member = env.random.u64().max(1);
        Some(Box::new(move || {
            let home = open()?;
            if home.rollover.is_none() {
                return Err(no_fixed_size(&url));
            }
            let kept = record_of(&home, &url, member, purpose)?;
            homes.lock().insert(index, home);
            Ok(kept)
        }))
    });
    let mut opened = Vec::new();
    for (index, (child, answer)) in children.into_iter().zip(answers).enumerate() {
        let (kept, is_empty) = match answer.unwrap_or_else(|| Err(no_answer("opening it"))) {
            Ok(kept) => {
                if let Some(home) = homes.lock().get(&index) {
                    child.opened(home.clone());
                }
                (Some(kept), false)
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) if options.ack == WriteConcern::All && purpose != OpenPurpose::Reading => {
                let what = format!(
                    "with ack = all every one of its homes must answer, and {} does not: {error}",
                    urls[index]
                );
                return Err(wrong(&urls.join(","), what));
            }
            Err(error) => {
                child.not_opened(error.to_string());
                (None, matches!(error, HomeError::Missing(_)))
            }
        };
        opened.push(OpenedChild {
            child,
            kept,
            is_empty,
        });
    }
    Ok(opened)
}

/// A URL without its options.
fn place_of(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

/// Opens the members that the newest record names, wherever that was found; where there is none, the seeds.
fn open_recorded(
    seeds: Vec<Source>,
    open_member: &MemberOpener,
    env: &Env,
    options: &ReplicatedOptions,
) -> Result<Vec<OpenedChild>, HomeError> {
    // Nothing is made in a place that may be none of the log's.
    let mut opened = open_children(seeds.clone(), env, options, OpenPurpose::Reading)?;
    let accepted = |opened: &OpenedChild| opened.kept.as_ref()?.record.accepted.clone();
    let home = opened
        .iter()
        .find_map(accepted)
        .map(|(_, state)| state.home);
    for opened in &opened {
        if accepted(opened).is_some_and(|(_, state)| Some(state.home) != home) {
            let what = "it belongs to another log than the others";
            return Err(wrong(&opened.child.url(), what));
        }
    }
    for _ in 0..LISTS_MAX {
        let newest = opened.iter().filter_map(accepted);
        let Some((_, state)) = newest.max_by_key(|(ballot, _)| *ballot) else {
            break;
        };
        let mut listed: Vec<OpenedChild> = Vec::new();
        let mut unknown: Vec<Source> = Vec::new();
        for member in state.members.iter().chain(&state.leaving) {
            let is_it = |opened: &OpenedChild| match &opened.kept {
                Some(kept) => kept.member == member.id,
                None => opened.child.url() == member.url,
            };
            if let Some(index) = opened.iter().position(is_it) {
                listed.push(opened.swap_remove(index));
                continue;
            }
            // What has taken the member's place, and its record with it, is there under the same URL.
            let is_there = |url: &str| place_of(url) == place_of(&member.url);
            let is_listed = listed.iter().any(|opened| is_there(&opened.child.url()));
            if !is_listed && !unknown.iter().any(|of| is_there(&of.url)) {
                unknown.push(Source {
                    url: member.url.clone(),
                    open: open_member(&member.url),
                });
            }
        }
        if unknown.is_empty() {
            return Ok(listed);
        }
        for mut opened in open_children(unknown, env, options, OpenPurpose::Reading)? {
            if accepted(&opened).is_some_and(|(_, state)| Some(state.home) != home) {
                opened.kept = None;
                let why = "it belongs to another log";
                opened.child.not_opened(why.to_owned());
            }
            listed.push(opened);
        }
        // What they know may be newer.
        opened = listed;
        let urls: Vec<String> = opened.iter().map(|opened| opened.child.url()).collect();
        let is_listed = |member: &Member| urls.contains(&member.url);
        let newer = opened.iter().filter_map(accepted);
        let newer = newer.max_by_key(|(ballot, _)| *ballot);
        if newer.is_none_or(|(_, state)| state.members.iter().all(is_listed)) {
            return Ok(opened);
        }
    }
    match options.purpose == OpenPurpose::Reading || home.is_some() {
        true => Ok(opened),
        false => open_children(seeds, env, options, options.purpose),
    }
}

impl ReplicatedHome {
    /// Opens the children, and joins them. With `all` every child must be there, unless nothing is to be changed; else
    /// a majority of the members.
    pub fn open(
        sources: Vec<Source>,
        env: &Env,
        options: ReplicatedOptions,
    ) -> Result<ReplicatedHome, HomeError> {
        let opened = open_children(sources, env, &options, options.purpose)?;
        ReplicatedHome::join(opened, None, env, options)
    }

    /// The same of the members that the register names: `seeds` are some of them, or, for a new log, all. They may
    /// change while it is in use.
    pub fn open_members(
        seeds: Vec<Source>,
        open_member: MemberOpener,
        env: &Env,
        options: ReplicatedOptions,
    ) -> Result<ReplicatedHome, HomeError> {
        let opened = open_recorded(seeds, &open_member, env, &options)?;
        ReplicatedHome::join(opened, Some(open_member), env, options)
    }

    fn join(
        opened: Vec<OpenedChild>,
        open_member: Option<MemberOpener>,
        env: &Env,
        options: ReplicatedOptions,
    ) -> Result<ReplicatedHome, HomeError> {
        let purpose = options.purpose;
        let urls: Vec<String> = opened.iter().map(|opened| opened.child.url()).collect();
        let list = urls.join(",");
        if opened.len() < 2 {
            return Err(wrong(&list, "several homes are two or more"));
        }
        let empty = opened.iter().filter(|opened| opened.is_empty).count();
        if purpose == OpenPurpose::Reading && 2 * empty > opened.len() {
            return Err(no_log_in(&list));
        }
        for opened in &opened {
            opened.child.tell_if_left_out();
        }
        let of_opened = |opened: OpenedChild| (opened.child, opened.kept);
        let (mut children, kept): (Vec<Arc<Child>>, Vec<Option<StoredAcceptor>>) =
            opened.into_iter().map(of_opened).unzip();
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
        let mut ids: Vec<u64> = kept
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
            _ => {
                let wanted = open_member.as_ref().map(|_| urls.join("\n"));
                first_state(&mut register, &ids, &urls, env, (options.ack, wanted))?
            }
        };
        let changes = Changes::default();
        if open_member.is_some() {
            for (index, child) in children.iter().enumerate() {
                let is_member = |member: &Member| member.id == ids[index];
                if ids[index] == 0 || state.members.iter().any(is_member) {
                    continue;
                }
                register.detached(index);
                ids[index] = 0;
                let has_place = |member: &Member| {
                    let is_absent = !ids.contains(&member.id);
                    is_absent && place_of(&member.url) == place_of(&child.url())
                };
                match state.members.iter().any(has_place) {
                    // A change that has not come to its end made the record that is there.
                    true => {
                        changes.note_emptied(index);
                        child.not_opened("it is to become a member again".to_owned());
                    }
                    false => child.vacate(),
                }
            }
        }
        let vacant = |_| Child::new(None, env, options.threads).map(Arc::new);
        let vacant: Vec<Arc<Child>> = (0..SPARE_SLOTS).map(vacant).collect::<Result<_, _>>()?;
        register.extend(&vacant);
        children.extend(vacant);
        ids.resize(children.len(), 0);
        let membership = Membership {
            home: state.home,
            ids,
            ack: state.ack,
            members: state.members,
            next: None,
            ack_wanted: options.ack,
        };
        let latency = |home: &Option<(HomeCapabilities, Rollover)>| match home {
            Some((capabilities, _)) => capabilities.append_latency_expected_us,
            None => u32::MAX,
        };
        let mut latencies: Vec<u32> = capabilities.iter().map(latency).collect();
        latencies.resize(children.len(), u32::MAX);
        let mut in_flight_max: Vec<usize> = capabilities
            .iter()
            .map(|capabilities| {
                capabilities.map_or(1, |(capabilities, _)| capabilities.appends_in_flight_max)
            })
            .collect();
        in_flight_max.resize(children.len(), 1);
        let inner = Inner {
            env: env.clone(),
            children,
            capabilities: common,
            rollover,
            in_flight_max: Mutex::new(in_flight_max),
            membership: LongMutex::new(membership),
            register: LongMutex::new(register),
            members_checked: AtomicBool::new(false),
            lanes: RwLock::default(),
            read_order: Mutex::new(ReadOrder::new(&latencies)),
            dropping: Mutex::default(),
            opening: LongMutex::default(),
            operations: Arc::default(),
            fences: Mutex::default(),
            settled: AtomicBool::new(false),
            settled_epoch: AtomicU64::new(0),
            name_requests_limit: Mutex::default(),
            returns: Returns::default(),
            changes,
            open_member,
            group: OnceLock::new(),
            options,
        };
        let inner = Arc::new(inner);
        if inner.options.threads && inner.options.purpose != OpenPurpose::Reading {
            catch_up::start(&inner)?;
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
    (ack, wanted): (WriteConcern, Option<String>),
) -> Result<RegisterState, HomeError> {
    // Those that do not answer become members later.
    let wanted = wanted.filter(|_| ids.contains(&0)).map(|list| {
        let (tag, bytes) = (env.random.u64(), list.into_bytes());
        (WANTED.to_owned(), NamedValue { tag, bytes })
    });
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
        names: wanted.into_iter().collect(),
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
pub(super) fn finish_change(
    register: &mut Register,
    members: &[Member],
) -> Result<RegisterState, HomeError> {
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
pub(super) fn same_members(some: &[Member], others: &[Member]) -> bool {
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
        self.must_know_groups(&state)?;
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
        let is_as_before = same_members(&state.members, &self.membership.lock().members);
        if !is_as_before {
            let Some(open_member) = &self.open_member else {
                return Err(HomeError::Conflict(
                    "the list of the log's homes".to_owned(),
                ));
            };
            self.read_from(&state.members, open_member);
        }
        let mut membership = self.membership.lock();
        membership.ack = state.ack;
        membership.members.clone_from(&state.members);
        Ok(())
    }

    /// Slots with a home.
    fn listed(&self) -> Vec<usize> {
        let occupied = |child: &usize| !self.children[*child].is_vacant();
        (0..self.children.len()).filter(occupied).collect()
    }

    /// Children that recovery must compare block by block.
    pub(super) fn behind(&self) -> Vec<usize> {
        let membership = self.membership.lock();
        let more_wanted =
            membership.ack_wanted == WriteConcern::All && membership.ack == WriteConcern::Majority;
        let listed = self.listed();
        let all_known = listed.iter().all(|&child| membership.id(child) != 0);
        let all = more_wanted || !membership.is_listed(&listed) && all_known;
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
        let listed = self.listed();
        let all_up = listed.iter().all(|&child| up[child]);
        if membership.ack_wanted == WriteConcern::All && !all_up {
            let what = "with ack = all every one of the log's homes must answer";
            return Err(no_answer(what));
        }
        let complete = |id: u64| {
            let child = membership.ids.iter().position(|other| *other == id);
            child.is_some_and(|child| up[child])
        };
        let members: Vec<Member> = if all_up {
            let recorded = |id: u64| {
                let mut members = membership.members.iter();
                let member = members.find(|member| member.id == id);
                // However this start was told of it: the list that is wanted names it as it was recorded.
                member.filter(|_| self.open_member.is_some())
            };
            let member = |&child: &usize| {
                let id = membership.id(child);
                let url = recorded(id).map(|member| member.url.clone());
                Member {
                    id,
                    complete: true,
                    url: url.unwrap_or_else(|| self.children[child].url()),
                }
            };
            listed.iter().map(member).collect()
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
        let moves = !membership.is_listed(&listed) && all_up;
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
        self.must_know_groups(&chosen)?;
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

    /// The members that are not up, as far as they are children.
    pub(super) fn ids_down(&self) -> Vec<u64> {
        let membership = self.membership.lock();
        let down = |child: &usize| self.up(*child).is_none();
        let children = (0..self.children.len()).filter(down);
        children.map(|child| membership.ids[child]).collect()
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
        let out = self.ids_down();
        let amend = |state: &mut RegisterState| {
            for member in &mut state.members {
                member.complete &= !out.contains(&member.id);
            }
        };
        let set = register.set(name, expected, bytes, &amend);
        let is_news = register.take_news();
        drop(register);
        if is_news {
            self.returns.wake();
        }
        set
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
                        self.copy_side(&holders, (*child, &target), (lane, id), &|| Ok(()))?;
                    }
                }
            }
        }
        Ok(())
    }
}
