//! Side segments on several children: each has a writer of its own; done when `needed` members are.
//!
//! Invariant: who waits is told once, `Ok` only when `needed` members have all of it.

use super::Inner;
use super::child::no_answer;
use crate::{HomeError, LogHome, NoRoom, SideCompletion, SideWriter};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc;

/// Bytes of a side segment that are copied at once. No home puts two pieces of this size together, so copies of one
/// side segment have the same parts, whoever makes them and however fast.
const PIECE_BYTES: usize = crate::side_segments::SIDE_PART_BYTES;
/// Bytes that a copy in progress may have under way.
const BACKLOG_BYTES_MAX: usize = 16 << 20;

struct ReplicatedSide {
    inner: Arc<Inner>,
    /// By child.
    writers: Vec<(usize, Box<dyn SideWriter>)>,
    needed: usize,
    votes: Vec<bool>,
}

/// Counts the answers of the children.
struct Answers {
    inner: Arc<Inner>,
    votes: Vec<bool>,
    needed: usize,
    waiting: usize,
    stored: usize,
    failed: Vec<(usize, NoRoom)>,
    done: Option<SideCompletion>,
}

pub(super) fn begin(inner: &Arc<Inner>, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
    let needed = inner.membership.lock().needed();
    let writer = |child: usize| Some((child, inner.up(child)?.sides.begin_side_segment(lane, id)));
    Box::new(ReplicatedSide {
        writers: (0..inner.children.len()).filter_map(writer).collect(),
        needed,
        votes: inner.votes(),
        inner: Arc::clone(inner),
    })
}

impl SideWriter for ReplicatedSide {
    fn append(&mut self, piece: Vec<u8>) {
        let inner = Arc::clone(&self.inner);
        // One that cannot follow must not take all memory.
        self.writers.retain(|(child, writer)| {
            writer.backlog_bytes() as u64 <= inner.options.lag_bytes_max
                || !inner.do_without(*child, "it cannot follow with a large transaction")
        });
        for (_, writer) in &mut self.writers {
            writer.append(piece.clone());
        }
    }

