//! Whether a checkpoint compacts: writes more than has changed, so that sparse and small objects go.
//!
//! On a full disk what it would write beside has no room, and one that tries fills the reserve first, and is then
//! taken again without. So after such a try the
//! next ones do not, twice as many each time, until twice as much is free as was then; it is never given up, for the
//! space may be in objects that only compacting
//! empties.

/// The most checkpoints that do not try.
const PAUSE_MAX: u32 = 64;

/// May a checkpoint compact?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compaction {
    Allowed,
    Forbidden,
}

/// Did a checkpoint have objects to empty?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionOutcome {
    Yes,
    No,
}

/// How many of the next checkpoints do not try to compact.
#[derive(Debug, Default)]
pub(crate) struct CompactionPause {
    left: u32,
    /// How long the last pause was.
    last: u32,
    /// What was free when it was tried in vain.
    tried_with_bytes: u64,
}

impl CompactionPause {
    /// What the next checkpoint may do, with so many bytes free where that is known.
    pub(crate) fn next(&mut self, free_bytes: Option<u64>) -> Compaction {
        if free_bytes.is_some_and(|free| free / 2 > self.tried_with_bytes) {
            *self = CompactionPause::default();
        }
        match self.left.checked_sub(1) {
            None => Compaction::Allowed,
            Some(left) => {
                self.left = left;
                Compaction::Forbidden
            }
        }
    }

    /// One that was to compact, and began with so many bytes free, had no room for it.
    pub(crate) fn found_no_room(&mut self, free_bytes: Option<u64>) {
        self.tried_with_bytes = free_bytes.unwrap_or_default();
        self.last = (self.last * 2).clamp(1, PAUSE_MAX);
        self.left = self.last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_tried_ever_more_seldom_and_never_given_up() {
        let mut pause = CompactionPause::default();
        let mut pauses = Vec::new();
        let mut skipped = 0;
        for _ in 0..390 {
            match pause.next(Some(2_000)) {
                Compaction::Forbidden => skipped += 1,
                Compaction::Allowed => {
                    pauses.push(std::mem::take(&mut skipped));
                    pause.found_no_room(Some(1_000));
                }
            }
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
        // With room again it is tried at once.
        assert_eq!(pause.next(Some(2_002)), Compaction::Allowed);
        // As where nobody knows.
        pause.found_no_room(None);
        assert_eq!(pause.next(None), Compaction::Forbidden);
        assert_eq!(pause.next(None), Compaction::Allowed);
    }
}
