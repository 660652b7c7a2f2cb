//! Side segments on several children: each has a writer of its own; done when a write quorum of the members is.
//!
//! Invariant: who waits is told once, `Ok` only when a write quorum has all of it.

use super::catch_up::OperationInFlight;
use super::child::{Attachment, no_answer};
use super::membership::{Quorum, Quorums};
use super::{Asked, Audience, Inner};
use crate::{HomeError, LogHome, NoRoom, SideCompletion, SideWriter};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of a side segment that are copied at once. No home puts two pieces of this size together, so copies of one
/// side segment have the same parts, whoever makes them and however fast.
const PIECE_BYTES: usize = crate::side_segments::SIDE_PART_BYTES;
/// Bytes that a copy in progress may have under way.
const BACKLOG_BYTES_MAX: usize = 16 << 20;

struct ReplicatedSide {
    inner: Arc<Inner>,
    writers: Vec<ChildWriter>,
    quorums: Quorums,
    /// Until every child has answered.
    under_way: OperationInFlight,
}

struct ChildWriter {
    child: usize,
    generation: u64,
    /// Its answer counts, if it is a member.
    is_up: bool,
    writer: Box<dyn SideWriter>,
}

/// Counts the answers of the children.
struct Answers {
    inner: Arc<Inner>,
    quorums: Quorums,
    waiting: usize,
    /// Children that were up, and have all of it.
    stored: BTreeSet<usize>,
    failed: Vec<Answer>,
    done: Option<SideCompletion>,
    _under_way: OperationInFlight,
}

/// What a child has answered.
struct Answer {
    child: usize,
    generation: u64,
    is_up: bool,
    result: Result<(), NoRoom>,
}

pub(super) fn begin(inner: &Arc<Inner>, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
    let under_way = inner.operations.begin();
    let quorums = inner.quorums();
    let asked = inner.asked(Audience::Receivers);
    let writer = |(child, asked): (usize, Option<Asked>)| {
        let Asked { attachment, is_up } = asked?;
        if !is_up {
            let mut since_cut = inner.children[child].since_cut.lock();
            since_cut.sides.insert((lane, id));
        }
        Some(ChildWriter {
            child,
            generation: attachment.generation,
            is_up,
            writer: attachment.sides.begin_side_segment(lane, id),
        })
    };
    Box::new(ReplicatedSide {
        writers: asked.into_iter().enumerate().filter_map(writer).collect(),
        quorums,
        under_way,
        inner: Arc::clone(inner),
    })
}

impl SideWriter for ReplicatedSide {
    fn append(&mut self, piece: Vec<u8>) {
        let inner = Arc::clone(&self.inner);
        // One that cannot follow must not take all memory.
        self.writers.retain(|of| {
            let why = "it cannot follow with a large transaction";
            of.writer.backlog_bytes() as u64 <= inner.options.lag_bytes_max
                || !inner.do_without(of.child, of.generation, why)
        });
        for of in &mut self.writers {
            of.writer.append(piece.clone());
        }
    }

