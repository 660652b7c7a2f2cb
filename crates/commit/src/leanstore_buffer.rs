//! LeanStore's log buffer (Autonomous Commit §3.4): others take along what it holds without a lock. To compare with
//! [`Lane::steal`](logstead_wal::Lane::steal), which moves a buffer under both lanes' locks; nothing that ships uses
//! it.
//!
//! One worker pushes. Whoever wants to write what is there copies the words from the *clean* cursor to the *dirty* one,
//! then claims them by a compare-and-swap of the clean cursor: if that fails somebody else has, and the copy is
//! dropped. Claims may be written in any order; the *hardened* cursor passes them in theirs (the paper's parking lot):
//! a claim that is written leaves its end at its place, and whoever finds the place of the hardened cursor filled moves
//! on over it.
//!
//! Why it is right:
//! - Cursors only grow, so a compare-and-swap that succeeds says that the clean cursor stood still during the copy. The
//!   pusher uses a word again only when it has hardened, which is after its claim: so the copy is whole.
//! - A place is used again only when its claim has hardened, so what an earlier round has left there is at or below the
//!   hardened cursor and says nothing.
//! - Who has written a claim leaves its end, then looks at the hardened cursor; who moves that looks at the place where
//!   it is now. All of it is sequentially consistent, so one of the two sees the other, and nobody is forgotten.
//!
//! Does not: know entries, blocks or homes.

use std::sync::atomic::AtomicU64;

use crate::atomic_facade::AtomicWord;

/// Words of one buffer that somebody has claimed and must write.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is claimed hardens only when it is said to be written"]
pub struct CursorClaim {
    start: u64,
    end: u64,
}

impl CursorClaim {
    /// How many.
    pub fn words(&self) -> u64 {
        self.end - self.start
    }
}

/// See the module's documentation.
pub struct CursorBuffer<W: AtomicWord = AtomicU64> {
    words: Box<[W]>,
    /// By word: the end of the claim that begins there, once it is written.
    written: Box<[W]>,
    /// Up to here words are claimed.
    clean: W,
    /// Up to here they are pushed.
    dirty: W,
    /// Up to here they are durable.
    hardened: W,
}

impl<W: AtomicWord> CursorBuffer<W> {
    /// For so many words.
    pub fn new(words: usize) -> CursorBuffer<W> {
        let zeros = || (0..words).map(|_| W::new(0)).collect();
        CursorBuffer {
            words: zeros(),
            written: zeros(),
            clean: W::new(0),
            dirty: W::new(0),
            hardened: W::new(0),
        }
    }

    fn place(&self, at: u64) -> usize {
        (at % self.words.len() as u64) as usize
    }

    /// Appends words; gives the cursor behind them, or nothing if there is no room. One thread only.
    pub fn push(&self, words: impl ExactSizeIterator<Item = u64>) -> Option<u64> {
        let dirty = self.dirty.load_relaxed();
        let end = dirty + words.len() as u64;
        if end - self.hardened.load() > self.words.len() as u64 {
            return None;
        }
        for (at, word) in (dirty..).zip(words) {
            self.words[self.place(at)].store_relaxed(word);
        }
        self.dirty.store(end);
        Some(end)
    }

    /// How many words nobody has claimed.
    pub fn unclaimed(&self) -> u64 {
        let clean = self.clean.load();
        self.dirty.load().saturating_sub(clean)
    }

    /// Hands out copies of all words that nobody has claimed, and claims them; nothing if there are none, more than
    /// `most`, or somebody else was quicker: then what was handed out is to be forgotten.
    pub fn claim(&self, most: u64, mut copy: impl FnMut(u64)) -> Option<CursorClaim> {
        let start = self.clean.load();
        let end = self.dirty.load();
        // More than there is room for: the clean cursor has moved meanwhile.
        if start == end || end - start > most.min(self.words.len() as u64) {
            return None;
        }
        for at in start..end {
            copy(self.words[self.place(at)].load_relaxed());
        }
        let claimed = self.clean.swap_if(start, end);
        claimed.then_some(CursorClaim { start, end })
    }

