//! The meeting of exclusive and shared lockers under the model checker: the very code that ships, over its atomics.
//!
//! The checker treats a sequentially consistent access as one that only acquires and releases; its fences are right. So
//! each of the four steps that are sequentially consistent in the server has a fence here, between it and the other.

use loom::sync::atomic::{AtomicUsize, Ordering, fence};
use loom::sync::{Arc, Mutex, MutexGuard};

use super::exclusive_and_shared::{self, LockedRow};

/// A row: who is at the head (0: nobody), the chunk's counter, the shard with its holders.
struct Row {
    head: AtomicUsize,
    counter: AtomicUsize,
    shard: Mutex<Vec<usize>>,
    /// Told when a version was taken away again.
    woken: AtomicUsize,
}

impl Row {
    fn new() -> Arc<Row> {
        Arc::new(Row {
            head: AtomicUsize::new(0),
            counter: AtomicUsize::new(0),
            shard: Mutex::new(Vec::new()),
            woken: AtomicUsize::new(0),
        })
    }
}

struct Locker<'r> {
    row: &'r Row,
    me: usize,
}

impl<'r> LockedRow for Locker<'r> {
    type Shard = MutexGuard<'r, Vec<usize>>;
    type Refusal = usize;
    type Before = ();

    fn some_shared(&self) -> bool {
        fence(Ordering::SeqCst);
        self.row.counter.load(Ordering::SeqCst) > 0
    }
    fn raise(&self) {
        self.row.counter.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
    fn lower(&self) {
        self.row.counter.fetch_sub(1, Ordering::SeqCst);
    }
    fn shard(&self) -> Self::Shard {
        self.row.shard.lock().expect("no panic inside")
    }
    fn holder(&self, shard: &Self::Shard) -> Option<usize> {
        shard.iter().copied().find(|holder| *holder != self.me)
    }
    fn install(&mut self) -> Result<bool, usize> {
        let (none, me) = (0, self.me);
        let installed = self
            .row
            .head
            .compare_exchange(none, me, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        fence(Ordering::SeqCst);
        Ok(installed)
    }
    fn uninstall(&mut self) {
        self.row.head.store(0, Ordering::SeqCst);
        self.row.woken.fetch_add(1, Ordering::SeqCst);
    }
    fn look_at_head(&mut self) -> Result<bool, usize> {
        fence(Ordering::SeqCst);
        match self.row.head.load(Ordering::SeqCst) {
            0 => Ok(false),
            writer if writer == self.me => Ok(true),
            writer => Err(writer),
        }
    }
    fn enter(&mut self, shard: &mut Self::Shard) -> ((), bool) {
        let is_first = shard.is_empty();
        shard.push(self.me);
        ((), is_first)
    }
}

/// One wants the row for itself, `sharers` want to share it: the locks that are had never conflict, somebody always
/// gets one, and who was refused for the sake of a version either finds it there or was told that it went.
fn meet(sharers: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let row = Row::new();
        let others: Vec<_> = (0..sharers)
            .map(|i| {
                let row = row.clone();
                loom::thread::spawn(move || {
                    let mut locker = Locker {
                        row: &row,
                        me: 2 + i,
                    };
                    exclusive_and_shared::shared(&mut locker)
                })
            })
            .collect();
        let exclusive = exclusive_and_shared::exclusive(&mut Locker { row: &row, me: 1 });
        let shared: Vec<_> = others
            .into_iter()
            .map(|t| t.join().expect("thread"))
            .collect();
        let count = shared.iter().filter(|s| s.is_ok()).count();
        assert_ne!(
            exclusive == Ok(true),
            count > 0,
            "either the one or the others, and never nobody: {exclusive:?} {shared:?}"
        );
        let stands = row.head.load(Ordering::SeqCst) == 1;
        assert_eq!(
            stands,
            exclusive == Ok(true),
            "a version stays if it is the lock"
        );
        if shared.contains(&Err(1)) && !stands {
            assert_eq!(
                row.woken.load(Ordering::SeqCst),
                1,
                "who waits for it is told"
            );
        }
        assert_eq!(row.shard.lock().expect("no panic").len(), count);
        assert_eq!(
            row.counter.load(Ordering::SeqCst),
            usize::from(count > 0),
            "counts rows, not holders"
        );
    });
}

#[test]
fn an_exclusive_and_a_shared_locker_never_both_win_and_never_both_lose() {
    meet(1);
}

#[test]
fn an_exclusive_and_two_shared_lockers_never_both_win_and_never_both_lose() {
    meet(2);
}
