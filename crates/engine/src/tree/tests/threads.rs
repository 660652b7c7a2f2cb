//! Many threads at once. The longer they run the more they see: LOGSTEAD_STRESS_ROUNDS.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::stored::Shared;
use super::*;

fn rounds(default: u64) -> u64 {
    std::env::var("LOGSTEAD_STRESS_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

/// Keys of mixed kinds, `n` below 4096: some of them share leaves with those of other threads.
fn mixed(n: u64) -> Vec<u8> {
    match n % 16 {
        0 => key(&[(n >> 4) as u8 | 1; 600]),
        1..=3 => key(&[vec![9 - (n >> 4) as u8 % 3; 300], n.to_be_bytes().to_vec()].concat()),
        _ => number(n * 0x9e37_79b9 % 10_007),
    }
}

/// Each thread has rids of its own, so it knows which of its entries must be there; everybody reads everything.
#[test]
fn threads_find_what_they_have_put_in() {
    for divided in [false, true] {
        find_what_was_put_in(divided);
    }
}

fn find_what_was_put_in(divided: bool) {
    let tree = tree_of(divided);
    let count = rounds(6_000);
    let stop = AtomicBool::new(false);
    let kept: Vec<Vec<Vec<u8>>> = std::thread::scope(|scope| {
        let tree = &tree;
        let stop = &stop;
        let readers: Vec<_> = (0..2)
            .map(|n| {
                scope.spawn(move || {
                    let mut walks = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let seen = if n == 0 { up(tree) } else { down(tree) };
                        let ordered = seen
                            .windows(2)
                            .all(|w| if n == 0 { w[0] < w[1] } else { w[0] > w[1] });
                        assert!(ordered, "a walk meets entries in order and once");
                        walks += 1;
                    }
                    walks
                })
            })
            .collect();
        let writers: Vec<_> = (0..3u64)
            .map(|me| {
                scope.spawn(move || {
                    let mut dice = Dice(0x1234_5678_9abc_def1 + me);
                    let mut mine = std::collections::BTreeSet::new();
                    for _ in 0..count {
                        let key = mixed(dice.roll(4096));
                        let entry = entry(&key, me);
                        assert_eq!(
                            rids(tree, &key).contains(&me),
                            mine.contains(&entry),
                            "own entries are found"
                        );
                        match dice.roll(5) {
                            0 | 1 if mine.remove(&entry) => {
                                assert!(tree.remove_if(&entry, || true).there());
                            }
                            2 => {
                                let _: Result<(), ()> =
                                    tree.insert_and_check(&entry, |_| Ok(())).there();
                                mine.insert(entry);
                            }
                            _ => {
                                tree.insert(&entry).there();
                                mine.insert(entry);
                            }
                        }
                    }
                    mine.into_iter().collect::<Vec<_>>()
                })
            })
            .collect();
        let kept = writers
            .into_iter()
            .map(|w| w.join().expect("no writer fails"))
            .collect();
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("no reader fails");
        }
        kept
    });
    let mut expected: Vec<_> = kept.into_iter().flatten().collect();
    expected.sort_unstable();
    assert_holds(&tree, &expected);
}

/// The same while leaves come and go: an evictor, and checkpoints of which some come to nothing. In the end everything
/// is where it was put, in memory and in the tiles.
#[test]
fn threads_find_what_they_have_put_in_while_leaves_come_and_go() {
    for divided in [false, true] {
        find_what_was_put_in_while_leaves_come_and_go(divided);
    }
}

