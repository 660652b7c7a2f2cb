//! Who wrote in a chunk, for page-level tracking (modes `gsn` and `leanstore`).

/// Who wrote in a chunk, for page-level tracking: the newest GSN, and which lane all unhardened writers are of.
///
/// Both in one word, so that two writers who stamp at a time never leave a lane that is not the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageMark(pub(super) u64);

/// Bits of a lane in a mark.
const LANE_BITS: u32 = 16;
/// Nobody has written, or more than one lane has.
pub(super) const NO_LANE: u64 = (1 << LANE_BITS) - 1;

impl PageMark {
    pub(crate) fn gsn(self) -> u64 {
        self.0 >> LANE_BITS
    }

    /// Are all its writers hardened, or of this lane, which hardens in order?
    pub(crate) fn is_local(self, lane: usize, hardened_gsn: u64) -> bool {
        self.0 & NO_LANE == lane as u64 || self.gsn() <= hardened_gsn
    }

    /// After an entry of `lane` with `gsn` has changed something here.
    pub(super) fn stamped(self, lane: usize, gsn: u64, hardened_gsn: u64) -> PageMark {
        let lane = if self.is_local(lane, hardened_gsn) {
            lane as u64
        } else {
            NO_LANE
        };
        PageMark(self.gsn().max(gsn) << LANE_BITS | lane)
    }
}
