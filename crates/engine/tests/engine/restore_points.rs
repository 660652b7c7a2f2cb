//! Restore points: made by hand and by time, kept over restarts, let go of, and what they hold.

use std::sync::Arc;
use std::time::Duration;

use logstead_checkpoint::{CheckpointRecord, Directory, PINS, PageKey, PageReader, Pins};
use logstead_engine::{
    Engine, EngineOptions, Isolation, LogHome, MemoryHome, RestorePoint, RestorePointError,
    Retention, RowBuilder, TableId, WorkerId,
};
use logstead_env::{Clock, Env, SimClock};
use logstead_wal::inspect::manifest_of;

use crate::world::{commit, number};

const TABLE: TableId = TableId(20_000);

struct Place {
    memory: MemoryHome,
    home: LogHome,
    clock: Arc<SimClock>,
    retention: Retention,
}

impl Place {
    fn new(retention: Retention) -> Place {
        let memory = MemoryHome::new(1 << 20);
        Place {
            home: LogHome::from(memory.clone()),
            memory,
            clock: Arc::new(SimClock::new()),
            retention,
        }
    }

    fn open(&self) -> Engine {
        // The machine stops and starts again.
        self.memory.crash();
        let (mut env, _) = Env::simulated(1);
        env.clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let options = EngineOptions {
            retention: self.retention,
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open(options, self.home.clone(), env).expect("opens");
        engine.create_table(TABLE);
        engine.bring_all(|| true).expect("everything can be read");
        engine
    }

    /// Rows that the point holds, by what its record leads to.
    fn rows_at(&self, point: &RestorePoint) -> u64 {
        let manifest = manifest_of(&self.home).expect("there");
        let newest = manifest.checkpoint.expect("a checkpoint");
        let read = |object, crc| {
            CheckpointRecord::read(self.home.objects.as_ref(), manifest.database, object, crc)
                .expect("a record")
        };
        let record = read(newest.object, newest.crc);
        let (pins, _) = Pins::read(self.home.names.as_ref()).expect("read");
        let pinned = pins.iter().map(|pin| pin.record);
        let kept = pinned.chain(record.kept.iter().copied());
        let kept = kept.into_iter().find(|kept| kept.csn == point.csn);
        let record = kept.map_or(record, |kept| read(kept.object, kept.crc));
        assert_eq!(record.csn, point.csn);
        let directory = Directory::open(self.home.objects.clone(), record.root);
        let mut reader = PageReader::new(self.home.objects.clone());
        let mut rows = 0;
        for entry in directory.scan(None) {
            let (key, chain) = entry.expect("whole");
            if !matches!(key, PageKey::Rows { .. }) {
                continue;
            }
            reader
                .chunk(&key, &chain, |_, _, _| rows += 1)
                .expect("whole");
        }
        rows
    }

    fn objects(&self) -> usize {
        self.home.objects.list_objects().expect("listed").len()
    }
}

fn insert(engine: &Engine, count: i64) {
    let worker = engine.worker(WorkerId(0));
    let table = engine.table(TABLE).expect("there");
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for n in 0..count {
        let mut row = RowBuilder::new();
        row.start(1, 1);
        row.push(Some(&number(n)));
        txn.insert(&table, row.finish()).expect("insert");
    }
    commit(txn);
}

fn names(points: &[RestorePoint]) -> Vec<Option<&str>> {
    points.iter().map(|point| point.name.as_deref()).collect()
}

#[test]
fn points_made_by_hand_stay_until_they_are_dropped() {
    let place = Place::new(Retention::default());
    let engine = place.open();
    insert(&engine, 10);
    engine.create_restore_point("first one").expect("made");
    let first = engine.restore_points().swap_remove(0);
    insert(&engine, 10);
    // Another name for the same state, and the same name again.
    engine.create_restore_point("2").expect("made");
    engine.create_restore_point("3").expect("made");
    let points = engine.restore_points();
    assert_eq!(names(&points), [Some("first one"), Some("2"), Some("3")]);
    assert_eq!(points[1].csn, points[2].csn);
    match engine.create_restore_point("2") {
        Err(RestorePointError::Exists(name)) => assert_eq!(name, "2"),
        other => panic!("{other:?}"),
    }
    for name in ["", &"x".repeat(64)] {
        let refused = engine.create_restore_point(name);
        assert!(matches!(refused, Err(RestorePointError::Name)));
    }
    for _ in 0..20 {
        insert(&engine, 10);
        engine.checkpoint().expect("taken");
    }
    drop(engine);
    // Also over a restart, whose first checkpoint removes what is left over.
    let engine = place.open();
    insert(&engine, 10);
    engine.checkpoint().expect("taken");
    let points = engine.restore_points();
    assert_eq!(
        names(&points),
        [Some("first one"), Some("2"), Some("3"), None]
    );
    let rows: Vec<u64> = points.iter().map(|point| place.rows_at(point)).collect();
    assert_eq!(rows, [10, 20, 20, 230]);
    assert_eq!(points[0], first);
    let before = place.objects();
    engine.drop_restore_point("first one").expect("dropped");
    assert!(place.objects() < before, "gone at once");
    match engine.drop_restore_point("first one") {
        Err(RestorePointError::Missing(name)) => assert_eq!(name, "first one"),
        other => panic!("{other:?}"),
    }
    engine.drop_restore_point("2").expect("dropped");
    let points = engine.restore_points();
    assert_eq!(names(&points), [Some("3"), None]);
    assert_eq!(place.rows_at(&points[0]), 20, "the other name holds it");
    engine.drop_restore_point("3").expect("dropped");
    let newest = engine.restore_points().swap_remove(0);
    assert_eq!(
        place.objects() as u64,
        newest.size.expect("read").0 + 1,
        "and its record"
    );
}

#[test]
fn points_are_kept_by_time() {
    let place = Place::new(Retention {
        interval: Duration::from_secs(60),
        retention: Duration::from_secs(600),
    });
    let mut engine = place.open();
    let mut most = 0;
    for round in 0..100 {
        insert(&engine, 1);
        engine.checkpoint().expect("taken");
        place.clock.advance(Duration::from_secs(20));
        if round % 40 == 39 {
            drop(engine);
            engine = place.open();
        }
        let points = engine.restore_points();
        most = most.max(points.len());
        let rows: Vec<u64> = points.iter().map(|point| place.rows_at(point)).collect();
        assert!(
            rows.is_sorted() && rows.last() == Some(&(round + 1)),
            "{rows:?}"
        );
        let spans = points
            .windows(2)
            .map(|pair| pair[1].taken_at_micros - pair[0].taken_at_micros);
        assert!(spans.max().unwrap_or(0) <= 80_000_000);
    }
    // One becomes a point with the first checkpoint after the interval: it was taken one before.
    assert!((13..=17).contains(&most), "{most}");
}

/// A list of pins that a newer server wrote: this one is not started on it, as little as anybody else reads it, for
/// what else it must not touch is not known.
#[test]
fn pins_of_a_newer_server_stop_a_start() {
    let place = Place::new(Retention::default());
    let engine = place.open();
    engine.create_restore_point("kept").expect("made");
    drop(engine);
    let (bytes, tag) = place.home.names.get(PINS).expect("read").expect("there");
    let text = String::from_utf8(bytes.clone()).expect("text");
    let body = text.replace("logstead pins 1", "logstead pins 2");
    let (body, _) = body.split_once("crc ").expect("a checksum");
    let newer = format!("{body}crc {:08x}\n", crc32c::crc32c(body.as_bytes()));
    place
        .home
        .names
        .compare_and_swap(PINS, tag, newer.as_bytes())
        .expect("stored");
    place.memory.crash();
    let options = EngineOptions::default();
    let refused = Engine::open(options, place.home.clone(), Env::simulated(1).0);
    let told = refused.err().expect("refused").to_string();
    assert!(told.contains("format version 2"), "{told}");
    let (_, tag) = place.home.names.get(PINS).expect("read").expect("there");
    place
        .home
        .names
        .compare_and_swap(PINS, tag, &bytes)
        .expect("stored");
    assert_eq!(place.open().restore_points().len(), 1);
}
