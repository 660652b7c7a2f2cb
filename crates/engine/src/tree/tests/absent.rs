//! Leaves that come and go, rule by rule: what is named, loaded, judged, divided, evicted and given up.

use std::collections::BTreeMap;

use logstead_checkpoint::TileBoundaries;

use super::stored::{Store, all_in, checkpoint, with};
use super::*;
use crate::memory::Account;
use crate::tree::absent::LeafMismatch;
use crate::tree::blob::Blobs;

/// For leaves that are known to be single ones.
fn undivided<E>(_: Option<&[u8]>) -> Result<TileBoundaries, E> {
    panic!("it is no range")
}

/// Numbers from 0 on in leaves of a hundred and more, all stored.
fn filled(n: u64) -> (Tree, Store, Vec<Vec<u8>>) {
    let tree = tree();
    let entries: Vec<_> = (0..n).map(|i| entry(&number(i), i)).collect();
    for entry in &entries {
        tree.insert(entry).there();
    }
    let mut store = Store::default();
    checkpoint(&tree, &mut store);
    (tree, store, entries)
}

/// All leaves leave memory but the one that covers `key`.
fn evict_all_but(tree: &Tree, key: &[u8]) {
    assert!(tree.mark_changed(key));
    tree.evict_all();
}

fn load(tree: &Tree, store: &Store, low: &[u8]) {
    store.load(tree, low);
}

/// Every operation names the leaf that it needs, the one it is told to need is enough, and pages above leaves that are
/// not there split and merge.
#[test]
fn operations_name_the_leaf_they_need() {
    const N: u64 = 60_000;
    let (tree, mut store, entries) = filled(N);
    let report = tree.check().expect("in order");
    assert_eq!(tree.evict_all().leaves, report.leaves);
    assert_eq!(
        tree.check().expect("in order"),
        TreeReport {
            absent_leaves: report.leaves,
            inner_pages: report.inner_pages,
            levels: report.levels,
            ..TreeReport::default()
        }
    );
    let wanted = &entries[33_333];
    let key = number(33_333);
    let absent = tree.insert(wanted).expect_err("it is absent");
    assert!(absent.low.as_ref() <= wanted.as_slice());
    let mut batch = Entries::default();
    assert_eq!(tree.remove_if(wanted, || true), Err(absent.clone()));
    assert_eq!(
        tree.insert_and_check(wanted, |_| Err(())),
        Err(absent.clone())
    );
    assert_eq!(tree.lookup(&key, |_| true), Err(absent.clone()));
    assert_eq!(
        tree.walk_up(&key, false, None, 9, &mut batch),
        Err(absent.clone())
    );
    let after = number(33_334);
    let below = tree.walk_down(Some(&after), &[], 9, &mut batch);
    assert_eq!(below, Err(absent.clone()));
    assert_eq!(tree.next_absent(wanted), Some(absent.clone()));
    assert_eq!(batch.len(), 0);
    load(&tree, &store, &absent.low);
    assert_eq!(rids(&tree, &key), [33_333]);
    assert_eq!(tree.walk_up(&key, false, None, 9, &mut batch), Ok(true));
    assert_eq!(tree.check().expect("in order").leaves, 1);
    // A walk gives what it has met before it names the next one.
    batch.clear();
    assert_eq!(tree.walk_up(&key, false, None, 5_000, &mut batch), Ok(true));
    assert!(batch.len() < 1_000 && batch.get(0) == wanted.as_slice());
    let last = batch.get(batch.len() - 1).to_vec();
    batch.clear();
    let next = tree.walk_up(&last, true, None, 5_000, &mut batch);
    assert_ne!(next, Err(absent), "the next leaf");
    assert!(next.is_err() && batch.len() == 0);

    // Leaves split until the page above is split, with absent ones on both sides.
    let inner_pages = tree.check().expect("in order").inner_pages;
    let between: Vec<_> = (0..100_000)
        .map(|rid| entry(&number(33_333), 1_000_000 + rid))
        .collect();
    for entry in &between {
        with(&tree, &store, || tree.insert(entry));
    }
    let report = tree.check().expect("in order");
    assert!(report.inner_pages > inner_pages && report.absent_leaves > 100);
    let mut expected: Vec<_> = entries.iter().chain(&between).cloned().collect();
    expected.sort_unstable();
    checkpoint(&tree, &mut store);
    assert_eq!(store.entries(), expected);
    // And go again, until pages above absent leaves are merged.
    for entry in &between {
        with(&tree, &store, || tree.remove_if(entry, || true));
    }
    let after = tree.check().expect("in order");
    assert!(after.inner_pages < report.inner_pages, "{after:?}");
    assert_eq!(after.absent_leaves, report.absent_leaves);
    checkpoint(&tree, &mut store);
    assert_eq!(all_in(&tree, &store), entries);
    assert_holds(&tree, &entries);
}

