//! Replay by several threads: the same tables as by one, the same failure, and what it costs.

use logstead_home::{InlineAppends, LaneAppends, NamedValues};
use std::collections::HashSet;

use logstead_engine::{
    CommitOptions, Csn, Engine, EngineOptions, ExpectPresent, Guard, Isolation, LogHome,
    MemoryHome, OpenError, Rid, RowBuilder, RowRef, ScanCursor, TableId, WorkerId,
};
use logstead_env::{Buffer, Env};
use logstead_types::{BlockNo, LaneId};
use logstead_wal::block::{FORMAT_VERSION, HEADER_LEN, Header};
use logstead_wal::recovery::{self, RecoveryError};
use logstead_wal::{Entry, EntryBody, EntryDependencies, LaneConfig, RoomRequest, RowRecord};

use crate::world::number;

/// Bytes of entries in a block.
const BLOCK_BYTES: usize = 60_000;

/// Writes a log block by block, whatever its entries say: transaction by transaction, dealt out to lanes.
struct Forge {
    home: MemoryHome,
    lanes: Vec<ForgedLane>,
    start: (logstead_types::DatabaseId, logstead_types::Epoch),
    next: u64,
}

#[derive(Default)]
struct ForgedLane {
    payload: Vec<u8>,
    csns: Vec<u64>,
    block: u64,
    previous_header_crc: u32,
}

impl Forge {
    fn new(lanes: u16) -> Forge {
        let home = MemoryHome::new(4 << 20);
        let (env, _) = Env::simulated(1);
        let options = recovery::RecoveryOptions {
            lanes,
            lane: LaneConfig::default(),
            accept_data_loss: false,
            lease: logstead_wal::lease::LeaseOptions::default(),
        };
        let dynamic = LogHome::from(home.clone());
        let log = recovery::open(&dynamic, &env, &options, &mut |_, _| Ok(())).expect("a new log");
        Forge {
            home,
            lanes: (0..lanes).map(|_| ForgedLane::default()).collect(),
            start: (log.database, log.epoch),
            next: log.next_csn.0,
        }
    }

    /// The next transaction.
    fn push(&mut self, records: &[u8]) -> Csn {
        let csn = self.next;
        self.next += 1;
        // Runs of transactions in one lane, as workers make them.
        let index = (csn / 7 % self.lanes.len() as u64) as usize;
        let lane = &mut self.lanes[index];
        Entry {
            csn: Csn(csn),
            deps: EntryDependencies::floor(Csn(csn - 1)),
            body: EntryBody::Inline(records),
        }
        .encode(&mut lane.payload);
        lane.csns.push(csn);
        if lane.payload.len() >= BLOCK_BYTES {
            self.seal(index);
        }
        Csn(csn)
    }

    fn seal(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        let Some((&lowest, &highest)) = lane.csns.iter().min().zip(lane.csns.iter().max()) else {
            return;
        };
        let header = Header {
            version: FORMAT_VERSION,
            database: self.start.0,
            epoch: self.start.1,
            lane: LaneId(index as u16),
            block: BlockNo(lane.block),
            durable_through: lane.block,
            payload_len: lane.payload.len() as u32,
            entries: lane.csns.len() as u32,
            csn_lowest: Csn(lowest),
            csn_highest: Csn(highest),
            payload_crc: crc32c::crc32c(&lane.payload),
            previous_header_crc: lane.previous_header_crc,
            horizon: Csn::ZERO,
        };
        let (bytes, crc) = header.encode();
        let (of, home) = (LaneId(index as u16), &self.home);
        let len =
            (HEADER_LEN + lane.payload.len()).next_multiple_of(home.capabilities().block_alignment);
        let mut block = Buffer::zeroed(len);
        block.as_mut_slice()[..HEADER_LEN].copy_from_slice(&bytes);
        block.as_mut_slice()[HEADER_LEN..HEADER_LEN + lane.payload.len()]
            .copy_from_slice(&lane.payload);
        home.ensure_room(of, len as u64, &mut RoomRequest::default())
            .expect("room");
        let at = home.place(of, len as u64).expect("a place");
        home.append_inline(of, at, &block, len).expect("appended");
        *lane = ForgedLane {
            block: lane.block + 1,
            previous_header_crc: crc,
            ..ForgedLane::default()
        };
    }

    fn finish(mut self) -> MemoryHome {
        (0..self.lanes.len()).for_each(|lane| self.seal(lane));
        self.home.crash();
        self.home
    }
}

const TABLES: [TableId; 2] = [TableId(20_000), TableId(20_500)];

/// Three columns: the rid, a number, and `wide` bytes.
fn row(rid: u64, n: i64, wide: usize) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 3);
    builder.push(Some(&number(rid as i64)));
    builder.push(Some(&number(n)));
    builder.push(Some(&vec![n as u8; wide]));
    builder.finish().to_vec()
}

