//! A log is followed by what its server sends: blocks that come late, twice, in another order, damaged or not at all,
//! and horizons that are late. What is handed over is the same as without.

use super::busy::follow;
use super::rig::Server;
use super::rig::beside::{Beside, Work};
use super::{Dice, Receiver, from_to, start};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, Epoch};
use logstead_wal::recovery::follow::{FollowProgress, Follower, StreamedBlocks};
use logstead_wal::{FeedBlock, FeedReader};
use std::sync::Arc;

/// What lies between a server and its follower.
pub(super) struct Transport {
    dice: Dice,
    stream: Arc<StreamedBlocks>,
    reader: Option<FeedReader>,
    /// Blocks on their way, those of earlier lives too.
    under_way: Vec<FeedBlock>,
    /// Nothing goes wrong.
    is_good: bool,
    /// Rounds without a look at the home, entries that they have handed over, and rounds that asked for the home.
    pub(super) rounds: usize,
    pub(super) entries: u64,
    pub(super) refusals: usize,
}

impl Transport {
    pub(super) fn new(seed: u64, is_good: bool) -> Transport {
        Transport {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1),
            stream: Arc::default(),
            reader: None,
            under_way: Vec::new(),
            is_good,
            rounds: 0,
            entries: 0,
            refusals: 0,
        }
    }

    /// The server sends what it writes from now on.
    pub(super) fn connect(&mut self, server: &Server) {
        self.reader = Some(server.feed.follow());
        self.stream.begin(
            server.log.manifest_writer.manifest().database,
            server.log.epoch,
        );
    }

    /// Some of what the server has sent comes.
    pub(super) fn carry(&mut self, server: &Server) {
        let horizon = server.published_horizon();
        if let Some(reader) = &mut self.reader {
            while reader.take(1 << 20, &mut self.under_way) {}
        }
        if self.is_good {
            for block in self.under_way.drain(..) {
                assert!(self.stream.add(block.lane, block.at, block.bytes));
            }
            self.stream.learn(horizon);
            return;
        }
        for _ in 0..self.dice.below(6) {
            let count = self.under_way.len();
            if count == 0 {
                break;
            }
            let block = self.under_way.swap_remove(self.dice.below(count));
            let mut bytes = block.bytes.to_vec();
            match self.dice.below(12) {
                // It is lost.
                0 => continue,
                // It is damaged, or cut short.
                1 => {
                    let at = self.dice.below(bytes.len());
                    bytes[at] ^= 1 << self.dice.below(8);
                }
                2 => bytes.truncate(self.dice.below(bytes.len())),
                // It comes again later.
                3 => self.under_way.push(block.clone()),
                _ => {}
            }
            // What is no block any more is not taken.
            let _is_taken = self.stream.add(block.lane, block.at, bytes.into());
        }
        if self.dice.below(3) == 0 {
            self.stream.learn(horizon);
        }
    }

    /// A round of what has come; or of the home, where that is asked for, and now and then.
    pub(super) fn round(
        &mut self,
        given: &mut Receiver,
        follower: &mut Follower<'_>,
    ) -> Result<FollowProgress, String> {
        let before = follower.progress().entries;
        if self.is_good || self.dice.below(4) > 0 {
            let streamed = given.streamed_round(follower, &self.stream);
            if let Some(progress) = streamed.map_err(|error| error.to_string())? {
                self.rounds += 1;
                self.entries += progress.entries - before;
                return Ok(progress);
            }
            self.refusals += 1;
            // What was due until then has been handed over all the same.
            if self.dice.below(2) == 0 {
                return Ok(follower.progress());
            }
        }
        let round = given.round(follower);
        follower.forget_streamed(&self.stream);
        round.map_err(|error| error.to_string())
    }
}

/// Blocks arrive late and in any order at the home and at the follower, and some never do; servers die with blocks on
/// their way.
#[test]
fn a_busy_server_is_followed_by_its_stream_through_its_lives() {
    let seeds: u64 = match std::env::var("LOGSTEAD_SEEDS") {
        Ok(seeds) => seeds.parse().unwrap(),
        Err(_) => 60,
    };
    let (mut rounds, mut streamed, mut refusals) = (0, 0, 0);
    for seed in 1..=seeds {
        let mut transport = Transport::new(seed, false);
        let followed = follow(seed, Some(&mut transport));
        assert!(followed.is_ok(), "seed {seed}: {followed:?}");
        rounds += transport.rounds as u64;
        streamed += transport.entries;
        refusals += transport.refusals as u64;
    }
    assert!(
        rounds > 3 * seeds && streamed > 5 * seeds && refusals > seeds,
        "{rounds} {streamed} {refusals}"
    );
}

