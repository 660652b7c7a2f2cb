//! Who counts: the members, as the register has them, and how many of them it takes.

use super::register::voters_of;
use super::state::{Member, WriteConcern};
use std::collections::BTreeSet;

/// How many of a list's members it takes for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quorum {
    /// To make an append durable.
    Write,
    /// To say what was made durable: to be fenced, and read.
    Read,
}

/// The members of one list, as children.
#[derive(Clone, Debug)]
struct VoterSet {
    /// By child: it is one.
    votes: Vec<bool>,
    write: usize,
    read: usize,
}

/// The lists of members that count now: one, or two while the list changes. Then it takes a quorum of both, as in
/// "Amazon Aurora: On Avoiding Distributed Consensus" (2018), section 4.1.
#[derive(Clone, Debug)]
pub(super) struct Quorums(Vec<VoterSet>);

impl Quorums {
    /// Are those children enough in each list?
    pub(super) fn has(&self, quorum: Quorum, is_there: &dyn Fn(usize) -> bool) -> bool {
        self.0.iter().all(|set| {
            let wanted = match quorum {
                Quorum::Write => set.write,
                Quorum::Read => set.read,
            };
            let votes = set.votes.iter().enumerate();
            votes
                .filter(|&(child, votes)| *votes && is_there(child))
                .count()
                >= wanted
        })
    }

    /// Is a child a member in one of the lists?
    pub(super) fn is_member(&self, child: usize) -> bool {
        self.0.iter().any(|set| set.votes[child])
    }

    /// What those that are a write quorum together with the least have, at most: of each list's members, the one that
    /// is the last that it takes.
    pub(super) fn least_for_write(&self, of: &dyn Fn(usize) -> Option<usize>) -> usize {
        let of_set = |set: &VoterSet| {
            let votes = set.votes.iter().enumerate().filter(|(_, votes)| **votes);
            let mut all: Vec<usize> = votes.filter_map(|(child, _)| of(child)).collect();
            all.sort_unstable();
            let index = set.write.min(all.len()).saturating_sub(1);
            all.get(index).copied().unwrap_or(0)
        };
        self.0.iter().map(of_set).max().unwrap_or(0)
    }

    /// So many children, all of them members of one list.
    #[cfg(test)]
    pub(super) fn of_all(children: usize, ack: WriteConcern) -> Quorums {
        Quorums(vec![VoterSet::new(vec![true; children], children, ack)])
    }

    /// Both lists.
    #[cfg(test)]
    pub(super) fn and(mut self, other: Vec<bool>, ack: WriteConcern) -> Quorums {
        let members = other.iter().filter(|votes| **votes).count();
        self.0.push(VoterSet::new(other, members, ack));
        self
    }
}

impl VoterSet {
    fn new(votes: Vec<bool>, members: usize, ack: WriteConcern) -> VoterSet {
        let write = ack.needed(members);
        VoterSet {
            votes,
            write,
            read: members - write + 1,
        }
    }
}

/// Who counts, as the register has it.
pub(super) struct Membership {
    /// Drawn when the register began; the same in every member.
    pub(super) home: u64,
    /// The member that each child is; 0: it could not be asked, or there is none.
    pub(super) ids: Vec<u64>,
    pub(super) ack: WriteConcern,
    pub(super) members: Vec<Member>,
    /// The list that takes their place, from when both count until the register has it.
    pub(super) next: Option<Vec<Member>>,
    /// Named by the settings; recorded once all copies are complete.
    pub(super) ack_wanted: WriteConcern,
}

impl Membership {
    fn voters(&self, members: &[Member]) -> VoterSet {
        let mut votes = vec![false; self.ids.len()];
        for child in voters_of(members, &self.ids).into_iter().flatten() {
            votes[child] = true;
        }
        VoterSet::new(votes, members.len(), self.ack)
    }

    /// The lists that count.
    pub(super) fn quorums(&self) -> Quorums {
        let lists = [Some(&self.members), self.next.as_ref()];
        Quorums(
            lists
                .into_iter()
                .flatten()
                .map(|list| self.voters(list))
                .collect(),
        )
    }

    /// Another list alone.
    pub(super) fn quorums_of(&self, members: &[Member]) -> Quorums {
        Quorums(vec![self.voters(members)])
    }

    /// Which children are members that have all that was acknowledged.
    pub(super) fn complete(&self) -> Vec<bool> {
        let mut complete = vec![false; self.ids.len()];
        let voters = voters_of(&self.members, &self.ids);
        for (member, child) in self.members.iter().zip(voters) {
            if let Some(child) = child {
                complete[child] = member.complete;
            }
        }
        complete
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

    /// Are these children's ids those of the members?
    pub(super) fn is_listed(&self, children: &[usize]) -> bool {
        let listed: BTreeSet<u64> = children.iter().map(|&child| self.ids[child]).collect();
        listed == self.members.iter().map(|member| member.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_and_write_quorums_meet() {
        for (ack, count, write, read) in [
            (WriteConcern::All, 2, 2, 1),
            (WriteConcern::All, 3, 3, 1),
            (WriteConcern::Majority, 3, 2, 2),
            (WriteConcern::Majority, 4, 3, 2),
            (WriteConcern::Majority, 5, 3, 3),
            (WriteConcern::Majority, 6, 4, 3),
        ] {
            let quorums = Quorums::of_all(count, ack);
            for there in 0..=count {
                assert_eq!(
                    quorums.has(Quorum::Write, &|child| child < there),
                    there >= write
                );
                assert_eq!(
                    quorums.has(Quorum::Read, &|child| child < there),
                    there >= read
                );
            }
        }
    }

    #[test]
    fn while_the_list_changes_it_takes_both() {
        let votes = [true, true, false, true];
        let mut quorums = Quorums::of_all(3, WriteConcern::Majority);
        quorums.0[0].votes.push(false);
        let both = quorums.and(votes.to_vec(), WriteConcern::Majority);
        for (there, write) in [
            (vec![0, 1], true),
            (vec![0, 2], false),
            (vec![0, 3], false),
            (vec![0, 2, 3], true),
        ] {
            assert_eq!(
                both.has(Quorum::Write, &|child| there.contains(&child)),
                write
            );
        }
        // The slower of two in the list of 0, 1, 2 has 20, in that of 0, 1, 3 it has 7.
        let of = |child: usize| [Some(5), Some(20), Some(30), Some(7)][child];
        assert_eq!(both.least_for_write(&of), 20);
        assert!((0..4).all(|child| both.is_member(child)));
    }
}
