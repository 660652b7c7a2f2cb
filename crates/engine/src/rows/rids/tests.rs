//! Tests of row numbers in partitions.

use std::collections::BTreeSet;

use logstead_types::TableId;

use super::*;
use crate::memory::UNLIMITED;
use crate::rows::TableRows;

/// The first byte of a row says its partition.
struct ByFirstByte;

impl DistributionKey for ByFirstByte {
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        match row.column(0) {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}

fn table() -> TableRows {
    TableRows::new(TableId(20_000), &UNLIMITED)
}

fn divided() -> TableRows {
    let rows = table();
    rows.divide(Arc::new(ByFirstByte));
    rows
}

/// Uses a number as an insert does, so that its chunk is there.
fn insert(rows: &TableRows, partition: u16) -> Rid {
    let rid = rows.allocate_rid(PartitionId(partition));
    rows.slot_or_new(rid);
    rid
}

#[test]
fn a_partition_counts_its_own_numbers_without_gaps() {
    let allocator = RidAllocator::new(&UNLIMITED);
    for partition in [0, 1, 17, 63] {
        let space = part(&allocator, partition);
        for place in (0..300).chain([1 << 30]) {
            let rid = space.rid(place);
            assert_eq!(space.place(rid), place);
            assert_eq!(rid.0 / SLOTS % PARTITIONS, partition);
        }
    }
    for end in [0, 1, 63, 64, 65, 64 * 64, 64 * 64 + 5, 64 * 130 + 63] {
        for partition in 0..PARTITIONS {
            let counted = (0..end).filter(|rid| rid / SLOTS % PARTITIONS == partition);
            let space = part(&allocator, partition);
            assert_eq!(space.places_below(end), counted.count() as u64, "{end}");
        }
    }
}

#[test]
fn inserts_get_numbers_of_their_partitions_and_no_others() {
    let rows = divided();
    let mut given = BTreeSet::new();
    for round in 0..1_000 {
        let partition = [0, 5, 63, 5][round % 4];
        let rid = insert(&rows, partition);
        assert_eq!(rows.partition_of(rid), PartitionId(partition));
        assert!(given.insert(rid), "{rid} twice");
    }
    assert_eq!(rows.used(), 1_000);
    let last = given.last().map_or(0, |rid| rid.0 + 1);
    assert_eq!(rows.rid_end(), last);
    // A number that is given back goes to its own partition again.
    let back = Rid(5 * SLOTS + 3);
    rows.free_rid(back);
    assert_eq!(rows.used(), 999);
    assert_ne!(insert(&rows, 0), back);
    assert_eq!(insert(&rows, 5), back);
}

#[test]
fn gaps_cost_no_chunks_and_walks_pass_over_them() {
    let rows = divided();
    for _ in 0..200 {
        insert(&rows, 7);
    }
    let (chunks, _) = rows.chunk_counts();
    assert_eq!(chunks, 4);
    // Who samples a table comes upon them alone.
    let own: Vec<u64> = (0..rows.own_chunk_count())
        .filter_map(|n| rows.own_chunk(n))
        .collect();
    assert_eq!(own, [7, 71, 135, 199]);
    assert_eq!(rows.own_chunk(4), None);
    let end = rows.rid_end();
    let mut at = rows.next_in_use(0, end);
    let mut met = 0;
    while at < end {
        assert_eq!(rows.partition_of(Rid(at)), PartitionId(7));
        met += 1;
        at = rows.next_in_use(at + 1, end);
    }
    assert_eq!(met, 200);
    assert!(rows.next_in_use(end.next_multiple_of(SLOTS), end) >= end);
}

/// As a start does it: rows of a checkpoint, and of the log behind it.
#[test]
fn what_was_used_before_a_table_is_divided_is_used_after() {
    let rows = table();
    rows.expect(3 * SLOTS + 10);
    // The tail's: the same partition's next chunk, and one in the middle of nowhere.
    for rid in [Rid(67 * SLOTS + 2), Rid(200 * SLOTS)] {
        rows.slot_or_new(rid);
        rows.claim_rid(rid);
    }
    rows.collect_free_rids(&Guard::pin());
    let before = rows.rid_end();
    rows.divide(Arc::new(ByFirstByte));
    rows.divide(Arc::new(ByFirstByte));
    assert_eq!(rows.rid_end(), before);
    let mut given = BTreeSet::new();
    for round in 0..64 * 300 {
        let partition = (round % 64) as u16;
        let rid = rows.allocate_rid(PartitionId(partition));
        assert_eq!(rows.partition_of(rid), PartitionId(partition));
        assert!(given.insert(rid.0), "{rid} twice");
    }
    // Absent chunks give none until they have been read; present ones give their empty slots; gaps are new numbers.
    assert!(given.iter().all(|rid| *rid >= 4 * SLOTS));
    assert!(given.contains(&(67 * SLOTS)) && given.contains(&(4 * SLOTS)));
}

/// What a replica claims while its table is being divided counts in whatever order the two come.
#[test]
fn a_replica_claims_while_its_table_is_divided() {
    for round in 0..200_u64 {
        let rows = table();
        rows.follow();
        std::thread::scope(|scope| {
            let claims = scope.spawn(|| {
                for rid in 0..40 {
                    rows.claim_rid(Rid(rid * 97 + round));
                }
            });
            rows.divide(Arc::new(ByFirstByte));
            claims.join().expect("claims");
        });
        assert!(rows.rid_end() > 39 * 97 + round);
    }
}

/// The last chunk of a partition is aside with what of it nobody has had yet; other partitions go on.
#[test]
fn a_chunk_that_cannot_be_read_is_aside_in_its_partition_alone() {
    let rows = divided();
    for _ in 0..10 {
        insert(&rows, 3);
        insert(&rows, 4);
    }
    rows.free_rid(Rid(3 * SLOTS + 1));
    rows.quarantine(3);
    rows.free_rid(Rid(3 * SLOTS + 2));
    assert_eq!(insert(&rows, 3), Rid(67 * SLOTS));
    assert_eq!(insert(&rows, 4), Rid(4 * SLOTS + 10));
    rows.take_back(3);
    let given: BTreeSet<u64> = (0..56).map(|_| insert(&rows, 3).0).collect();
    let expected: BTreeSet<u64> = (1..3).chain(10..64).map(|slot| 3 * SLOTS + slot).collect();
    assert_eq!(given, expected);
    assert_eq!(insert(&rows, 3), Rid(67 * SLOTS + 1));
}

/// What a checkpoint says of a divided table is what a start begins with: the same numbers are handed out next, and
/// there are shells for what was handed out, and for nothing else.
#[test]
fn a_start_begins_where_each_partition_was() {
    let before = divided();
    for n in 0..500 {
        insert(&before, [2, 2, 2, 60][n % 4]);
    }
    let said = before.divided_as().expect("it is divided");
    let after = table();
    after.expect_divided(before.rid_end(), &said.partitions);
    after.collect_free_rids(&Guard::pin());
    let (chunks, present) = after.chunk_counts();
    assert_eq!((chunks, present), (6 + 2, 0));
    assert_eq!(after.rid_end(), before.rid_end());
    assert_eq!(after.divided_as(), Some(said));
    // The log behind the checkpoint has one more.
    let tail = before.allocate_rid(PartitionId(60));
    after.claim_rid(tail);
    after.divide(Arc::new(ByFirstByte));
    for partition in [2, 60, 5] {
        let next = before.allocate_rid(PartitionId(partition));
        assert_eq!(after.allocate_rid(PartitionId(partition)), next);
    }
    // Those of another number of partitions say nothing: there is a shell for whatever may be there.
    let other = table();
    other.expect_divided(130, &[130]);
    assert_eq!(other.chunk_counts(), (3, 0));
    assert!(table().divided_as().is_none());
}
