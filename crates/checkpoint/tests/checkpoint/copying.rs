//! Copies of a checkpoint in another home: whole, resumable, and never worse than what they were made of.

use crate::rig;

use logstead_checkpoint::{
    CheckpointError, CheckpointHead, CheckpointRecord, ChunkWriter, CopyStats, Directory,
    NewCheckpoint, ObjectIdAllocator, ObjectWriter, Publisher, RetainedRecord, TableInfo,
    copy_checkpoint, fsck,
};
use logstead_env::{Env, SimClock};
use logstead_home::simulated::MODELS;
use logstead_home::{
    HomeError, ImmutableObjects, LogHome, MemoryHome, ReplicatedHome, ReplicatedOptions,
    SimulatedHome, SimulatedOptions, Source, WriteConcern,
};
use logstead_types::{Csn, DatabaseId, Epoch, TableId};
use logstead_wal::manifest::CheckpointRef;
use parking_lot::Mutex;
use rig::{Rows, home, key, read_all, write_whole};
use std::collections::BTreeSet;
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(5);
const CHUNKS: u64 = 12;

struct Named(Arc<Mutex<Option<CheckpointRef>>>);

impl CheckpointHead for Named {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        *self.0.lock() = Some(checkpoint);
        Ok(())
    }
}

/// A checkpoint in several objects.
fn checkpoint() -> (LogHome, CheckpointRef, Rows) {
    let home = home();
    let named = Arc::new(Mutex::new(None));
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let head = Named(Arc::clone(&named));
    let publisher = Publisher::open(home.clone(), head, DATABASE, Arc::clone(&object_ids), None);
    let mut publisher = publisher.unwrap();
    let row = |chunk, slot: u16| ((1, chunk, slot), (Csn(5), vec![slot as u8; 50]));
    let rows: Rows = (0..CHUNKS)
        .flat_map(|chunk| (0..5).map(move |slot| row(chunk, slot)))
        .collect();
    let mut chunks = ChunkWriter::new().with_page_bytes(200);
    let writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut writer = writer.with_object_bytes(600);
    let mut whole = |chunk| {
        let chain = write_whole(&rows, (1, chunk), Csn(10), &mut chunks, &mut writer);
        (key(1, chunk), chain.unwrap())
    };
    let changes: Vec<_> = (0..CHUNKS).map(&mut whole).collect();
    let applied = Directory::open(home.objects.clone(), None)
        .apply(&changes, &BTreeSet::new(), Csn(10), &mut writer)
        .unwrap();
    let new = NewCheckpoint {
        divided: Vec::new(),
        csn: Csn(10),
        taken_at_micros: 1,
        tables: vec![TableInfo {
            table: TableId(1),
            rid_end: CHUNKS * 64,
        }],
        indexes: Vec::new(),
        starts: Vec::new(),
    };
    let stored = writer.finish().unwrap();
    publisher
        .publish(new, &applied, &[], stored, |_: &RetainedRecord| true)
        .unwrap();
    let named = named.lock().clone();
    (home, named.unwrap(), rows)
}

fn copy(from: &LogHome, named: &CheckpointRef, to: &LogHome) -> Result<CopyStats, CheckpointError> {
    let record = CheckpointRecord::read(from.objects.as_ref(), DATABASE, named.object, named.crc)?;
    copy_checkpoint(
        &from.objects,
        (named.object, named.crc),
        &record,
        to.objects.as_ref(),
    )
}

/// Everything is there, and good.
fn assert_whole(home: &LogHome, named: &CheckpointRef, rows: &Rows) {
    let record =
        CheckpointRecord::read(home.objects.as_ref(), DATABASE, named.object, named.crc).unwrap();
    let directory = Directory::open(home.objects.clone(), record.root);
    assert!(read_all(home, &directory).unwrap() == *rows);
    let report = fsck(home, DATABASE, Some(named)).unwrap();
    assert!(report.is_clean(), "{:?}", report.damage);
    assert_eq!(report.unneeded_objects, 0);
}

