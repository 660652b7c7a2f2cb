//! Leaves come and go while others are about, under shuttle: see [`super::races`].

use std::collections::BTreeSet;
use std::sync::Arc;

use shuttle::thread;

use super::races::{explore, interleaved, rid, wide};
use super::stored::Shared;
use super::*;
use crate::tree::interleave::set_hook;

fn filled(ns: impl Iterator<Item = u64>) -> Arc<Shared> {
    let tree = tree();
    ns.for_each(|n| tree.insert(&wide(n)).there());
    let shared = Shared::new(tree);
    shared.checkpoint(false);
    Arc::new(shared)
}

fn key_of(n: u64) -> Vec<u8> {
    let mut key = wide(n);
    key.truncate(key.len() - 8);
    key
}

type Act = fn(&Shared);

/// What takes few steps, so that schedules are many and others do much in the middle of it.
fn short(n: u64) -> Vec<u8> {
    entry(&key(&[b'a' + n as u8]), n)
}

/// Is everything there, in memory and, after one more checkpoint, in tiles?
fn assert_kept(shared: &Shared, expected: &[Vec<u8>]) {
    assert_eq!(shared.all_in(), expected);
    shared.tree.check().expect("in order");
    shared.checkpoint(false);
    assert_eq!(shared.store.lock().entries(), expected);
    shared.tree.evict_all();
    assert_eq!(shared.all_in(), expected);
}

/// The evictor has found a leaf clean, and an insert is in the middle of it; or an insert has found the leaf, and it
/// goes.
#[test]
fn an_insert_meets_an_eviction() {
    explore(500, || {
        let shared = filled(0..9);
        let evict: Act = |shared| {
            shared.tree.evict_all();
        };
        let insert: Act = |shared| shared.with(|tree| tree.insert(&short(20)));
        meet(&shared, &[evict, insert]);
        let mut expected: Vec<_> = (0..9).map(wide).collect();
        expected.push(short(20));
        assert_kept(&shared, &expected);
    });
}

/// A leaf is changed while the walk copies it, and after.
#[test]
fn an_insert_meets_a_walk() {
    explore(500, || {
        let shared = filled(0..9);
        shared.tree.mark_changed(&wide(8));
        let take: Act = |shared| {
            shared.checkpoint(false);
            shared.tree.evict_all();
        };
        let insert: Act = |shared| shared.with(|tree| tree.insert(&short(20)));
        meet(&shared, &[take, insert]);
        let mut expected: Vec<_> = (0..9).map(wide).collect();
        expected.push(short(20));
        assert_kept(&shared, &expected);
    });
}

/// Runs each in a thread of its own.
fn meet(shared: &Arc<Shared>, acts: &[Act]) {
    interleaved();
    let threads: Vec<_> = acts
        .iter()
        .map(|act| {
            let (shared, act) = (shared.clone(), *act);
            thread::spawn(move || act(&shared))
        })
        .collect();
    for thread in threads {
        thread.join().expect("nobody fails");
    }
    set_hook(None);
}

fn seen(entries: &[Vec<u8>]) -> Vec<u64> {
    entries.iter().map(|entry| rid(entry)).collect()
}

/// Whoever finds a leaf before it goes, whoever meets its empty place, and whoever brings it in: all see what was put
/// in.
#[test]
fn readers_and_writers_meet_an_evictor() {
    explore(60, || {
        let shared = filled((0..18).map(|n| n * 2));
        let evict: Act = |shared| {
            for _ in 0..4 {
                shared.tree.evict_all();
            }
        };
        let write: Act = |shared| {
            for n in [5, 9] {
                shared.with(|tree| tree.insert(&wide(n)));
                assert_eq!(shared.rids(&key_of(n)), [n]);
            }
            assert!(shared.with(|tree| tree.remove_if(&wide(16), || true)));
        };
        let read: Act = |shared| {
            assert_eq!(shared.rids(&key_of(14)), [14]);
            let seen = seen(&shared.walk(false));
            let old = |n: &u64| n.is_multiple_of(2) && *n != 16;
            let old: Vec<u64> = seen.iter().copied().filter(old).collect();
            let expected: Vec<u64> = (0..18).map(|n| n * 2).filter(old_but).collect();
            assert_eq!(old, expected, "{seen:?}");
        };
        fn old_but(n: &u64) -> bool {
            *n != 16
        }
        meet(&shared, &[evict, write, read]);
        let mut expected: Vec<u64> = (0..18).map(|n| n * 2).filter(old_but).collect();
        expected.extend([5, 9]);
        expected.sort_unstable();
        assert_eq!(seen(&shared.all_in()), expected);
        shared.tree.check().expect("in order");
    });
}

