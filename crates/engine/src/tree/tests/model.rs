//! One thread: the tree does what a sorted set does, and its pages are as full as they should be.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>, u64),
    Remove(Vec<u8>, u64),
    Refuse(Vec<u8>, u64),
    Lookup(Vec<u8>),
    Up(Vec<u8>, Vec<u8>, usize),
    Down(Vec<u8>, Vec<u8>, usize),
}

/// Short ones, long ones, and ones that have much in common.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(1u8..5, 0..4),
        3 => prop::collection::vec(any::<u8>(), 0..40),
        2 => (0usize..3, prop::collection::vec(any::<u8>(), 0..3)).prop_map(|(n, tail)| {
            let mut text = vec![7; [90, 400, 520][n]];
            text.extend(tail);
            text
        }),
        2 => (450usize..520, 1u8..9).prop_map(|(n, byte)| vec![byte; n]),
        1 => (500usize..6000, 1u8..4).prop_map(|(n, byte)| vec![byte; n]),
    ]
    .prop_map(|text| key(&text))
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let rid = 0u64..6;
    let op = prop_oneof![
        8 => (keys(), rid.clone()).prop_map(|(k, r)| Op::Insert(k, r)),
        4 => (keys(), rid.clone()).prop_map(|(k, r)| Op::Remove(k, r)),
        2 => (keys(), rid).prop_map(|(k, r)| Op::Refuse(k, r)),
        1 => keys().prop_map(Op::Lookup),
        1 => (keys(), keys(), 1usize..50).prop_map(|(a, b, n)| Op::Up(a, b, n)),
        1 => (keys(), keys(), 1usize..50).prop_map(|(a, b, n)| Op::Down(a, b, n)),
    ];
    prop::collection::vec(op, 1..400)
}

pub(super) fn of_key(set: &BTreeSet<Vec<u8>>, key: &[u8]) -> Vec<u64> {
    let entries = set.range(key.to_vec()..).take_while(|e| e.starts_with(key));
    entries
        .map(|e| u64::from_be_bytes(e[key.len()..].try_into().expect("a rid")))
        .collect()
}

fn run(ops: Vec<Op>, divided: bool) {
    let tree = tree_of(divided);
    let mut set = BTreeSet::new();
    let mut batch = Entries::default();
    for (n, op) in ops.into_iter().enumerate() {
        match op {
            Op::Insert(key, rid) => {
                // In either way, by turns.
                if rid % 2 == 0 {
                    tree.insert(&entry(&key, rid)).there();
                } else {
                    let mut others = Vec::new();
                    let judged = tree
                        .insert_and_check(&entry(&key, rid), |other| {
                            others.push(other);
                            Ok::<(), ()>(())
                        })
                        .there();
                    assert_eq!(judged, Ok(()));
                    let mut expected = of_key(&set, &key);
                    expected.retain(|r| *r != rid);
                    assert_eq!(others, expected);
                }
                set.insert(entry(&key, rid));
            }
            Op::Remove(key, rid) => {
                let (entry, mut asked) = (entry(&key, rid), false);
                tree.remove_if(&entry, || false).there();
                tree.remove_if(&entry, || {
                    asked = true;
                    true
                })
                .there();
                assert_eq!(set.remove(&entry), asked);
            }
            Op::Refuse(key, rid) => {
                let refused = tree.insert_and_check(&entry(&key, rid), Err).there();
                let other = of_key(&set, &key).into_iter().find(|r| *r != rid);
                assert_eq!(refused, other.map_or(Ok(()), Err));
                if refused.is_ok() {
                    set.insert(entry(&key, rid));
                }
            }
            Op::Lookup(key) => assert_eq!(rids(&tree, &key), of_key(&set, &key)),
            Op::Up(from, end, limit) => {
                batch.clear();
                tree.walk_up(&from, n % 2 == 0, Some(&end), limit, &mut batch)
                    .there();
                let expected: Vec<_> = set
                    .iter()
                    .filter(|e| **e > from || (n % 2 == 1 && **e == from))
                    .take_while(|e| **e < end)
                    .take(limit)
                    .collect();
                let got: Vec<_> = (0..batch.len()).map(|at| batch.get(at)).collect();
                assert_eq!(got, expected);
            }
            Op::Down(below, end, limit) => {
                batch.clear();
                tree.walk_down(Some(&below), &end, limit, &mut batch)
                    .there();
                let expected: Vec<_> = set
                    .iter()
                    .rev()
                    .filter(|e| **e < below)
                    .take_while(|e| **e >= end)
                    .take(limit)
                    .collect();
                let got: Vec<_> = (0..batch.len()).map(|at| batch.get(at)).collect();
                assert_eq!(got, expected);
            }
        }
    }
    let expected: Vec<_> = set.into_iter().collect();
    assert_holds(&tree, &expected);
    for entry in &expected {
        tree.remove_if(entry, || true).there();
    }
    let report = assert_holds(&tree, &[]);
    assert_eq!((report.leaves, report.levels), (1, 1), "nothing is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_a_sorted_set_does(ops in ops(), divided in any::<bool>()) {
        run(ops, divided);
    }
}

