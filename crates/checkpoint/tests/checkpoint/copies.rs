//! A checkpoint in several copies: damage to some of them is passed over, and told of when no copy is good.

use crate::rig;

use logstead_checkpoint::{
    CheckpointError, CheckpointHead, CheckpointRecord, ChunkWriter, Directory, NewCheckpoint,
    ObjectIdAllocator, ObjectWriter, Publisher, RetainedRecord, TableInfo, fsck,
};
use logstead_env::Env;
use logstead_home::{
    HomeError, ImmutableObjects, LogHome, MemoryHome, ReplicatedHome, ReplicatedOptions, Source,
    WriteConcern,
};
use logstead_types::{Csn, DatabaseId, Epoch, TableId};
use logstead_wal::manifest::CheckpointRef;
use parking_lot::Mutex;
use rig::{Rows, home, key, read_all, write_whole};
use std::collections::BTreeSet;
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(5);

/// Remembers what is named.
struct Named(Arc<Mutex<Option<CheckpointRef>>>);

impl CheckpointHead for Named {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        *self.0.lock() = Some(checkpoint);
        Ok(())
    }
}

/// A checkpoint of three chunks, two pages each.
fn checkpoint() -> (LogHome, CheckpointRef, Rows) {
    let home = home();
    let named = Arc::new(Mutex::new(None));
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let head = Named(Arc::clone(&named));
    let publisher = Publisher::open(home.clone(), head, DATABASE, Arc::clone(&object_ids), None);
    let mut publisher = publisher.unwrap();
    let row = |chunk, slot: u16| ((1, chunk, slot), (Csn(5), vec![slot as u8; 50]));
    let rows: Rows = (0..3)
        .flat_map(|chunk| (0..5).map(move |slot| row(chunk, slot)))
        .collect();
    let mut chunks = ChunkWriter::new().with_page_bytes(200);
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut whole = |chunk| {
        let chain = write_whole(&rows, (1, chunk), Csn(10), &mut chunks, &mut writer);
        (key(1, chunk), chain.unwrap())
    };
    let changes: Vec<_> = (0..3).map(&mut whole).collect();
    let applied = Directory::open(home.objects.clone(), None)
        .apply(&changes, &BTreeSet::new(), Csn(10), &mut writer)
        .unwrap();
    let new = NewCheckpoint {
        divided: Vec::new(),
        csn: Csn(10),
        taken_at_micros: 1,
        tables: vec![TableInfo {
            table: TableId(1),
            rid_end: 3 * 64,
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

/// The objects of a home in three copies; `damage` changes what it is given of each: copy and bytes.
fn copies(home: &LogHome, damage: impl Fn(usize, &mut Vec<u8>)) -> LogHome {
    let children: Vec<MemoryHome> = (0..3).map(|_| MemoryHome::new(1 << 20)).collect();
    for (number, child) in children.iter().enumerate() {
        for info in home.objects.list_objects().unwrap() {
            let mut bytes = vec![0; info.size_bytes as usize];
            home.objects.read_object(info.id, 0, &mut bytes).unwrap();
            damage(number, &mut bytes);
            child.put_object(info.id, &bytes).unwrap();
        }
    }
    let sources = children
        .into_iter()
        .map(|home| Source::of(LogHome::from(home)));
    let options = ReplicatedOptions {
        ack: WriteConcern::Majority,
        threads: false,
        ..ReplicatedOptions::default()
    };
    let home = ReplicatedHome::open(sources.collect(), &Env::real(), options);
    LogHome::from(home.unwrap())
}

fn reads(home: &LogHome, named: &CheckpointRef) -> Result<Rows, CheckpointError> {
    let record = CheckpointRecord::read(home.objects.as_ref(), DATABASE, named.object, named.crc)?;
    let directory = Directory::open(home.objects.clone(), record.root);
    read_all(home, &directory)
}

#[test]
fn one_good_copy_of_each_frame_is_enough() {
    let (home, named, rows) = checkpoint();
    assert!(reads(&home, &named).unwrap() == rows);
    let lengths = home.objects.list_objects().unwrap();
    let lengths = lengths.iter().map(|info| info.size_bytes as usize);
    for at in 0..lengths.max().unwrap() {
        let flip = |bytes: &mut Vec<u8>| {
            let at = at % bytes.len();
            bytes[at] ^= 1 << (at % 8);
        };
        let cut = |bytes: &mut Vec<u8>| bytes.truncate(at % bytes.len());
        // Only the last copy is good, and each other one bad in its own way.
        let damaged = copies(&home, |copy, bytes| match copy {
            0 => flip(bytes),
            1 => cut(bytes),
            _ => {}
        });
        let read = reads(&damaged, &named);
        match read {
            Ok(read) => assert!(read == rows, "byte {at}"),
            Err(error) => panic!("byte {at}: {error}"),
        }
        if at == 0 {
            let report = fsck(&damaged, DATABASE, Some(&named)).unwrap();
            assert!(report.is_clean());
        }
        // The same byte in all of them.
        let damaged = copies(&home, |_, bytes| flip(bytes));
        match reads(&damaged, &named) {
            Err(CheckpointError::Damaged(_)) => {}
            other => panic!("byte {at}: {other:?}"),
        }
    }
}
