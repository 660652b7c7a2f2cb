//! Whether a checkpoint compacts: writes more than has changed, so that sparse and small objects go.
//!
//! On a full disk what it would write beside has no room, and one that tries fills the reserve first, and is then taken again without. So after such a try the
//! next ones do not, twice as many each time, as long as the home is short of space; they are never given up, for the space may be in objects that only compacting
//! empties.

/// The most checkpoints that do not try.
const PAUSE_MAX: u32 = 64;

/// May a checkpoint compact?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compaction {
    Allowed,
    Forbidden,
}

/// Did a checkpoint have objects to empty?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compacted {
    Yes,
    No,
}

/// How many of the next checkpoints do not try to compact.
#[derive(Debug, Default)]
pub(super) struct CompactionPause {
    left: u32,
    /// How long the last pause was.
    last: u32,
}

impl CompactionPause {
    /// What the next checkpoint may do.
    pub(super) fn next(&mut self, is_short_of_space: bool) -> Compaction {
        if !is_short_of_space {
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

    /// One that was to compact had no room for it.
    pub(super) fn found_no_room(&mut self) {
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
        for _ in 0..400 {
            match pause.next(true) {
                Compaction::Forbidden => skipped += 1,
                Compaction::Allowed => {
                    pauses.push(std::mem::take(&mut skipped));
                    pause.found_no_room();
                }
            }
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
        // With room again it is tried at once.
        assert_eq!(pause.next(false), Compaction::Allowed);
        pause.found_no_room();
        assert_eq!(pause.next(true), Compaction::Forbidden);
        assert_eq!(pause.next(true), Compaction::Allowed);
    }
}
