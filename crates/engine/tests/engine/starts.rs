//! Starts: what is read before the first query, and what the log says of chunks that are not read ([pending]); crashes
//! before and behind the first checkpoint of a life.

use std::collections::BTreeSet;
use std::ops::Bound;

use logstead_engine::{Guard, IndexCursor, Rid, RowRef, WriteError};

use crate::stored_indexes::{Dice, KINDS, Model, Place, fill, row, values};
use crate::world::{block_on, commit};

/// The rows that are found under a key, by the index.
fn find(place: &Place, at: usize, key: i64) -> Vec<(Rid, (i64, i64))> {
    let (id, _, padded) = KINDS[at];
    let index = place.index(id);
    let mut low = Vec::new();
    let wanted = match padded.column {
        0 => row(key, 0),
        _ => row(0, key),
    };
    let kind = logstead_engine::KeyExtractor::key(&padded, RowRef::new(&wanted), &mut low);
    assert!(kind.has_entry());
    let mut high = low.clone();
    high.push(0xff);
    let mut txn = place.begin();
    let (low, high) = (Bound::Included(low), Bound::Excluded(high));
    let mut cursor = IndexCursor::new(&index, low, high, false);
    let mut found = Vec::new();
    loop {
        let next = {
            let guard = Guard::pin();
            let next = txn.index_next(&mut cursor, &guard);
            next.map(|row| row.map(|row| (row.rid, values(row.bytes))))
        };
        match next {
            Ok(Some(row)) => found.push(row),
            Ok(None) => return found,
            Err(absent) => block_on(absent.wait(&mut txn)).expect("brought in"),
        }
    }
}

/// Gives a row new values, or deletes it.
fn change(place: &Place, model: &mut Model, rid: Rid, to: Option<(i64, i64)>) {
    let mut txn = place.begin();
    let version = place.version(&mut txn, rid);
    let changed = place.retry(&mut txn, |txn| match to {
        Some((k, v)) => txn.update(&place.table, rid, version, &row(k, v)),
        None => txn.delete(&place.table, rid, version),
    });
    changed.expect("changed");
    commit(txn);
    match to {
        Some(to) => model.insert(rid, to),
        None => model.remove(&rid),
    };
}

fn nth(model: &Model, at: usize) -> Rid {
    *model.keys().nth(at).expect("so many")
}

/// What the tail of each test does to rows all over the table: new values, new keys, keys that moved from one row to
/// another, deletions, rows that are there for the first time, and again.
fn tail(place: &Place, model: &mut Model, rows: usize, round: i64) {
    let new = round * 1_000_000;
    let rids: Vec<Rid> = (0..12).map(|at| nth(model, at * rows / 12)).collect();
    let value = |model: &Model, at: usize| model[&rids[at]];
    for rid in &rids[..4] {
        let (k, v) = model[rid];
        change(place, model, *rid, Some((k, 100 + v)));
    }
    let (k, v) = value(model, 4);
    change(place, model, rids[4], Some((new + 50_000 + k, v)));
    // One takes the key that another has given up.
    let (given_up, other) = (k, value(model, 5));
    change(place, model, rids[5], Some((given_up, other.1)));
    change(place, model, rids[6], None);
    // Twice, and back again.
    let (k, v) = value(model, 7);
    change(place, model, rids[7], Some((new + 60_000, v + 1)));
    change(place, model, rids[7], Some((k, v + 2)));
    change(place, model, rids[8], Some((new + 61_000, 7)));
    change(place, model, rids[8], None);
    place.flush();
    while place.worker.collect_garbage(64) {}
    // In slots that are free again, among others.
    model.extend(fill(place, new + 70_000, new + 70_003));
    place.flush();
}