    /// What was claimed is durable. True if the hardened cursor has moved.
    pub fn written(&self, claim: &CursorClaim) -> bool {
        self.written[self.place(claim.start)].store(claim.end);
        let mut moved = false;
        loop {
            let hardened = self.hardened.load();
            let end = self.written[self.place(hardened)].load();
            if end <= hardened {
                return moved;
            }
            // Else somebody has moved it, over this very claim.
            moved |= self.hardened.swap_if(hardened, end);
        }
    }

    /// Up to here they are durable.
    pub fn hardened(&self) -> u64 {
        self.hardened.load()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_written_out_of_order_harden_in_order() {
        let buffer: CursorBuffer = CursorBuffer::new(8);
        let push = |words: &[u64]| buffer.push(words.iter().copied());
        let claim = || {
            let mut copied = Vec::new();
            let claim = buffer.claim(u64::MAX, |word| copied.push(word));
            claim.map(|claim| (claim, copied))
        };
        assert_eq!(push(&[1, 2, 3]), Some(3));
        let (first, copied) = claim().expect("three words");
        assert_eq!((first.words(), copied), (3, vec![1, 2, 3]));
        assert_eq!(claim(), None);
        assert_eq!(push(&[4, 5]), Some(5));
        let (second, _) = claim().expect("two words");
        assert_eq!(push(&[6, 7, 8, 9]), None, "nothing has hardened");
        assert!(!buffer.written(&second), "the first one is missing");
        assert_eq!(buffer.hardened(), 0);
        assert!(buffer.written(&first));
        assert_eq!(buffer.hardened(), 5);
        assert_eq!(push(&[6, 7, 8, 9, 10, 11, 12, 13]), Some(13));
        assert_eq!(buffer.unclaimed(), 8);
        assert_eq!(buffer.claim(7, |_| ()), None, "more than was asked for");
        let (third, copied) = claim().expect("eight words");
        assert_eq!(copied, [6, 7, 8, 9, 10, 11, 12, 13]);
        assert!(buffer.written(&third));
        assert_eq!(buffer.hardened(), 13);
    }

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as LoomU64;

    /// Every word says which it is. Two take along what one pushes, in a buffer that is used again: whatever they claim
    /// is whole.
    #[test]
    fn what_is_claimed_is_what_was_pushed() {
        loom::model(|| {
            let buffer: Arc<CursorBuffer<LoomU64>> = Arc::new(CursorBuffer::new(2));
            let rob = |buffer: &CursorBuffer<LoomU64>| {
                let mut copied = Vec::new();
                if let Some(claim) = buffer.claim(u64::MAX, |word| copied.push(word)) {
                    let pushed: Vec<u64> = (claim.start + 1..=claim.end).collect();
                    assert_eq!(copied, pushed);
                    buffer.written(&claim);
                }
            };
            let thief = {
                let buffer = buffer.clone();
                loom::thread::spawn(move || rob(&buffer))
            };
            for word in 1..=3 {
                if buffer.push([word].into_iter()).is_none() {
                    break;
                }
                if word == 2 {
                    rob(&buffer);
                }
            }
            thief.join().expect("robs");
        });
    }

    /// Claims written side by side: when all have been, the cursor is behind them, and never before its time. Two in
    /// every order of steps, three in many.
    #[test]
    fn nobody_is_forgotten_whatever_order_writes_end_in() {
        use shuttle::sync::atomic::AtomicU64 as ShuttleU64;
        let explored = |count: u64| {
            let buffer: std::sync::Arc<CursorBuffer<ShuttleU64>> =
                std::sync::Arc::new(CursorBuffer::new(4));
            let mut claims: Vec<CursorClaim> = (1..=count)
                .map(|word| {
                    buffer.push([word].into_iter()).expect("room");
                    buffer.claim(u64::MAX, |_| ()).expect("nobody else claims")
                })
                .collect();
            let last = claims.pop().expect("several");
            let others: Vec<_> = claims
                .into_iter()
                .map(|claim| {
                    let buffer = buffer.clone();
                    shuttle::thread::spawn(move || {
                        assert!(buffer.hardened() <= claim.start, "it is not written");
                        buffer.written(&claim);
                    })
                })
                .collect();
            buffer.written(&last);
            for other in others {
                other.join().expect("ends");
            }
            assert_eq!(buffer.hardened(), count);
        };
        shuttle::check_dfs(move || explored(2), None);
        shuttle::check_random(move || explored(3), 3_000);
    }
}
