//! Tails copied to other homes: what survives comes over, by number, and nothing else.

use crate::rig;

use logstead_env::RealClock;
use logstead_home::{
    Buffer, Completion, HomeCapabilities, HomeError, LaneAppends, LogHome, MemoryHome, NamedValues,
    NoRoom, Position, RoomListener, RoomRequest,
};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::copy::{
    CopiedPart, CopiedTail, Destination, TailCopy, TailCut, TailStart, orphans,
};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{self, CheckpointRef, Manifest, UnfinishedCopy};
use logstead_wal::recovery::RecoveryError;
use logstead_wal::{EntryDependencies, recovery};
use rig::{Machine, ROW_LEN, Server, Taken, options};
use std::sync::Arc;

const PLACE: Destination = Destination {
    database: DatabaseId(77),
    epoch: Epoch(5),
    lane: LaneId(3),
    rest: None,
};

fn copy(from: &LogHome, to: &LogHome, place: Destination) -> (CopiedTail, Option<CheckpointRef>) {
    let manifest = manifest_of(from).unwrap();
    let tail = TailCopy::read(from, &manifest, &RealClock::new(), to, place).unwrap();
    (tail.finish().unwrap(), manifest.checkpoint)
}

/// The manifest of a copy.
fn manifest_with(tail: &CopiedTail, checkpoint: Option<CheckpointRef>) -> Manifest {
    Manifest {
        epoch: Epoch(PLACE.epoch.get() + 1),
        checkpoint,
        marks: tail.parts().map(|part| part.mark.clone()).collect(),
        ..Manifest::first(PLACE.database)
    }
}

/// What a server finds that starts on the copy.
fn survivors(copy: &Machine) -> Result<(Vec<u64>, u64), RecoveryError> {
    let mut taken = Taken::default();
    let log = recovery::open_with(&copy.home()?, &copy.env, &options(), false, &mut taken)?;
    Ok((taken.survivors, log.next_csn.get()))
}

/// Two lives, two lanes, a checkpoint in the first one, a side segment, and an entry whose predecessor is not there.
fn source() -> (Machine, Server) {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    (1..=6).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
    server.checkpoint(7).unwrap();
    assert!(server.commit(0, 7) && server.commit(1, 8));
    drop(server);
    let server = machine.start(2).unwrap();
    let next = server.log.next_csn.get();
    assert_eq!(next, 9);
    assert!(server.commit(0, 9) && server.commit(1, 10));
    assert!(server.push_side(1, 11, &EntryDependencies::floor(Csn(10))) && server.flush(1));
    // 12 was never written: 13 does not hang on it and survives, 14 does and does not.
    assert!(server.push_with(0, 13, &EntryDependencies::floor(Csn(11))) && server.flush(0));
    assert!(server.push_with(1, 14, &EntryDependencies::floor(Csn(13))) && server.flush(1));
    (machine, server)
}

const SURVIVORS: [u64; 6] = [7, 8, 9, 10, 11, 13];

#[test]
fn what_survives_comes_over_beside_the_server() {
    let (_, server) = source();
    let target = Machine::new(2);
    let to = target.home().unwrap();
    let (tail, checkpoint) = copy(&server.home, &to, PLACE);
    assert_eq!(tail.entries, 6);
    assert_eq!(checkpoint.as_ref().map(|at| at.csn), Some(Csn(7)));
    let mark = &tail.prefix.as_ref().unwrap().mark;
    assert_eq!((mark.base, mark.first_unaccounted), (Csn(7), Csn(12)));
    assert!(mark.next > Csn(14), "no CSN is drawn twice");
    to.names
        .put_if_absent(manifest::NAME, &manifest_with(&tail, checkpoint).encode())
        .unwrap();
    drop(to);
    for _ in 0..2 {
        let (found, next) = survivors(&target).unwrap();
        assert_eq!(
            (found.as_slice(), next),
            (SURVIVORS.as_slice(), mark.next.get())
        );
    }
    // The source has not noticed.
    assert!(server.commit(0, 15));
}