/// T11: a key's entries span leaves of which some are absent. Who checks the key meets them all or is told what is
/// absent, and has judged nobody, inserted nothing, and waits for nothing under the key's lock.
#[test]
fn t11_a_key_with_entries_in_absent_leaves_is_not_judged() {
    let tree = tree();
    let contended = number(50);
    for n in 0..100 {
        tree.insert(&entry(&number(n), 7)).there();
    }
    for rid in 0..900 {
        tree.insert(&entry(&contended, 1_000 + rid)).there();
    }
    let mut store = Store::default();
    checkpoint(&tree, &mut store);
    let before = store.entries();
    // One entry below all of the others, and one above: at home, and in the last leaf that has entries of the key.
    for own in [1, 5_000] {
        let judge = |judged: &mut Vec<u64>| {
            tree.insert_and_check(&entry(&contended, own), |other| {
                judged.push(other);
                // Whoever has the last rid has the key.
                if other == 1_899 { Err(other) } else { Ok(()) }
            })
        };
        // Everything but the key's home; then the home alone.
        evict_all_but(&tree, &contended);
        let mut judged = Vec::new();
        let mut told = Vec::new();
        while let Err(absent) = judge(&mut judged) {
            assert!(judged.is_empty(), "nobody is judged before all are there");
            assert!(absent.low.starts_with(&contended), "a leaf of the key");
            load(&tree, &store, &absent.low);
            told.push(absent.low);
        }
        assert!(told.len() >= 3, "{}", told.len());
        assert_eq!(judged, (7..8).chain(1_000..1_900).collect::<Vec<_>>());
        judged.clear();
        assert_eq!(judge(&mut judged), Ok(Err(1_899)));
        // Nothing has come in, and nothing is locked.
        let mut copy = Store::default();
        all_in(&tree, &store);
        for low in store.0.keys() {
            assert!(tree.mark_changed(low));
        }
        checkpoint(&tree, &mut copy);
        assert_eq!(copy.entries(), before);
        store = copy;
    }
    // With its home absent nobody looks any further.
    tree.evict_all();
    let told = tree.insert_and_check(&entry(&contended, 1), |_| Err(()));
    let home = told.expect_err("its home is absent");
    assert!(home.low.as_ref() < contended.as_slice());
}

/// A leaf that is loaded slowly while it lives and goes once more elsewhere would be put in as it was before.
#[test]
fn a_slow_load_puts_nothing_old_in() {
    let (tree, mut store, entries) = filled(2_000);
    tree.evict_all();
    let low = tree.next_absent(&[]).expect("all are absent").low;
    let new = entry(&number(5), 99);
    tree.load_or_divide(&low, undivided, || {
        let read = store.read(&low);
        // Now others have their turn: to load it, to change it, to write it and to let it go.
        tree.load_or_divide(&low, undivided, || -> Result<StoredLeaf, String> {
            panic!("of one leaf there is one load at a time")
        })
        .expect("nothing is wrong");
        if tree.insert(&new).is_ok() {
            checkpoint(&tree, &mut store);
            tree.evict_all();
        }
        read
    })
    .expect("stored");
    with(&tree, &store, || tree.insert(&new));
    checkpoint(&tree, &mut store);
    let mut expected = entries;
    expected.insert(6, new);
    assert_eq!(all_in(&tree, &store), expected);
}

