//! Sequences: values handed out outside transactions, never twice.
//!
//! Owns: the state of every sequence. What a session asks of them is in `sequence_session`.
//!
//! Invariant: every value handed out lies at or before the *logged* state, written by a small transaction of its own
//! that logs `LOG_AHEAD` values ahead: a crash skips values but never repeats one that a client saw, because the caller
//! adds the log record's CSN to its dependencies. The state belongs to the sequence's storage: RESTART makes a new
//! storage, so it rolls back.

use super::stored::{SEQUENCES, encode_sequence};
use logstead_engine::{Engine, RowBuilder, Worker, WriteError};
use logstead_sql_func::{CatalogSet, Function, FunctionImpl, Volatility};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, oid};
use logstead_sql_types::{FunctionId, RelationId};
use logstead_types::{Csn, Rid, TableId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Values logged ahead, as in PostgreSQL.
pub(crate) const LOG_AHEAD: i64 = 32;

pub(crate) struct SequenceState {
    pub(crate) last: i64,
    pub(crate) called: bool,
    /// Values that may still be handed out before the next log record.
    pub(crate) ahead: i64,
    /// Row in the sequences' table; a temporary one has none.
    pub(crate) rid: Option<Rid>,
    /// CSN of the newest log record.
    pub(crate) csn: Csn,
}

/// All sequences of all databases, by storage.
#[derive(Default)]
pub struct Sequences(RwLock<HashMap<TableId, Arc<Mutex<SequenceState>>>>);

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sequences {
    /// Takes a sequence found at start.
    pub fn load(&self, storage: TableId, last: i64, called: bool, rid: Rid) {
        let state = SequenceState {
            last,
            called,
            ahead: 0,
            rid: Some(rid),
            csn: Csn::ZERO,
        };
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(storage, Arc::new(Mutex::new(state)));
    }

    /// Makes the state of a new storage; it exists from now on whatever becomes of the transaction that wants it.
    pub fn create(
        &self,
        engine: &Engine,
        worker: &Worker,
        storage: TableId,
        last: i64,
        called: bool,
    ) -> Result<Csn> {
        let mut builder = RowBuilder::new();
        let row = encode_sequence(&mut builder, storage, last, called);
        let table = engine
            .table(SEQUENCES)
            .ok_or_else(|| SqlError::internal("no table of sequences"))?;
        let mut rid = Rid(0);
        let csn = crate::autonomous_txn::autonomous(worker, |txn| {
            rid = txn.insert(&table, &row)?;
            Ok(())
        })?;
        let state = SequenceState {
            last,
            called,
            ahead: 0,
            rid: Some(rid),
            csn,
        };
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(storage, Arc::new(Mutex::new(state)));
        Ok(csn)
    }

    /// The same for a temporary sequence: nothing is logged, now or later.
    pub fn create_temporary(&self, storage: TableId, last: i64, called: bool) {
        let state = SequenceState {
            last,
            called,
            ahead: 0,
            rid: None,
            csn: Csn::ZERO,
        };
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(storage, Arc::new(Mutex::new(state)));
    }

    /// Forgets a storage that nothing refers to any more.
    pub fn forget(&self, storage: TableId) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&storage);
    }

    /// No record of any sequence is newer.
    pub fn newest(&self) -> Csn {
        let states = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let newest = states.values().map(|state| locked(state).csn).max();
        newest.unwrap_or_default()
    }

    /// Last value and whether it was handed out.
    pub fn peek(&self, storage: TableId) -> Option<(i64, bool)> {
        let state = self.find(storage)?;
        let state = locked(&state);
        Some((state.last, state.called))
    }

    /// The same, and the CSN of what it rests on.
    pub fn state(&self, storage: TableId) -> Option<(i64, bool, Csn)> {
        let state = self.find(storage)?;
        let state = locked(&state);
        Some((state.last, state.called, state.csn))
    }

    pub(crate) fn find(&self, storage: TableId) -> Option<Arc<Mutex<SequenceState>>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&storage)
            .cloned()
    }
}

pub(crate) fn log(
    engine: &Engine,
    worker: &Worker,
    storage: TableId,
    state: &mut SequenceState,
    (last, called): (i64, bool),
    rests_on: SequenceDependency,
) -> Result<()> {
    // A temporary one's is nowhere.
    let Some(rid) = state.rid else {
        return Ok(());
    };
    let mut builder = RowBuilder::new();
    let row = encode_sequence(&mut builder, storage, last, called);
    let table = engine
        .table(SEQUENCES)
        .ok_or_else(|| SqlError::internal("no table of sequences"))?;
    state.csn = crate::autonomous_txn::autonomous(worker, |txn| {
        let guard = txn.pin();
        let version = txn
            .read_newest(&table, rid, &guard)?
            .ok_or(WriteError::Gone)?
            .version;
        if rests_on == SequenceDependency::Everything {
            txn.depends_on_everything();
        }
        txn.update(&table, rid, version, &row)
    })?;
    Ok(())
}

/// What a sequence's record must not survive without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SequenceDependency {
    /// The one before it.
    Sequence,
    /// Whatever the caller may have read to find the value.
    Everything,
}

/// The next number of an identity column: nextval, without a privilege on the sequence.
pub static OWN_NUMBER: Function = Function {
    oid: FunctionId::new(1574),
    name: "nextval",
    args: &[oid::REGCLASS],
    variadic: None,
    result: oid::INT8,
    strict: true,
    volatility: Volatility::Volatile,
    body: FunctionImpl::Sequence(|cx, args| match args {
        [Datum::Oid(sequence)] => cx.own_number(RelationId::new(*sequence)).map(Datum::Int8),
        _ => Ok(Datum::Null),
    }),
};

/// `SELECT * FROM sequence`: the one row of the sequence with this OID.
pub static SEQUENCE_ROW: Function = Function {
    oid: FunctionId::new(3078),
    name: "pg_sequence_row",
    args: &[oid::OID],
    variadic: None,
    result: oid::RECORD,
    strict: true,
    volatility: Volatility::Volatile,
    body: FunctionImpl::CatalogSet(CatalogSet::SequenceRow),
};
