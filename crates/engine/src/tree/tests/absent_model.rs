//! Leaves that come and go: what a tree and its stored tiles hold together is what a sorted set holds, whatever is
//! evicted, loaded, walked, published and given up in between.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::stored::{Store, all_in, checkpoint, with};
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>, u64),
    Check(Vec<u8>, u64),
    Remove(Vec<u8>, u64),
    Lookup(Vec<u8>),
    Up(Vec<u8>, usize),
    Down(Vec<u8>, usize),
    /// Bytes.
    Evict(usize),
    EvictAll,
    /// A step of the walk under way, or of a new one.
    Walk,
    /// The walk goes to its end and is published, or is given up.
    EndWalk(bool),
    /// All inner pages are made anew from the newest checkpoint, after which nothing has been changed.
    Restore,
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0u64..60).prop_map(|n| {
            // About eight to a page.
            let mut text = vec![b'a' + (n % 4) as u8, b'a' + (n / 4) as u8];
            text.resize(440, b'x');
            text
        }),
        2 => prop::collection::vec(1u8..5, 0..4),
        // Not so long that no tile could end there.
        1 => (500usize..2000, 1u8..4).prop_map(|(n, byte)| vec![byte; n]),
        1 => (400usize..420, 1u8..3).prop_map(|(n, byte)| vec![byte; n]),
    ]
    .prop_map(|text| key(&text))
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let rid = 0u64..5;
    let op = prop_oneof![
        12 => (keys(), rid.clone()).prop_map(|(k, r)| Op::Insert(k, r)),
        4 => (keys(), rid.clone()).prop_map(|(k, r)| Op::Check(k, r)),
        9 => (keys(), rid).prop_map(|(k, r)| Op::Remove(k, r)),
        2 => keys().prop_map(Op::Lookup),
        1 => (keys(), 1usize..20).prop_map(|(k, n)| Op::Up(k, n)),
        1 => (keys(), 1usize..20).prop_map(|(k, n)| Op::Down(k, n)),
        3 => (1usize..40_000).prop_map(Op::Evict),
        1 => Just(Op::EvictAll),
        6 => Just(Op::Walk),
        2 => any::<bool>().prop_map(Op::EndWalk),
        1 => Just(Op::Restore),
    ];
    prop::collection::vec(op, 1..500)
}

/// A checkpoint under way.
struct Taking {
    walk: LeafWalk,
    /// With its tiles.
    store: Store,
    /// What was there when it began, and still is.
    throughout: BTreeSet<Vec<u8>>,
}