/// What is stored must be the leaf: else it stays absent.
#[test]
fn what_is_not_the_leaf_is_refused() {
    let (tree, store, entries) = filled(2_000);
    tree.evict_all();
    let report = tree.check().expect("in order");
    let low = store.0.keys().nth(1).expect("there are several").clone();
    let good = || store.read(&low).expect("stored");
    let with_entries = |entries: &[&[u8]]| {
        let mut stored = StoredLeaf {
            high: good().high,
            ..StoredLeaf::default()
        };
        entries.iter().for_each(|entry| stored.entries.push(entry));
        stored
    };
    let first = good().entries.get(0).to_vec();
    let second = good().entries.get(1).to_vec();
    let high = good().high.expect("not the last");
    let cases = [
        (
            LeafMismatch::End,
            StoredLeaf {
                high: None,
                ..good()
            },
        ),
        (
            LeafMismatch::End,
            StoredLeaf {
                high: Some(second.clone()),
                ..with_entries(&[&first])
            },
        ),
        (LeafMismatch::Order, with_entries(&[&second, &first])),
        (LeafMismatch::Order, with_entries(&[&first, &first])),
        (LeafMismatch::Outside, with_entries(&[&entries[0], &first])),
        (LeafMismatch::Outside, with_entries(&[&first, &high])),
    ];
    for (why, stored) in cases {
        let refused = tree.load_or_divide(&low, undivided, || Ok::<_, ()>(stored));
        assert_eq!(refused, Err(LoadError::Unfit(why)));
    }
    assert_eq!(
        tree.load_or_divide(&low, undivided, || Err("gone")),
        Err(LoadError::Read("gone"))
    );
    assert_eq!(tree.check(), Ok(report));
    // Nobody reads for what is there, or does not begin there.
    let unread = || -> Result<StoredLeaf, ()> { panic!("it is not to be read") };
    load(&tree, &store, &low);
    tree.load_or_divide(&low, undivided, unread)
        .expect("it is there");
    tree.load_or_divide(&first, undivided, unread)
        .expect("no leaf begins there");
    assert_eq!(tree.check().expect("in order").leaves, 1);
}

/// Leaves that were stored when pages were larger become several, which are changed ones; also where the page above
/// them has to be split for that.
#[test]
fn a_leaf_larger_than_a_page_becomes_several() {
    for others in [0u64, 1, 220, 251, 900] {
        let mut store = Store::default();
        // Leaves of three entries each before and after one of 2,000 long ones.
        let text = |n: u64, m: u64| {
            let mut text = format!("{n:05}/{m:05}").into_bytes();
            text.resize(if m == 0 { 30 } else { 300 }, b'x');
            entry(&key(&text), m)
        };
        let sizes: Vec<(u64, u64)> = (0..=2 * others)
            .map(|n| (n, if n == others { 40 } else { 3 }))
            .collect();
        let begin = |n: u64| format!("{n:05}").into_bytes();
        let mut expected = Vec::new();
        for (n, size) in sizes {
            let low = if n == 0 { Vec::new() } else { begin(n) };
            let high = (n < 2 * others).then(|| begin(n + 1));
            let entries: Vec<_> = (0..size).map(|m| text(n, m)).collect();
            expected.extend(entries.clone());
            store.0.insert(low, (high, entries));
        }
        let tree = Tree::restore(&UNLIMITED, false);
        let large = text(others, 20);
        assert!(!with(&tree, &store, || tree.remove_if(&large, || false)));
        let report = tree.check().expect("in order");
        assert!(report.leaves > 2, "{report:?}");
        assert_eq!(report.entries, 40);
        assert_eq!(tree.changed_leaves(), report.leaves);
        assert_eq!(tree.evict_all().leaves, 0);
        assert_eq!(checkpoint(&tree, &mut store), report.leaves);
        assert_eq!(store.entries(), expected);
        assert_eq!(tree.evict_all().leaves, report.leaves);
        assert_eq!(all_in(&tree, &store), expected);
        assert_holds(&tree, &expected);
    }
}

/// Where leaves begin is found out for what is needed, and for all in the end.
#[test]
fn a_restored_tree_divides_what_is_needed_of_it() {
    for n in [1, 50, 3_000, 150_000] {
        let (tree, store, entries) = filled(n);
        let restored = Tree::restore(&UNLIMITED, false);
        let report = restored.check().expect("in order");
        assert_eq!((report.absent_leaves, report.inner_pages), (1, 1));
        let mut first = with(&restored, &store, || {
            let mut batch = Entries::default();
            restored.walk_up(&[], false, None, 1, &mut batch)?;
            Ok(batch)
        });
        assert_eq!(first.get(0), entries[0]);
        first.clear();
        let report = restored.check().expect("in order");
        assert_eq!(report.leaves, 1);
        assert!(report.absent_leaves <= 60, "{report:?}");
        assert!(n < 3_000 || restored.range_count() > 0);
        let before = tree.check().expect("in order");
        assert_eq!(all_in(&restored, &store), entries);
        let report = restored.check().expect("in order");
        assert!(report.levels <= before.levels + 1, "{report:?}");
        assert!(
            report.inner_pages <= before.inner_pages.max(2) * 4,
            "{report:?}"
        );
        assert_eq!((report.absent_leaves, restored.range_count()), (0, 0));
        assert_holds(&restored, &entries);
        assert_eq!(restored.changed_leaves(), 0);
        assert!(!restored.begin_walk().is_through());
    }
}