fn find_what_was_put_in_while_leaves_come_and_go(divided: bool) {
    let shared = Shared::new(tree_of(divided));
    let count = rounds(2_000);
    let stop = AtomicBool::new(false);
    let evicted = AtomicU64::new(0);
    let kept: Vec<Vec<Vec<u8>>> = std::thread::scope(|scope| {
        let (shared, stop, evicted) = (&shared, &stop, &evicted);
        let others = [
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let seen = shared.walk(evicted.load(Ordering::Relaxed) % 2 == 0);
                    let up = seen.windows(2).all(|w| w[0] < w[1]);
                    let down = seen.windows(2).all(|w| w[0] > w[1]);
                    assert!(up || down, "a walk meets entries in order and once");
                }
            }),
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let leaves = shared.tree.evict(64 << 10).leaves;
                    evicted.fetch_add(leaves as u64, Ordering::Relaxed);
                    std::thread::yield_now();
                }
            }),
            scope.spawn(move || {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    shared.checkpoint(n % 3 == 0);
                    // Tiles cover everything, once.
                    shared.store.lock().entries();
                }
            }),
        ];
        let writers: Vec<_> = (0..3u64)
            .map(|me| {
                scope.spawn(move || {
                    let mut dice = Dice(0x0dd0_5678_9abc_def1 + me);
                    let mut mine = std::collections::BTreeSet::new();
                    for n in 0.. {
                        if n >= count && evicted.load(Ordering::Relaxed) > 300 {
                            break;
                        }
                        let key = mixed(dice.roll(4096));
                        let entry = entry(&key, me);
                        assert_eq!(
                            shared.rids(&key).contains(&me),
                            mine.contains(&entry),
                            "own entries are found"
                        );
                        match dice.roll(5) {
                            0 | 1 if mine.remove(&entry) => {
                                assert!(shared.with(|tree| tree.remove_if(&entry, || true)));
                            }
                            2 => {
                                let judged = shared.with(|tree| {
                                    tree.insert_and_check(&entry, |_| Ok::<_, ()>(()))
                                });
                                assert_eq!(judged, Ok(()));
                                mine.insert(entry);
                            }
                            _ => {
                                shared.with(|tree| tree.insert(&entry));
                                mine.insert(entry);
                            }
                        }
                    }
                    mine.into_iter().collect::<Vec<_>>()
                })
            })
            .collect();
        let kept = writers
            .into_iter()
            .map(|w| w.join().expect("no writer fails"))
            .collect();
        stop.store(true, Ordering::Relaxed);
        for other in others {
            other.join().expect("nobody fails");
        }
        kept
    });
    let mut expected: Vec<_> = kept.into_iter().flatten().collect();
    expected.sort_unstable();
    shared.checkpoint(false);
    assert_eq!(shared.store.lock().entries(), expected);
    shared.tree.evict_all();
    assert_eq!(shared.all_in(), expected);
    assert_holds(&shared.tree, &expected);
}

/// T11: of all who want a key at once exactly one gets it, also when the key's entries span leaves. "Having the key" is
/// a flag per rid, set before the entry goes in, as a version is installed before its entry.
#[test]
fn t11_of_all_who_check_a_key_one_gets_it() {
    for spread in [0u64, 700] {
        let tree = tree();
        // Stale entries of the key, as many as more than a leaf holds: nobody has it.
        let contended = number(50);
        for n in 0..100 {
            tree.insert(&entry(&number(n), 1_000_000)).there();
        }
        for rid in 0..spread {
            tree.insert(&entry(&contended, 10_000 + rid)).there();
        }
        let has_key: Vec<AtomicBool> = (0..8).map(|_| AtomicBool::new(false)).collect();
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for me in 0..4u64 {
                let (tree, has_key, taken, contended) = (&tree, &has_key, &taken, &contended);
                scope.spawn(move || {
                    let mut dice = Dice(77 + me);
                    for _ in 0..rounds(2_000) {
                        // On either side of the stale ones, so in different leaves.
                        let rid = if dice.roll(2) == 0 { me } else { 20_000 + me };
                        let mine =
                            &has_key[(rid % 10_000) as usize + if rid >= 20_000 { 4 } else { 0 }];
                        mine.store(true, Ordering::SeqCst);
                        let entry = entry(contended, rid);
                        let judged = tree
                            .insert_and_check(&entry, |other| {
                                let at = match other {
                                    0..4 => other as usize,
                                    20_000..20_004 => (other - 20_000) as usize + 4,
                                    _ => return Ok(()),
                                };
                                if has_key[at].load(Ordering::SeqCst) {
                                    Err(())
                                } else {
                                    Ok(())
                                }
                            })
                            .there();
                        if judged.is_ok() {
                            assert_eq!(taken.fetch_add(1, Ordering::SeqCst), 0, "it is taken");
                            std::thread::yield_now();
                            taken.fetch_sub(1, Ordering::SeqCst);
                        }
                        mine.store(false, Ordering::SeqCst);
                        // Its version is gone, so is its entry; sometimes the collector is late.
                        if dice.roll(3) > 0 {
                            tree.remove_if(&entry, || !mine.load(Ordering::SeqCst))
                                .there();
                        }
                        if dice.roll(8) == 0 {
                            let n = dice.roll(100);
                            tree.insert(&self::entry(&number(n), 2_000_000 + dice.roll(500)))
                                .there();
                        }
                    }
                });
            }
        });
        tree.check().expect("in order");
    }
}

/// T11: a row's key changes back while the collector removes the entry: it is there in the end.
#[test]
fn t11_an_entry_that_is_needed_again_stays() {
    let tree = tree();
    let needed = AtomicBool::new(false);
    let contended = entry(&number(5), 5);
    for _ in 0..rounds(3_000) {
        needed.store(false, Ordering::SeqCst);
        tree.insert(&contended).there();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tree.remove_if(&contended, || !needed.load(Ordering::SeqCst))
                    .there()
            });
            // The version first, then its entry.
            needed.store(true, Ordering::SeqCst);
            tree.insert(&contended).there();
        });
        assert_eq!(rids(&tree, &number(5)), [5]);
    }
}
