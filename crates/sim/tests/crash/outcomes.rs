//! What came of the machines that ran: counts, so that a test can tell that what it means to test took place.

use crate::follower::FollowerCounts;
use crate::readers::ReaderCounts;
use crate::script::Counts;

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) lives: u64,
    /// Lives that ended at a request of theirs.
    pub(crate) crashes_in_life: u64,
    pub(crate) crashes_in_recovery: u64,
    pub(crate) survived: u64,
    pub(crate) survived_unacknowledged: u64,
    pub(crate) lost: u64,
    pub(crate) lost_though_hardened: u64,
    /// Transactions found waiting at a moment at which the precise graph had them wait too, and had not.
    pub(crate) true_waits: u64,
    pub(crate) false_waits: u64,
    /// How often the number of lanes in use was set.
    pub(crate) remaps: u64,
    pub(crate) checkpoints: CheckpointCounts,
    pub(crate) instances: InstanceCounts,
    pub(crate) readers: ReaderCounts,
    pub(crate) follower: FollowerCounts,
    pub(crate) counts: Counts,
}

/// What became of instances, of machines that have several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstanceCounts {
    /// Partitions given to another instance, or to the same again.
    pub(crate) given_away: u64,
    /// Instances that were dropped from memory, but for what was in the way; and the chunks that went.
    pub(crate) restarted: u64,
    pub(crate) chunks_dropped: u64,
    /// Transactions that could not commit any more because of it.
    pub(crate) condemned: u64,
    /// Transactions that kept to the instance of their worker.
    pub(crate) inside: u64,
    /// Those that did not.
    pub(crate) across: u64,
}

/// What became of checkpoints.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckpointCounts {
    pub(crate) published: u64,
    pub(crate) delta_pages: u64,
    pub(crate) failed: u64,
    pub(crate) objects_removed: u64,
    pub(crate) segments_removed: u64,
    pub(crate) sides_removed: u64,
    /// The most that was stored beside what is live, in thousandths of what is allowed.
    pub(crate) surplus_max: u64,
    /// Lives that ended in the middle of one.
    pub(crate) cut_short: u64,
    /// Starts that loaded one.
    pub(crate) loaded: u64,
    /// Indexes taken from one.
    pub(crate) indexes: u64,
}

impl Outcomes {
    pub(crate) fn add(&mut self, other: &Outcomes) {
        self.lives += other.lives;
        self.crashes_in_life += other.crashes_in_life;
        self.crashes_in_recovery += other.crashes_in_recovery;
        self.survived += other.survived;
        self.survived_unacknowledged += other.survived_unacknowledged;
        self.lost += other.lost;
        self.lost_though_hardened += other.lost_though_hardened;
        self.true_waits += other.true_waits;
        self.false_waits += other.false_waits;
        self.remaps += other.remaps;
        let (mine, theirs) = (&mut self.checkpoints, &other.checkpoints);
        mine.published += theirs.published;
        mine.delta_pages += theirs.delta_pages;
        mine.failed += theirs.failed;
        mine.objects_removed += theirs.objects_removed;
        mine.segments_removed += theirs.segments_removed;
        mine.sides_removed += theirs.sides_removed;
        mine.surplus_max = mine.surplus_max.max(theirs.surplus_max);
        mine.cut_short += theirs.cut_short;
        mine.loaded += theirs.loaded;
        mine.indexes += theirs.indexes;
        self.instances.given_away += other.instances.given_away;
        self.instances.restarted += other.instances.restarted;
        self.instances.chunks_dropped += other.instances.chunks_dropped;
        self.instances.condemned += other.instances.condemned;
        self.instances.inside += other.instances.inside;
        self.instances.across += other.instances.across;
        self.readers.add(&other.readers);
        self.follower.add(&other.follower);
        self.counts.acknowledged += other.counts.acknowledged;
        self.counts.answered += other.counts.answered;
        self.counts.errors_told += other.counts.errors_told;
        self.counts.rolled_back += other.counts.rolled_back;
        self.counts.large += other.counts.large;
    }
}