/// What a range is said to be divided by must lie within it, in order.
#[test]
fn places_that_do_not_divide_a_range_are_refused() {
    let divide = |lows: &[&[u8]], exact: bool| {
        let tree = Tree::restore(&UNLIMITED, false);
        let lows = lows.iter().map(|low| low.to_vec()).collect();
        let refused = tree.load_or_divide(
            &[],
            |_| Ok::<_, ()>(TileBoundaries { lows, exact }),
            || Err(()),
        );
        tree.check().expect("in order");
        refused
    };
    assert_eq!(
        divide(&[b""], true),
        Err(LoadError::Unfit(LeafMismatch::Order))
    );
    assert_eq!(
        divide(&[b"b", b"a"], true),
        Err(LoadError::Unfit(LeafMismatch::Order))
    );
    assert_eq!(
        divide(&[b"b", b"b"], true),
        Err(LoadError::Unfit(LeafMismatch::Order))
    );
    assert_eq!(
        divide(&[], false),
        Err(LoadError::Unfit(LeafMismatch::Size))
    );
    assert_eq!(divide(&[], true), Err(LoadError::Read(())));
    assert_eq!(divide(&[b"a", b"b"], true), Ok(()));
    assert_eq!(divide(&[b"a", b"b"], false), Ok(()));
}

/// Entries that wait for their leaves are met by whoever comes there, are in the next checkpoint, and do not count as
/// stored before.
#[test]
fn late_entries_come_in_with_their_leaves() {
    let account = Account::open(u64::MAX);
    {
        let (_, mut store, mut entries) = filled(3_000);
        let late: Vec<_> = (0..3_000)
            .step_by(10)
            .map(|i| entry(&number(i), i + 7))
            .collect();
        let tree = Tree::restore(account.memory(), false);
        for entry in &late {
            assert!(tree.insert(entry).is_err());
            tree.add_late(entry);
            tree.add_late(entry);
        }
        // One that is stored as well.
        tree.add_late(&entries[1_500]);
        assert_eq!(tree.late_count(), late.len() + 1);
        let mut found = Vec::new();
        with(&tree, &store, || {
            found.clear();
            tree.lookup(&number(1_500), |rid| {
                found.push(rid);
                true
            })
        });
        assert_eq!(found, [1_500, 1_507]);
        assert!(tree.late_count() < late.len());
        assert!(tree.changed_leaves() >= 1);
        assert_eq!(tree.evict_all().leaves, 0, "it is not stored as it is");
        entries.extend(late);
        entries.sort();
        assert!(checkpoint(&tree, &mut store) > 1);
        assert_eq!(tree.late_count(), 0);
        assert_eq!(store.entries(), entries);
        tree.evict_all();
        assert_eq!(all_in(&tree, &store), entries);
        // And some that nobody comes for.
        let other = Tree::restore(account.memory(), false);
        other.add_late(&entries[7]);
    }
    while account.memory().used_bytes() > 0 {
        crossbeam_epoch::pin().flush();
    }
}

/// The evictor passes over what was used since it last came by, and goes on where it ended.
#[test]
fn what_is_used_gets_a_second_chance() {
    let (tree, store, _) = filled(20_000);
    let leaves = tree.check().expect("in order").leaves;
    // New ones count as used.
    assert_eq!(tree.evict(usize::MAX).leaves, 0);
    let page = Page::memory_bytes(0);
    let some = tree.evict(10 * page);
    let expected = LeafEviction {
        leaves: 10,
        bytes: 10 * page,
        ended: false,
    };
    assert_eq!(some, expected);
    let first_left = tree.walk_up(&[], false, None, 1, &mut Entries::default());
    assert_eq!(first_left.expect_err("absent").low.len(), 0);
    assert_eq!(rids(&tree, &number(10_000)), [10_000]);
    let rest = tree.evict(usize::MAX);
    assert_eq!((rest.leaves, rest.ended), (leaves - 11, true));
    assert_eq!(rids(&tree, &number(10_000)), [10_000]);
    // What was brought in counts as used: whoever waited for it finds it.
    load(&tree, &store, &[]);
    assert_eq!(tree.evict(usize::MAX).leaves, 0);
    assert_eq!(tree.evict(usize::MAX).leaves, 2);
    assert_eq!(tree.absent_leaves(), leaves);
}