/// Where blocks lie at any offset, and entries are too many for one.
#[test]
fn places_in_another_kind_of_home_are_its_own() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    (1..=400).for_each(|csn| assert!(server.commit(0, csn)));
    let to = MemoryHome::new(64 << 10);
    let (tail, checkpoint) = copy(&server.home, &LogHome::from(to.clone()), PLACE);
    assert_eq!((tail.entries, checkpoint), (400, None));
    let span = tail.prefix.as_ref().unwrap().mark.spans[0];
    assert!(span.end.segment > 0 && span.blocks > 1, "{span:?}");
    to.put_if_absent(manifest::NAME, &manifest_with(&tail, None).encode())
        .unwrap();
    let to = LogHome::from(to);
    let mut taken = Taken::default();
    recovery::open_with(&to, &machine.env, &options(), false, &mut taken).unwrap();
    assert_eq!(taken.survivors, (1..=400).collect::<Vec<_>>());
}

/// A later copy into the same home takes the place of the one before, whatever attempts in between have left.
#[test]
fn the_tail_before_stays_until_the_next_one_counts() {
    let (_, server) = source();
    let target = Machine::new(2);
    let to = target.home().unwrap();
    let (first, checkpoint) = copy(&server.home, &to, PLACE);
    let tag = to
        .names
        .put_if_absent(manifest::NAME, &manifest_with(&first, checkpoint).encode())
        .unwrap();
    let place = |lane: u16| Destination {
        epoch: Epoch(7),
        lane: LaneId(lane),
        ..PLACE
    };
    // Stored, and never named.
    drop(copy(&server.home, &to, place(0)));
    let found = manifest_of(&to).unwrap();
    assert_eq!(
        found.marks.as_slice(),
        first
            .parts()
            .map(|part| part.mark.clone())
            .collect::<Vec<_>>()
    );
    let (second, checkpoint) = copy(&server.home, &to, place(1));
    let next = Manifest {
        epoch: Epoch(8),
        ..manifest_with(&second, checkpoint)
    };
    let orphans = orphans(&to, &second.parts().cloned().collect::<Vec<_>>()).unwrap();
    to.names
        .compare_and_swap(manifest::NAME, tag, &next.encode())
        .unwrap();
    // From now on a server may be at work there: what it writes is not the copy's to remove.
    to.appends.open_lane(LaneId(2), 1).unwrap();
    orphans.remove(&to).unwrap();
    for (lane, there) in [(0, false), (1, true), (2, true), (3, false)] {
        let segments = to.segments.list_segments(LaneId(lane)).unwrap();
        assert_eq!(!segments.is_empty(), there, "lane {lane}");
    }
    drop(to);
    assert_eq!(survivors(&target).unwrap().0, SURVIVORS);
}

/// The end is in the mark: what a copy has lost is missed.
#[test]
fn a_copy_that_lost_its_end_is_damaged_not_shorter() {
    let (_, server) = source();
    let target = Machine::new(2);
    let to = target.home().unwrap();
    let (tail, checkpoint) = copy(&server.home, &to, PLACE);
    let span = tail.prefix.as_ref().unwrap().mark.spans[0];
    to.names
        .put_if_absent(manifest::NAME, &manifest_with(&tail, checkpoint).encode())
        .unwrap();
    drop(to);
    let segment = Machine::segment(span.lane.get(), span.end.segment);
    let cut = (span.end.offset - 4096) as usize;
    target
        .files
        .tamper(&segment, |file| file[cut..].fill(0))
        .unwrap();
    let found = survivors(&target);
    assert!(matches!(found, Err(RecoveryError::Corrupt(_))), "{found:?}");
}

/// A home whose lanes have other capabilities.
struct OtherAppends(Arc<dyn LaneAppends>, HomeCapabilities);

impl OtherAppends {
    /// Whose appends are so small that no row fits into an entry.
    fn small(to: LogHome) -> LogHome {
        OtherAppends::with(to, |capabilities| HomeCapabilities {
            room_size_bytes_max: ROW_LEN as u64 * 3,
            ..capabilities
        })
    }

