//! One register over several children, each of which offers a compare-and-swap and may be away: the CASPaxos
//! construction. Pure: events in, actions out; no clock, no home, no thread.
//!
//! The children are the acceptors, a server is a proposer. An acceptor is only an [`AcceptorState`] in its child; the
//! proposer works out the acceptor's answer from the record it has read and stores the record that follows by the
//! child's own compare-and-swap, which makes the step atomic: a record that has changed since is read again.
//! [`check`](super::caspaxos_model) runs all interleavings of two proposers and three children with lost answers.
//!
//! Rules:
//! 1. *Promise b*: a record with `promised <= b` becomes `promised = b`. *Accept v at b*: a record with `promised <= b`
//!    becomes `accepted = (b, v)`, and promises at the same time what the proposer will ask next, the ballot after b:
//!    so that the next change of an undisturbed proposer is one write per child.
//! 2. A proposer accepts at b only what it makes from the value with the highest accepted ballot among the records that
//!    promised b, and only when these are a *quorum*: a majority of each set of voters that this value names.
//! 3. A value is chosen when a quorum has accepted it at one ballot: a majority of each set that it, or the value it
//!    was made from, names.
//!
//! Why it is right: two quorums of one set share a child. If v was chosen at b, each later ballot's promises meet a
//! record with v, or with what was made of it, and the highest ballot wins; so each chosen value is made from the one
//! chosen before. Sets of voters change in two steps, each made from a chosen value: first to both sets, then to the
//! new one. A value between names both, so who meets it needs a majority of either; the second step is proposed only
//! when the first is chosen, so who meets that finds the old set's majority pointing at both.
//!
//! Does not: wait, repeat or draw lots: who drives it does.

/// The order of attempts; no two proposers share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ballot {
    pub(super) counter: u64,
    pub(super) proposer: u64,
}

impl Ballot {
    fn after(self, proposer: u64) -> Ballot {
        Ballot {
            counter: self.counter + 1,
            proposer,
        }
    }
}

/// An acceptor's state; the default is that of a child that has none yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AcceptorState<V> {
    pub(super) promised: Ballot,
    pub(super) accepted: Option<(Ballot, V)>,
}

impl<V> Default for AcceptorState<V> {
    fn default() -> AcceptorState<V> {
        AcceptorState {
            promised: Ballot::default(),
            accepted: None,
        }
    }
}

impl<V> AcceptorState<V> {
    pub(super) fn accepted_at(&self) -> Ballot {
        self.accepted
            .as_ref()
            .map_or(Ballot::default(), |(b, _)| *b)
    }
}

/// A set of voters: which child each one is, if it is among the children at all.
pub(super) type Voters = Vec<Option<usize>>;

/// Are these children a majority of each set?
pub(super) fn is_quorum(sets: &[Voters], has: &dyn Fn(usize) -> bool) -> bool {
    sets.iter().all(|set| {
        let count = set.iter().flatten().filter(|&&child| has(child)).count();
        2 * count > set.len()
    })
}

/// What a proposal is about.
pub(super) trait Proposal<V> {
    /// The sets of voters that a value names; of no value: the children it takes to begin with.
    fn voters(&self, value: Option<&V>) -> Vec<Voters>;

    /// What is to become of the value; `None`: it stays as it is.
    fn change(&self, value: Option<&V>) -> Option<V>;
}

/// What is to be done at a child. Each is answered by one event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action<V> {
    /// Read its record.
    Read(usize),
    /// Replace its record, if it is still the one last read or written here.
    Write(usize, AcceptorState<V>),
}