/// With a stream that brings everything nothing is read at the home.
#[test]
fn who_gets_everything_asks_the_home_for_nothing() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 3));
    let from = Beside::new(&LogHome::from(memory), |_| {});
    let home = from.home();
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    let mut transport = Transport::new(1, true);
    transport.connect(&work.server);
    given.take(&mut follower);
    let requests = from.requests();
    assert!(requests > 0);
    for round in 1..=20 {
        (0..3).for_each(|lane| work.commit(lane, &[lane]));
        transport.carry(&work.server);
        let progress = transport.round(&mut given, &mut follower).unwrap();
        assert_eq!(progress.next, Csn(1 + 3 * round), "{round}");
    }
    assert_eq!(given.0, from_to(1, 60));
    assert_eq!(from.requests(), requests);
    assert_eq!(transport.stream.waiting_bytes(), 0);
    // Another epoch's is of no use.
    let database = work.server.log.manifest_writer.manifest().database;
    transport.stream.begin(database, Epoch(77));
    assert!(
        given
            .streamed_round(&mut follower, &transport.stream)
            .unwrap()
            .is_none()
    );
}

/// What is streamed and not below a horizon that anybody has told waits.
#[test]
fn a_streamed_block_alone_proves_nothing() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 1));
    let home = LogHome::from(memory);
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    let mut transport = Transport::new(1, true);
    transport.connect(&work.server);
    given.take(&mut follower);
    work.commit(0, &[1]);
    let mut blocks = Vec::new();
    assert!(
        !transport
            .reader
            .as_mut()
            .unwrap()
            .take(1 << 20, &mut blocks)
    );
    assert_eq!(blocks.len(), 1);
    for block in blocks {
        transport.stream.add(block.lane, block.at, block.bytes);
    }
    let progress = given.streamed_round(&mut follower, &transport.stream);
    assert_eq!(progress.unwrap().map(|progress| progress.waiting), Some(1));
    assert!(given.0.is_empty());
    transport.stream.learn(Csn(2));
    let progress = given.streamed_round(&mut follower, &transport.stream);
    assert_eq!(
        progress.unwrap().map(|progress| progress.next),
        Some(Csn(2))
    );
    assert_eq!(given.0, [1]);
}

/// A block that did not come is read at the home, and what has come behind it is not read there again.
#[test]
fn what_did_not_come_is_read_at_the_home() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 2));
    let home = LogHome::from(memory);
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    let mut transport = Transport::new(1, true);
    transport.connect(&work.server);
    given.take(&mut follower);
    work.commit(0, &[1]);
    work.commit(1, &[2]);
    work.commit(0, &[1]);
    let reader = transport.reader.as_mut().unwrap();
    assert!(!reader.take(1 << 20, &mut transport.under_way));
    assert_eq!(transport.under_way.len(), 3);
    let lost = transport.under_way.remove(1);
    assert_eq!(lost.lane.0, 1);
    transport.carry(&work.server);
    let streamed = given.streamed_round(&mut follower, &transport.stream);
    assert!(streamed.unwrap().is_none());
    assert_eq!(given.0, [1]);
    given.take(&mut follower);
    assert_eq!(given.0, [1, 2, 3]);
    // It comes after all.
    transport.stream.add(lost.lane, lost.at, lost.bytes);
    assert!(transport.stream.waiting_bytes() > 0);
    follower.forget_streamed(&transport.stream);
    assert_eq!(transport.stream.waiting_bytes(), 0);
}

/// A server that is another than the log's tells a horizon that this log has not: nothing is lost.
#[test]
fn a_horizon_that_was_sent_proves_no_loss() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 2));
    let home = LogHome::from(memory);
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    let mut transport = Transport::new(1, true);
    transport.connect(&work.server);
    work.commit(0, &[1]);
    given.take(&mut follower);
    transport.stream.learn(Csn(1000));
    for _ in 0..3 {
        let streamed = given.streamed_round(&mut follower, &transport.stream);
        assert!(streamed.unwrap().is_none());
        given.take(&mut follower);
    }
    work.commit(1, &[2]);
    given.take(&mut follower);
    assert_eq!(given.0, [1, 2]);
}
