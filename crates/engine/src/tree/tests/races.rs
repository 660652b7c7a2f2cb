//! Interleavings under shuttle: a scheduler takes the turn wherever threads can meet (see `interleave`), in thousands
//! of orders, each of which can be run again by its seed. Pages of long entries split and merge after a few of them.

use std::sync::Arc;

use shuttle::scheduler::RandomScheduler;
use shuttle::thread;
use shuttle::{Config, Runner};

use super::*;
use crate::tree::interleave::set_hook;

/// About eight of them fill a page.
pub(super) fn wide(n: u64) -> Vec<u8> {
    let mut text = vec![b'a' + n as u8];
    text.resize(460, b'x');
    entry(&key(&text), n)
}

/// How often, by LOGSTEAD_STRESS_ROUNDS.
pub(super) fn explore(schedules: usize, test: fn()) {
    let schedules = std::env::var("LOGSTEAD_STRESS_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(schedules);
    let mut config = Config::default();
    // Copying long entries makes many steps.
    config.max_steps = shuttle::MaxSteps::None;
    let runner = Runner::new(RandomScheduler::new(schedules), config);
    runner.run(move || {
        set_hook(None);
        test();
        set_hook(None);
    });
}

/// Turns are taken from here on.
pub(super) fn interleaved() {
    set_hook(Some(thread::yield_now));
}

fn filled(ns: impl Iterator<Item = u64>) -> Arc<Tree> {
    let tree = Arc::new(tree());
    ns.for_each(|n| tree.insert(&wide(n)).there());
    tree
}

/// A page splits under readers and another writer: what was there is found by all, at any moment.
#[test]
fn readers_and_writers_meet_a_split() {
    explore(60, || {
        let tree = filled((0..8).map(|n| n * 2));
        interleaved();
        let writers: Vec<_> = [5, 9]
            .map(|n| {
                let tree = tree.clone();
                thread::spawn(move || tree.insert(&wide(n)).there())
            })
            .into();
        let reader = {
            let tree = tree.clone();
            thread::spawn(move || {
                let wanted = wide(14);
                assert_eq!(rids(&tree, &wanted[..wanted.len() - 8]), [14]);
                let there = |n: &u64| n.is_multiple_of(2);
                let seen: Vec<u64> = up(&tree).iter().map(|e| rid(e)).collect();
                let old: Vec<u64> = seen.iter().copied().filter(there).collect();
                assert_eq!(old, [0, 2, 4, 6, 8, 10, 12, 14], "{seen:?}");
            })
        };
        for thread in writers {
            thread.join().expect("no writer fails");
        }
        reader.join().expect("no reader fails");
        set_hook(None);
        assert_eq!(tree.check().expect("in order").entries, 10);
    });
}

/// Entries of several virtual partitions come into one leaf at once, and go again, under a reader: each leaf has those
/// of one partition at any moment, and nothing is lost.
#[test]
fn partitions_meet_in_a_leaf() {
    explore(60, || {
        let tree = Arc::new(tree_of(true));
        tree.insert(&wide(4)).there();
        interleaved();
        let writers: Vec<_> = [[2, 6], [8, 5], [4, 3]]
            .map(|[stays, goes]| {
                let tree = tree.clone();
                thread::spawn(move || {
                    tree.insert(&wide(goes)).there();
                    let judged = tree.insert_and_check(&wide(stays), |_| Ok::<_, ()>(()));
                    assert_eq!(judged.there(), Ok(()));
                    assert!(tree.remove_if(&wide(goes), || true).there());
                })
            })
            .into();
        let reader = {
            let tree = tree.clone();
            thread::spawn(move || {
                let seen: Vec<u64> = up(&tree).iter().map(|e| rid(e)).collect();
                assert!(seen.contains(&4) && seen.is_sorted(), "{seen:?}");
            })
        };
        for thread in writers.into_iter().chain([reader]) {
            thread.join().expect("nobody fails");
        }
        set_hook(None);
        let report = tree.check().expect("in order");
        assert_eq!((report.entries, report.leaves), (3, 3));
        for n in [8, 2, 4] {
            assert!(tree.remove_if(&wide(n), || true).there());
            tree.check().expect("in order");
        }
        assert_eq!(tree.check().expect("in order").leaves, 1);
    });
}

pub(super) fn rid(entry: &[u8]) -> u64 {
    let (_, rid) = entry.split_last_chunk().expect("a rid");
    u64::from_be_bytes(*rid)
}

/// Pages merge, and the root makes way, under a reader that walks down and a writer that inserts beside them.
#[test]
fn readers_and_writers_meet_a_merge() {
    explore(60, || {
        let tree = filled(0..10);
        // Two leaves; what stays is little enough for one.
        for n in [1, 2, 3, 5] {
            tree.remove_if(&wide(n), || true).there();
        }
        assert!(tree.check().expect("in order").leaves >= 2);
        interleaved();
        let remover = {
            let tree = tree.clone();
            thread::spawn(move || {
                for n in [6, 0] {
                    tree.remove_if(&wide(n), || true).there();
                }
            })
        };
        let other = {
            let tree = tree.clone();
            thread::spawn(move || {
                tree.insert(&wide(12)).there();
                for n in [7, 9] {
                    tree.remove_if(&wide(n), || true).there();
                }
            })
        };
        let reader = {
            let tree = tree.clone();
            thread::spawn(move || {
                let seen: Vec<u64> = down(&tree).iter().map(|e| rid(e)).collect();
                let old: Vec<u64> = seen
                    .iter()
                    .copied()
                    .filter(|n| [4, 8].contains(n))
                    .collect();
                assert_eq!(old, [8, 4], "{seen:?}");
            })
        };
        for thread in [remover, other, reader] {
            thread.join().expect("nobody fails");
        }
        set_hook(None);
        let left: Vec<u64> = up(&tree).iter().map(|e| rid(e)).collect();
        assert_eq!(left, [4, 8, 12]);
        assert_eq!(tree.check().expect("in order").leaves, 1);
    });
}

/// T11 under every order: two want one key, whose stale entries span two leaves.
#[test]
fn t11_two_checkers_of_a_key_meet() {
    explore(60, || {
        let tree = Arc::new(tree());
        let mut text = vec![b'k'];
        text.resize(460, b'x');
        let contended = key(&text);
        for rid in 10..19 {
            tree.insert(&entry(&contended, rid)).there();
        }
        assert!(tree.check().expect("in order").leaves >= 2);
        interleaved();
        let checkers: Vec<_> = [1, 30]
            .map(|rid| {
                let (tree, contended) = (tree.clone(), contended.clone());
                thread::spawn(move || {
                    tree.insert_and_check(&entry(&contended, rid), |other| {
                        if (10..19).contains(&other) {
                            Ok(())
                        } else {
                            Err(())
                        }
                    })
                    .there()
                })
            })
            .into();
        let won = checkers
            .into_iter()
            .map(|checker| checker.join().expect("nobody fails"))
            .filter(Result::is_ok)
            .count();
        set_hook(None);
        assert_eq!(won, 1);
        assert_eq!(tree.check().expect("in order").entries, 10);
    });
}
