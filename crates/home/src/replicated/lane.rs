//! One lane over several children: which append each child gets next, and which are durable. Pure: the home does what
//! it says.
//!
//! Invariants:
//! - Appends go to each child in the order of the lane, at most so many together.
//! - A child counts for an append only when it has all earlier ones of this life too (T2).
//! - Appends become durable in the order of the lane, each once, and none after the lane has failed.
//! - A child that comes back is given every append from one on, its *cut*, which begins a segment: at all children, the
//!   segment before ends there. It counts for nothing until it is said to have what was appended before its cut.
//! - What is told of a child that has been opened anew since changes nothing.
//!
//! Does not: call a child, or decide that one is dropped. How many it takes: [`membership`](super::membership). What
//! follows when there are too few: `leave_out` in [`super`].

use super::membership::{Quorum, Quorums};
use crate::{Buffer, Completion, HomeError, Position, Rollover};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// An append that is claimed, and perhaps given.
struct Entry {
    at: Position,
    len: usize,
    /// What the claim was for, a multiple of the alignment.
    claimed: u64,
    /// `None`: not given yet, or nobody needs it any more.
    block: Option<Arc<Buffer>>,
    capacity: usize,
    given: bool,
    /// Children end the segment before, whatever room is left there.
    ends_segment: bool,
    done: Option<Completion>,
}

/// A child's progress; entries are counted from the lane's opening.
#[derive(Default)]
struct Progress {
    issued: u64,
    /// All before this are done.
    done_to: u64,
    done_behind: BTreeSet<u64>,
    in_flight: usize,
    /// Somebody is handing it appends.
    busy: bool,
    /// And is to look again.
    again: bool,
    dropped: bool,
    queued_bytes: u64,
    /// Which of its attachments this is about.
    generation: u64,
    /// It gets the appends from this one on, and this segment; it has no place for them before it is `open`.
    cut: u64,
    cut_segment: u64,
    open: bool,
    /// From this segment on it may hold appends of which it has never said that they are durable.
    unsure_from: Option<u64>,
}

/// What a child is to append now.
pub(super) struct ChildAppend {
    pub(super) number: u64,
    pub(super) at: Position,
    pub(super) len: usize,
    pub(super) claimed: u64,
    /// The child ends its present segment before.
    pub(super) ends_segment: bool,
    pub(super) block: Arc<Buffer>,
}

/// Somebody who waits.
pub(super) struct AppendOutcome {
    done: Completion,
    block: Arc<Buffer>,
    result: Result<(), HomeError>,
}

impl AppendOutcome {
    /// Without any lock held.
    pub(super) fn complete(self) {
        let AppendOutcome {
            done,
            block,
            result,
        } = self;
        // A slow child may still need the bytes: then there is another buffer for it.
        let block = Arc::try_unwrap(block);
        let block = block.unwrap_or_else(|shared| Buffer::zeroed(shared.capacity()));
        done(block, result);
    }
}

/// See the module's documentation.
pub(super) struct ReplicatedLane {
    rollover: Rollover,
    quorums: Quorums,
    /// Before this, appends became durable by other quorums.
    quorums_from: u64,
    /// Which children count, if they are members: those that have all that came before.
    counts: Vec<bool>,
    in_flight_max: Vec<usize>,
    next: Position,
    appends_in_segment: u64,
    /// The next append begins a segment.
    ends_segment: bool,
    /// Number of the first entry that is still here.
    first: u64,
    entries: VecDeque<Entry>,
    /// The first that is not durable.
    durable_to: u64,
    children: Vec<Progress>,
    failed: Option<HomeError>,
}

impl ReplicatedLane {
    pub(super) fn new(
        first_segment: u64,
        rollover: Rollover,
        quorums: Quorums,
        counts: Vec<bool>,
        generations: &[u64],
        in_flight_max: Vec<usize>,
    ) -> ReplicatedLane {
        let progress = |&generation: &u64| Progress {
            generation,
            cut_segment: first_segment,
            open: true,
            ..Progress::default()
        };
        ReplicatedLane {
            rollover,
            quorums,
            quorums_from: 0,
            children: generations.iter().map(progress).collect(),
            counts,
            in_flight_max,
            ends_segment: false,
            next: Position::start_of(first_segment),
            appends_in_segment: 0,
            first: 0,
            entries: VecDeque::new(),
            durable_to: 0,
            failed: None,
        }
    }

