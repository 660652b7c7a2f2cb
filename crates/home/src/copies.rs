//! Homes that consist of several: the copies of their lanes and side segments, one by one.
//!
//! Does not: compare the bytes of copies; recovery does.

use crate::error::HomeError;
use crate::lane::Position;
use logstead_env::Buffer;
use logstead_types::{Epoch, LaneId};

/// The copies of every lane and side segment, counted from 0. Copies differ only in how far they go, in holes, and in
/// damage.
pub trait Copies: Send + Sync {
    /// How many there are at most: more than 1.
    fn count(&self) -> usize;

    /// Can this copy be read and written now? Until [`copies_completed`](Self::copies_completed) it stays so once it
    /// cannot.
    fn has_copy(&self, copy: usize) -> bool;

    /// Is this copy one of those that a segment of a lane, and side segments with numbers of the same epoch, are kept
    /// in? One that is not reads as empty there, and is written nothing.
    fn keeps(&self, copy: usize, lane: LaneId, segment: u64) -> bool {
        let _all_have_all = (copy, lane, segment);
        true
    }

    /// Reads like [`LaneSegments::read`](crate::LaneSegments::read), from one copy. One that cannot be reached reads
    /// as 0 bytes.
    fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError>;

    /// Copies that may lack much of what others have: recovery completes them with
    /// [`rewrite_copy`](Self::rewrite_copy), block by block. Others lack at most the end of what the last server wrote.
    fn copies_behind(&self) -> Vec<usize>;

    /// Like [`LaneSegments::rewrite`](crate::LaneSegments::rewrite), in one copy.
    fn rewrite_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError>;

    /// Recovery has completed every copy, and is about to write its mark: they count from now on. `epoch` is the newest
    /// that had begun when the start took over: side segments of later ones belong to a server that has taken over from
    /// it, and are left alone.
    fn copies_completed(&self, epoch: Epoch) -> Result<(), HomeError>;

    /// Reads like [`SideSegments::get_side_segment`](crate::SideSegments::get_side_segment), from one copy: for whoever
    /// finds bytes damaged. One that cannot be reached is an error.
    fn get_side_segment_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError>;

    /// Replaces a damaged copy of a side segment by a good one. A copy that cannot be written any more is left as it
    /// is.
    fn replace_side_segment_copy(
        &self,
        damaged: usize,
        good: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError>;
}