/// A checkpoint walks while leaves split and merge around it: what is there throughout is in just one tile, what is
/// evicted after it comes back as it was.
#[test]
fn t11_a_checkpoint_meets_splits_and_merges() {
    explore(80, || {
        let shared = filled((0..12).map(|n| n * 2));
        for n in 0..12 {
            assert!(shared.tree.mark_changed(&wide(n * 2)));
        }
        let take: Act = |shared| shared.checkpoint(false);
        let insert: Act = |shared| {
            for n in [9, 11, 13, 15] {
                shared.with(|tree| tree.insert(&wide(n)));
            }
        };
        let remove: Act = |shared| {
            for n in [2, 4, 6, 8, 10, 14] {
                assert!(shared.with(|tree| tree.remove_if(&wide(n), || true)));
            }
        };
        let evict: Act = |shared| {
            shared.tree.evict_all();
        };
        meet(&shared, &[take, insert, remove, evict]);
        let stored: Vec<u64> = seen(&shared.store.lock().entries());
        for n in [0, 12, 16, 18, 20, 22] {
            assert!(stored.contains(&n), "{n} is in a tile: {stored:?}");
        }
        let expected = [0, 9, 11, 12, 13, 15, 16, 18, 20, 22];
        shared.tree.evict_all();
        assert_eq!(seen(&shared.all_in()), expected);
        shared.tree.check().expect("in order");
        // The next one brings the stored ones up to date.
        shared.checkpoint(false);
        assert_eq!(seen(&shared.store.lock().entries()), expected);
    });
}

/// A load that takes its time, while others load, change, store and evict the same leaf.
#[test]
fn a_slow_load_meets_a_leaf_that_lives_on() {
    explore(60, || {
        let shared = filled(0..12);
        shared.tree.evict_all();
        let insert: Act = |shared| {
            shared.with(|tree| tree.insert(&entry(&key_of(3), 77)));
            shared.checkpoint(false);
            shared.tree.evict_all();
        };
        let read: Act = |shared| assert!(shared.rids(&key_of(3)).contains(&3));
        let remove: Act = |shared| {
            assert!(shared.with(|tree| tree.remove_if(&wide(2), || true)));
        };
        meet(&shared, &[insert, read, remove]);
        assert_eq!(shared.rids(&key_of(3)), [3, 77]);
        let expected: BTreeSet<Vec<u8>> = (0..12)
            .filter(|n| *n != 2)
            .map(wide)
            .chain([entry(&key_of(3), 77)])
            .collect();
        assert!(shared.all_in().iter().eq(&expected));
        shared.tree.check().expect("in order");
    });
}

/// T11 under every order: two want one key, whose stale entries span leaves, and all of those come and go.
#[test]
fn t11_two_checkers_of_a_key_meet_an_evictor() {
    fn contended() -> Vec<u8> {
        let mut text = vec![b'k'];
        text.resize(460, b'x');
        key(&text)
    }
    fn check(shared: &Shared, own: u64) -> bool {
        let judged = shared.with(|tree| {
            tree.insert_and_check(&entry(&contended(), own), |other| {
                if (10..19).contains(&other) {
                    Ok(())
                } else {
                    Err(())
                }
            })
        });
        judged.is_ok()
    }
    explore(60, || {
        let tree = tree();
        for rid in 10..19 {
            tree.insert(&entry(&contended(), rid)).there();
        }
        assert!(tree.check().expect("in order").leaves >= 2);
        let shared = Arc::new(Shared::new(tree));
        shared.checkpoint(false);
        let evict: Act = |shared| {
            for _ in 0..3 {
                shared.tree.evict_all();
            }
        };
        let low: Act = |shared| {
            check(shared, 1);
        };
        let high: Act = |shared| {
            check(shared, 30);
        };
        meet(&shared, &[low, high, evict]);
        let all = seen(&shared.all_in());
        let won = [1, 30].iter().filter(|own| all.contains(own)).count();
        assert_eq!((won, all.len()), (1, 10));
        shared.tree.check().expect("in order");
    });
}
