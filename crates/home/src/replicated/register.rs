//! Drives the register of [`caspaxos`](super::caspaxos): its actions are requests to the children, their answers its
//! events.
//!
//! The children's records lie under the name `manifest`, where a home of one child has its manifest: so neither is
//! taken for the other. One proposal at a time; requests that an earlier one has left open are heard when they are
//! answered.

use super::caspaxos::{
    AcceptorReply, AcceptorState, Action, Ballot, Outcome, Proposal, Proposer, Voters, is_quorum,
};
use super::child::{Attachment, Child, Replies, no_answer};
use super::state::{Member, NamedValue, RegisterState, StoredAcceptor};
use super::{OpenPurpose, ReplicatedOptions};
use crate::{HomeError, Tag};
use logstead_env::{Env, Receiver, Sender, channel};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Name of the record in each child.
pub(super) const RECORD: &str = "manifest";
/// The named thing that holds the lease.
pub(super) const LEASE: &str = "manifest";
/// The named thing that holds the list of members that somebody wants: a URL in each line.
pub(super) const WANTED: &str = "members";
/// A child whose writes fail so often in one attempt does not count in it.
const WRITE_FAILURES_MAX: u32 = 2;
/// Between two attempts of racing servers: up to this, drawn.
const PAUSE_MAX_MS: u64 = 50;

enum Answer {
    Read(Result<Option<(Vec<u8>, Tag)>, HomeError>),
    Written(Result<Tag, HomeError>),
}

/// See the module's documentation.
pub(super) struct Register {
    children: Vec<Arc<Child>>,
    env: Env,
    patience: Duration,
    threads: bool,
    purpose: OpenPurpose,
    /// The member that each child is, and the tag of its record as last read or written there: in this attachment,
    /// since each has tags of its own.
    seen: Vec<SeenRecord>,
    proposer: Proposer<RegisterState>,
    /// The tags that our last change of the lease may have given it: more than one after answers that were lost. What
    /// was read does not count: it may be another server's.
    lease_tags: Vec<u64>,
    /// The list of members that somebody wants, as it was when the register was read last.
    wanted: Option<Vec<u8>>,
    /// That has changed since somebody asked.
    has_news: bool,
    tell: Sender<(usize, u64, Answer)>,
    told: Receiver<(usize, u64, Answer)>,
}

/// What is known of a child's record.
struct SeenRecord {
    member: u64,
    generation: u64,
    tag: Option<Tag>,
    /// Writes that failed in this attempt.
    failures: u32,
}

/// The members as the proposer's children.
pub(super) fn voters_of(members: &[Member], ids: &[u64]) -> Voters {
    let index = |member: &Member| ids.iter().position(|id| *id == member.id);
    members.iter().map(index).collect()
}

/// The sets of voters that a state names.
pub(super) fn sets_of(state: &RegisterState, ids: &[u64]) -> Vec<Voters> {
    let mut sets = vec![voters_of(&state.members, ids)];
    if !state.leaving.is_empty() {
        sets.push(voters_of(&state.leaving, ids));
    }
    sets
}

struct Change<'c> {
    ids: Vec<u64>,
    purpose: OpenPurpose,
    change: &'c dyn Fn(Option<&RegisterState>) -> Option<RegisterState>,
}

impl Proposal<RegisterState> for Change<'_> {
    fn voters(&self, value: Option<&RegisterState>) -> Vec<Voters> {
        match value {
            Some(state) => sets_of(state, &self.ids),
            // The first value takes them all: so no child comes into two homes. In a place of its own there is no other
            // home to come into.
            None => (0..self.ids.len())
                .filter(|&child| self.purpose != OpenPurpose::NewPlace || self.ids[child] != 0)
                .map(|child| vec![Some(child)])
                .collect(),
        }
    }

    fn change(&self, value: Option<&RegisterState>) -> Option<RegisterState> {
        (self.change)(value)
    }
}