    fn backlog_bytes(&self) -> usize {
        let of = |child: usize| {
            let mut up = self.writers.iter().filter(|of| of.is_up);
            let writer = up.find(|of| of.child == child)?;
            Some(writer.writer.backlog_bytes())
        };
        self.quorums.least_for_write(&of)
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(self: Box<Self>, done: SideCompletion) {
        let answers = Arc::new(Mutex::new(Answers {
            inner: self.inner,
            quorums: self.quorums,
            waiting: self.writers.len(),
            stored: BTreeSet::new(),
            failed: Vec::new(),
            done: Some(done),
            _under_way: self.under_way,
        }));
        if self.writers.is_empty() {
            answered(&answers, None);
        }
        for of in self.writers {
            let answers = Arc::clone(&answers);
            let (child, generation, is_up) = (of.child, of.generation, of.is_up);
            of.writer.finish(Box::new(move |result| {
                let answer = Answer {
                    child,
                    generation,
                    is_up,
                    result,
                };
                answered(&answers, Some(answer));
            }));
        }
    }
}

fn answered(answers: &Mutex<Answers>, answer: Option<Answer>) {
    let mut state = answers.lock();
    if let Some(answer) = answer {
        state.waiting -= 1;
        match answer.result {
            Ok(()) if answer.is_up => drop(state.stored.insert(answer.child)),
            Ok(()) => {}
            Err(_) => state.failed.push(answer),
        }
    }
    let inner = Arc::clone(&state.inner);
    let is_stored = |child: usize| state.stored.contains(&child);
    if state.quorums.has(Quorum::Write, &is_stored) {
        let done = state.done.take();
        let failed = std::mem::take(&mut state.failed);
        drop(state);
        // It lacks what the others have.
        for answer in failed {
            if let Err(error) = answer.result {
                let why = format!("a large transaction: {error}");
                inner.leave_out(answer.child, answer.generation, why);
            }
        }
        if let Some(done) = done {
            done(Ok(()));
        }
    } else if state.waiting == 0 {
        let done = state.done.take();
        let failed = std::mem::take(&mut state.failed);
        drop(state);
        // Of those that count, what says more than that too few are there.
        let told = failed.iter().filter(|answer| answer.is_up);
        let mut told = told.filter_map(|answer| answer.result.as_ref().err());
        let telling = |error: &&NoRoom| {
            matches!(
                error,
                NoRoom::DiskFull | NoRoom::Failed(HomeError::Fenced(_))
            )
        };
        let error = told.find(telling).cloned();
        for answer in failed {
            if let Err(NoRoom::Failed(error)) = answer.result
                && !matches!(error, HomeError::Fenced(_))
            {
                let why = format!("a large transaction: {error}");
                inner.leave_out(answer.child, answer.generation, why);
            }
        }
        if let Some(done) = done {
            done(Err(error.unwrap_or(NoRoom::Unavailable)));
        }
    }
}

/// The child has answered, and what it has is not what was written.
fn is_damage(error: &HomeError) -> bool {
    matches!(error, HomeError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidData)
}

/// Has a home all of a side segment? What was written or removed in part only is listed too, and is missing when it is
/// read.
pub(super) fn is_whole_side(home: &LogHome, lane: LaneId, id: u64) -> Result<bool, HomeError> {
    match home.sides.get_side_segment(lane, id, 0, &mut []) {
        Ok(_) => Ok(true),
        Err(HomeError::Missing(_)) => Ok(false),
        Err(error) if is_damage(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Inner {
    /// Reads a side segment where it is. Missing only if enough members say so.
    pub(super) fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let mut damaged = None;
        for child in 0..self.children.len() {
            let Some(home) = self.up(child) else {
                continue;
            };
            match self.get_side_of(child, lane, id, offset, into) {
                Ok(count) => return Ok(count),
                Err(HomeError::Missing(_)) => {}
                // No reason to do without all the rest that it has.
                Err(error) if is_damage(&error) => damaged = Some(error),
                Err(error) => {
                    self.leave_out(
                        child,
                        home.generation,
                        format!("reading a side segment: {error}"),
                    );
                }
            }
        }
        if let Some(error) = damaged {
            return Err(error);
        }
        self.enough_to_judge()?;
        Err(HomeError::Missing(format!(
            "side segment {id} of lane {lane}"
        )))
    }

    /// Reads a side segment of one child.
    pub(super) fn get_side_of(
        &self,
        child: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let len = into.len();
        let bytes = self.ask_one(child, move |home| {
            let mut bytes = vec![0; len];
            let count = home.sides.get_side_segment(lane, id, offset, &mut bytes)?;
            bytes.truncate(count);
            Ok(bytes)
        })?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// The same. A child that fails is left out, as by other reads of the log; one that lacks it, or has it damaged, is
    /// not.
    pub(super) fn get_side_segment_copy(
        &self,
        child: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let home = self.up(child);
        let result = self.get_side_of(child, lane, id, offset, into);
        if let Err(error) = &result
            && let Some(home) = home
            && !matches!(error, HomeError::Missing(_))
            && !is_damage(error)
        {
            self.leave_out(
                child,
                home.generation,
                format!("reading a side segment: {error}"),
            );
        }
        result
    }

    /// Puts a good copy where a damaged one is. A child that dies between the two steps lacks it, and the next start
    /// copies it.
    pub(super) fn replace_side(
        &self,
        damaged: usize,
        good: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError> {
        let (Some(target), Some(_)) = (self.up(damaged), self.up(good)) else {
            return Ok(());
        };
        match self.ask_one(damaged, move |home| {
            home.sides.remove_side_segment(lane, id)
        }) {
            Ok(()) => self.copy_side(&[good], (damaged, &target), (lane, id), &|| Ok(())),
            Err(error @ HomeError::Fenced(_)) => Err(error),
            Err(error) => {
                // It stays damaged, and is passed over.
                let url = self.children[damaged].url();
                tracing::warn!("log: replacing a damaged side segment in {url}: {error}");
                Ok(())
            }
        }
    }

    /// Asks one child that is up.
    pub(super) fn ask_one<T: Send + 'static>(
        &self,
        child: usize,
        ask: impl FnOnce(&LogHome) -> Result<T, HomeError> + Send + 'static,
    ) -> Result<T, HomeError> {
        let Some(home) = self.up(child) else {
            return Err(no_answer("asking a home that is left out"));
        };
        self.ask_attached(child, &home, ask)
    }

    /// Asks one child that is up or catches up.
    pub(super) fn ask_attached<T: Send + 'static>(
        &self,
        child: usize,
        home: &Attachment,
        ask: impl FnOnce(&LogHome) -> Result<T, HomeError> + Send + 'static,
    ) -> Result<T, HomeError> {
        let (tell, told) = logstead_env::channel();
        let home = home.clone();
        self.children[child].run(move || drop(tell.send(ask(&home))));
        let answer = told.try_recv().ok();
        let answer = answer.or_else(|| told.recv_timeout(self.options.patience).ok());
        answer.unwrap_or_else(|| Err(no_answer("asking one of the log's homes")))
    }

    /// Which children that are up have all of a side segment. What was written or removed in part only is listed too,
    /// and is missing when it is read.
    pub(super) fn has_side(&self, lane: LaneId, id: u64) -> Result<Vec<(usize, bool)>, HomeError> {
        self.list("looking for a side segment", move |home| {
            is_whole_side(home, lane, id)
        })
    }

    /// Copies a side segment to a child from the first of its holders that has all of it. The child is left out if it
    /// fails, and at a start a holder that does. It ends with what `goes_on` says between two pieces.
    pub(super) fn copy_side(
        &self,
        holders: &[usize],
        (to, target): (usize, &Attachment),
        (lane, id): (LaneId, u64),
        goes_on: &dyn Fn() -> Result<(), HomeError>,
    ) -> Result<(), HomeError> {
        let mut writer = target.sides.begin_side_segment(lane, id);
        let mut holders = holders.iter().filter(|from| self.up(**from).is_some());
        let mut from = holders.next();
        let mut offset = 0;
        loop {
            goes_on()?;
            let Some(&holder) = from else {
                // Nobody who is left has all of it. If they are enough to judge, it was never acknowledged.
                return self.enough_to_judge();
            };
            let home = self.up(holder);
            let piece = self.ask_one(holder, move |home| {
                let mut bytes = vec![0; PIECE_BYTES];
                let mut len = 0;
                // Whole pieces, whatever borders the holder's copy has.
                while len < bytes.len() {
                    match home.sides.get_side_segment(
                        lane,
                        id,
                        offset + len as u64,
                        &mut bytes[len..],
                    )? {
                        0 => break,
                        count => len += count,
                    }
                }
                bytes.truncate(len);
                Ok(bytes)
            });
            let piece = match piece {
                Ok(piece) => piece,
                // All hold the same: the next one goes on where this one ended.
                Err(error) if matches!(error, HomeError::Missing(_)) || is_damage(&error) => {
                    from = holders.next();
                    continue;
                }
                // While a server runs, no child is done without for the sake of another one's copy.
                Err(error) if self.is_settled() => return Err(error),
                Err(error) => {
                    if let Some(home) = home {
                        let why = format!("reading a side segment: {error}");
                        self.leave_out(holder, home.generation, why);
                    }
                    from = holders.next();
                    continue;
                }
            };
            if piece.is_empty() {
                break;
            }
            offset += piece.len() as u64;
            if self.options.threads && !self.has_room(writer.as_ref()) {
                self.leave_out(
                    to,
                    target.generation,
                    "completing it: no answer in time".to_owned(),
                );
                return Ok(());
            }
            writer.append(piece);
        }
        let (tell, told) = logstead_env::channel();
        writer.finish(Box::new(move |result| drop(tell.send(result))));
        let answer = told.try_recv().ok();
        match answer.or_else(|| told.recv_timeout(self.options.patience).ok()) {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.leave_out(to, target.generation, format!("completing it: {error}"))
            }
            None => self.leave_out(
                to,
                target.generation,
                "completing it: no answer in time".to_owned(),
            ),
        }
        Ok(())
    }

    /// Waits until a copy may go on; false if nothing is stored for so long that nobody waits any more.
    fn has_room(&self, writer: &dyn SideWriter) -> bool {
        let mut least = usize::MAX;
        let mut since = self.env.clock.monotonic();
        loop {
            let backlog = writer.backlog_bytes();
            let now = self.env.clock.monotonic();
            if backlog <= BACKLOG_BYTES_MAX {
                return true;
            }
            if backlog < least {
                (least, since) = (backlog, now);
            } else if now.since(since) >= self.options.patience {
                return false;
            }
            logstead_env::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Availability, MemoryHome, ReplicatedHome, ReplicatedOptions, SideSegments, Source,
        WriteConcern,
    };
    use logstead_env::Env;
    use std::time::Duration;

    const LANE: LaneId = LaneId(0);

    fn three(threads: bool) -> (Vec<MemoryHome>, ReplicatedHome) {
        let children: Vec<_> = (0..3).map(|_| MemoryHome::new(64 << 10)).collect();
        let sources = children
            .iter()
            .map(|c| Source::of(LogHome::from(c.clone())));
        let options = ReplicatedOptions {
            ack: WriteConcern::Majority,
            threads,
            patience: Duration::from_millis(50),
            ..ReplicatedOptions::default()
        };
        let home = ReplicatedHome::open(sources.collect(), &Env::real(), options);
        (children, home.expect("opens"))
    }

    fn copy(home: &ReplicatedHome, holders: &[usize]) {
        let target = home.inner.up(2).expect("is up");
        let copied = home
            .inner
            .copy_side(holders, (2, &target), (LANE, 7), &|| Ok(()));
        copied.expect("copies, or goes on");
    }

    #[test]
    fn a_holder_that_cannot_be_read_is_passed_over() {
        let (children, home) = three(false);
        for child in &children[..2] {
            let mut side = child.begin_side_segment(LANE, 7);
            side.append(b"a large transaction".to_vec());
            side.finish(Box::new(|stored| stored.expect("stores")));
        }
        children[0].set_presence(Availability::Refusing);
        copy(&home, &[0, 1]);
        assert_eq!(children[2].list_side_segments(LANE).expect("lists"), [7]);
        assert!(home.inner.up(0).is_none() && home.inner.up(2).is_some());
    }

    /// It is being removed, or was never finished, at whoever was thought to have it.
    #[test]
    fn what_nobody_has_whole_is_not_copied_and_stops_nothing() {
        let (children, home) = three(false);
        let mut side = children[1].begin_side_segment(LANE, 7);
        side.append(b"a large transaction".to_vec());
        side.finish(Box::new(|stored| stored.expect("stores")));
        copy(&home, &[0]);
        assert!(
            children[2]
                .list_side_segments(LANE)
                .expect("lists")
                .is_empty()
        );
        copy(&home, &[0, 1]);
        assert_eq!(children[2].list_side_segments(LANE).expect("lists"), [7]);
        assert!((0..3).all(|child| home.inner.up(child).is_some()));
    }

    struct Stuck;

    impl SideWriter for Stuck {
        fn append(&mut self, _piece: Vec<u8>) {}

        fn backlog_bytes(&self) -> usize {
            BACKLOG_BYTES_MAX + 1
        }

        fn spare(&mut self) -> Option<Vec<u8>> {
            None
        }

        fn finish(self: Box<Self>, _done: SideCompletion) {}
    }

    #[test]
    fn a_copy_that_gets_nowhere_is_not_waited_for() {
        let (_children, home) = three(true);
        assert!(!home.inner.has_room(&Stuck));
    }
}