/// Changes the second column: schema version, columns, column number, length + 1, bytes.
fn delta(n: i64) -> Vec<u8> {
    let mut delta = vec![1, 0, 3, 1, 9];
    delta.extend_from_slice(&number(n));
    delta
}

fn open(home: &MemoryHome, threads: usize, memory_bytes: u64) -> Result<Engine, OpenError> {
    let (env, _) = Env::simulated(1);
    let options = EngineOptions {
        replay_threads: threads,
        memory_bytes,
        commit: CommitOptions {
            blocks_in_flight_max: 1,
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    home.crash();
    let (engine, _) = Engine::open(options, LogHome::from(home.clone()), env)?;
    engine.bring_all(|| true).expect("everything can be read");
    Ok(engine)
}

/// Rows of a table: rid, number, and length.
type Rows = Vec<(u64, u64, usize)>;

fn rows(engine: &Engine, table: TableId) -> Rows {
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let table = engine.create_table(table);
    let guard = Guard::pin();
    let mut cursor = ScanCursor::new(&table);
    let mut rows = Vec::new();
    let number = |row: RowRef<'_>| {
        let bytes: [u8; 8] = row.column(1).expect("not null").try_into().expect("eight");
        u64::from_be_bytes(bytes) ^ 1 << 63
    };
    while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
        rows.push((row.rid.0, number(row.bytes), row.bytes.bytes().len()));
    }
    rows.sort_unstable();
    rows
}

/// A random history of 12,000 transactions over a few thousand rows of two tables, some of them hot, and what must
/// come of it.
fn history(seed: u64, lanes: u16) -> (MemoryHome, [Rows; 2]) {
    let (env, _) = Env::simulated(seed);
    let below = |limit: u64| env.random.u64() % limit;
    let mut forge = Forge::new(lanes);
    let mut state: [Vec<Option<(i64, usize)>>; 2] = [vec![None; 5000], vec![None; 3000]];
    let mut records = Vec::new();
    for n in 0..12_000i64 {
        records.clear();
        for _ in 0..1 + below(3) {
            let which = below(2) as usize;
            let mut rid = below(state[which].len() as u64);
            if below(4) == 0 {
                rid %= 3;
            }
            let (table, rid) = (TABLES[which], Rid(rid));
            let known = &mut state[which][rid.0 as usize];
            match known {
                None => {
                    let wide = below(60) as usize;
                    let row = row(rid.0, n, wide);
                    RowRecord::Insert {
                        table,
                        rid,
                        row: &row,
                    }
                    .encode(&mut records);
                    *known = Some((n, wide));
                }
                Some(_) if below(5) == 0 => {
                    RowRecord::Delete { table, rid }.encode(&mut records);
                    *known = None;
                }
                Some(row) => {
                    let delta = delta(n);
                    RowRecord::Update {
                        table,
                        rid,
                        delta: &delta,
                    }
                    .encode(&mut records);
                    row.0 = n;
                }
            }
        }
        forge.push(&records);
    }
    let rows = state.map(|rows| {
        let there = rows.iter().enumerate();
        let there = there.filter_map(|(rid, row)| row.map(|(n, wide)| (rid as u64, n, wide)));
        there
            .map(|(rid, n, wide)| (rid, n as u64, row(rid, n, wide).len()))
            .collect()
    });
    (forge.finish(), rows)
}

#[test]
fn any_number_of_threads_gives_the_same_tables() {
    for (seed, lanes) in [(1, 1), (2, 3)] {
        let (home, expected) = history(seed, lanes);
        for threads in [1, 2, 5] {
            let engine = open(&home, threads, u64::MAX).expect("opens");
            for (table, expected) in TABLES.into_iter().zip(&expected) {
                assert_eq!(
                    &rows(&engine, table),
                    expected,
                    "{lanes} lanes, {threads} threads"
                );
                // The slots of deleted rows are free, the lowest one first, and no others.
                let worker = engine.worker(WorkerId(0));
                let mut txn = worker.begin(Isolation::ReadCommitted);
                let used: HashSet<u64> = expected.iter().map(|row| row.0).collect();
                let free = (0..).find(|rid| !used.contains(rid));
                let table = engine.create_table(table);
                let rid = txn.insert(&table, &row(0, 0, 0)).expect("inserts");
                assert_eq!(Some(rid.0), free);
            }
        }
    }
}