impl Register {
    /// `ids`: the members that the children are; 0 for one that could not be opened.
    pub(super) fn new(
        children: Vec<Arc<Child>>,
        ids: &[u64],
        env: Env,
        options: &ReplicatedOptions,
    ) -> Register {
        let (tell, told) = channel();
        let seen = |(&member, child): (&u64, &Arc<Child>)| SeenRecord {
            member,
            generation: child.home().map_or(0, |home| home.generation),
            tag: None,
            failures: 0,
        };
        Register {
            proposer: Proposer::new(env.random.u64(), children.len()),
            seen: ids.iter().zip(&children).map(seen).collect(),
            lease_tags: Vec::new(),
            wanted: None,
            has_news: false,
            children,
            env,
            patience: options.patience,
            threads: options.threads,
            purpose: options.purpose,
            tell,
            told,
        }
    }

    /// Slots for children that come later.
    pub(super) fn extend(&mut self, slots: &[Arc<Child>]) {
        self.proposer.extend(slots.len());
        self.children.extend_from_slice(slots);
        let seen = |_| SeenRecord {
            member: 0,
            generation: 0,
            tag: None,
            failures: 0,
        };
        self.seen.extend(slots.iter().map(seen));
    }

    /// The list of members that somebody wants, as it was when the register was read last.
    pub(super) fn wanted(&self) -> Option<&[u8]> {
        self.wanted.as_deref()
    }