#[test]
fn a_copy_is_whole_and_a_second_one_costs_nothing() {
    let (from, named, rows) = checkpoint();
    let to = home();
    let first = copy(&from, &named, &to).unwrap();
    assert!(first.objects > 4 && first.found == 0, "{first:?}");
    assert_whole(&to, &named, &rows);
    let second = copy(&from, &named, &to).unwrap();
    assert_eq!((second.objects, second.found), (1, first.objects - 1));
    assert_whole(&to, &named, &rows);
}

fn simulated(seed: u64) -> SimulatedHome {
    let clock = Arc::new(SimClock::new());
    let (mut env, _) = Env::simulated(seed);
    env.clock = Arc::clone(&clock) as _;
    let model = MODELS.iter().find(|model| model.name == "s3express");
    let options = SimulatedOptions::new(model.unwrap().clone(), seed);
    SimulatedHome::in_virtual_time(&options, &env, clock).unwrap()
}

#[test]
fn a_copy_that_is_cut_short_at_any_request_goes_on() {
    let (from, named, rows) = checkpoint();
    let mut cut = 0;
    for at in 0.. {
        let sim = simulated(at);
        let to = LogHome::from(sim.clone());
        sim.crash_at(sim.requests() + at);
        match copy(&from, &named, &to) {
            Ok(_) => {
                sim.crash_at(u64::MAX);
                assert_whole(&to, &named, &rows);
                break;
            }
            Err(_) => {
                cut += 1;
                assert!(sim.is_down());
                sim.reboot();
                // Without its record nobody takes it for whole; with it, it is.
                if CheckpointRecord::read(to.objects.as_ref(), DATABASE, named.object, named.crc)
                    .is_ok()
                {
                    assert_whole(&to, &named, &rows);
                }
                copy(&from, &named, &to).unwrap();
                assert_whole(&to, &named, &rows);
            }
        }
    }
    assert!(cut > 4, "{cut}");
}

#[test]
fn damage_in_the_source_is_told_and_one_good_copy_is_enough() {
    let (from, named, rows) = checkpoint();
    let lengths: Vec<_> = from.objects.list_objects().unwrap();
    let mut mended = 0;
    for (index, info) in lengths.iter().enumerate() {
        for at in (0..info.size_bytes as usize).step_by(23) {
            let bad = rig::flipped(&from, index, at, 3);
            let to = home();
            match copy(&bad, &named, &to) {
                Err(CheckpointError::Damaged(damage)) => assert_eq!(damage.object, info.id),
                other => panic!("object {} byte {at}: {other:?}", info.id),
            }
            let several = replicated(&[bad.clone(), from.clone()]);
            let to = home();
            copy(&several, &named, &to).unwrap();
            assert_whole(&to, &named, &rows);
            // Each copy is damaged: none is whole, together they may be.
            let elsewhere = (at + info.size_bytes as usize / 2) % info.size_bytes as usize;
            let several = replicated(&[bad, rig::flipped(&from, index, elsewhere, 3)]);
            let to = home();
            match copy(&several, &named, &to) {
                Ok(_) => {
                    mended += 1;
                    assert_whole(&to, &named, &rows);
                }
                // In one frame.
                Err(CheckpointError::Damaged(damage)) => assert_eq!(damage.object, info.id),
                Err(error) => panic!("object {} byte {at}: {error}", info.id),
            }
        }
    }
    assert!(mended > 20, "{mended}");
}

/// The objects of these homes as copies.
fn replicated(homes: &[LogHome]) -> LogHome {
    let sources = homes.iter().map(|home| {
        let child = MemoryHome::new(1 << 20);
        for info in home.objects.list_objects().unwrap() {
            let mut bytes = vec![0; info.size_bytes as usize];
            home.objects.read_object(info.id, 0, &mut bytes).unwrap();
            child.put_object(info.id, &bytes).unwrap();
        }
        Source::of(LogHome::from(child))
    });
    let options = ReplicatedOptions {
        ack: WriteConcern::All,
        threads: false,
        ..ReplicatedOptions::default()
    };
    let home = ReplicatedHome::open(sources.collect(), &Env::real(), options);
    LogHome::from(home.unwrap())
}
