//! The lock-free queue: a ring buffer of serialized transaction objects, one producer and one consumer
//! (Autonomous Commit §4).
//!
//! An object begins at a cache line, so producer and consumer share a line only where the ring is all but empty. The
//! consumer takes a whole batch with one look at the tail and one move of the head. Cursors count words and only grow.
//!
//! Invariants: `head <= tail <= head + capacity`; words in `head..tail` are whole objects and are not written; only the
//! producer moves the tail, after the object's words are in place; only the consumer moves the head, after it has read
//! them. Two consumers at a time would hand objects out twice: the caller's lock keeps them apart.

use std::sync::atomic::AtomicU64;

use crossbeam_utils::CachePadded;

use crate::atomic_facade::AtomicWord;
use crate::pending_commit::{PendingCommit, WORDS_MAX};

/// Cache lines of a worker's queue: 64 KiB, at least two hundred transactions with the most predecessors.
pub(super) const LINES: usize = 1024;
/// Words of a cache line.
const LINE: usize = 8;
/// Most lines of an object.
const LINES_MAX: usize = WORDS_MAX.div_ceil(LINE);

/// See the module's documentation.
pub struct LockFreeQueue<W: AtomicWord = AtomicU64> {
    words: Box<[W]>,
    /// The next word to read.
    head: CachePadded<W>,
    /// The next word to write.
    tail: CachePadded<W>,
}

impl<W: AtomicWord> LockFreeQueue<W> {
    /// A queue of so many cache lines: a power of two, with room for at least one object.
    ///
    /// # Panics
    /// If it is not.
    pub fn new(lines: usize) -> LockFreeQueue<W> {
        assert!(
            lines.is_power_of_two() && lines >= LINES_MAX,
            "a queue of {lines} lines"
        );
        LockFreeQueue {
            words: (0..lines * LINE).map(|_| W::new(0)).collect(),
            head: CachePadded::new(W::new(0)),
            tail: CachePadded::new(W::new(0)),
        }
    }

    #[inline]
    fn word(&self, cursor: u64) -> &W {
        // The mask keeps it below the length.
        &self.words[(cursor & (self.words.len() as u64 - 1)) as usize]
    }

    /// For the producer: there is room for one object, however large.
    #[inline]
    pub fn has_room(&self) -> bool {
        let used = self.tail.load() - self.head.load();
        used + (LINES_MAX * LINE) as u64 <= self.words.len() as u64
    }

    /// For the producer: adds an object.
    ///
    /// # Panics
    /// If there is no room: the caller has looked before it drew its CSN (T12).
    #[inline]
    pub fn push(&self, pending: &PendingCommit) {
        assert!(self.has_room(), "the transaction queue is full");
        let start = self.tail.load();
        let mut at = start;
        pending.write(|word| {
            self.word(at).store_relaxed(word);
            at += 1;
        });
        self.tail.store(at.next_multiple_of(LINE as u64));
    }

    /// For the consumer: takes out all objects, in order.
    #[inline]
    pub fn drain(&self, mut take: impl FnMut(PendingCommit)) {
        let tail = self.tail.load();
        let mut at = self.head.load();
        if at == tail {
            return;
        }
        while at < tail {
            take(PendingCommit::read(|| {
                let word = self.word(at).load_relaxed();
                at += 1;
                word
            }));
            at = at.next_multiple_of(LINE as u64);
        }
        self.head.store(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_commit::tests::sample;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as LoomU64;

    #[test]
    fn objects_of_all_sizes_come_out_as_they_went_in_around_the_end() {
        let queue: LockFreeQueue = LockFreeQueue::new(8);
        let (mut pushed, mut taken) = (0, Vec::new());
        while pushed < 200 {
            while pushed < 200 && queue.has_room() {
                pushed += 1;
                queue.push(&sample(pushed, pushed % 33));
            }
            queue.drain(|pending| taken.push(pending));
        }
        let expected: Vec<_> = (1..=200).map(|csn| sample(csn, csn % 33)).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    #[should_panic(expected = "queue is full")]
    fn a_full_queue_overwrites_nothing() {
        let queue: LockFreeQueue = LockFreeQueue::new(8);
        (1..=9).for_each(|csn| queue.push(&sample(csn, 1)));
    }

    /// One producer, one consumer, a queue that fills up: nothing is lost, doubled or torn.
    #[test]
    fn producer_and_consumer_under_the_model_checker() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let queue: Arc<LockFreeQueue<LoomU64>> = Arc::new(LockFreeQueue::new(8));
            let producer = {
                let queue = queue.clone();
                loom::thread::spawn(move || {
                    let mut pushed = 0;
                    for csn in 1..=3 {
                        if queue.has_room() {
                            pushed += 1;
                            queue.push(&sample(csn, 1));
                        } else {
                            break;
                        }
                    }
                    pushed
                })
            };
            let mut out = Vec::new();
            queue.drain(|pending| out.push(pending));
            queue.drain(|pending| out.push(pending));
            let pushed = producer.join().expect("ends");
            queue.drain(|pending| out.push(pending));
            let expected: Vec<_> = (1..=pushed).map(|csn| sample(csn, 1)).collect();
            assert_eq!(out, expected);
        });
    }
}