    /// Has that list changed since this was asked last?
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    fn note_wanted(&mut self, state: Option<&RegisterState>) {
        let wanted = state.and_then(|state| state.names.get(WANTED));
        let wanted = wanted.map(|named| named.bytes.as_slice());
        if self.wanted.as_deref() != wanted {
            self.wanted = wanted.map(<[u8]>::to_vec);
            self.has_news = true;
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.seen.iter().map(|seen| seen.member).collect()
    }

    /// A child has been opened anew. Its record is read again before it is written: a tag says nothing to another
    /// attachment than the one it is from.
    pub(super) fn attached(&mut self, index: usize, member: u64, generation: u64) {
        self.seen[index] = SeenRecord {
            member,
            generation,
            tag: None,
            failures: 0,
        };
        self.proposer.forget(index);
    }

    /// The home of a child is none of the members any more.
    pub(super) fn detached(&mut self, index: usize) {
        self.attached(index, 0, 0);
    }

    /// Begins what is to be done; answers at once only if the child is not there.
    fn perform(&self, action: Action<RegisterState>) -> Option<AcceptorReply<RegisterState>> {
        let (Action::Read(index) | Action::Write(index, _)) = action;
        let SeenRecord {
            member,
            generation,
            tag,
            ..
        } = self.seen[index];
        let child = &self.children[index];
        let is_seen = |home: &Attachment| member != 0 && home.generation == generation;
        let Some(home) = child.home().filter(is_seen) else {
            return Some(AcceptorReply::Failed(index));
        };
        let tell = self.tell.clone();
        child.run(move || {
            let answer = match action {
                Action::Read(_) => Answer::Read(home.names.get(RECORD)),
                Action::Write(_, record) => {
                    let bytes = StoredAcceptor { member, record }.encode();
                    Answer::Written(match tag {
                        Some(tag) => home.names.compare_and_swap(RECORD, tag, &bytes),
                        None => home.names.put_if_absent(RECORD, &bytes),
                    })
                }
            };
            // The register may be gone.
            let _heard = tell.send((index, generation, answer));
        });
        None
    }

    fn event(&mut self, index: usize, answer: Answer) -> AcceptorReply<RegisterState> {
        let seen = &mut self.seen[index];
        match answer {
            Answer::Written(Ok(tag)) => {
                seen.tag = Some(tag);
                AcceptorReply::Written(index)
            }
            // Somebody else was quicker.
            Answer::Written(Err(HomeError::Conflict(_))) => AcceptorReply::Unwritten(index),
            // It may have been written, and is looked at; but one that cannot write (its disk is full) must not keep an
            // attempt going that others have ended.
            Answer::Written(Err(_)) => {
                seen.failures += 1;
                match seen.failures > WRITE_FAILURES_MAX {
                    true => AcceptorReply::Failed(index),
                    false => AcceptorReply::Unwritten(index),
                }
            }
            Answer::Read(Ok(Some((bytes, tag)))) => match StoredAcceptor::decode(&bytes) {
                Ok(kept) if kept.member == seen.member => {
                    seen.tag = Some(tag);
                    AcceptorReply::Read(index, kept.record)
                }
                _ => AcceptorReply::Failed(index),
            },
            // A member always has a record: this is not the bucket it was.
            Answer::Read(Ok(None)) | Answer::Read(Err(_)) => AcceptorReply::Failed(index),
        }
    }

    fn attempt(&mut self, rules: &Change<'_>) -> Outcome<RegisterState> {
        while let Ok((index, generation, answer)) = self.told.try_recv() {
            if generation != self.seen[index].generation {
                continue;
            }
            let event = self.event(index, answer);
            let _idle = self.proposer.event(event, rules);
        }
        for seen in &mut self.seen {
            seen.failures = 0;
        }
        let begun = self.env.clock.monotonic();
        let (mut actions, mut outcome) = self.proposer.start(rules);
        loop {
            // All of them, also when it has ended: the proposer waits for their answers.
            let begin = |action| self.perform(action);
            let mut events: Vec<_> = actions.drain(..).filter_map(begin).collect();
            if events.is_empty() {
                if let Some(outcome) = outcome {
                    return outcome;
                }
                let passed = self.env.clock.monotonic().since(begun);
                let left = self.patience.saturating_sub(passed);
                match self
                    .told
                    .try_recv()
                    .or_else(|_| self.told.recv_timeout(left))
                {
                    Ok((index, generation, answer)) => {
                        if generation == self.seen[index].generation {
                            events.push(self.event(index, answer));
                        }
                    }
                    Err(_) => (actions, outcome) = self.proposer.give_up(rules),
                }
            }
            for event in events {
                let (more, ended) = self.proposer.event(event, rules);
                actions.extend(more);
                outcome = outcome.or(ended);
            }
        }
    }

    /// Makes a change, of whatever is there: back comes what is chosen then.
    pub(super) fn propose(
        &mut self,
        change: &dyn Fn(Option<&RegisterState>) -> Option<RegisterState>,
    ) -> Result<Option<RegisterState>, HomeError> {
        if self.purpose == OpenPurpose::Reading {
            return Err(HomeError::Unsupported(
                "changes: it was opened for reading only",
            ));
        }
        let rules = Change {
            ids: self.ids(),
            purpose: self.purpose,
            change,
        };
        let begun = self.env.clock.monotonic();
        loop {
            match self.attempt(&rules) {
                Outcome::Chosen(state) => {
                    self.note_wanted(state.as_ref());
                    return Ok(state);
                }
                Outcome::Preempted if self.env.clock.monotonic().since(begun) < self.patience => {
                    if self.threads {
                        let millis = self.env.random.u64() % PAUSE_MAX_MS;
                        logstead_env::sleep(Duration::from_millis(millis));
                    }
                }
                Outcome::Preempted | Outcome::Unreachable => {
                    return Err(no_answer("asking a majority of the log's homes"));
                }
            }
        }
    }

    /// The value. One read per child where they agree; else the newest is made to be chosen first, or, where nothing
    /// may be changed, it is the value if a quorum has answered.
    pub(super) fn get(&mut self) -> Result<Option<RegisterState>, HomeError> {
        let ids = self.ids();
        let answers = super::child::ask_each(
            &self.children,
            &self.env,
            super::child::ReplyTimeouts {
                patience: self.patience,
                grace: Duration::ZERO,
            },
            &|answers| agreed(answers, &ids).is_some(),
            &|index| {
                let home = self.children[index].home()?;
                let member = ids[index];
                let read = move || match home.names.get(RECORD)? {
                    Some((bytes, _)) => match StoredAcceptor::decode(&bytes) {
                        Ok(kept) if kept.member == member => Ok(kept),
                        _ => Err(HomeError::Missing("the record of a member".to_owned())),
                    },
                    None => Err(HomeError::Missing("the record of a member".to_owned())),
                };
                (member != 0).then_some(Box::new(read) as _)
            },
        );
        if let Some(state) = agreed(&answers, &ids) {
            return Ok(Some(state));
        }
        if self.purpose == OpenPurpose::Reading {
            return match newest(&answers, &ids) {
                Some(state) => Ok(Some(state)),
                None => Err(no_answer("asking a majority of the log's homes")),
            };
        }
        self.propose(&|_| None)
    }

    /// Reads the value for the list of members that somebody wants.
    pub(super) fn look(&mut self) -> Result<(), HomeError> {
        let state = self.get()?;
        self.note_wanted(state.as_ref());
        Ok(())
    }

    /// A change that only who has the lease may make: nobody has changed it since we did.
    pub(super) fn propose_leased(
        &mut self,
        change: &dyn Fn(Option<&RegisterState>) -> Option<RegisterState>,
    ) -> Result<Option<RegisterState>, HomeError> {
        let ours = self.lease_tags.clone();
        let lost = Cell::new(false);
        let chosen = self.propose(&|state| {
            let lease = state.and_then(|state| state.names.get(LEASE));
            // Nobody has taken it yet: a log that is being made.
            lost.set(lease.map_or(!ours.is_empty(), |named| !ours.contains(&named.tag)));
            if lost.get() {
                return None;
            }
            change(state)
        })?;
        match lost.get() {
            true => Err(HomeError::Fenced("the log's lease".to_owned())),
            false => Ok(chosen),
        }
    }

    /// Replaces a named thing in the state `expected` (`None`: absent). `amend` sees every state that is proposed.
    pub(super) fn set(
        &mut self,
        name: &str,
        expected: Option<Tag>,
        bytes: &[u8],
        amend: &dyn Fn(&mut RegisterState),
    ) -> Result<Tag, HomeError> {
        let tag = self.env.random.u64();
        if name == LEASE {
            self.lease_tags.push(tag);
        }
        let missing = Cell::new(false);
        let chosen = self.propose(&|state| {
            let mut state = match state {
                Some(state) => state.clone(),
                None => {
                    missing.set(true);
                    return None;
                }
            };
            let present = state.names.get(name).map(|named| Tag(named.tag));
            if present != expected {
                return None;
            }
            let bytes = bytes.to_vec();
            state
                .names
                .insert(name.to_owned(), NamedValue { tag, bytes });
            amend(&mut state);
            Some(state)
        })?;
        if missing.get() {
            return Err(HomeError::Missing("the list of members".to_owned()));
        }
        let now = chosen.as_ref().and_then(|state| state.names.get(name));
        match now.is_some_and(|named| named.tag == tag) {
            true => {
                if name == LEASE {
                    self.lease_tags = vec![tag];
                }
                Ok(Tag(tag))
            }
            false => Err(HomeError::Conflict(name.to_owned())),
        }
    }
}

/// The newest accepted value, if a quorum of its voters has it at the same ballot.
fn agreed(answers: &Replies<StoredAcceptor>, ids: &[u64]) -> Option<RegisterState> {
    newest_if(answers, ids, |record, ballot| {
        record.accepted_at() == ballot
    })
}

/// The newest accepted value, if a quorum of its voters has answered: it is at least as new as any that was chosen
/// before they were asked.
fn newest(answers: &Replies<StoredAcceptor>, ids: &[u64]) -> Option<RegisterState> {
    newest_if(answers, ids, |_, _| true)
}

fn newest_if(
    answers: &Replies<StoredAcceptor>,
    ids: &[u64],
    counts: impl Fn(&AcceptorState<RegisterState>, Ballot) -> bool,
) -> Option<RegisterState> {
    let records = || answers.iter().flatten().flatten().map(|kept| &kept.record);
    let newest = records().max_by_key(|record| record.accepted_at())?;
    let (ballot, state) = newest.accepted.as_ref()?;
    let has = |child: usize| match &answers[child] {
        Some(Ok(kept)) => counts(&kept.record, *ballot),
        _ => false,
    };
    is_quorum(&sets_of(state, ids), &has).then(|| state.clone())
}