    fn backlog_bytes(&self) -> usize {
        let voters = self.writers.iter().filter(|(child, _)| self.votes[*child]);
        let mut backlogs: Vec<usize> = voters.map(|(_, writer)| writer.backlog_bytes()).collect();
        backlogs.sort_unstable();
        let index = self.needed.min(backlogs.len()).saturating_sub(1);
        backlogs.get(index).copied().unwrap_or(0)
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(self: Box<Self>, done: SideCompletion) {
        let answers = Arc::new(Mutex::new(Answers {
            inner: self.inner,
            votes: self.votes,
            needed: self.needed,
            waiting: self.writers.len(),
            stored: 0,
            failed: Vec::new(),
            done: Some(done),
        }));
        if self.writers.is_empty() {
            answered(&answers, None);
        }
        for (child, writer) in self.writers {
            let answers = Arc::clone(&answers);
            writer.finish(Box::new(move |result| {
                answered(&answers, Some((child, result)));
            }));
        }
    }
}

fn answered(answers: &Mutex<Answers>, answer: Option<(usize, Result<(), NoRoom>)>) {
    let mut state = answers.lock();
    if let Some((child, result)) = answer {
        state.waiting -= 1;
        match result {
            Ok(()) => state.stored += usize::from(state.votes[child]),
            Err(error) => state.failed.push((child, error)),
        }
    }
    let inner = Arc::clone(&state.inner);
    if state.stored >= state.needed {
        let done = state.done.take();
        let failed = std::mem::take(&mut state.failed);
        drop(state);
        // It lacks what the others have.
        for (child, error) in failed {
            inner.leave_out(child, format!("a large transaction: {error}"));
        }
        if let Some(done) = done {
            done(Ok(()));
        }
    } else if state.waiting == 0 {
        let done = state.done.take();
        let error = state.failed.pop().map(|(_, error)| error);
        drop(state);
        let nobody = || NoRoom::Failed(no_answer("storing a large transaction"));
        if let Some(done) = done {
            done(Err(error.unwrap_or_else(nobody)));
        }
    }
}

/// The child has answered, and what it has is not what was written.
fn is_damage(error: &HomeError) -> bool {
    matches!(error, HomeError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidData)
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
            if self.up(child).is_none() {
                continue;
            }
            match self.get_side_of(child, lane, id, offset, into) {
                Ok(count) => return Ok(count),
                Err(HomeError::Missing(_)) => {}
                // No reason to do without all the rest that it has.
                Err(error) if is_damage(&error) => damaged = Some(error),
                Err(error) => self.leave_out(child, format!("reading a side segment: {error}")),
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
        let result = self.get_side_of(child, lane, id, offset, into);
        if let Err(error) = &result
            && !matches!(error, HomeError::Missing(_))
            && !is_damage(error)
        {
            self.leave_out(child, format!("reading a side segment: {error}"));
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
        if self.up(damaged).is_none() || self.up(good).is_none() {
            return Ok(());
        }
        match self.ask_one(damaged, move |home| {
            home.sides.remove_side_segment(lane, id)
        }) {
            Ok(()) => self.copy_side(&[good], damaged, lane, id),
            Err(error @ HomeError::Fenced(_)) => Err(error),
            Err(error) => {
                // It stays damaged, and is passed over.
                let url = &self.children[damaged].url;
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
        let (tell, told) = mpsc::channel();
        let Some(home) = self.up(child).cloned() else {
            return Err(no_answer("asking a home that is left out"));
        };
        self.children[child].run(move || drop(tell.send(ask(&home))));
        let answer = told.try_recv().ok();
        let answer = answer.or_else(|| told.recv_timeout(self.options.patience).ok());
        answer.unwrap_or_else(|| Err(no_answer("asking one of the log's homes")))
    }

    /// Which children that are up have all of a side segment. What was written or removed in part only is listed too,
    /// and is missing when it is read.
    pub(super) fn has_side(&self, lane: LaneId, id: u64) -> Result<Vec<(usize, bool)>, HomeError> {
        self.list("looking for a side segment", move |home| {
            match home.sides.get_side_segment(lane, id, 0, &mut []) {
                Ok(_) => Ok(true),
                Err(HomeError::Missing(_)) => Ok(false),
                Err(error) if is_damage(&error) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Copies a side segment to a child from the first of its holders that has all of it. A child that fails is left
    /// out.
    pub(super) fn copy_side(
        &self,
        holders: &[usize],
        to: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError> {
        let Some(target) = self.up(to) else {
            return Ok(());
        };
        let mut writer = target.sides.begin_side_segment(lane, id);
        let mut holders = holders.iter().filter(|from| self.up(**from).is_some());
        let mut from = holders.next();
        let mut offset = 0;
        loop {
            let Some(&holder) = from else {
                // Nobody who is left has all of it. If they are enough to judge, it was never acknowledged.
                return self.enough_to_judge();
            };
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
                Err(error) => {
                    self.leave_out(holder, format!("reading a side segment: {error}"));
                    from = holders.next();
                    continue;
                }
            };
            if piece.is_empty() {
                break;
            }
            offset += piece.len() as u64;
            if self.options.threads && !self.has_room(writer.as_ref()) {
                self.leave_out(to, "completing it: no answer in time".to_owned());
                return Ok(());
            }
            writer.append(piece);
        }
        let (tell, told) = mpsc::channel();
        writer.finish(Box::new(move |result| drop(tell.send(result))));
        let answer = told.try_recv().ok();
        match answer.or_else(|| told.recv_timeout(self.options.patience).ok()) {
            Some(Ok(())) => {}
            Some(Err(error)) => self.leave_out(to, format!("completing it: {error}")),
            None => self.leave_out(to, "completing it: no answer in time".to_owned()),
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

    #[test]
    fn a_holder_that_cannot_be_read_is_passed_over() {
        let (children, home) = three(false);
        for child in &children[..2] {
            let mut side = child.begin_side_segment(LANE, 7);
            side.append(b"a large transaction".to_vec());
            side.finish(Box::new(|stored| stored.expect("stores")));
        }
        children[0].set_presence(Availability::Refusing);
        home.inner.copy_side(&[0, 1], 2, LANE, 7).expect("copies");
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
        home.inner.copy_side(&[0], 2, LANE, 7).expect("goes on");
        assert!(
            children[2]
                .list_side_segments(LANE)
                .expect("lists")
                .is_empty()
        );
        home.inner.copy_side(&[0, 1], 2, LANE, 7).expect("copies");
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
