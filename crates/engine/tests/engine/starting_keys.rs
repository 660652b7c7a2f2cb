//! Keys that the log has changed behind the checkpoint: a start makes them of what the log says, without the rows
//! ([restore](logstead_engine::Engine::restore_index)).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use logstead_engine::{
    Engine, EngineOptions, Guard, IndexCursor, Isolation, KeyExtractor, KeyKind, LogHome,
    MemoryHome, RestoredIndex, Rid, RowBuilder, RowRef, Table, Txn, Worker, WriteError,
};
use logstead_env::Env;
use logstead_types::{IndexId, TableId, WorkerId};

use crate::world::{block_on, commit, number};

const TABLE: TableId = TableId(40_000);

/// Two columns, of which the engine is told or not.
#[derive(Clone, Copy)]
struct Pair {
    first: usize,
    second: usize,
    is_told: bool,
}

impl KeyExtractor for Pair {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        for column in [self.first, self.second] {
            match row.column(column) {
                Some(bytes) => out.extend_from_slice(bytes),
                None => return KeyKind::Absent,
            }
        }
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        7
    }

    fn columns(&self) -> Option<&[usize]> {
        const COLUMNS: [usize; 4] = [0, 1, 2, 3];
        self.is_told.then_some(&COLUMNS[self.first..=self.second])
    }
}

const TOLD: (IndexId, Pair) = (
    IndexId(40_001),
    Pair {
        first: 1,
        second: 2,
        is_told: true,
    },
);
const UNTOLD: (IndexId, Pair) = (
    IndexId(40_002),
    Pair {
        first: 0,
        second: 2,
        is_told: false,
    },
);

/// Shares a column with [`TOLD`].
const BESIDE: (IndexId, Pair) = (
    IndexId(40_003),
    Pair {
        first: 2,
        second: 3,
        is_told: true,
    },
);

type Model = BTreeMap<Rid, [i64; 4]>;

fn row(values: [i64; 4]) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 4);
    for value in values {
        builder.push(Some(&number(value)));
    }
    builder.finish().to_vec()
}

struct Place {
    memory: MemoryHome,
    engine: Engine,
    worker: Worker,
    table: Arc<Table>,
}

fn over(memory: &MemoryHome, indexes: &[(IndexId, Pair)], fault_threads: usize) -> Place {
    let home = LogHome::from(memory.clone());
    let options = EngineOptions {
        fault_threads,
        ..EngineOptions::default()
    };
    let opened = Engine::open(options, home, Env::simulated(1).0);
    let (engine, _) = opened.expect("opens");
    let table = engine.create_table(TABLE);
    let worker = engine.worker(WorkerId(0));
    let place = Place {
        memory: memory.clone(),
        engine,
        worker,
        table,
    };
    for index in indexes {
        place.bring(*index);
    }
    place.engine.finish_startup();
    place
}

impl Place {
    /// As a start makes it, or built.
    fn bring(&self, (id, pair): (IndexId, Pair)) {
        let keys = Arc::new(pair);
        let restored = self
            .engine
            .restore_index(&self.table, id, false, keys.clone());
        if let RestoredIndex::Restored(_) = restored.expect("read") {
            return;
        }
        let index = self.engine.create_index(&self.table, id, false, keys);
        let mut txn = self.begin();
        txn.build_index(&self.table, &index).expect("built");
    }

    fn begin(&self) -> Txn {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        txn
    }

    fn fill(&self, rows: i64) -> Model {
        let mut model = Model::new();
        let mut txn = self.begin();
        for at in 0..rows {
            let values = [at, at % 100, at / 100, 0];
            let rid = txn.insert(&self.table, &row(values)).expect("inserts");
            model.insert(rid, values);
        }
        commit(txn);
        self.engine.checkpoint().expect("taken");
        model
    }

