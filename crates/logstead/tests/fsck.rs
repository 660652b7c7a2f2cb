//! `logstead fsck` on databases whose pages are all sound, and whose indexes do not fit their rows: the program itself
//! says what is wrong.

#[path = "../../sql/session/tests/rig/script.rs"]
mod script;

use logstead_checkpoint::{
    CHUNK_SLOTS, CheckpointHead, CheckpointRecord, ChunkWriter, Directory, ImageKind, Leaf,
    LeafWriter, NewCheckpoint, ObjectIdAllocator, ObjectWriter, PageChain, PageKey, PageReader,
    Publisher, RetainedRecord,
};
use logstead_engine::{Engine, EngineOptions, FlushMode, StoredIndex, StoredRows};
use logstead_env::Env;
use logstead_home::{HomeError, LocalHome, LocalOptions, LogHome, MemoryHome};
use logstead_sql_catalog::{CatalogStore, stored_indexes};
use logstead_sql_session::{Instance, Session, StartupRequest, WorkerSessions};
use logstead_types::{Csn, TableId, WorkerId};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{CheckpointRef, Manifest};
use script::Script;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const MANIFEST: &str = "manifest";

fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    Env::real().files.create_dir(&dir).unwrap();
    dir
}

fn local(dir: &Path) -> LogHome {
    LogHome::from(LocalHome::open(dir, &Env::real(), LocalOptions::default()).unwrap())
}

/// A database with these statements in it and a checkpoint of them.
fn make(dir: &Path, statements: &[&str]) {
    let env = Env::real();
    let options = EngineOptions {
        workers: 1,
        ..EngineOptions::default()
    };
    let (engine, _) = Engine::open(options, local(dir), env.clone()).unwrap();
    let store =
        CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
    let instance = Instance::new(engine.clone(), store, env, BTreeMap::new(), 3);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let worker = WorkerSessions::new(Arc::new(instance), engine.worker(WorkerId(0)));
        let dirty = std::rc::Rc::new(tokio::sync::Notify::new());
        let (hook, flushed) = (dirty.clone(), worker.clone());
        worker
            .worker
            .set_dirty_hook(Box::new(move || hook.notify_one()));
        let flusher = tokio::task::spawn_local(async move {
            loop {
                dirty.notified().await;
                flushed.worker.flush(FlushMode::Inline);
            }
        });
        let request = StartupRequest {
            user: "postgres".to_owned(),
            ..StartupRequest::default()
        };
        let mut session = Session::open(&worker, request).unwrap();
        let mut client = Script::default();
        for statement in statements {
            session.simple_query(statement, &mut client).await.unwrap();
            let said = client.take();
            assert!(
                !said.iter().any(|line| line.starts_with("ERROR")),
                "{said:?}"
            );
        }
        drop(session);
        flusher.abort();
        let _aborted = flusher.await;
    });
    engine.checkpoint().unwrap();
}

struct InManifest(LogHome);

impl CheckpointHead for InManifest {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        let (bytes, tag) = self.0.names.get(MANIFEST)?.unwrap();
        let mut manifest = Manifest::decode(&bytes).unwrap();
        manifest.checkpoint = Some(checkpoint);
        let changed = self
            .0
            .names
            .compare_and_swap(MANIFEST, tag, &manifest.encode());
        changed.map(drop)
    }
}

/// The newest checkpoint of a database that nobody serves, to be changed behind everybody's back.
struct Pages {
    home: LogHome,
    newest: CheckpointRef,
    record: CheckpointRecord,
    directory: Directory,
}

impl Pages {
    fn open(dir: &Path) -> Pages {
        let home = local(dir);
        let manifest = manifest_of(&home).unwrap();
        let newest = manifest.checkpoint.unwrap();
        let record = CheckpointRecord::read(
            home.objects.as_ref(),
            manifest.database,
            newest.object,
            newest.crc,
        )
        .unwrap();
        Pages {
            directory: Directory::open(home.objects.clone(), record.root),
            home,
            newest,
            record,
        }
    }