    pub(super) fn failed(&self) -> Option<&HomeError> {
        self.failed.as_ref()
    }

    /// Claims the next place.
    pub(super) fn place(&mut self, len: u64) -> Result<Position, HomeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let ends_segment = std::mem::take(&mut self.ends_segment);
        let at = match ends_segment {
            true => Position::start_of(self.next.segment + 1),
            false => self.rollover.place(self.next, self.appends_in_segment, len),
        };
        if at.segment != self.next.segment {
            self.appends_in_segment = 0;
        }
        self.appends_in_segment += 1;
        self.next = Position {
            offset: at.offset + len,
            ..at
        };
        self.entries.push_back(Entry {
            at,
            len: 0,
            claimed: len,
            block: None,
            capacity: 0,
            given: false,
            ends_segment,
            done: None,
        });
        Ok(at)
    }

    /// The segment of the next append, unless that begins one.
    pub(super) fn segment(&self) -> u64 {
        self.next.segment
    }

    /// The next append begins a segment, if the present one has any. Back comes the segment that it will be in.
    pub(super) fn end_segment(&mut self) -> u64 {
        self.ends_segment |= self.appends_in_segment > 0;
        self.next.segment + u64::from(self.ends_segment)
    }

    /// A child that was opened anew gets everything from the next append on, once it is `opened`. Back comes the
    /// segment that it begins with.
    pub(super) fn cut(
        &mut self,
        child: usize,
        generation: u64,
        in_flight_max: usize,
    ) -> Result<u64, HomeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.note_unsure(child);
        let cut_segment = self.end_segment();
        let cut = self.first + self.entries.len() as u64;
        let before = &mut self.children[child];
        // Who is handing it appends goes on with those of the new attachment.
        let (busy, again, unsure_from) = (before.busy, before.again, before.unsure_from);
        *before = Progress {
            issued: cut,
            done_to: cut,
            busy,
            again,
            generation,
            cut,
            cut_segment,
            unsure_from,
            ..Progress::default()
        };
        self.counts[child] = false;
        self.in_flight_max[child] = in_flight_max;
        Ok(cut_segment)
    }

    /// A child has opened the lane at its cut.
    pub(super) fn opened(&mut self, child: usize, generation: u64) {
        let progress = &mut self.children[child];
        progress.open |= progress.generation == generation;
    }

    /// The segment from which on a child is given everything.
    pub(super) fn cut_segment(&self, child: usize) -> u64 {
        self.children[child].cut_segment
    }

    /// Has a child said of every append of this segment that it holds from before its cut that it is durable?
    pub(super) fn is_sure_of(&self, child: usize, segment: u64) -> bool {
        let unsure_from = self.children[child].unsure_from;
        unsure_from.is_none_or(|unsure| segment < unsure)
    }

    /// Has this other child stored everything before a child's cut? It need not be durable: where too few members are
    /// left for that, it is when the child counts.
    pub(super) fn is_settled_before_cut(&self, child: usize, at: usize) -> bool {
        let cut = self.children[child].cut;
        let other = &self.children[at];
        !other.dropped && self.counts[at] && other.done_to >= cut
    }

    /// A child has all that was appended before its cut: it counts from now on, if it is a member.
    pub(super) fn count(&mut self, child: usize, generation: u64) -> Vec<AppendOutcome> {
        let progress = &self.children[child];
        if progress.dropped || progress.generation != generation {
            return Vec::new();
        }
        self.counts[child] = true;
        self.children[child].unsure_from = None;
        self.advance()
    }

    /// From now on appends are durable by these quorums.
    pub(super) fn count_by(&mut self, quorums: Quorums) -> Vec<AppendOutcome> {
        self.quorums = quorums;
        self.quorums_from = self.durable_to;
        self.advance()
    }

    /// Has everything that is durable a write quorum by the present rule, also what became durable before it?
    pub(super) fn is_settled_by_rule(&self) -> bool {
        self.is_stored_before(self.quorums_from)
    }

    /// Have members enough stored all appends before this one?
    fn is_stored_before(&self, number: u64) -> bool {
        let has = |child: usize| {
            let progress = &self.children[child];
            self.counts[child] && !progress.dropped && progress.done_to >= number
        };
        self.quorums.has(Quorum::Write, &has)
    }

    /// Gives an append its bytes; back comes who is to be told at once.
    pub(super) fn give(
        &mut self,
        at: Position,
        block: Buffer,
        len: usize,
        done: Completion,
    ) -> Option<AppendOutcome> {
        let index = self.entries.binary_search_by_key(&at, |entry| entry.at);
        let misuse = HomeError::Io {
            what: format!("append at {at}, which was not claimed or given before"),
            source: Arc::new(std::io::ErrorKind::InvalidInput.into()),
        };
        let entry = index.ok().and_then(|index| self.entries.get_mut(index));
        let refused = match (&self.failed, &entry) {
            (Some(error), _) => Some(error.clone()),
            (None, Some(entry)) if !entry.given && len as u64 <= entry.claimed => None,
            _ => Some(misuse),
        };
        let block = Arc::new(block);
        let (None, Some(entry)) = (&refused, entry) else {
            let result = Err(refused?);
            return Some(AppendOutcome {
                done,
                block,
                result,
            });
        };
        entry.given = true;
        entry.len = len;
        entry.capacity = block.capacity();
        entry.block = Some(block);
        entry.done = Some(done);
        let number = self.first + index.unwrap_or(0) as u64;
        let gets = |child: &&mut Progress| !child.dropped && number >= child.cut;
        for child in self.children.iter_mut().filter(gets) {
            child.queued_bytes += len as u64;
        }
        None
    }

    /// Bytes that a child has been given and has not stored.
    pub(super) fn queued_bytes(&self, child: usize) -> u64 {
        self.children[child].queued_bytes
    }

    /// How many appends, from the first on, a child has stored.
    pub(super) fn stored_to(&self, child: usize) -> u64 {
        self.children[child].done_to
    }

    /// Has a child appends before it, under way or to come, in this segment or an earlier one?
    pub(super) fn needs_segment(&self, child: usize, segment: u64) -> bool {
        let progress = &self.children[child];
        let open = progress.done_to.checked_sub(self.first);
        let next = open.and_then(|index| self.entries.get(usize::try_from(index).ok()?));
        !progress.dropped && next.is_some_and(|entry| entry.at.segment <= segment)
    }

    /// Begins to hand a child its appends; false if somebody does, who then looks again.
    pub(super) fn begin(&mut self, child: usize) -> bool {
        let child = &mut self.children[child];
        child.again = child.busy;
        !std::mem::replace(&mut child.busy, true)
    }

    /// The next append for a child, while it may have one.
    pub(super) fn next_for(&self, child: usize, generation: u64) -> Option<ChildAppend> {
        let progress = &self.children[child];
        if self.failed.is_some()
            || progress.dropped
            || !progress.open
            || progress.generation != generation
            || progress.in_flight >= self.in_flight_max[child]
        {
            return None;
        }
        let index = usize::try_from(progress.issued.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get(index)?;
        Some(ChildAppend {
            number: progress.issued,
            at: entry.at,
            len: entry.len,
            claimed: entry.claimed,
            ends_segment: entry.ends_segment,
            block: Arc::clone(entry.block.as_ref()?),
        })
    }

    /// A child is being handed the append that came last from `next_for`. False: it has been opened anew since.
    #[must_use]
    pub(super) fn issued(&mut self, child: usize, generation: u64) -> bool {
        let child = &mut self.children[child];
        if child.generation != generation {
            return false;
        }
        child.issued += 1;
        child.in_flight += 1;
        true
    }

    /// The child has nothing to do now: true if whoever hands it appends may go.
    pub(super) fn end(&mut self, child: usize) -> bool {
        let child = &mut self.children[child];
        let again = std::mem::take(&mut child.again);
        child.busy = again;
        !again
    }

    /// A child has stored an append.
    pub(super) fn stored(
        &mut self,
        child: usize,
        generation: u64,
        number: u64,
        len: usize,
    ) -> Vec<AppendOutcome> {
        let progress = &mut self.children[child];
        if progress.dropped || progress.generation != generation {
            return Vec::new();
        }
        progress.in_flight -= 1;
        progress.queued_bytes -= len as u64;
        progress.done_behind.insert(number);
        while progress.done_behind.remove(&progress.done_to) {
            progress.done_to += 1;
        }
        self.advance()
    }

    /// What has become durable; entries that nobody needs go.
    fn advance(&mut self) -> Vec<AppendOutcome> {
        let mut told = Vec::new();
        while self.failed.is_none() && self.is_stored_before(self.durable_to + 1) {
            let index = usize::try_from(self.durable_to - self.first).unwrap_or(usize::MAX);
            let Some(entry) = self.entries.get_mut(index) else {
                break;
            };
            if let (Some(done), Some(block)) = (entry.done.take(), &entry.block) {
                told.push((done, Arc::clone(block)));
            }
            self.durable_to += 1;
        }
        let mut children = self.children.iter().filter(|child| !child.dropped);
        let all_issued = children.clone().map(|child| child.issued).min();
        let all_done = children.by_ref().map(|child| child.done_to).min();
        let to = all_issued.unwrap_or(u64::MAX).min(self.durable_to);
        for entry in self.entries.iter_mut().take((to - self.first) as usize) {
            entry.block = None;
        }
        let to = all_done.unwrap_or(u64::MAX).min(self.durable_to);
        self.entries.drain(..(to - self.first) as usize);
        self.first = to;
        let told = told.into_iter().map(|(done, block)| AppendOutcome {
            done,
            block,
            result: Ok(()),
        });
        told.collect()
    }

    /// What a child has not answered by now it is never heard of.
    fn note_unsure(&mut self, child: usize) {
        let progress = &mut self.children[child];
        // Of a child that has been dropped before, the first may be gone: then it was noted.
        let index = progress.done_to.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let open = index.and_then(|index| self.entries.get(index));
        let unsure = open.map_or(self.next.segment, |entry| entry.at.segment);
        let before = progress.unsure_from.unwrap_or(unsure);
        progress.unsure_from = Some(unsure.min(before));
    }

    /// A child gets no more appends, and counts for none that is not durable yet.
    pub(super) fn drop_child(&mut self, child: usize, generation: u64) -> Vec<AppendOutcome> {
        let progress = &mut self.children[child];
        if progress.generation != generation || progress.dropped {
            return Vec::new();
        }
        progress.dropped = true;
        progress.queued_bytes = 0;
        self.note_unsure(child);
        self.advance()
    }

    /// Nothing becomes durable here any more.
    pub(super) fn fail(&mut self, error: HomeError) -> Vec<AppendOutcome> {
        if self.failed.is_some() {
            return Vec::new();
        }
        self.failed = Some(error.clone());
        let mut told = Vec::new();
        for entry in &mut self.entries {
            if let (Some(done), Some(block)) = (entry.done.take(), entry.block.take()) {
                told.push(AppendOutcome {
                    done,
                    block,
                    result: Err(error.clone()),
                });
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::super::WriteConcern;
    use super::*;
    use std::sync::mpsc;

    const LEN: u64 = 4096;

    fn lane(children: usize) -> ReplicatedLane {
        let rollover = Rollover {
            appends_max: 4,
            size_bytes: u64::MAX,
        };
        let (counts, generations) = (vec![true; children], vec![1; children]);
        let quorums = Quorums::of_all(children, WriteConcern::Majority);
        let in_flight_max = vec![8; children];
        ReplicatedLane::new(7, rollover, quorums, counts, &generations, in_flight_max)
    }

    type Told = mpsc::Receiver<Result<(), HomeError>>;

    fn append(lane: &mut ReplicatedLane) -> (Position, Told) {
        let at = lane.place(LEN).expect("a place");
        (at, give(lane, at))
    }

    fn give(lane: &mut ReplicatedLane, at: Position) -> Told {
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |_, result| drop(tell.send(result)));
        let block = Buffer::zeroed(LEN as usize);
        assert!(lane.give(at, block, LEN as usize, done).is_none());
        told
    }

    /// Hands a child all that it may have: where, and before which of them it ends a segment.
    fn hand_over(lane: &mut ReplicatedLane, child: usize, generation: u64) -> Vec<(u64, bool)> {
        let mut handed = Vec::new();
        while let Some(issue) = lane.next_for(child, generation) {
            assert!(lane.issued(child, generation));
            handed.push((issue.at.segment, issue.ends_segment));
        }
        handed
    }

    fn store(lane: &mut ReplicatedLane, child: usize, generation: u64, number: u64) {
        let told = lane.stored(child, generation, number, LEN as usize);
        told.into_iter().for_each(AppendOutcome::complete);
    }

    #[test]
    fn a_cut_ends_the_segment_at_all_children_before_the_same_append() {
        let mut lane = lane(3);
        let first = append(&mut lane);
        lane.drop_child(2, 1);
        assert_eq!(hand_over(&mut lane, 0, 1), [(7, false)]);
        assert_eq!(lane.cut(2, 2, 8).expect("cuts"), 8);
        // Where nothing was appended since, a second cut is the same.
        assert_eq!(lane.cut(2, 3, 8).expect("cuts"), 8);
        let (second, _told) = append(&mut lane);
        let (third, _told) = append(&mut lane);
        assert_eq!(first.0, Position::start_of(7));
        assert_eq!(second, Position::start_of(8));
        assert_eq!(
            third,
            Position {
                offset: LEN,
                ..second
            }
        );
        assert_eq!(hand_over(&mut lane, 0, 1), [(8, true), (8, false)]);
        assert_eq!(
            hand_over(&mut lane, 1, 1),
            [(7, false), (8, true), (8, false)]
        );
        assert_eq!(hand_over(&mut lane, 2, 3), [], "it is not open there yet");
        lane.opened(2, 2);
        assert_eq!(
            hand_over(&mut lane, 2, 3),
            [],
            "that was another attachment"
        );
        lane.opened(2, 3);
        assert_eq!(hand_over(&mut lane, 2, 2), []);
        assert_eq!(hand_over(&mut lane, 2, 3), [(8, true), (8, false)]);
        assert_eq!(lane.cut_segment(2), 8);
    }

    #[test]
    fn t2_a_child_counts_from_its_cut_once_it_has_what_came_before() {
        let mut lane = lane(3);
        let (_, before) = append(&mut lane);
        hand_over(&mut lane, 0, 1);
        hand_over(&mut lane, 1, 1);
        hand_over(&mut lane, 2, 1);
        lane.drop_child(2, 1);
        lane.cut(2, 2, 8).expect("cuts");
        lane.opened(2, 2);
        // What is heard of the earlier attachment is no progress of this one.
        store(&mut lane, 2, 1, 0);
        let (_, behind) = append(&mut lane);
        for (child, generation) in [(0, 1), (1, 1), (2, 2)] {
            hand_over(&mut lane, child, generation);
        }
        store(&mut lane, 2, 2, 1);
        store(&mut lane, 0, 1, 1);
        assert!(
            !lane.is_settled_before_cut(2, 0),
            "it lacks what came before, too"
        );
        store(&mut lane, 0, 1, 0);
        assert!(before.try_recv().is_err() && behind.try_recv().is_err());
        assert!(lane.is_settled_before_cut(2, 0) && !lane.is_settled_before_cut(2, 1));
        let told = lane.count(2, 1);
        assert!(told.is_empty(), "that was another attachment");
        assert!(before.try_recv().is_err(), "the third does not count yet");
        let told = lane.count(2, 2);
        told.into_iter().for_each(AppendOutcome::complete);
        assert!(
            before.try_recv().expect("told").is_ok(),
            "it was copied there"
        );
        assert!(behind.try_recv().expect("told").is_ok());
        assert_eq!(lane.queued_bytes(2), 0);
    }

    /// Claimed before the cut, given after it: others get it, and the child is not behind with it.
    #[test]
    fn what_is_given_late_does_not_count_as_queued() {
        let mut lane = lane(3);
        let claimed = lane.place(LEN).expect("a place");
        lane.drop_child(2, 1);
        lane.cut(2, 2, 8).expect("cuts");
        lane.opened(2, 2);
        let told = give(&mut lane, claimed);
        assert_eq!((lane.queued_bytes(1), lane.queued_bytes(2)), (LEN, 0));
        assert_eq!(hand_over(&mut lane, 2, 2), []);
        for child in 0..2 {
            assert_eq!(hand_over(&mut lane, child, 1), [(7, false)]);
            store(&mut lane, child, 1, 0);
        }
        assert!(told.try_recv().expect("told").is_ok());
    }

    /// T7: what it was given and has not answered may be there to be read, and gone after a crash.
    #[test]
    fn t7_what_a_child_has_not_answered_is_not_sure() {
        let mut lane = lane(3);
        for _ in 0..10 {
            let (_, _told) = append(&mut lane);
        }
        hand_over(&mut lane, 2, 1);
        for number in (0..5).chain(6..8) {
            store(&mut lane, 2, 1, number);
        }
        lane.drop_child(2, 1);
        // Four to a segment; the sixth is open.
        let sure = |lane: &ReplicatedLane| [7, 8, 9].map(|of| lane.is_sure_of(2, of));
        let from_second = [true, false, false];
        assert_eq!(sure(&lane), from_second);
        lane.cut(2, 2, 8).expect("cuts");
        lane.drop_child(2, 2);
        lane.cut(2, 3, 8).expect("cuts");
        assert_eq!(sure(&lane), from_second, "until it has been completed");
    }

    /// T2 of lists: what one list has made durable counts in the next one when that has it too.
    #[test]
    fn t2_while_the_list_changes_an_append_needs_both() {
        let mut lane = lane(4);
        let of = |members: [bool; 4]| {
            let none = Quorums::of_all(0, WriteConcern::All);
            none.and(members.to_vec(), WriteConcern::Majority)
        };
        let before = [true, true, true, false];
        let told = lane.count_by(of(before));
        assert!(told.is_empty());
        let (_, first) = append(&mut lane);
        for child in [1, 2] {
            hand_over(&mut lane, child, 1);
            store(&mut lane, child, 1, 0);
        }
        assert!(
            first.try_recv().expect("told").is_ok(),
            "by the list of before"
        );
        assert!(lane.is_settled_by_rule());
        // 3 takes the place of 2.
        let next = [true, true, false, true];
        let both = of(before).and(next.to_vec(), WriteConcern::Majority);
        assert!(lane.count_by(both).is_empty());
        assert!(
            !lane.is_settled_by_rule(),
            "of the next list only one has it"
        );
        let (_, second) = append(&mut lane);
        for child in [1, 2] {
            hand_over(&mut lane, child, 1);
            store(&mut lane, child, 1, 1);
        }
        assert!(
            second.try_recv().is_err(),
            "of the next list only one has it"
        );
        hand_over(&mut lane, 3, 1);
        store(&mut lane, 3, 1, 0);
        assert!(lane.is_settled_by_rule() && second.try_recv().is_err());
        store(&mut lane, 3, 1, 1);
        assert!(second.try_recv().expect("told").is_ok());
    }

    #[test]
    fn a_lane_that_has_failed_is_not_joined() {
        let mut lane = lane(3);
        let error = HomeError::Missing("too many".to_owned());
        assert!(lane.fail(error).is_empty());
        assert!(lane.cut(2, 2, 8).is_err());
    }
}