fn run(ops: Vec<Op>, divided: bool) {
    let mut tree = tree_of(divided);
    let mut set: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut store = Store::default();
    let mut taking: Option<Taking> = None;
    // What the newest checkpoint must hold, whatever else is in it.
    let mut stored: BTreeSet<Vec<u8>> = BTreeSet::new();
    for op in ops {
        match op {
            Op::Insert(key, rid) => {
                let entry = entry(&key, rid);
                with(&tree, &store, || tree.insert(&entry));
                set.insert(entry);
            }
            Op::Check(key, rid) => {
                let mut others: Vec<u64> = Vec::new();
                let judged = with(&tree, &store, || {
                    assert!(
                        others.is_empty(),
                        "who meets an absent leaf has judged nobody"
                    );
                    tree.insert_and_check(&entry(&key, rid), |other| {
                        others.push(other);
                        Ok::<(), ()>(())
                    })
                });
                assert_eq!(judged, Ok(()));
                let mut expected = super::model::of_key(&set, &key);
                expected.retain(|r| *r != rid);
                assert_eq!(others, expected);
                set.insert(entry(&key, rid));
            }
            Op::Remove(key, rid) => {
                let entry = entry(&key, rid);
                let removed = with(&tree, &store, || tree.remove_if(&entry, || true));
                assert_eq!(removed, set.remove(&entry));
                if let Some(taking) = &mut taking {
                    taking.throughout.remove(&entry);
                }
            }
            Op::Lookup(key) => {
                let found = with(&tree, &store, || {
                    let mut found = Vec::new();
                    tree.lookup(&key, |rid| {
                        found.push(rid);
                        true
                    })?;
                    Ok(found)
                });
                assert_eq!(found, super::model::of_key(&set, &key));
            }
            Op::Up(from, limit) => {
                let mut batch = Entries::default();
                while with(&tree, &store, || {
                    let last = batch.len().checked_sub(1).map(|at| batch.get(at).to_vec());
                    let wanted = limit - batch.len();
                    let from = last.as_ref().unwrap_or(&from);
                    let mut more = Entries::default();
                    let goes_on = tree.walk_up(from, last.is_some(), None, wanted, &mut more)?;
                    (0..more.len()).for_each(|at| batch.push(more.get(at)));
                    Ok(goes_on && batch.len() < limit)
                }) {}
                let expected: Vec<_> = set.range(from..).take(limit).collect();
                let got: Vec<_> = (0..batch.len()).map(|at| batch.get(at)).collect();
                assert_eq!(got, expected);
            }
            Op::Down(below, limit) => {
                let mut batch = Entries::default();
                while with(&tree, &store, || {
                    let last = batch.len().checked_sub(1).map(|at| batch.get(at).to_vec());
                    let wanted = limit - batch.len();
                    let below = last.as_ref().unwrap_or(&below);
                    let mut more = Entries::default();
                    let goes_on = tree.walk_down(Some(below), &[], wanted, &mut more)?;
                    (0..more.len()).for_each(|at| batch.push(more.get(at)));
                    Ok(goes_on && batch.len() < limit)
                }) {}
                let expected: Vec<_> = set.range(..below).rev().take(limit).collect();
                let got: Vec<_> = (0..batch.len()).map(|at| batch.get(at)).collect();
                assert_eq!(got, expected);
            }
            Op::Evict(bytes) => {
                let evicted = tree.evict(bytes);
                assert!(evicted.ended || evicted.bytes >= bytes);
            }
            Op::EvictAll => {
                tree.evict_all();
            }
            Op::Walk => {
                let taking = taking.get_or_insert_with(|| Taking {
                    walk: {
                        store.load_late(&tree);
                        tree.begin_walk()
                    },
                    store: store.clone(),
                    throughout: set.clone(),
                });
                if let Some(tile) = tree.next_changed(&mut taking.walk) {
                    taking.store.put(tile);
                }
            }
            Op::EndWalk(is_published) => {
                let Some(mut taking) = taking.take() else {
                    continue;
                };
                if !is_published {
                    continue;
                }
                while let Some(tile) = tree.next_changed(&mut taking.walk) {
                    taking.store.put(tile);
                }
                tree.published(&taking.walk);
                store = taking.store;
                let held: BTreeSet<_> = store.entries().into_iter().collect();
                assert!(held.is_superset(&taking.throughout), "nothing is missing");
                stored = taking.throughout;
            }
            Op::Restore => {
                if store.0.is_empty() {
                    continue;
                }
                // As a start does: what was changed since the checkpoint is known from elsewhere.
                taking = None;
                tree = Tree::restore(&UNLIMITED, divided);
                let report = tree.check().expect("in order");
                assert_eq!((report.leaves, report.absent_leaves), (0, 1));
                let held: BTreeSet<_> = store.entries().into_iter().collect();
                for (n, entry) in set.difference(&held).enumerate() {
                    assert!(!stored.contains(entry));
                    if n % 3 == 0 {
                        with(&tree, &store, || tree.insert(entry));
                    } else if tree.insert(entry).is_err() {
                        tree.add_late(entry);
                    }
                }
                for entry in held.difference(&set) {
                    assert!(with(&tree, &store, || tree.remove_if(entry, || true)));
                }
            }
        }
    }
    let report = tree.check().expect("in order");
    assert_eq!(report.absent_leaves, tree.absent_leaves());
    assert_eq!(report.entries, tree.entry_count());
    let expected: Vec<_> = set.into_iter().collect();
    // A last checkpoint, of what is in memory and what is not.
    let mut copy = store.clone();
    checkpoint(&tree, &mut copy);
    assert_eq!(copy.entries(), expected);
    assert_eq!(tree.changed_leaves(), 0);
    let report = tree.check().expect("in order");
    let evicted = tree.evict_all().leaves;
    let root_is_a_leaf = usize::from(report.levels == 1);
    assert_eq!(evicted, report.leaves - root_is_a_leaf, "all are clean");
    assert_eq!(all_in(&tree, &copy), expected);
    assert_holds(&tree, &expected);
    assert_eq!(checkpoint(&tree, &mut copy), 0, "nothing has changed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_with_absent_leaves_does_what_a_sorted_set_does(
        ops in ops(),
        divided in any::<bool>(),
    ) {
        run(ops, divided);
    }
}