    fn index(&self, name: &str) -> StoredIndex {
        let mut rows = StoredRows::new(&self.home, &self.record);
        let all = stored_indexes(
            logstead_sql_ddl::pg_catalog::system_catalog(),
            |table, each| {
                let each = |rid, row: logstead_engine::RowRef<'_>| each(rid, row).unwrap();
                rows.each(table, each).unwrap();
                Ok(())
            },
        );
        let mut all = all.unwrap().into_iter();
        all.find(|index| index.name.ends_with(name)).unwrap()
    }

    /// Publishes a checkpoint of the same CSN with these pages. The older one is kept if so said.
    fn publish(
        self,
        keep: bool,
        change: impl FnOnce(&Pages, &mut ObjectWriter<'_>) -> Vec<(PageKey, Option<PageChain>)>,
    ) {
        let head = InManifest(self.home.clone());
        let object_ids = after(&self.newest);
        let mut publisher = Publisher::open(
            self.home.clone(),
            head,
            self.record.database,
            Arc::clone(&object_ids),
            Some(&self.newest),
        )
        .unwrap();
        let mut writer = ObjectWriter::new(self.home.objects.clone(), object_ids, None);
        let changes = change(&self, &mut writer);
        let csn = Csn(self.record.csn.get() + 1);
        let applied = self
            .directory
            .apply(&changes, &BTreeSet::new(), csn, &mut writer)
            .unwrap();
        let new = NewCheckpoint {
            divided: Vec::new(),
            csn,
            taken_at_micros: self.record.taken_at_micros + 1,
            tables: self.record.tables.clone(),
            indexes: self.record.indexes.clone(),
            starts: self.record.starts.clone(),
        };
        let stored = writer.finish().unwrap();
        publisher
            .publish(new, &applied, &[], stored, |_: &RetainedRecord| keep)
            .unwrap();
    }
}

/// The numbers of objects behind those of a checkpoint: as many are given to a home that nobody needs.
fn after(newest: &CheckpointRef) -> Arc<ObjectIdAllocator> {
    let object_ids = Arc::new(ObjectIdAllocator::new(newest.epoch));
    let elsewhere = LogHome::from(MemoryHome::new(1 << 20));
    let writer = ObjectWriter::new(elsewhere.objects, Arc::clone(&object_ids), None);
    let mut writer = writer.with_object_bytes(1);
    let mut chunks = ChunkWriter::new();
    for chunk in 0..=newest.object.0 & u64::from(u32::MAX) {
        let table = TableId(1);
        chunks.begin(PageKey::Rows { table, chunk }, ImageKind::Whole, Csn(2));
        chunks.row(0, Csn(1), &[1], &mut writer).unwrap();
        chunks.finish(&mut writer).unwrap();
    }
    std::mem::forget(writer.finish().unwrap());
    object_ids
}

/// The only tile of a small index without the entries that are not to stay, and with others.
fn with_entries(
    pages: &Pages,
    writer: &mut ObjectWriter<'_>,
    index: &StoredIndex,
    change: impl FnOnce(&mut BTreeSet<Vec<u8>>),
) -> (PageKey, Option<PageChain>) {
    let tile = pages
        .directory
        .tiles(index.table, index.index, Vec::new())
        .next();
    let (low, chain) = tile.unwrap().unwrap();
    let key = PageKey::Leaf {
        table: index.table,
        index: index.index,
        low,
    };
    let mut leaf = Leaf::default();
    let mut reader = PageReader::new(pages.home.objects.clone());
    reader.leaf(&key, &chain, &mut leaf).unwrap();
    let mut entries: BTreeSet<_> = leaf.entries().map(<[u8]>::to_vec).collect();
    change(&mut entries);
    let mut leaves = LeafWriter::new();
    leaves.begin(key.clone(), Csn(1)).unwrap();
    for entry in &entries {
        leaves.entry(entry).unwrap();
    }
    (key, Some(leaves.finish(leaf.high(), writer).unwrap()))
}

/// The table's first chunk with the row of slot 0 a second time, in the first free slot, which is given too.
fn with_a_second_row(
    pages: &Pages,
    writer: &mut ObjectWriter<'_>,
    index: &StoredIndex,
) -> ((PageKey, Option<PageChain>), u64) {
    let key = PageKey::Rows {
        table: index.table,
        chunk: 0,
    };
    let chain = pages.directory.get(&key).unwrap().unwrap();
    let mut rows = BTreeMap::new();
    let mut reader = PageReader::new(pages.home.objects.clone());
    reader
        .chunk(&key, &chain, |slot, csn, bytes| {
            rows.insert(slot, (csn, bytes.to_vec()));
        })
        .unwrap();
    let free = (0..CHUNK_SLOTS)
        .find(|slot| !rows.contains_key(slot))
        .unwrap();
    rows.insert(free, rows[&0].clone());
    let mut chunks = ChunkWriter::new();
    let newest = rows.values().map(|(csn, _)| csn.get()).max().unwrap();
    chunks.begin(key.clone(), ImageKind::Whole, Csn(newest + 1));
    for (slot, (csn, bytes)) in &rows {
        chunks.row(*slot, *csn, bytes, writer).unwrap();
    }
    let chain = PageChain::whole(chunks.finish(writer).unwrap());
    ((key, chain), u64::from(free))
}

/// What the program says, and whether it is content.
fn fsck(dir: &Path, options: &[&str]) -> (String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logstead"));
    let done = command.arg("fsck").arg(dir).args(options).output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    (said, done.status.success())
}

/// Lines that tell of damage.
fn damage(said: &str) -> Vec<&str> {
    said.lines()
        .filter_map(|line| line.strip_prefix("DAMAGED: "))
        .collect()
}

const STATEMENTS: [&str; 4] = [
    "CREATE TABLE t (id int PRIMARY KEY, name text, score int)",
    "CREATE INDEX t_names ON t (lower(name)) WHERE score > 10",
    "INSERT INTO t SELECT g, 'Name ' || g, g FROM generate_series(1, 30) AS g",
    "DELETE FROM t WHERE id = 17",
];

/// What it says of a database once it is damaged in a way.
fn said_of(name: &str, change: impl FnOnce(&Pages) -> Box<Change>) -> String {
    let dir = directory(name);
    make(&dir, &STATEMENTS);
    let (said, is_clean) = fsck(&dir, &[]);
    assert!(is_clean, "{said}");
    // Both indexes of the table, the seven of the catalog's own tables, and those of large objects: two in each of four
    // databases.
    assert!(said.contains("indexes: 17 indexes with "), "{said}");
    assert!(
        said.contains(", 0 indexes to be made from rows; 0 damages"),
        "{said}"
    );
    let pages = Pages::open(&dir);
    let change = change(&pages);
    pages.publish(true, change);
    let (said, is_clean) = fsck(
        &dir,
        &["--restore-points", "--scratch", dir.to_str().unwrap()],
    );
    assert_eq!(is_clean, damage(&said).is_empty(), "{said}");
    said
}

type Change = dyn FnOnce(&Pages, &mut ObjectWriter<'_>) -> Vec<(PageKey, Option<PageChain>)>;

#[test]
fn a_row_whose_entry_is_gone_is_named() {
    let said = said_of("gone", |pages| {
        let index = pages.index("index t_names");
        Box::new(move |pages, writer| {
            let change = |entries: &mut BTreeSet<Vec<u8>>| {
                let rid = 20_u64.to_be_bytes();
                let entry = entries.iter().find(|entry| entry.ends_with(&rid)).cloned();
                entries.remove(&entry.unwrap());
            };
            vec![with_entries(pages, writer, &index, change)]
        })
    });
    let [found] = damage(&said)[..] else {
        panic!("{said}");
    };
    // The twenty-first row: "name 21".
    let expected =
        "database \"postgres\" table public.t index t_names: row 20 has no entry for its key ";
    assert!(found.starts_with(expected), "{said}");
    assert!(found.contains("6e616d65203231"), "{said}");
}

#[test]
fn a_row_that_has_no_entries_is_named() {
    let said = said_of("added", |pages| {
        let index = pages.index("index t_pkey");
        Box::new(move |pages, writer| vec![with_a_second_row(pages, writer, &index).0])
    });
    let found = damage(&said);
    let [found] = &found[..] else {
        panic!("{said}");
    };
    // The first row's score keeps it out of the other index.
    assert!(
        found.contains("table public.t index t_pkey: row "),
        "{said}"
    );
    assert!(found.contains(" has no entry for its key "), "{said}");
}

#[test]
fn rows_with_one_primary_key_are_named() {
    let said = said_of("twice", |pages| {
        let index = pages.index("index t_pkey");
        Box::new(move |pages, writer| {
            let (rows, free) = with_a_second_row(pages, writer, &index);
            let change = |entries: &mut BTreeSet<Vec<u8>>| {
                let first = 0_u64.to_be_bytes();
                let entry = entries.iter().find(|entry| entry.ends_with(&first));
                let mut entry = entry.unwrap()[..].to_vec();
                entry.truncate(entry.len() - 8);
                entry.extend_from_slice(&free.to_be_bytes());
                entries.insert(entry);
            };
            vec![rows, with_entries(pages, writer, &index, change)]
        })
    });
    let [found] = damage(&said)[..] else {
        panic!("{said}");
    };
    assert!(
        found.contains("table public.t index t_pkey: rows 0 and "),
        "{said}"
    );
    assert!(
        found.contains(" have one key in a unique index: "),
        "{said}"
    );
}

/// Entries of no row are legal: counted, no damage.
#[test]
fn surplus_entries_are_counted() {
    let said = said_of("surplus", |pages| {
        let index = pages.index("index t_pkey");
        Box::new(move |pages, writer| {
            let change = |entries: &mut BTreeSet<Vec<u8>>| {
                let mut entry = entries.last().unwrap().clone();
                entry.pop();
                entry.push(99);
                entries.insert(entry);
            };
            vec![with_entries(pages, writer, &index, change)]
        })
    });
    // Those of the deleted row, in both checkpoints, and the new one.
    assert!(said.contains(", 5 surplus entries, "), "{said}");
    assert!(said.contains("the log is good"), "{said}");
}

/// What is damaged and kept as a restore point is found if that is asked for.
#[test]
fn indexes_of_restore_points_are_compared_when_asked() {
    let dir = directory("points");
    make(&dir, &STATEMENTS);
    let pages = Pages::open(&dir);
    let index = pages.index("index t_names");
    pages.publish(false, |pages, writer| {
        vec![with_entries(pages, writer, &index, |entries| {
            entries.pop_first();
        })]
    });
    assert_eq!(damage(&fsck(&dir, &[]).0).len(), 1);
    // A sound one on top.
    let pages = Pages::open(&dir);
    let mut rows = StoredRows::new(&pages.home, &pages.record);
    let mut missing = Vec::new();
    rows.each(index.table, |rid, row| {
        let mut entry = Vec::new();
        if index.keys.key(row, &mut entry).has_entry() {
            entry.extend_from_slice(&rid.0.to_be_bytes());
            missing.push(entry);
        }
    })
    .unwrap();
    drop(rows);
    pages.publish(true, |pages, writer| {
        vec![with_entries(pages, writer, &index, |entries| {
            entries.extend(missing);
        })]
    });
    let (said, is_clean) = fsck(&dir, &[]);
    assert!(is_clean, "{said}");
    let (said, is_clean) = fsck(&dir, &["--restore-points"]);
    assert!(!is_clean, "{said}");
    let [found] = damage(&said)[..] else {
        panic!("{said}");
    };
    assert!(found.starts_with("checkpoint record "), "{said}");
    assert!(found.contains("index t_names: row "), "{said}");
}