/// Only what a published checkpoint has as it is leaves memory.
#[test]
fn what_has_changed_since_it_was_written_stays() {
    let tree = tree();
    let entries: Vec<_> = (0..5_000).map(|i| entry(&number(i), i)).collect();
    for entry in &entries {
        tree.insert(entry).there();
    }
    let leaves = tree.check().expect("in order").leaves;
    assert_eq!(tree.evict_all().leaves, 0, "nothing is stored yet");
    // A checkpoint that comes to nothing.
    let mut walk = tree.begin_walk();
    let mut tiles = 0;
    while tree.next_changed(&mut walk).is_some() {
        tiles += 1;
    }
    assert_eq!((tiles, tree.changed_leaves()), (leaves, leaves));
    assert_eq!(tree.evict_all().leaves, 0, "written is not published");
    // Half of one that comes to nothing, and one that is published, with a change in between.
    let mut walk = tree.begin_walk();
    tree.next_changed(&mut walk).expect("all have changed");
    drop(walk);
    let mut store = Store::default();
    let mut walk = tree.begin_walk();
    while let Some(tile) = tree.next_changed(&mut walk) {
        store.put(tile);
    }
    assert_eq!(
        store.0.len(),
        leaves,
        "those of failed ones are given again"
    );
    let late = entry(&number(2_000), 99_999);
    tree.insert(&late).there();
    tree.remove_if(&late, || true).there();
    tree.published(&walk);
    assert_eq!(tree.changed_leaves(), 1);
    assert_eq!(tree.evict_all().leaves, leaves - 1);
    assert_eq!(rids(&tree, &number(2_000)), [2_000]);
    assert_eq!(checkpoint(&tree, &mut store), 1);
    assert_eq!(tree.evict_all().leaves, 1);
    // Reading changes nothing, nor does what was not done.
    assert_eq!(all_in(&tree, &store), entries);
    tree.insert(&entries[77]).there();
    tree.remove_if(&entries[77], || false).there();
    let refused = tree.insert_and_check(&entry(&number(77), 8), Err).there();
    assert_eq!(refused, Err(77));
    assert_eq!(tree.changed_leaves(), 0);
}

#[test]
#[should_panic(expected = "a checkpoint is of all leaves")]
fn half_a_walk_is_not_published() {
    let (tree, ..) = filled(2_000);
    tree.mark_changed(&[]);
    let walk = tree.begin_walk();
    tree.published(&walk);
}

/// A leaf that is merged with one to the left of the walk is given from the walk's place on, and again next time.
#[test]
fn a_merge_across_the_walk_is_given_from_there_on() {
    let wide = |n: u64| {
        let mut text = vec![b'a' + n as u8];
        text.resize(460, b'x');
        entry(&key(&text), n)
    };
    let tree = tree();
    (0..16).for_each(|n| tree.insert(&wide(n)).there());
    let mut store = Store::default();
    let mut walk = tree.begin_walk();
    let first = tree.next_changed(&mut walk).expect("all have changed");
    let place = first.high.expect("there are several").to_vec();
    let given = first.entries.len() as u64;
    store.put(first);
    // What is left of the first two is little enough for one.
    for n in (1..given + 5).filter(|n| *n != given + 1) {
        assert!(tree.remove_if(&wide(n), || true).there());
    }
    let pin = EpochGuard::new();
    let found = tree.find(Goal::At(&place, Side::From), 0, &pin);
    let merged = found.unwrap_or_else(|_| panic!("nobody else is here")).page;
    let mut low = Vec::new();
    merged.copy_fence(&merged.low, &pin, &mut low);
    assert!(low < place, "they were merged");
    let second = tree.next_changed(&mut walk).expect("it has changed");
    assert_eq!(second.low, place);
    let entries: Vec<_> = (0..second.entries.len())
        .map(|at| second.entries.get(at).to_vec())
        .collect();
    assert_eq!(entries[0], wide(given + 1), "what is above the place");
    store.put(second);
    while let Some(tile) = tree.next_changed(&mut walk) {
        store.put(tile);
    }
    tree.published(&walk);
    let held: BTreeSet<_> = store.entries().into_iter().collect();
    assert!(up(&tree).iter().all(|entry| held.contains(entry)));
    assert_eq!(tree.changed_leaves(), 1, "it is not what is stored");
    tree.evict_all();
    assert_eq!(rids(&tree, &wide(0)[..wide(0).len() - 8]), [0]);
    checkpoint(&tree, &mut store);
    let expected: Vec<_> = store.entries();
    assert_eq!(all_in(&tree, &store), expected);
}