    /// Changes one column.
    fn change(&self, txn: &mut Txn, model: &mut Model, rid: Rid, column: usize, to: i64) {
        txn.begin_statement();
        loop {
            let read = {
                let guard = Guard::pin();
                let read = txn.read(&self.table, rid, &guard);
                read.map(|row| row.expect("there").version)
            };
            let values = model.get_mut(&rid).expect("there");
            values[column] = to;
            let done = match read {
                Ok(version) => txn.update(&self.table, rid, version, &row(*values)),
                Err(absent) => Err(WriteError::Absent(absent)),
            };
            match done {
                Ok(()) => return,
                Err(WriteError::Absent(absent)) => block_on(absent.wait(txn)).expect("comes"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn crash(self) -> MemoryHome {
        block_on(self.engine.flush_all_and_wait()).expect("flushed");
        let memory = self.memory.clone();
        drop(self);
        memory.crash();
        memory
    }

    /// Each row is found once, in the order of keys.
    fn verify(&self, model: &Model, (id, pair): (IndexId, Pair)) {
        let index = self.table.index(id).expect("there");
        let mut expected: Vec<(Vec<u8>, Rid)> = Vec::new();
        for (rid, values) in model {
            let mut key = Vec::new();
            pair.key(RowRef::new(&row(*values)), &mut key);
            expected.push((key, *rid));
        }
        expected.sort();
        let expected: Vec<Rid> = expected.into_iter().map(|(_, rid)| rid).collect();
        let mut txn = self.begin();
        let mut cursor = IndexCursor::new(&index, Bound::Unbounded, Bound::Unbounded, false);
        let mut found = Vec::new();
        loop {
            let next = {
                let guard = Guard::pin();
                let next = txn.index_next(&mut cursor, &guard);
                next.map(|row| row.map(|row| row.rid))
            };
            match next {
                Ok(Some(rid)) => found.push(rid),
                Ok(None) => break,
                Err(absent) => block_on(absent.wait(&mut txn)).expect("comes"),
            }
        }
        assert_eq!(found, expected, "index {id}");
    }
}

/// One column of a key changes, or a column that no key is made of, several times; the start reads nothing of it, if it
/// is told which they are.
#[test]
fn keys_that_the_log_has_changed_are_made_without_their_rows() {
    for index in [TOLD, UNTOLD] {
        let place = over(&MemoryHome::new(8 << 20), &[index], 0);
        let mut model = place.fill(3_000);
        let mut txn = place.begin();
        for at in 0..40u64 {
            let rid = Rid(at * 70);
            place.change(&mut txn, &mut model, rid, 1, 1_000 + at as i64);
            place.change(&mut txn, &mut model, rid, 3, 5);
            if at % 3 == 0 {
                place.change(&mut txn, &mut model, rid, 2, 2_000 + at as i64);
            }
            if at % 4 == 0 {
                place.change(&mut txn, &mut model, rid, 0, -(at as i64));
            }
        }
        commit(txn);
        let memory = place.crash();
        let place = over(&memory, &[index], 0);
        let counts = place.engine.chunk_counts();
        if index.1.is_told {
            assert_eq!(place.engine.start_reads(), (0, 0));
            assert_eq!(counts.present, 0, "{counts:?}");
            assert!(counts.with_tails >= 30, "{counts:?}");
        } else {
            // But for rows of which the log happens to name every column.
            assert!(place.engine.start_reads().0 >= counts.present);
            assert!(counts.present > 30 && counts.with_tails < 5, "{counts:?}");
        }
        place.verify(&model, index);
        // And what the first checkpoint has of it.
        place.engine.checkpoint().expect("taken");
        let memory = place.crash();
        over(&memory, &[index], 4).verify(&model, index);
    }
}

/// Two indexes share a column, and one that only the other has changes: the record says nothing of the keys of the one,
/// or all of it, whichever comes first.
#[test]
fn keys_of_indexes_that_share_columns_are_made_without_their_rows() {
    for indexes in [[TOLD, BESIDE], [BESIDE, TOLD]] {
        let place = over(&MemoryHome::new(8 << 20), &indexes, 0);
        let mut model = place.fill(3_000);
        let mut txn = place.begin();
        for at in 0..40u64 {
            let column = if at % 2 == 0 { 1 } else { 3 };
            let to = 1_000 + at as i64;
            place.change(&mut txn, &mut model, Rid(at * 70), column, to);
        }
        commit(txn);
        let memory = place.crash();
        let place = over(&memory, &indexes, 0);
        let counts = place.engine.chunk_counts();
        assert_eq!(place.engine.start_reads(), (0, 0));
        assert_eq!(counts.present, 0, "{counts:?}");
        assert!(counts.with_tails >= 30, "{counts:?}");
        for index in indexes {
            place.verify(&model, index);
        }
    }
}

/// A transaction has written before the index was there, and commits behind the checkpoint that has it: what the log
/// says is not enough, and the chunks are brought in, on one thread or on several.
#[test]
fn a_key_of_which_the_log_says_a_part_is_made_of_its_row() {
    for threads in [0, 4] {
        let place = over(&MemoryHome::new(8 << 20), &[], threads);
        let mut model = place.fill(3_000);
        let mut txn = place.begin();
        for at in 0..40u64 {
            place.change(&mut txn, &mut model, Rid(at * 70), 1, 1_000 + at as i64);
        }
        place.bring(TOLD);
        // Or there would be nothing new to have.
        let mut other = place.begin();
        place.change(&mut other, &mut model, Rid(2_999), 3, 1);
        commit(other);
        place.engine.checkpoint().expect("taken");
        commit(txn);
        let memory = place.crash();
        let place = over(&memory, &[TOLD], threads);
        let (pages, bytes) = place.engine.start_reads();
        assert!(pages >= 30 && bytes > 0, "{pages} pages, {bytes} bytes");
        assert!(place.engine.chunk_counts().present >= 30);
        place.verify(&model, TOLD);
    }
}
