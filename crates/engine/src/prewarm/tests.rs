//! The list's bounds, and bytes that are no list.

use logstead_types::{DatabaseId, IndexId, TableId};
use proptest::prelude::*;

use super::list::{Kept, LeafRun, RowRun};
use super::{LEAF_RUNS_MAX, PrewarmList, ROW_RUNS_MAX};
use crate::tree::ResidentLeaves;
use crate::version::SlotSet;

fn run(first: u64, chunks: u64, bits: u64, is_hot: bool) -> RowRun {
    RowRun {
        table: TableId(20_000),
        first,
        chunks,
        slots: SlotSet::of_bits(bits),
        is_hot,
    }
}

fn listed(runs: impl Iterator<Item = RowRun>) -> PrewarmList {
    let mut rows = Kept::new(ROW_RUNS_MAX);
    runs.for_each(|run| rows.push(run));
    PrewarmList::new(DatabaseId(7), rows, Kept::new(LEAF_RUNS_MAX))
}

/// A million chunks with other rows each: the list is as long as it may be, has the hot ones and the largest, and of
/// those that are alike some from everywhere.
#[test]
fn a_list_of_a_million_chunks_is_bounded() {
    const CHUNKS: u64 = 1_000_000;
    let is_hot = |number: u64| number % 100 == 99;
    let bits = |number: u64| match number % 10 {
        0 => 0xff << (number % 7),
        _ => 1 << (number % 64),
    };
    let list = listed((0..CHUNKS).map(|number| run(number, 1, bits(number), is_hot(number))));
    assert_eq!(list.rows().len(), ROW_RUNS_MAX);
    let hot = list.rows().iter().filter(|run| run.is_hot).count();
    assert_eq!(hot as u64, CHUNKS / 100);
    let large = list.rows().iter().filter(|run| run.slots.len() == 8);
    assert_eq!(large.count() as u64, CHUNKS / 10);
    let small: Vec<u64> = list
        .rows()
        .iter()
        .filter(|run| run.slots.len() == 1 && !run.is_hot)
        .map(|run| run.first)
        .collect();
    assert_eq!(
        small.len() as u64,
        ROW_RUNS_MAX as u64 - CHUNKS / 100 - CHUNKS / 10
    );
    for quarter in 0..4 {
        let within = (quarter * CHUNKS / 4)..((quarter + 1) * CHUNKS / 4);
        let some = small.iter().filter(|first| within.contains(*first)).count();
        assert!(
            some > small.len() / 6,
            "{some} of {} in quarter {quarter}",
            small.len()
        );
    }
    assert!(list.rows().is_sorted_by_key(|run| (!run.is_hot, run.first)));
    let bytes = list.encode();
    assert!(bytes.len() < 16 * ROW_RUNS_MAX, "{}", bytes.len());
    assert_eq!(PrewarmList::decode(&bytes), Some(list));
}

/// More hot ones than there is room for: nothing else is kept.
#[test]
fn what_is_hot_comes_first() {
    let count = 3 * ROW_RUNS_MAX as u64;
    let list = listed((0..count).map(|number| run(2 * number, 1, 1, number % 2 == 0)));
    assert_eq!(list.rows().len(), ROW_RUNS_MAX);
    assert!(list.rows().iter().all(|run| run.is_hot));
}

#[test]
fn what_is_promised_and_not_there_takes_no_memory() {
    assert_eq!(PrewarmList::decode(&[]), None);
    for count in [ROW_RUNS_MAX as u64 + 1, u64::MAX, ROW_RUNS_MAX as u64] {
        let mut bytes = vec![1, 7];
        crate::delta::put_varint(count, &mut bytes);
        assert_eq!(PrewarmList::decode(&bytes), None, "{count}");
    }
    assert_eq!(PrewarmList::decode(&[2, 7, 0, 0]), None, "another form");
    assert_eq!(
        PrewarmList::decode(&[1, 7, 0, 0, 0]),
        None,
        "something behind it"
    );
}

fn some_list() -> impl Strategy<Value = PrewarmList> {
    let row = (
        any::<u32>(),
        0..u64::MAX / 2,
        0..u64::MAX / 4,
        any::<u64>(),
        any::<bool>(),
    );
    let key = || proptest::collection::vec(any::<u8>(), 0..200);
    let high = proptest::option::of(key());
    let leaf = (
        any::<u32>(),
        any::<u32>(),
        key(),
        high,
        any::<u64>(),
        any::<bool>(),
    );
    let rows = proptest::collection::vec(row, 0..20);
    let leaves = proptest::collection::vec(leaf, 0..20);
    (any::<u64>(), rows, leaves).prop_map(|(database, rows, leaves)| {
        let (mut kept, mut kept_leaves) = (Kept::new(ROW_RUNS_MAX), Kept::new(LEAF_RUNS_MAX));
        for (table, first, chunks, bits, is_hot) in rows {
            let table = TableId(table);
            kept.push(RowRun {
                table,
                ..run(first, chunks, bits, is_hot)
            });
        }
        for (table, index, low, high, count, is_hot) in leaves {
            let leaves = ResidentLeaves {
                low,
                high,
                count,
                is_hot,
            };
            kept_leaves.push(LeafRun::new(TableId(table), IndexId(index), leaves));
        }
        PrewarmList::new(DatabaseId(database), kept, kept_leaves)
    })
}

proptest! {
    #[test]
    fn a_list_comes_back_as_it_was(list in some_list()) {
        prop_assert_eq!(PrewarmList::decode(&list.encode()), Some(list));
    }

    #[test]
    fn bytes_that_are_no_list_do_no_harm(list in some_list(), at in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
        let mut bytes = list.encode();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        let _it_may_be_one = PrewarmList::decode(&bytes);
        bytes.truncate(end.index(bytes.len()));
        let _it_may_be_one = PrewarmList::decode(&bytes);
    }
}
