//! Bringing tables back from the log.
//!
//! Survivors come in CSN order. A row has one version after replay, stamped with the CSN that wrote it; slots that end
//! up empty are free.
//!
//! What does not fit in the memory budget is not held: from there on rows are only counted, so that the refusal can say
//! how much they need.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use logstead_env::Env;
use logstead_home::LogHome;
use logstead_types::{Csn, TableId};
use logstead_wal::recovery::{self, ApplyError};
use logstead_wal::{LaneConfig, Record, Records};

use crate::delta;
use crate::engine::{Engine, EngineOptions};
use crate::error::{OpenError, ReplayError};
use crate::memory::{ALLOWANCE_BYTES_MAX, Account, Memory};
use crate::row::{RowBuilder, RowError, RowRef};
use crate::rows::RID_MAX;
use crate::table::Table;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, Guard, version_bytes};

pub use logstead_wal::recovery::Report as RecoveryReport;

type Tables = HashMap<TableId, Arc<Table>, FixedState>;

/// Steps that let the collector free what is retired: it frees what was retired two steps before.
const FLUSHES: usize = 4;

struct Replay {
    workers: usize,
    tables: Tables,
    builder: RowBuilder,
    memory: &'static Memory,
    /// Bytes that may be taken before the next look at the account.
    allowance: u64,
    /// Once the budget is used up: what the rows seen since then take.
    beyond: Option<Beyond>,
}

/// Rows that did not fit in memory.
#[derive(Default)]
struct Beyond {
    bytes: u64,
    inserted: u64,
    /// A deleted row gives back what rows take on average: its own size is not known any more.
    deleted: u64,
}

impl Beyond {
    fn count(&mut self, record: &Record<'_>) {
        match record {
            Record::Insert { row, .. } => {
                self.bytes += version_bytes(row.len()) as u64;
                self.inserted += 1;
            }
            // The row stays about as long as it was.
            Record::Update { .. } => {}
            Record::Delete { .. } => self.deleted += 1,
        }
    }

    /// What is needed besides `used` bytes for `rows` rows.
    fn needed(&self, used: u64, rows: u64) -> u64 {
        let seen = (rows + self.inserted).max(1);
        let left = u128::from(seen.saturating_sub(self.deleted));
        let average = u128::from(used + self.bytes) * left / u128::from(seen);
        let chunks = self.inserted.div_ceil(CHUNK_SLOTS as u64) * CHUNK_BYTES as u64;
        u64::try_from(average).unwrap_or(u64::MAX) + chunks
    }
}

impl Replay {
    fn apply(&mut self, csn: Csn, records: &[u8]) -> Result<(), ReplayError> {
        // What is replaced is freed along the way.
        let mut guard = Guard::pin();
        for record in Records::new(records) {
            let record = record.map_err(|source| ReplayError::Records { csn, source })?;
            self.look(&record, &mut guard);
            if let Some(beyond) = &mut self.beyond {
                beyond.count(&record);
                continue;
            }
            let (table, rid) = (record.table(), record.rid());
            self.apply_record(csn, &record, &guard)
                .map_err(|source| ReplayError::Row {
                    csn,
                    table,
                    rid,
                    source,
                })?;
        }
        Ok(())
    }

    /// Finds out whether the budget is used up, every so many bytes.
    fn look(&mut self, record: &Record<'_>, guard: &mut Guard) {
        let bytes = match record {
            Record::Insert { row, .. } => version_bytes(row.len()),
            Record::Update { delta, .. } => version_bytes(delta.len()),
            Record::Delete { .. } => 0,
        } as u64;
        if let Some(left) = self.allowance.checked_sub(bytes) {
            self.allowance = left;
            return;
        }
        if self.beyond.is_none() {
            if self.memory.left_bytes(true) < bytes + ALLOWANCE_BYTES_MAX {
                // Much of it may be versions replaced and not freed yet.
                for _ in 0..FLUSHES {
                    guard.flush();
                    guard.refresh();
                }
            }
            if self.memory.left_bytes(true) < bytes {
                self.beyond = Some(Beyond::default());
            }
        }
        self.allowance = ALLOWANCE_BYTES_MAX.min(self.memory.left_bytes(true) / 4);
    }

    fn apply_record(
        &mut self,
        csn: Csn,
        record: &Record<'_>,
        guard: &Guard,
    ) -> Result<(), RowError> {
        let (workers, memory) = (self.workers, self.memory);
        let (id, rid) = (record.table(), record.rid());
        if rid.0 >= RID_MAX {
            return Err(RowError::new("row number out of range"));
        }
        let rows = &self
            .tables
            .entry(id)
            .or_insert_with(|| Arc::new(Table::new(id, workers, memory)))
            .rows;
        rows.claim_rid(rid);
        let (chunk, slot) = rows.slot_or_new(rid);
        match record {
            Record::Insert { row, .. } => {
                let row = RowRef::parse(row)?;
                chunk.replace_committed(slot, csn, Some(row.bytes()), guard);
            }
            Record::Update { delta: changes, .. } => {
                let old = rows
                    .head(rid, guard)
                    .ok_or(RowError::new("an update of a row that does not exist"))?;
                let row = delta::apply(RowRef::new(old.row()), changes, &mut self.builder)?;
                chunk.replace_committed(slot, csn, Some(row), guard);
            }
            Record::Delete { .. } => chunk.replace_committed(slot, csn, None, guard),
        }
        Ok(())
    }

    fn finish(self) -> Tables {
        let mut guard = Guard::pin();
        for table in self.tables.values() {
            table.rows.collect_free_rids(&guard);
            guard.refresh();
        }
        self.tables
    }
}

/// Opens the log, replays it, and makes the engine over its new lanes.
pub(crate) fn open(
    options: EngineOptions,
    home: Arc<dyn LogHome>,
    env: Env,
) -> Result<(Engine, RecoveryReport), OpenError> {
    let lanes = options.workers.div_ceil(options.workers_per_lane);
    let lane = LaneConfig {
        // The executor flushes whenever it is idle: with several blocks in flight each would hold little.
        blocks_in_flight_max: Some(1),
        ..LaneConfig::default()
    };
    let account = Account::open(options.memory_bytes);
    let memory = account.memory();
    let mut buffers = memory.charge();
    let buffer_bytes = lanes.saturating_mul(lane.buffer_bytes_max(&home.facts()));
    if buffers.set(buffer_bytes).is_err() {
        return Err(OpenError::Options(format!(
            "a memory budget of {} bytes has no room for the buffers of {lanes} lanes, {buffer_bytes} bytes",
            options.memory_bytes
        )));
    }
    let log = recovery::Options {
        lanes: u16::try_from(lanes).map_err(|_| OpenError::Options("too many lanes".into()))?,
        lane,
        accept_data_loss: options.accept_data_loss,
    };
    let mut replay = Replay {
        workers: options.workers,
        tables: Tables::default(),
        builder: RowBuilder::new(),
        memory,
        allowance: 0,
        beyond: None,
    };
    let recovered = recovery::open(&home, &env, &log, &mut |csn, records| {
        replay.apply(csn, records).map_err(ApplyError::from)
    })?;
    if let Some(beyond) = &replay.beyond {
        let rows = replay.tables.values().map(|t| t.rows.rid_end()).sum();
        return Err(OpenError::Memory {
            needed_bytes: beyond.needed(memory.used_bytes(), rows),
            budget_bytes: options.memory_bytes,
        });
    }
    let engine = Engine::with_lanes(
        &options,
        recovered.lanes,
        recovered.next_csn,
        replay.finish(),
        account,
        buffers,
    );
    Ok((engine, recovered.report))
}
