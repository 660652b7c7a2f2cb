//! Room on the disk that is kept for what frees room, so that a full disk has a way out from within.
//!
//! What a full disk needs is a checkpoint: behind it side segments, segments and objects go that nobody needs any more.
//! A checkpoint writes before anything is removed, at most about what the log holds that no checkpoint covers. So three
//! limits are kept:
//!
//! 1. Who writes more ([`LaneAppends::is_short_of_space`](crate::LaneAppends::is_short_of_space)) is refused while
//!    less is free than the *reserve* and what lies in side segments together: as much as those hold the next
//!    checkpoint may have to write.
//! 2. Segments, and side segments of transactions that began before, end at half of the reserve (side segments again
//!    with what they hold): deletes and dropped tables go into those.
//! 3. Objects of checkpoints, and the manifest, may use all of it. Spare segments give way to them.
//!
//! The reserve is [`LocalOptions::reserve_bytes_max`](super::LocalOptions::reserve_bytes_max), or an eighth of a
//! smaller disk. It is no file: what others write to the same disk may use it up.
//!
//! Invariants:
//! - `side_bytes` is what was written of side segments that are there, unfinished ones included.
//! - `short` is true if the last look found too little; a look follows everything that takes much room, and every
//!   question while it is true.

use super::LocalShared;
use super::paths::Paths;
use crate::HomeError;
use logstead_env::{Access, OpenMode};
use logstead_types::LaneId;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The reserve is at most this part of a disk.
const PART: u64 = 8;

/// What the home knows of its room.
#[derive(Default)]
pub(super) struct Reserve {
    side_bytes: AtomicU64,
    short: AtomicBool,
}

impl Reserve {
    pub(super) fn add_side(&self, bytes: u64) {
        self.side_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// A file may be longer than what was counted of it, if a write failed in its midst: never below nothing.
    pub(super) fn subtract_side(&self, bytes: u64) {
        let less = |counted: u64| Some(counted.saturating_sub(bytes));
        let _counted = self
            .side_bytes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }
}

/// For whom room is left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReserveFor {
    /// For nobody: what cannot be done without.
    Nothing,
    /// For the checkpoint that frees room.
    ForCheckpoint,
    /// For the checkpoint, and for what is to be removed before it.
    ForRemovals,
}

/// How much room there is.
#[derive(Clone, Copy)]
pub(super) struct Space {
    free: u64,
    reserve: u64,
}

impl Space {
    /// What may be used.
    pub(super) fn left(self, keep: ReserveFor) -> u64 {
        let kept = match keep {
            ReserveFor::Nothing => 0,
            ReserveFor::ForCheckpoint => self.reserve / 2,
            ReserveFor::ForRemovals => self.reserve,
        };
        self.free.saturating_sub(kept)
    }
}

impl LocalShared {
    pub(super) fn space(&self) -> Result<Space, HomeError> {
        let (files, log) = (&self.env.files, self.paths.log());
        let free = self.io("ask for free space of", &log, files.free_space(&log))?;
        let total = self.io("ask for the size of", &log, files.total_space(&log))?;
        Ok(Space {
            free,
            reserve: self.options.reserve_bytes_max.min(total / PART),
        })
    }

    /// Looks whether there is room for more than what frees room, and notes it.
    pub(super) fn look_at_space(&self) -> bool {
        let covered = self.reserve.side_bytes.load(Ordering::SeqCst);
        // A machine that does not say how much room there is refuses what does not fit.
        let short = self
            .space()
            .is_ok_and(|space| space.left(ReserveFor::ForRemovals) < covered.max(1));
        self.reserve.short.store(short, Ordering::Relaxed);
        short
    }

    /// Is the room that is left kept for what frees room?
    #[inline]
    pub(super) fn is_short_of_space(&self) -> bool {
        self.reserve.short.load(Ordering::Relaxed) && self.look_at_space()
    }

    /// May `bytes` more of a side segment be written, and the checkpoint still be taken that covers them?
    pub(super) fn allow_side(&self, path: &Path, bytes: u64) -> Result<(), HomeError> {
        let covered = self.reserve.side_bytes.load(Ordering::SeqCst);
        if self.space()?.left(ReserveFor::ForCheckpoint) < covered.saturating_add(2 * bytes) {
            return self.io("write", path, Err(ErrorKind::StorageFull.into()));
        }
        Ok(())
    }

    /// Counts the side segments that are there.
    pub(super) fn count_sides(&self) -> Result<(), HomeError> {
        for lane in self.lane_ids()? {
            for name in self.names_in(lane)? {
                if let Some(id) = Paths::parse_side(&name) {
                    self.reserve.add_side(self.side_length(lane, id)?);
                }
            }
        }
        Ok(())
    }

    /// How long a side segment is; 0 if there is none.
    fn side_length(&self, lane: LaneId, id: u64) -> Result<u64, HomeError> {
        let (files, path) = (&self.env.files, self.paths.side(lane, id));
        match files.open(&path, OpenMode::buffered(Access::Read)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            other => {
                let file = self.io("open", &path, other)?;
                self.io("ask for the length of", &path, file.len())
            }
        }
    }

    pub(super) fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.write_allowed()?;
        let bytes = self.side_length(lane, id)?;
        let path = self.paths.side(lane, id);
        match self.env.files.remove(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => {
                self.io("remove", &path, other)?;
                self.reserve.subtract_side(bytes);
                Ok(())
            }
        }
    }
}
