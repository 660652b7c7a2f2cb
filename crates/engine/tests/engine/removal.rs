//! What goes when a checkpoint is published: objects, by moving what is left in them, those of lives that ended in the
//! middle of one, and the log before it; and nothing else.

use logstead_engine::{ExpectPresent, Guard, Isolation, Rid, RowBuilder};
use logstead_home::ObjectId;

use crate::checkpoints::{Place, TABLES, row};
use crate::world::{commit, number};

/// Objects with few live bytes go by moving their pages as they are: chunks of which little has changed are not written
/// whole for that.
#[test]
fn compaction_moves_deltas_and_rewrites_no_chunks() {
    const CHUNKS: u64 = 12;
    // Each chunk gets four of them.
    const ROUNDS: u64 = 12;
    let place = Place::new();
    place.fill(TABLES[0], CHUNKS as i64 * 64);
    assert_eq!(place.checkpoint().pages, CHUNKS);
    let mut moved = 0;
    for round in 0..ROUNDS {
        for chunk in (round % 3..CHUNKS).step_by(3) {
            let rid = Rid(chunk * 64 + 5 * round);
            place.change(TABLES[0], rid, Some(&row(-(round as i64), 20)));
        }
        let report = place.checkpoint();
        assert_eq!(
            (report.pages, report.delta_pages, report.rows),
            (0, CHUNKS / 3, CHUNKS / 3),
            "{round}: {report:?}"
        );
        assert!(report.objects_in_use < 12, "{report:?}");
        moved += report.bytes_moved;
    }
    assert!(moved > 0, "objects with few live bytes were emptied");
    place.flush();
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 0, "all of it is in the checkpoint");
    assert!(before == place.rows());
}

/// A life that ends in the middle of a checkpoint leaves objects behind: the next one's first checkpoint removes them
/// before it needs room.
#[test]
fn orphans_are_removed_before_the_first_checkpoint_needs_room() {
    let place = Place::new();
    place.fill(TABLES[0], 2_048);
    place.checkpoint();
    let named = place.objects();
    let orphan = ObjectId(1 << 32 | 0xffff);
    place
        .home
        .objects
        .put_object(orphan, b"half a checkpoint")
        .expect("put");
    let (place, _) = place.restarted();
    place.change(TABLES[0], Rid(1), Some(&row(5, 20)));
    let mut next = place.engine.begin_checkpoint().expect("begun");
    place.flush();
    assert!(!next.walk(1_000).expect("walks"));
    assert_eq!(place.objects(), named, "before anything of it was stored");
    next.publish().expect("published");
}

/// Objects that only a replaced record names go; of what the present one needs nothing does, however often (T8). A
/// record that was given up before it was published leaves nothing either, in the end.
#[test]
fn objects_of_replaced_checkpoints_go_and_no_others() {
    let place = Place::new();
    place.fill(TABLES[0], 4_000);
    place.checkpoint();
    let mut most = 0;
    for round in 0..40 {
        let mut txn = place.worker.begin(Isolation::ReadCommitted);
        let (table, guard) = (place.table(TABLES[0]), Guard::pin());
        for rid in (round..4_000).step_by(3) {
            let version = txn
                .read(&table, Rid(rid), &guard)
                .expect_present()
                .expect("a row")
                .version;
            let new = row((rid * round) as i64, 20);
            txn.update(&table, Rid(rid), version, &new).expect("update");
        }
        drop(guard);
        commit(txn);
        if round % 5 == 4 {
            // Given up after it has stored something.
            let mut taking = place.engine.begin_checkpoint().expect("begins");
            place.flush();
            taking.walk(2).expect("walks");
            drop(taking);
        }
        let report = place.checkpoint();
        assert!(report.collection_failed.is_none(), "{report:?}");
        most = most.max(place.objects().len());
        assert_eq!(
            place.objects().len() as u64,
            report.objects_in_use + 1,
            "and the record"
        );
    }
    assert!(most < 30, "{most} objects");
    let before = place.rows();
    let (place, _) = place.restarted();
    assert!(before == place.rows());
}

/// Log from before a checkpoint is removed, segments and side segments of large transactions, and no more than that.
#[test]
fn the_log_before_a_checkpoint_goes() {
    let place = Place::new();
    let large = vec![7; 100_000];
    for round in 0..12 {
        let mut txn = place.worker.begin(Isolation::ReadCommitted);
        for n in 0..20 {
            let mut row = RowBuilder::new();
            row.start(1, 2);
            row.push(Some(&number(n)));
            row.push(Some(&large));
            txn.insert(&place.table(TABLES[0]), row.finish())
                .expect("insert");
        }
        commit(txn);
        for n in 0..200 {
            place.insert(TABLES[1], &row(n, 2_000));
        }
        place.flush();
        if round % 4 == 3 {
            let report = place.checkpoint();
            assert!(
                report.segments_removed > 0 && report.sides_removed >= 3,
                "{report:?}"
            );
        }
    }
    let lane = logstead_types::LaneId(0);
    assert!(
        place
            .home
            .sides
            .list_side_segments(lane)
            .expect("listed")
            .is_empty()
    );
    assert!(
        place
            .home
            .segments
            .list_segments(lane)
            .expect("listed")
            .len()
            <= 2
    );
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 0);
    assert!(before == place.rows());
}

/// Whatever the sizes of transactions, the home holds no more than what is live and what was written since the
/// checkpoint before the last one.
#[test]
fn large_transactions_take_no_more_room_than_twice_the_distance_between_checkpoints() {
    const LARGE: usize = 200_000;
    const DISTANCE: usize = 5;
    let place = Place::new();
    let table = place.table(TABLES[0]);
    let large = |n: u64| {
        let mut row = RowBuilder::new();
        row.start(1, 2);
        row.push(Some(&number(n as i64)));
        let bytes: Vec<u8> = (0..LARGE as u64 / 8)
            .flat_map(|at| (n ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes())
            .collect();
        row.push(Some(&bytes));
        row.finish().to_vec()
    };
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    let rid = txn.insert(&table, &large(0)).expect("insert");
    commit(txn);
    place.flush();
    place.checkpoint();
    let lane = logstead_types::LaneId(0);
    let segments = place
        .home
        .segments
        .list_segments(lane)
        .expect("listed")
        .len();
    for n in 1..=60 {
        place.change(TABLES[0], rid, Some(&large(n)));
        place.flush();
        let sides = place
            .home
            .sides
            .list_side_segments(lane)
            .expect("listed")
            .len();
        assert!(sides <= DISTANCE, "{sides} side segments after {n}");
        if n % DISTANCE as u64 == 0 {
            place.checkpoint();
            assert!(
                place
                    .home
                    .sides
                    .list_side_segments(lane)
                    .expect("listed")
                    .is_empty()
            );
            let objects = place.home.objects.list_objects().expect("listed");
            let bytes: u64 = objects.iter().map(|object| object.size_bytes).sum();
            assert!(bytes <= 3 * LARGE as u64, "{bytes} bytes of objects");
        }
    }
    assert!(
        place
            .home
            .segments
            .list_segments(lane)
            .expect("listed")
            .len()
            <= segments + 1
    );
}