/// Of several bad records, all thread counts name the one that comes first.
#[test]
fn the_first_record_that_cannot_be_applied_is_named() {
    for seed in 0..2u64 {
        let mut forge = Forge::new(2);
        let (mut bad, mut records) = (Vec::new(), Vec::new());
        for rid in 0..12_000u64 {
            records.clear();
            let (table, row) = (TABLES[0], row(rid, 0, 40));
            if rid > 4_000 + seed * 3000 && rid % 1024 == seed {
                // A row of a chunk that nobody has made.
                let (rid, delta) = (Rid(rid + 100_000), &delta(1)[..]);
                RowRecord::Update { table, rid, delta }.encode(&mut records);
                bad.push((forge.push(&records), rid));
            } else {
                let (rid, row) = (Rid(rid), &row[..]);
                RowRecord::Insert { table, rid, row }.encode(&mut records);
                forge.push(&records);
            }
        }
        let home = forge.finish();
        let (csn, rid) = bad[0];
        assert!(bad.len() > 3);
        for threads in [1, 2, 5] {
            let Err(OpenError::Recovery(error)) = open(&home, threads, u64::MAX) else {
                panic!("{threads} threads apply what cannot be applied")
            };
            assert!(matches!(error, RecoveryError::Apply { csn: found, .. } if found == csn));
            let text = error.to_string();
            let row = format!(
                "row {rid} of table {} at CSN {csn}: not a valid row: an update of a row that does not exist",
                TABLES[0]
            );
            assert!(text.contains(&row), "{threads} threads: {text}");
        }
    }
}

/// Replaced versions are freed along the way: what fits at the end fits during replay, with any number of threads.
#[test]
fn a_long_history_of_few_rows_needs_the_memory_of_few_rows() {
    let mut forge = Forge::new(1);
    let mut records = Vec::new();
    for n in 0..24_000u64 {
        records.clear();
        let (table, rid) = (TABLES[0], Rid(n * 1024 % 8192));
        let row = &row(rid.0, n as i64, 400)[..];
        RowRecord::Insert { table, rid, row }.encode(&mut records);
        forge.push(&records);
    }
    let home = forge.finish();
    for threads in [1, 2, 4] {
        // All versions together take twice as much.
        let engine = open(&home, threads, 8 << 20).expect("fits");
        assert_eq!(rows(&engine, TABLES[0]).len(), 8);
    }
}

#[test]
fn a_log_that_does_not_fit_is_refused_alike_by_any_number_of_threads() {
    let mut forge = Forge::new(2);
    let mut records = Vec::new();
    for rid in 0..16_000u64 {
        records.clear();
        let (table, rid, row) = (TABLES[0], Rid(rid), &row(rid, 0, 400)[..]);
        RowRecord::Insert { table, rid, row }.encode(&mut records);
        forge.push(&records);
    }
    let home = forge.finish();
    let used = open(&home, 1, u64::MAX)
        .expect("opens")
        .memory()
        .used_bytes();
    let before = home.get("manifest").expect("reads");
    for threads in [1, 2, 4] {
        match open(&home, threads, 5 << 20).map(|_| ()) {
            Err(OpenError::Memory { needed_bytes, .. }) => assert!(
                needed_bytes > used / 10 * 8 && needed_bytes < used / 10 * 11,
                "{threads} threads: {needed_bytes} of {used}"
            ),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        home.get("manifest").expect("reads"),
        before,
        "nothing was written"
    );
}

/// What this process has used of all cores.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<f64> = stat
        .split(' ')
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    (fields[13] + fields[14]) / 100.0
}

/// `cargo test --release -p logstead-engine --test engine -- --ignored --nocapture measure_replay`
#[test]
#[ignore = "measures, asserts nothing"]
fn measure_replay() {
    for (what, inserts, wide) in [
        ("updates of 100-byte rows", 100_000, 70),
        ("inserts of 1,000-byte rows", u64::MAX, 970),
    ] {
        for lanes in [1, 2] {
            let mut forge = Forge::new(lanes);
            let mut records = Vec::new();
            let entries: u64 = if wide > 500 { 200_000 } else { 2_000_000 };
            for n in 0..entries {
                records.clear();
                let table = TABLES[0];
                let rid = Rid(n.wrapping_mul(0x9e37_79b9) % inserts);
                if n < inserts {
                    let rid = Rid(n);
                    let row = &row(rid.0, n as i64, wide)[..];
                    RowRecord::Insert { table, rid, row }.encode(&mut records);
                } else {
                    let delta = &delta(n as i64)[..];
                    RowRecord::Update { table, rid, delta }.encode(&mut records);
                }
                forge.push(&records);
            }
            let home = forge.finish();
            for threads in [1, 2, 1, 2] {
                let env = Env::real();
                let options = EngineOptions {
                    replay_threads: threads,
                    ..EngineOptions::default()
                };
                home.crash();
                let (begun, cpu_begun) = (env.clock.monotonic(), cpu_seconds());
                let (_engine, report) =
                    Engine::open(options, LogHome::from(home.clone()), env.clone()).expect("opens");
                let took = env.clock.monotonic().since(begun).as_secs_f64();
                println!(
                    "{what}, {lanes} lanes, {threads} threads: {:.2} s ({:.2} s of CPU), {:.2} M entries/s, {:.0} MB/s of records; {:?}",
                    took,
                    cpu_seconds() - cpu_begun,
                    report.entries as f64 / took / 1e6,
                    report.bytes as f64 / took / 1e6,
                    report.took
                );
            }
        }
    }
}