/// Who has found a leaf before it was evicted does not believe it and does not lock it after; and a walk does not note
/// that it has written what was changed after it was found.
#[test]
fn a_leaf_found_before_it_went_or_changed_is_left_alone() {
    let (tree, ..) = filled(2_000);
    let pin = EpochGuard::new();
    let sought = number(1_000);
    let find = || {
        let found = tree.find(Goal::At(&sought, Side::From), 0, &pin);
        found.unwrap_or_else(|_| panic!("nobody else is here"))
    };
    let mut walk = tree.begin_walk();
    let before = find();
    tree.insert(&entry(&sought, 77)).there();
    let written = walk.write(before.page, before.version, &[], &pin);
    assert!(written.is_err(), "it has changed");
    assert_eq!(tree.changed_leaves(), 1);
    let found = find();
    assert!(
        walk.write(found.page, found.version, &[], &pin).is_ok(),
        "as it is"
    );

    let (tree, ..) = filled(2_000);
    let found = tree.find(Goal::At(&sought, Side::From), 0, &pin);
    let found = found.unwrap_or_else(|_| panic!("nobody else is here"));
    tree.evict_all();
    assert!(found.page.latch.check(found.version).is_err());
    assert!(found.page.lock(found.version).is_err());
    assert!(found.page.latch.read().is_err());
    assert!(found.page.lock_now().is_err());
}

/// What a tree's pages take, counted page by page.
fn bytes_in_pages(tree: &Tree) -> usize {
    let pin = EpochGuard::new();
    let (mut pages, mut blobs) = (0, BTreeMap::new());
    let mut to_count: Vec<&Page> = tree.root.load(&pin).into_iter().collect();
    while let Some(page) = to_count.pop() {
        pages += Page::memory_bytes(page.level);
        blobs.extend(page.blobs.load(&pin).into_iter().flat_map(Blobs::each));
        to_count.extend(page.links().iter().filter_map(|link| link.load(&pin)));
    }
    size_of::<Tree>() + pages + blobs.values().sum::<usize>()
}

/// The account knows what has left memory.
#[test]
fn memory_of_evicted_leaves_is_given_back() {
    let account = Account::open(u64::MAX);
    let memory = account.memory();
    let tree = Tree::new(memory, false);
    for i in 0..2_000 {
        tree.insert(&entry(&number(i), i)).there();
        let long = key(&vec![(i % 250) as u8; 700 + i as usize % 50]);
        tree.insert(&entry(&long, i)).there();
    }
    let mut store = Store::default();
    checkpoint(&tree, &mut store);
    let wait = |is_there: &dyn Fn() -> bool| {
        while !is_there() {
            crossbeam_epoch::pin().flush();
            std::thread::yield_now();
        }
    };
    // What pages and blobs take counts until nobody can look at them any more, and whoever has a guard, for whatever
    // else, may: until then the tree and the account have more than there is.
    let settled = || {
        let in_pages = bytes_in_pages(&tree);
        wait(&|| tree.memory_bytes() == in_pages);
        let accounted = in_pages - size_of::<Tree>();
        wait(&|| memory.used_bytes() == accounted as u64);
        in_pages
    };
    let full = settled();
    assert!(full > 2_000 * 700);
    let evicted = tree.evict_all();
    let rest = settled();
    // What is left is what is above the leaves.
    assert!(rest < full / 10, "{rest} of {full}");
    assert!(evicted.bytes >= full - rest, "{evicted:?}, {full}, {rest}");
    all_in(&tree, &store);
    tree.check().expect("in order");
    let again = settled();
    assert!((full * 9 / 10..full * 11 / 10).contains(&again), "{again}");
    drop(tree);
    wait(&|| memory.used_bytes() == 0);
}