/// The time until a start serves follows from the log's tail alone: with an equal one it reads the same, however many
/// rows there are and however many chunks the tail has touched.
#[test]
fn a_start_reads_no_more_of_more_rows() {
    let mut reads = Vec::new();
    for rows in [2_000, 16_000] {
        let place = Place::with(&KINDS[..2]);
        let mut model = fill(&place, 0, rows);
        place.engine.checkpoint().expect("taken");
        let mut touched = BTreeSet::new();
        for at in 0..20 {
            let rid = nth(&model, at * rows as usize / 20);
            let (k, v) = model[&rid];
            // Not a column of the unique index.
            change(&place, &mut model, rid, Some((k, v)));
            touched.insert(rid);
        }
        place.flush();
        let (memory, home) = place.stop();
        let before = memory.object_reads();
        let place = Place::over(memory, home, &KINDS[..1]);
        let opened = place.memory.object_reads();
        assert_eq!(place.restored, 1);
        assert_eq!(place.report.checkpoint_pages, 0);
        assert!(place.report.tails_kept > 1 && place.report.tails_kept <= 20);
        let k = model[&nth(&model, 3)].0;
        assert_eq!(find(&place, 0, k).len(), 1);
        let served = place.memory.object_reads();
        reads.push((
            opened.0 - before.0,
            opened.1 - before.1,
            served.0 - opened.0,
        ));
    }
    // The record, twice, and nothing else; then a leaf and a page with the directory's nodes on the way there.
    assert_eq!(reads[0].0, reads[1].0, "{reads:?}");
    assert!(reads[1].1 < reads[0].1 + 512, "{reads:?}");
    assert!(reads[1].2 <= reads[0].2 + 4, "{reads:?}");
}

/// A crash among chunks of which some have come in, and some of these have changed again: the log still has all of it,
/// as often as it happens.
#[test]
fn a_crash_before_the_first_checkpoint_finds_the_tail_again() {
    let mut place = Place::new();
    let mut model = fill(&place, 0, 3_000);
    place.engine.checkpoint().expect("taken");
    tail(&place, &mut model, 3_000, 1);
    for life in 0..3 {
        place = place.restarted();
        assert!(place.report.tails_kept > 0, "{:?}", place.report);
        let rid = nth(&model, 3 * 3_000 / 12);
        let (k, v) = model[&rid];
        change(&place, &mut model, rid, Some((k, v + 1)));
        let gone = nth(&model, 1 + life);
        change(&place, &mut model, gone, None);
        place.flush();
    }
    place = place.restarted();
    place.verify(&model);
}

/// The first checkpoint of a life has what the log behind the one before had, and the next start finds it there.
#[test]
fn the_first_checkpoint_takes_what_is_not_read_along() {
    let place = Place::new();
    let mut model = fill(&place, 0, 3_000);
    place.engine.checkpoint().expect("taken");
    tail(&place, &mut model, 3_000, 1);
    let place = place.restarted();
    let kept = place.report.tails_kept;
    assert!(kept > 0);
    let taken = place.engine.checkpoint().expect("taken");
    assert!(taken.chunks_looked_at >= kept, "{taken:?}");
    let place = place.restarted();
    assert_eq!((place.report.tails_kept, place.report.entries), (0, 0));
    place.verify(&model);
    // And one that comes to nothing loses nothing.
    tail(&place, &mut model, 3_000, 2);
    let place = place.restarted();
    let mut checkpoint = place.engine.begin_checkpoint().expect("begun");
    assert!(checkpoint.walk(2).expect("walks"));
    drop(checkpoint);
    place.verify(&model);
    place.engine.checkpoint().expect("taken");
    let place = place.restarted();
    assert_eq!(place.report.tails_kept, 0);
    place.verify(&model);
}