/// Many more entries than one page holds, in several orders; then all of them go, in several orders.
#[test]
fn big_trees_grow_and_shrink_in_any_order() {
    const N: u64 = 20_000;
    let orders: [fn(u64) -> u64; 3] = [
        |i| i,
        |i| N - 1 - i,
        // A permutation: 7919 and N have no common divisor.
        |i| i * 7919 % N,
    ];
    for insert in orders {
        for remove in orders {
            let tree = tree();
            let entries: Vec<_> = (0..N).map(|i| entry(&number(i), i * 3)).collect();
            for i in 0..N {
                tree.insert(&entries[insert(i) as usize]).there();
            }
            assert_holds(&tree, &entries);
            assert_eq!(rids(&tree, &number(777)), [777 * 3]);
            for i in 0..N {
                tree.remove_if(&entries[remove(i) as usize], || true)
                    .there();
                if i == N / 2 {
                    tree.check().expect("in order half way");
                }
            }
            let report = assert_holds(&tree, &[]);
            assert_eq!((report.leaves, report.inner_pages), (1, 0));
        }
    }
}

#[test]
fn pages_are_full_when_entries_come_in_order() {
    const N: u64 = 50_000;
    let fill = |key: &dyn Fn(u64) -> Vec<u8>| {
        let tree = tree();
        (0..N).for_each(|i| tree.insert(&entry(&key(i), i)).there());
        tree.check().expect("in order");
        tree.memory_bytes() as u64 * 10 / N
    };
    let ascending = fill(&number);
    let descending = fill(&|i| number(N - i));
    let random = fill(&|i| number((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    assert!(ascending <= 190, "{ascending} tenths of a byte per entry");
    assert!(descending <= 230, "{descending} tenths of a byte per entry");
    assert!(random <= 350, "{random} tenths of a byte per entry");
}

/// Inserted on the right, deleted on the left: the pages in between do not grow in number.
#[test]
fn a_queue_does_not_leak_pages() {
    let tree = tree();
    let mut dice = Dice(99);
    let mut live = std::collections::VecDeque::new();
    for i in 0..100_000 {
        tree.insert(&entry(&number(i), i)).there();
        live.push_back(i);
        if live.len() > 1000 {
            // Not quite in order, as collectors work.
            let at = dice.roll(50) as usize;
            let gone = live.remove(at).expect("there are 1000");
            tree.remove_if(&entry(&number(gone), gone), || true).there();
        }
    }
    let report = tree.check().expect("in order");
    assert_eq!(report.entries, 1000);
    assert!(report.leaves < 25, "{report:?}");
    assert!(tree.memory_bytes() < 25 * 4096 + (16 << 10));
}

/// One key with more rids than a page holds, between others.
#[test]
fn a_key_s_entries_span_leaves() {
    let tree = tree();
    for n in 0..300 {
        tree.insert(&entry(&number(n), n)).there();
    }
    for rid in 0..5000 {
        tree.insert(&entry(&number(150), rid * 7 % 5000)).there();
    }
    let expected: Vec<u64> = (0..5000).collect();
    assert_eq!(rids(&tree, &number(150)), expected);
    assert_eq!(rids(&tree, &number(149)), [149]);
    assert_eq!(rids(&tree, &number(151)), [151]);
    let mut first = Vec::new();
    tree.lookup(&number(150), |rid| {
        first.push(rid);
        first.len() < 40
    })
    .there();
    assert_eq!(first, expected[..40], "it stops when told");
    let mut judged = Vec::new();
    let refused = tree
        .insert_and_check(&entry(&number(150), 9999), |rid| {
            judged.push(rid);
            if rid == 4321 { Err(rid) } else { Ok(()) }
        })
        .there();
    assert_eq!(refused, Err(4321));
    assert_eq!(judged, expected[..=4321]);
    assert_eq!(rids(&tree, &number(150)).len(), 5000);
}

/// The account knows what the tree takes, and gets it back.
#[test]
fn memory_is_counted_and_given_back() {
    let account = crate::memory::Account::open(u64::MAX);
    let memory = account.memory();
    let tree = Tree::new(memory, false);
    for i in 0..3000 {
        tree.insert(&entry(&number(i), i)).there();
        tree.insert(&entry(&key(&vec![i as u8; 700 + i as usize % 50]), i))
            .there();
    }
    tree.check().expect("in order");
    let taken = tree.memory_bytes();
    assert!(taken > 3000 * 700, "{taken}");
    // Pages and blobs that were replaced wait for the collector.
    assert!(memory.used_bytes() + 4096 >= taken as u64);
    for i in 0..3000 {
        tree.remove_if(&entry(&number(i), i), || true).there();
        tree.remove_if(
            &entry(&key(&vec![i as u8; 700 + i as usize % 50]), i),
            || true,
        )
        .there();
    }
    let bare = Page::memory_bytes(0) + size_of::<Tree>();
    drop(tree);
    while memory.used_bytes() > 0 {
        crossbeam_epoch::pin().flush();
        std::thread::yield_now();
    }
    assert!(taken > bare);
}

/// Who has found a page before it was merged away does not believe it and does not lock it after.
#[test]
fn a_page_merged_away_is_left_alone() {
    let wide = |n: u64| {
        let mut text = vec![b'a' + n as u8];
        text.resize(460, b'x');
        entry(&key(&text), n)
    };
    let tree = tree();
    (0..10).for_each(|n| tree.insert(&wide(n)).there());
    let pin = EpochGuard::new();
    let last = wide(9);
    let found = tree.find(Goal::At(&last, Side::From), 0, &pin);
    let found = found.unwrap_or_else(|_| panic!("nobody else is here"));
    for n in 0..8 {
        tree.remove_if(&wide(n), || true).there();
    }
    assert_eq!(tree.check().expect("in order").leaves, 1);
    assert!(found.page.latch.check(found.version).is_err());
    assert!(found.page.lock(found.version).is_err());
    assert!(found.page.latch.read().is_err());
    assert!(found.page.lock_now().is_err());
    assert_eq!(up(&tree), [wide(8), wide(9)]);
}
