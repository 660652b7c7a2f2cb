//! Who hears of a full disk, in every order of asking, attempts and their ends.

use super::*;
use crate::IoMethod;
use logstead_env::{Access, OpenMode};
use std::path::Path;

const SEGMENT_BYTES: u64 = 32 * 1024;
/// More than what is left of a segment that is used up.
const WANTED_BYTES: u64 = 4096;

/// Lanes whose segments are used up, and whose attempts the test begins and ends itself.
struct Bench {
    env: Env,
    attempts: SegmentAttempts,
    lanes: Vec<LaneFiles>,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Room,
    Full,
    /// There may be room later; this question has begun an attempt, or one is under way.
    Begins,
    Waits,
}

impl Bench {
    fn new() -> Bench {
        let (env, _) = Env::simulated(1);
        let ways = IoMethodRunner::new(IoMethod::Pwrite, &env, false, None).expect("needs nothing");
        let mut bench = Bench {
            env,
            attempts: SegmentAttempts::default(),
            lanes: Vec::new(),
        };
        for number in 0..2 {
            let first = bench.segment(0);
            let lane = LaneFiles::new(LaneId(number), first, &bench.env, &ways).expect("opens");
            lane.place(SEGMENT_BYTES).expect("a whole segment");
            bench.lanes.push(lane);
        }
        bench
    }

    fn segment(&self, number: u64) -> Segment {
        let mode = OpenMode::buffered(Access::Replace);
        let file = self.env.files.open(Path::new("/segment"), mode);
        Segment {
            number,
            size_bytes: SEGMENT_BYTES,
            file: Arc::from(file.expect("opens")),
        }
    }

    /// Asks a lane as the home does.
    fn ask(&self, lane: usize, request: &mut RoomRequest) -> Answer {
        let lane = &self.lanes[lane];
        let room = lane.room(WANTED_BYTES, request, &self.attempts);
        match room.result {
            Ok(()) => Answer::Room,
            Err(NoRoom::DiskFull) => Answer::Full,
            Err(NoRoom::Busy) if room.prepare => {
                let begun = lane.begin_preparing(&self.attempts);
                assert!(begun.is_some(), "none is under way");
                Answer::Begins
            }
            Err(NoRoom::Busy) => Answer::Waits,
            Err(error) => panic!("{error}"),
        }
    }

    /// The lane's attempt ends.
    fn end(&self, lane: usize, finds_room: bool) {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let made = match finds_room {
            true => Ok(self.segment(1)),
            false => Err(HomeError::io("make a segment", full)),
        };
        self.lanes[lane].end_preparing(made);
    }
}

#[test]
fn an_attempt_from_before_the_room_is_no_answer_after_it() {
    let bench = Bench::new();
    let (mut early, mut late, mut later, mut other) = Default::default();
    assert_eq!(bench.ask(0, &mut early), Answer::Begins);
    // An attempt is known by when it began, not by when it ended, and one that was under way already is none that was
    // waited for.
    assert_eq!(bench.ask(0, &mut late), Answer::Waits);
    // The disk is looked at, then room is made: another lane finds it, and only then the first attempt ends.
    assert_eq!(bench.ask(1, &mut other), Answer::Begins);
    bench.end(1, true);
    assert_eq!(bench.ask(1, &mut other), Answer::Room);
    assert_eq!(bench.ask(0, &mut later), Answer::Waits);
    bench.end(0, false);
    assert_eq!(bench.ask(0, &mut early), Answer::Full, "it waited for it");
    // They came after that attempt had begun: the first of them begins another one, for which the other one waits.
    assert_eq!(bench.ask(0, &mut late), Answer::Begins);
    assert_eq!(bench.ask(0, &mut later), Answer::Waits);
    bench.end(0, true);
    assert_eq!(bench.ask(0, &mut late), Answer::Room);
    assert_eq!(bench.ask(0, &mut later), Answer::Room);
}

#[test]
fn what_was_found_before_somebody_asked_is_no_answer_to_them() {
    let bench = Bench::new();
    // The next segment is asked for early, by an append, while the disk is full. Nobody waits for that.
    assert!(bench.lanes[1].begin_preparing(&bench.attempts).is_some());
    bench.end(1, false);
    // Room is made, and a session that wrote in the other lane so far comes to this one.
    let mut asked = RoomRequest::default();
    assert_eq!(bench.ask(0, &mut asked), Answer::Begins);
    assert_eq!(bench.ask(1, &mut asked), Answer::Begins);
    assert_eq!(bench.ask(1, &mut RoomRequest::default()), Answer::Waits);
    bench.end(1, true);
    assert_eq!(bench.ask(1, &mut asked), Answer::Room);
}

#[test]
fn a_full_disk_is_told_after_two_attempts_however_many_come_and_ask() {
    let bench = Bench::new();
    let (mut first, mut second) = Default::default();
    assert_eq!(bench.ask(0, &mut first), Answer::Begins);
    assert_eq!(bench.ask(0, &mut second), Answer::Waits);
    bench.end(0, false);
    // Somebody else is quicker than both, and the next attempt is under way before they look.
    assert_eq!(bench.ask(0, &mut RoomRequest::default()), Answer::Begins);
    assert_eq!(bench.ask(0, &mut first), Answer::Full);
    assert_eq!(bench.ask(0, &mut second), Answer::Waits);
    bench.end(0, false);
    assert_eq!(bench.ask(0, &mut RoomRequest::default()), Answer::Begins);
    assert_eq!(bench.ask(0, &mut second), Answer::Full);
    // Who would only take along what there is begins none.
    bench.end(0, false);
    assert_eq!(bench.ask(0, &mut RoomRequest::long_ago()), Answer::Full);
    assert_eq!(bench.ask(0, &mut RoomRequest::default()), Answer::Begins);
    bench.end(0, true);
    assert_eq!(bench.ask(0, &mut first), Answer::Room);
}