/// Rows that come in, change and go while the first checkpoint writes what the log says of their chunks, before it
/// looks at them, behind that, and when it is published.
#[test]
fn rows_change_while_their_tail_is_written() {
    for moment in 0..3 {
        let place = Place::new();
        let mut model = fill(&place, 0, 3_000);
        place.engine.checkpoint().expect("taken");
        let before = model.clone();
        tail(&place, &mut model, 3_000, 1);
        let place = place.restarted();
        let touched = model
            .iter()
            .filter(|(rid, row)| before.get(rid) != Some(row));
        let touched: Vec<Rid> = touched.map(|(rid, _)| *rid).collect();
        assert!(touched.len() > 8);
        let mut rewrite = |at: usize| {
            if at != moment {
                return;
            }
            // Every other one goes; some of them are in no checkpoint before.
            for (at, rid) in touched.iter().enumerate() {
                let (k, v) = model[rid];
                change(
                    &place,
                    &mut model,
                    *rid,
                    (at % 2 == 0).then_some((k, v + 500)),
                );
            }
        };
        let mut checkpoint = place.engine.begin_checkpoint().expect("begun");
        rewrite(0);
        while checkpoint.walk(1).expect("walks") {}
        rewrite(1);
        checkpoint.publish().expect("published");
        rewrite(2);
        assert_eq!(place.engine.chunk_counts().with_tails, 0);
        place.verify(&model);
        place.flush();
        let place = place.restarted();
        place.verify(&model);
        place.engine.checkpoint().expect("taken");
        let place = place.restarted();
        place.verify(&model);
    }
}

/// Rows that were changed in the tail are found under their new keys and not under the old ones, whatever comes in
/// first.
#[test]
fn rows_of_the_tail_are_found_by_their_keys() {
    let place = Place::new();
    let mut model = fill(&place, 0, 3_000);
    place.engine.checkpoint().expect("taken");
    let before = model.clone();
    tail(&place, &mut model, 3_000, 1);
    let (memory, home) = place.stop();
    let place = Place::over(memory, home, &KINDS);
    for (rid, (k, v)) in &before {
        let now = model.get(rid);
        if now == Some(&(*k, *v)) {
            continue;
        }
        let found = find(&place, 0, *k);
        let holder = model.iter().find(|(_, (key, _))| key == k);
        assert_eq!(
            found.first().copied(),
            holder.map(|(rid, row)| (*rid, *row))
        );
    }
    for (rid, (k, v)) in &model {
        if before.get(rid) == Some(&(*k, *v)) {
            continue;
        }
        assert_eq!(find(&place, 0, *k), [(*rid, (*k, *v))], "key {k}");
        assert!(find(&place, 1, *v).contains(&(*rid, (*k, *v))));
    }
    place.verify(&model);
}

/// A key that a row of the tail has is taken, and one that it has given up is free, though the row's chunk was never
/// read.
#[test]
fn unique_keys_of_the_tail_are_taken() {
    let place = Place::new();
    let mut model = fill(&place, 0, 3_000);
    place.engine.checkpoint().expect("taken");
    let before = model.clone();
    tail(&place, &mut model, 3_000, 1);
    let place = place.restarted();
    let taken: BTreeSet<i64> = model.values().map(|(k, _)| *k).collect();
    let changed = model
        .iter()
        .filter(|(rid, row)| before.get(rid) != Some(row));
    let mut tried = 0;
    for (_, (k, _)) in changed {
        let mut txn = place.begin();
        let done = place.retry(&mut txn, |txn| txn.insert(&place.table, &row(*k, 1)));
        assert!(
            matches!(done, Err(WriteError::Unique { .. })),
            "{k}: {done:?}"
        );
        txn.abort();
        tried += 1;
    }
    assert!(tried > 8);
    let free = before.values().filter(|(k, _)| !taken.contains(k));
    let mut freed = 0;
    for (k, _) in free {
        let mut txn = place.begin();
        let done = place.retry(&mut txn, |txn| txn.insert(&place.table, &row(*k, 1)));
        done.expect("free");
        txn.abort();
        freed += 1;
    }
    assert!(freed >= 3, "{freed}");
}