    /// Where each epoch has segment numbers of its own.
    fn leased(to: LogHome) -> LogHome {
        OtherAppends::with(to, |capabilities| HomeCapabilities {
            leased: true,
            ..capabilities
        })
    }

    fn with(
        to: LogHome,
        capabilities: impl FnOnce(HomeCapabilities) -> HomeCapabilities,
    ) -> LogHome {
        let capabilities = capabilities(to.capabilities());
        LogHome {
            appends: Arc::new(OtherAppends(Arc::clone(&to.appends), capabilities)),
            ..to
        }
    }
}

impl LaneAppends for OtherAppends {
    fn capabilities(&self) -> HomeCapabilities {
        self.1
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.0.open_lane(lane, first_segment)
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.0.set_room_listener(lane, listener);
    }

    fn ensure_room(&self, lane: LaneId, bytes: u64, asked: &mut RoomRequest) -> Result<(), NoRoom> {
        self.0.ensure_room(lane, bytes, asked)
    }

    fn is_short_of_space(&self) -> bool {
        self.0.is_short_of_space()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.0.free_bytes()
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        self.0.place(lane, len)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        self.0.append(lane, at, block, len, done);
    }
}

/// A copy that is repeated, as it goes on beside a server.
struct Repeated<'h> {
    server: &'h Server,
    to: &'h LogHome,
    epoch: u32,
    start: Option<TailStart>,
    complete: Csn,
    parts: Vec<CopiedPart>,
}

impl Repeated<'_> {
    /// How many entries are copied, how many of those may still get others before them, and how far the log has come.
    fn round(&mut self) -> (u64, bool, (Csn, Vec<u64>)) {
        let manifest = manifest_of(&self.server.home).unwrap();
        let place = Destination {
            epoch: Epoch(self.epoch),
            lane: LaneId(self.epoch as u16),
            rest: Some((Epoch(self.epoch + 1), LaneId(self.epoch as u16 + 1))),
            ..PLACE
        };
        self.epoch += 2;
        let from = &self.server.home;
        let cut = TailCut::take(from, &manifest, self.start.as_ref(), self.complete).unwrap();
        let base = self.parts.last().map_or(Csn(1), |part| part.mark.next);
        let (clock, to) = (RealClock::new(), self.to);
        let tail = TailCopy::of_cut(from, &cut, &clock, to, (place, base)).unwrap();
        let tail = tail.finish().unwrap();
        (self.start, self.complete) = (Some(cut.start()), tail.complete);
        let has_rest = tail.rest.is_some();
        if let Some(mut prefix) = tail.prefix.clone() {
            prefix.mark.next = tail.complete;
            self.parts.push(prefix);
        }
        let named: Vec<CopiedPart> = self.parts.iter().cloned().chain(tail.rest).collect();
        let mut marks: Vec<_> = named.iter().map(|part| part.mark.clone()).collect();
        if let Some(last) = marks.last_mut() {
            last.next = last.next.max(tail.next);
        }
        let manifest = Manifest {
            epoch: Epoch(self.epoch + 1),
            marks,
            ..Manifest::first(PLACE.database)
        };
        orphans(to, &named).unwrap().remove(to).unwrap();
        let bytes = manifest.encode();
        match to.names.get(manifest::NAME).unwrap() {
            Some((_, tag)) => to.names.compare_and_swap(manifest::NAME, tag, &bytes),
            None => to.names.put_if_absent(manifest::NAME, &bytes),
        }
        .unwrap();
        (tail.entries, has_rest, cut.position())
    }
}

/// Each round copies what has come since the one before; what lies above a gap comes again, when the gap is filled.
#[test]
fn a_repeated_copy_goes_on_where_the_one_before_ended() {
    goes_on(|to| to);
}

/// The same where each entry's records lie beside the log: they stay as long as their entry, and no longer.
#[test]
fn side_segments_of_a_repeated_copy_stay_with_their_part() {
    goes_on(OtherAppends::small);
}

