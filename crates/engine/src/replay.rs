//! Bringing tables back from the log.
//!
//! Survivors come in CSN order. A row has one version after replay, stamped with the CSN that wrote it; slots that end
//! up empty are free.

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
use crate::row::{RowBuilder, RowError, RowRef};
use crate::rows::RID_MAX;
use crate::table::Table;
use crate::version::Guard;

pub use logstead_wal::recovery::Report as RecoveryReport;

type Tables = HashMap<TableId, Arc<Table>, FixedState>;

struct Replay {
    workers: usize,
    tables: Tables,
    builder: RowBuilder,
}

impl Replay {
    fn apply(&mut self, csn: Csn, records: &[u8]) -> Result<(), ReplayError> {
        // One guard per transaction: what is replaced is freed along the way.
        let guard = Guard::pin();
        for record in Records::new(records) {
            let record = record.map_err(|source| ReplayError::Records { csn, source })?;
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

    fn apply_record(
        &mut self,
        csn: Csn,
        record: &Record<'_>,
        guard: &Guard,
    ) -> Result<(), RowError> {
        let workers = self.workers;
        let (id, rid) = (record.table(), record.rid());
        if rid.0 >= RID_MAX {
            return Err(RowError::new("row number out of range"));
        }
        let rows = &self
            .tables
            .entry(id)
            .or_insert_with(|| Arc::new(Table::new(id, workers)))
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
    let log = recovery::Options {
        lanes: u16::try_from(lanes).map_err(|_| OpenError::Options("too many lanes".into()))?,
        lane: LaneConfig::default(),
        accept_data_loss: options.accept_data_loss,
    };
    let mut replay = Replay {
        workers: options.workers,
        tables: Tables::default(),
        builder: RowBuilder::new(),
    };
    let recovered = recovery::open(&home, &env, &log, &mut |csn, records| {
        replay.apply(csn, records).map_err(ApplyError::from)
    })?;
    let engine = Engine::with_lanes(
        &options,
        recovered.lanes,
        recovered.next_csn,
        replay.finish(),
    );
    Ok((engine, recovered.report))
}
