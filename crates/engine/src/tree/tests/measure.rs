//! What the tree costs, beside a sorted set under a reader-writer lock:
//! `cargo test --release -p logstead-engine --lib -- --ignored --nocapture measure`.

use std::collections::BTreeSet;
use std::ops::Bound;

use parking_lot::RwLock;

use super::*;

const N: u64 = 1_000_000;

/// What is measured.
trait Ordered: Sync {
    fn insert(&self, entry: &[u8]);
    fn lookup(&self, key: &[u8]) -> Option<u64>;
    /// Rids of 100 entries from `key` on, added up.
    fn scan(&self, key: &[u8], batch: &mut Entries) -> u64;
}

impl Ordered for Tree {
    fn insert(&self, entry: &[u8]) {
        let judged: Result<(), ()> = self.insert_and_check(entry, |_| Ok(())).there();
        assert!(judged.is_ok());
    }
    fn lookup(&self, key: &[u8]) -> Option<u64> {
        let mut found = None;
        Tree::lookup(self, key, |rid| {
            found = Some(rid);
            true
        })
        .there();
        found
    }
    fn scan(&self, key: &[u8], batch: &mut Entries) -> u64 {
        batch.clear();
        self.walk_up(key, false, None, 100, batch).there();
        (0..batch.len()).map(|at| rid(batch.get(at))).sum()
    }
}

/// What the tree replaced, with keys inline.
struct Set(RwLock<BTreeSet<[u8; 17]>>);

impl Ordered for Set {
    fn insert(&self, entry: &[u8]) {
        let entry: [u8; 17] = entry.try_into().expect("17 bytes");
        let mut set = self.0.write();
        let other = set
            .range::<[u8], _>((Bound::Included(&entry[..9]), Bound::Unbounded))
            .next();
        assert!(other.is_none_or(|other| other[..9] != entry[..9]));
        set.insert(entry);
    }
    fn lookup(&self, key: &[u8]) -> Option<u64> {
        let set = self.0.read();
        let found = set
            .range::<[u8], _>((Bound::Included(key), Bound::Unbounded))
            .next()?;
        (found[..9] == *key).then(|| rid(found))
    }
    fn scan(&self, key: &[u8], batch: &mut Entries) -> u64 {
        batch.clear();
        {
            let set = self.0.read();
            let entries = set.range::<[u8], _>((Bound::Included(key), Bound::Unbounded));
            entries.take(100).for_each(|entry| batch.push(entry));
        }
        (0..batch.len()).map(|at| rid(batch.get(at))).sum()
    }
}

fn rid(entry: &[u8]) -> u64 {
    entry.last_chunk().map_or(0, |rid| u64::from_be_bytes(*rid))
}

fn ascending(i: u64) -> u64 {
    i
}

fn random(i: u64) -> u64 {
    (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678
}

/// Nanoseconds this thread has had a processor: what others do on the machine does not count.
fn processor_ns() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the system says of this thread"
    )]
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = schedstat.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// Processor time per call in nanoseconds.
fn time(threads: u64, calls: u64, call: impl Fn(u64, &mut Entries) + Sync) -> f64 {
    let spent: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let call = &call;
                scope.spawn(move || {
                    let mut batch = Entries::default();
                    let begun = processor_ns();
                    for i in 0..calls / threads {
                        call(i * threads + thread, &mut batch);
                    }
                    processor_ns() - begun
                })
            })
            .collect();
        running.into_iter().map(|t| t.join().expect("done")).sum()
    });
    spent as f64 / calls as f64
}

fn key_of(n: u64) -> [u8; 9] {
    let mut key = [0; 9];
    key[1..].copy_from_slice(&(n ^ 1 << 63).to_be_bytes());
    key
}

fn entry_of(n: u64, rid: u64) -> [u8; 17] {
    let mut entry = [0; 17];
    entry[..9].copy_from_slice(&key_of(n));
    entry[9..].copy_from_slice(&rid.to_be_bytes());
    entry
}

fn measure(name: &str, set: &dyn Ordered, key: fn(u64) -> u64, threads: u64) {
    let insert = time(threads, N, |i, _| set.insert(&entry_of(key(i), i)));
    let lookup = time(threads, N, |i, _| {
        let i = i.wrapping_mul(7_919) % N;
        assert_eq!(set.lookup(&key_of(key(i))), Some(i));
    });
    let scan = time(threads, N / 50, |i, batch| {
        set.scan(&key_of(key(i.wrapping_mul(7_919) % N)), batch);
    });
    println!(
        "{name:24} {threads} threads, processor time: insert {insert:6.0} ns, lookup {lookup:6.0} ns, scan of 100 {scan:7.0} ns"
    );
}

#[test]
#[ignore = "measures; wants an optimised build"]
fn measure_against_a_locked_set() {
    println!("pages of {} bytes", size_of::<Page>());
    let most = std::env::var("MEASURE_THREADS")
        .ok()
        .and_then(|n| n.parse().ok());
    for threads in 1..=most.unwrap_or(2) {
        for (order, key) in [
            ("ascending", ascending as fn(u64) -> u64),
            ("random", random),
        ] {
            let tree = tree();
            measure(&format!("tree, {order}"), &tree, key, threads);
            let report = tree.check().expect("in order");
            println!(
                "    {:.1} bytes per entry, {} levels",
                tree.memory_bytes() as f64 / N as f64,
                report.levels
            );
            let set = Set(RwLock::default());
            measure(&format!("locked set, {order}"), &set, key, threads);
        }
    }
}