/// Random work, chunks and leaves that come in one by one or not at all, checkpoints that come to nothing or not, and
/// crashes: all is there each time.
#[test]
fn random_lives_lose_nothing() {
    let (mut kept, mut first_checkpoints) = (0, 0);
    for seed in 0..8 {
        let mut dice = Dice(1_000 + seed);
        let mut place = Place::new();
        let mut model = fill(&place, 100, 700);
        place.engine.checkpoint().expect("taken");
        for _ in 0..6 {
            for _ in 0..dice.roll(12) {
                place.step(&mut dice, &mut model);
            }
            place.flush();
            place = place.restarted();
            kept += place.report.tails_kept;
            match dice.roll(5) {
                0 => place.engine.bring_all(|| true).expect("brought in"),
                1 => place.verify(&model),
                2 => {
                    let mut checkpoint = place.engine.begin_checkpoint().expect("begun");
                    let _more = checkpoint.walk(1).expect("walks");
                }
                3 => {
                    place.engine.checkpoint().expect("taken");
                    first_checkpoints += 1;
                }
                _ => {}
            }
        }
        place.verify(&model);
    }
    assert!(
        kept > 20 && first_checkpoints > 2,
        "{kept}, {first_checkpoints}"
    );
}

/// A tile is damaged for which entries of the log wait: the checkpoint is taken all the same, and the next start builds
/// the index from rows, as long as one of them was taken in that state.
#[test]
fn a_damaged_tile_under_the_tail_costs_no_checkpoint() {
    const ROWS: i64 = 2_000;
    let mut met = 0;
    // Somewhere among the tiles: that is behind the rows, and before the directory's nodes.
    for eighth in 2..7 {
        let place = Place::with(&KINDS[..1]);
        let mut model = Model::new();
        for first in (0..ROWS).step_by(20) {
            model.extend(fill(&place, first, first + 19));
        }
        place.engine.checkpoint().expect("taken");
        let objects = place.home.objects.list_objects().expect("listed");
        let largest = objects.iter().max_by_key(|info| info.size_bytes);
        let largest = *largest.expect("some");
        for key in (19..ROWS).step_by(20) {
            model.extend(fill(&place, key, key + 1));
        }
        place.flush();
        let (memory, home) = place.stop();
        let mut bytes = vec![0; largest.size_bytes as usize];
        home.objects
            .read_object(largest.id, 0, &mut bytes)
            .expect("read");
        let whole = bytes.clone();
        let at = bytes.len() / 8 * eighth;
        bytes[at] ^= 0x20;
        let put = |bytes: &[u8]| {
            home.objects.remove_object(largest.id).expect("removed");
            home.objects.put_object(largest.id, bytes).expect("stored");
        };
        put(&bytes);
        let mut place = Place::over(memory, home.clone(), &KINDS[..1]);
        assert_eq!(place.restored, 1);
        let index = place.index(KINDS[0].0);
        assert!(index.late_entry_count() > 0);
        place.engine.checkpoint().expect("taken");
        if index.late_entry_count() == 0 {
            continue;
        }
        drop(index);
        met += 1;
        let told = place.engine.checkpoint_stats().last_damage.expect("told");
        assert!(told.contains(&format!("index {}", KINDS[0].0)), "{told}");
        // What is written now, and what was before, is there after a start.
        model.extend(fill(&place, 6 * ROWS, 6 * ROWS + 3));
        for life in 0..2 {
            place.flush();
            let (memory, home) = place.stop();
            place = Place::over(memory, home, &KINDS[..1]);
            assert_eq!(
                place.restored, life,
                "first from rows, then as it was stored"
            );
            place.verify_kinds(&model, &KINDS[..1]);
            place.engine.checkpoint().expect("taken");
            assert_eq!(place.engine.checkpoint_stats().last_damage, None);
        }
        put(&whole);
    }
    assert!(met > 1, "{met}");
}
