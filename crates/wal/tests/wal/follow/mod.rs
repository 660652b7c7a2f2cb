//! A log is followed beside its server: what is handed over is a prefix of what the log finally has, each entry once,
//! and everything acknowledged is handed over in the end.

mod busy;
mod idle;
mod removed;
use crate::rig;
mod settled;
mod sides;
mod streamed;

use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::Csn;
use logstead_wal::recovery::RecoveryOptions;
use logstead_wal::recovery::follow::{FollowError, FollowProgress, Follower, StreamedBlocks};
use rig::{Server, options, row_of};
use std::sync::Arc;

/// What a follower has handed over.
#[derive(Default)]
struct Receiver(Vec<u64>);

impl Receiver {
    fn round(&mut self, follower: &mut Follower<'_>) -> Result<FollowProgress, FollowError> {
        follower.round(&mut |csn, records| {
            self.given(csn, records);
            Ok(())
        })
    }

    fn given(&mut self, csn: Csn, records: &[u8]) {
        let given = &mut self.0;
        assert_eq!(records, row_of(csn), "the bytes of {csn}");
        assert!(
            given.last().is_none_or(|last| *last < csn.0),
            "{csn} after {given:?}"
        );
        given.push(csn.0);
    }

    /// A round of what was streamed.
    fn streamed_round(
        &mut self,
        follower: &mut Follower<'_>,
        stream: &Arc<StreamedBlocks>,
    ) -> Result<Option<FollowProgress>, FollowError> {
        follower.streamed_round(stream, &mut |csn, records| {
            self.given(csn, records);
            Ok(())
        })
    }

    /// A round that goes well.
    fn take(&mut self, follower: &mut Follower<'_>) -> FollowProgress {
        self.round(follower).expect("a round")
    }
}

fn from_to(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

/// A server in memory.
fn start(home: &MemoryHome, lanes: u16) -> Server {
    let (env, _) = Env::simulated(1);
    let options = RecoveryOptions { lanes, ..options() };
    Server::open(LogHome::from(home.clone()), &env, &options, false).unwrap()
}

/// A small generator of numbers, so that a seed says all.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % below
    }
}