/// What a child answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AcceptorReply<V> {
    Read(usize, AcceptorState<V>),
    Written(usize),
    /// The record is another one, or nobody knows whether it was written.
    Unwritten(usize),
    /// It cannot be asked now.
    Failed(usize),
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome<V> {
    /// This is the value, and it is chosen. `None`: there is no value, and none was proposed.
    Chosen(Option<V>),
    /// Another proposer came between: try again, after a while.
    Preempted,
    /// Too few children answer.
    Unreachable,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase<V> {
    Idle,
    Promising,
    Accepting { value: V, sets: Vec<Voters> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Child<V> {
    /// Its record as last read or written, if nothing has put that in doubt.
    known: Option<AcceptorState<V>>,
    /// What it has been asked and not yet answered.
    pending: Option<Action<V>>,
    /// In this attempt: it has promised, with this accepted value; it has accepted; it obeys another, or does not
    /// answer.
    promised: bool,
    accepted: bool,
    out: Option<Outcome<V>>,
}

/// A proposer; see the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Proposer<V> {
    id: u64,
    ballot: Ballot,
    /// A child was asked to promise the ballot: it stays.
    offered: bool,
    phase: Phase<V>,
    children: Vec<Child<V>>,
    /// The ballot at which the last value of ours was chosen.
    last_chosen: Option<Ballot>,
}

impl<V: Clone + PartialEq> Proposer<V> {
    /// `id` is nobody else's.
    pub(super) fn new(id: u64, children: usize) -> Proposer<V> {
        let mut proposer = Proposer {
            id,
            ballot: Ballot::default(),
            offered: false,
            phase: Phase::Idle,
            children: Vec::new(),
            last_chosen: None,
        };
        proposer.extend(children);
        proposer
    }

    /// So many children more, of which nothing is known.
    pub(super) fn extend(&mut self, more: usize) {
        let child = Child {
            known: None,
            pending: None,
            promised: false,
            accepted: false,
            out: None,
        };
        self.children.resize(self.children.len() + more, child);
    }

    /// Begins an attempt. Tells what to do, and how it ended if it has.
    pub(super) fn start(
        &mut self,
        rules: &dyn Proposal<V>,
    ) -> (Vec<Action<V>>, Option<Outcome<V>>) {
        let next = self.last_chosen.map(|ballot| ballot.after(self.id));
        let owned = |child: &Child<V>| {
            let known = child.known.as_ref().filter(|_| child.pending.is_none());
            known.is_some_and(|record| {
                Some(record.promised) == next && Some(record.accepted_at()) == self.last_chosen
            })
        };
        let owned: Vec<bool> = self.children.iter().map(owned).collect();
        let value = self.children.iter().zip(&owned).find(|(_, owned)| **owned);
        let value = value.and_then(|(child, _)| child.known.as_ref()?.accepted.as_ref());
        let prepared = value
            .is_some_and(|(_, value)| is_quorum(&rules.voters(Some(value)), &|child| owned[child]));
        // A ballot has one value: one that an attempt had already, whatever became of it, is not used again.
        let prepared = prepared && next > Some(self.ballot);
        match next {
            Some(next) if prepared => self.ballot = next,
            _ => {
                let known = self.children.iter().filter_map(|c| c.known.as_ref());
                let highest = known.map(|record| record.promised).max();
                self.ballot = highest.unwrap_or_default().max(self.ballot).after(self.id);
            }
        }
        self.offered = prepared;
        for (child, owned) in self.children.iter_mut().zip(owned) {
            child.promised = prepared && owned;
            child.accepted = false;
            child.out = None;
        }
        self.phase = Phase::Promising;
        self.go_on(rules)
    }

    /// What a child has answered.
    pub(super) fn event(
        &mut self,
        event: AcceptorReply<V>,
        rules: &dyn Proposal<V>,
    ) -> (Vec<Action<V>>, Option<Outcome<V>>) {
        let (AcceptorReply::Read(index, _)
        | AcceptorReply::Written(index)
        | AcceptorReply::Unwritten(index)
        | AcceptorReply::Failed(index)) = event;
        let child = &mut self.children[index];
        let asked = child.pending.take();
        match (event, asked) {
            (AcceptorReply::Read(_, record), _) => child.known = Some(record),
            (AcceptorReply::Written(_), Some(Action::Write(_, record))) => {
                child.known = Some(record)
            }
            (AcceptorReply::Failed(_), _) => {
                child.known = None;
                child.out = Some(Outcome::Unreachable);
            }
            _ => child.known = None,
        }
        self.go_on(rules)
    }

    /// Between two attempts: a child is reached in another way from now on. What it was asked before may be done yet,
    /// and nobody hears of it.
    pub(super) fn forget(&mut self, index: usize) {
        let child = &mut self.children[index];
        child.known = None;
        child.pending = None;
    }

    /// Nobody waits any longer for the children that have not answered in this attempt.
    pub(super) fn give_up(
        &mut self,
        rules: &dyn Proposal<V>,
    ) -> (Vec<Action<V>>, Option<Outcome<V>>) {
        for child in &mut self.children {
            if child.pending.is_some() {
                child.out = Some(Outcome::Unreachable);
            }
        }
        self.go_on(rules)
    }

    fn go_on(&mut self, rules: &dyn Proposal<V>) -> (Vec<Action<V>>, Option<Outcome<V>>) {
        let mut actions = Vec::new();
        if self.phase == Phase::Idle {
            return (actions, None);
        }
        self.judge();
        if self.phase == Phase::Promising
            && let Some(outcome) = self.try_to_propose(rules)
        {
            self.phase = Phase::Idle;
            return (actions, Some(outcome));
        }
        if let Phase::Accepting { value, sets } = &self.phase
            && is_quorum(sets, &|child| self.children[child].accepted)
        {
            let chosen = Some(value.clone());
            self.phase = Phase::Idle;
            self.last_chosen = Some(self.ballot);
            return (actions, Some(Outcome::Chosen(chosen)));
        }
        for index in 0..self.children.len() {
            actions.extend(self.ask(index));
        }
        let settled = |child: &Child<V>| child.pending.is_none() || child.out.is_some();
        if self.children.iter().all(settled) {
            let preempted = |child: &Child<V>| child.out == Some(Outcome::Preempted);
            self.phase = Phase::Idle;
            let outcome = match self.children.iter().any(preempted) {
                true => Outcome::Preempted,
                false => Outcome::Unreachable,
            };
            return (actions, Some(outcome));
        }
        (actions, None)
    }

    /// What the records that are known say about this attempt.
    fn judge(&mut self) {
        if !self.offered {
            // Nobody has heard of this ballot yet: it may as well be one that comes through.
            let known = self.children.iter().filter_map(|c| c.known.as_ref());
            let highest = known.map(|record| record.promised).max();
            let highest = highest.filter(|highest| *highest > self.ballot);
            self.ballot = highest.map_or(self.ballot, |highest| highest.after(self.id));
        }
        let (ballot, next) = (self.ballot, self.ballot.after(self.id));
        let proposed = match &self.phase {
            Phase::Accepting { value, .. } => Some(value),
            _ => None,
        };
        for child in &mut self.children {
            let Some(record) = child.known.as_ref().filter(|_| child.pending.is_none()) else {
                continue;
            };
            if record.promised == ballot {
                child.promised = true;
            } else if record.promised == next
                && proposed.is_some_and(|value| {
                    let accepted = record.accepted.as_ref();
                    accepted.is_some_and(|(at, there)| *at == ballot && there == value)
                })
            {
                child.accepted = true;
            } else if record.promised > ballot {
                child.out = Some(Outcome::Preempted);
            }
        }
    }

    /// Makes the proposal as soon as a quorum has promised.
    fn try_to_propose(&mut self, rules: &dyn Proposal<V>) -> Option<Outcome<V>> {
        let promised = self.children.iter().filter(|child| child.promised);
        let accepted = promised.filter_map(|child| child.known.as_ref()?.accepted.as_ref());
        let newest = accepted.max_by_key(|(ballot, _)| *ballot);
        let newest = newest.map(|(_, value)| value.clone());
        let mut sets = rules.voters(newest.as_ref());
        if !is_quorum(&sets, &|child| self.children[child].promised) {
            return None;
        }
        let Some(value) = rules.change(newest.as_ref()).or(newest) else {
            return Some(Outcome::Chosen(None));
        };
        sets.extend(rules.voters(Some(&value)));
        self.phase = Phase::Accepting { value, sets };
        None
    }

    /// What a child is to be asked now.
    fn ask(&mut self, index: usize) -> Option<Action<V>> {
        let (ballot, next) = (self.ballot, self.ballot.after(self.id));
        let child = &mut self.children[index];
        if child.pending.is_some() || child.accepted || child.out.is_some() {
            return None;
        }
        let action = match (&child.known, &self.phase) {
            (None, _) => Action::Read(index),
            (Some(_), Phase::Promising) if child.promised => return None,
            (Some(record), Phase::Promising) => {
                let promised = ballot;
                let accepted = record.accepted.clone();
                Action::Write(index, AcceptorState { promised, accepted })
            }
            (Some(_), Phase::Accepting { value, .. }) => {
                let accepted = Some((ballot, value.clone()));
                let promised = next;
                Action::Write(index, AcceptorState { promised, accepted })
            }
            (Some(_), Phase::Idle) => return None,
        };
        self.offered |= matches!(action, Action::Write(..));
        child.pending = Some(action.clone());
        Some(action)
    }
}