/// Of two copies into the same place at once the one with the later epoch goes on. The other one is told that, and not
/// that there are no numbers left.
#[test]
fn a_copy_that_is_overtaken_by_a_later_one_is_told_so() {
    let (_, server) = source();
    let to = OtherAppends::leased(LogHome::from(MemoryHome::new(1 << 20)));
    let place = |epoch| Destination {
        epoch: Epoch(epoch),
        ..PLACE
    };
    let (later, _) = copy(&server.home, &to, place(7));
    assert_eq!(later.entries, 6);
    for epoch in [5, 6] {
        let manifest = manifest_of(&server.home).unwrap();
        let clock = RealClock::new();
        let tail = TailCopy::read(&server.home, &manifest, &clock, &to, place(epoch));
        let overtaken = tail.and_then(TailCopy::finish).unwrap_err();
        assert!(
            matches!(overtaken, RecoveryError::Overtaken(_)),
            "{overtaken}"
        );
    }
    assert_eq!(copy(&server.home, &to, place(8)).0.entries, 6);
}

fn goes_on(with: impl FnOnce(LogHome) -> LogHome) {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    let target = Machine::new(2);
    let to = with(target.home().unwrap());
    let is_small = to.capabilities().room_size_bytes_max < 1000;
    let mut copy = Repeated {
        server: &server,
        to: &to,
        epoch: 5,
        start: None,
        complete: Csn(1),
        parts: Vec::new(),
    };
    (1..=6).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
    let (entries, has_rest, position) = copy.round();
    assert_eq!((entries, has_rest, copy.complete), (6, false, Csn(7)));
    let from_the_beginning = copy.start.clone();
    // Nothing new.
    let (entries, has_rest, same) = copy.round();
    assert_eq!((entries, has_rest, &same), (0, false, &position));
    assert_ne!(
        copy.start, from_the_beginning,
        "what is copied is not read again"
    );
    // 8 does not hang on 7, which is on its way.
    assert!(server.push_with(1, 8, &EntryDependencies::floor(Csn(6))) && server.flush(1));
    assert!(server.push_side(1, 9, &EntryDependencies::floor(Csn(6))) && server.flush(1));
    for _ in 0..2 {
        let (entries, has_rest, now) = copy.round();
        assert_eq!((entries, has_rest, copy.complete), (2, true, Csn(7)));
        assert_ne!(now, position);
    }
    assert!(server.commit(0, 7));
    let (entries, has_rest, _) = copy.round();
    assert_eq!((entries, has_rest, copy.complete), (3, false, Csn(10)));
    assert!(server.push_side(0, 10, &EntryDependencies::floor(Csn(10))) && server.flush(0));
    assert!(server.push_with(1, 12, &EntryDependencies::floor(Csn(10))) && server.flush(1));
    let (entries, has_rest, _) = copy.round();
    assert_eq!((entries, has_rest, copy.complete), (2, true, Csn(11)));
    let lanes = to.segments.list_lanes().unwrap();
    let sides = |lane: &LaneId| to.sides.list_side_segments(*lane).unwrap().len();
    let sides: usize = lanes.iter().map(sides).sum();
    assert_eq!(sides, if is_small { 11 } else { 0 }, "one for each entry");
    drop(to);
    for _ in 0..2 {
        let (found, next) = survivors(&target).unwrap();
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
        assert_eq!(next, 13);
    }
}

#[test]
fn what_is_not_completed_is_never_opened() {
    let target = Machine::new(1);
    let to = target.home().unwrap();
    let unfinished = UnfinishedCopy {
        database: DatabaseId(1),
        source: DatabaseId(2),
    };
    let bytes = unfinished.encode();
    assert_eq!(UnfinishedCopy::decode(&bytes), Some(unfinished));
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert_eq!(UnfinishedCopy::decode(&bad), None);
    }
    to.names.put_if_absent(manifest::NAME, &bytes).unwrap();
    let found = manifest_of(&to).unwrap_err();
    assert!(found.to_string().contains("repeat the command"), "{found}");
    drop(to);
    let found = survivors(&target);
    assert!(
        matches!(found, Err(RecoveryError::UnfinishedCopy(_))),
        "{found:?}"
    );
}
