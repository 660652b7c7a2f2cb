//! Sequences: values handed out outside transactions, never twice.
//!
//! Owns: the state of every sequence and `nextval` / `setval` / `currval` / `lastval`.
//!
//! Invariant: every value handed out lies at or before the *logged* state, written by a small transaction of its own
//! that logs `LOG_AHEAD` values ahead: a crash skips values but never repeats one that a client saw, because the caller
//! adds the log record's CSN to its dependencies. The state belongs to the sequence's storage: RESTART makes a new
//! storage, so it rolls back.

use super::stored::{SEQUENCES, encode_sequence};
use super::{Catalog, Column, Relation, RelationKind, SequenceDef};
use logstead_engine::{Engine, RowBuilder, Worker, WriteError};
use logstead_sql_func::{Body, Function, Volatility};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, SqlType, info, oid};
use logstead_types::{Csn, Rid, SqlState, TableId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Values logged ahead, as in PostgreSQL.
const LOG_AHEAD: i64 = 32;

struct SequenceState {
    last: i64,
    called: bool,
    /// Values that may still be handed out before the next log record.
    ahead: i64,
    /// Row in the sequences' table; a temporary one has none.
    rid: Option<Rid>,
    /// CSN of the newest log record.
    csn: Csn,
}

/// All sequences of all databases, by storage.
#[derive(Default)]
pub struct Sequences(RwLock<HashMap<TableId, Arc<Mutex<SequenceState>>>>);

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
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
        let csn = super::store::autonomous(worker, |txn| {
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

    fn find(&self, storage: TableId) -> Option<Arc<Mutex<SequenceState>>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&storage)
            .cloned()
    }
}

fn log(
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
    state.csn = super::store::autonomous(worker, |txn| {
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
enum SequenceDependency {
    /// The one before it.
    Sequence,
    /// Whatever the caller may have read to find the value.
    Everything,
}

/// The value after `last`, or the error at the end of the sequence.
fn step(name: &str, def: &SequenceDef, last: i64) -> Result<i64> {
    let next = last
        .checked_add(def.increment)
        .filter(|v| (def.min..=def.max).contains(v));
    match next {
        Some(next) => Ok(next),
        None if def.cycle => Ok(if def.increment > 0 { def.min } else { def.max }),
        None => {
            let (which, limit) = if def.increment > 0 {
                ("maximum", def.max)
            } else {
                ("minimum", def.min)
            };
            Err(SqlError::new(
                SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("nextval: reached {which} value of sequence \"{name}\" ({limit})"),
            ))
        }
    }
}

/// The sequence with this OID.
fn resolve(catalog: &Catalog, sequence: Oid) -> Result<(&Arc<Relation>, &SequenceDef)> {
    let relation = catalog.relations.get(&sequence).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation with OID {sequence} does not exist"),
        )
    })?;
    match &relation.kind {
        RelationKind::Sequence(def) => Ok((relation, def)),
        _ => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a sequence", relation.name),
        )),
    }
}

/// One session's view of sequences: what `currval` and `lastval` give.
#[derive(Default)]
pub struct SequenceSession {
    values: HashMap<Oid, i64>,
    last: Option<Oid>,
}

impl SequenceSession {
    /// The next value. `told` hears of the CSN that the session's answer depends on, an error that no value is left
    /// included.
    pub fn nextval(
        &mut self,
        store: &super::store::CatalogStore,
        worker: &Worker,
        catalog: &Catalog,
        sequence: Oid,
        told: impl Fn(Csn),
    ) -> Result<i64> {
        let (relation, def) = resolve(catalog, sequence)?;
        let found = store.sequences().find(relation.storage);
        let shared = found.ok_or_else(|| {
            SqlError::internal(format!("sequence \"{}\" has no state", relation.name))
        })?;
        let mut state = locked(&shared);
        told(state.csn);
        let next = if state.called {
            step(&relation.name, def, state.last)?
        } else {
            state.last
        };
        if state.ahead == 0 {
            let mut far = next;
            let mut ahead = 1;
            while ahead < LOG_AHEAD.max(def.cache) {
                match far
                    .checked_add(def.increment)
                    .filter(|v| (def.min..=def.max).contains(v))
                {
                    Some(value) => far = value,
                    None => break,
                }
                ahead += 1;
            }
            log(
                store.engine(),
                worker,
                relation.storage,
                &mut state,
                (far, true),
                SequenceDependency::Sequence,
            )?;
            state.ahead = ahead;
        }
        state.ahead -= 1;
        state.last = next;
        state.called = true;
        self.values.insert(sequence, next);
        self.last = Some(sequence);
        told(state.csn);
        Ok(next)
    }

    /// The last value this session was given.
    pub fn currval(&self, catalog: &Catalog, sequence: Oid) -> Result<i64> {
        let (relation, _) = resolve(catalog, sequence)?;
        self.values.get(&sequence).copied().ok_or_else(|| {
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "currval of sequence \"{}\" is not yet defined in this session",
                    relation.name
                ),
            )
        })
    }

    /// The sequence that gave the last value, if it still exists or not.
    pub fn last(&self) -> Option<Oid> {
        self.last
    }

    /// The last value this session was given by any sequence that still exists.
    pub fn lastval(&self, catalog: &Catalog) -> Result<i64> {
        let last = self.last.filter(|oid| catalog.relations.contains_key(oid));
        last.and_then(|oid| self.values.get(&oid).copied())
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "lastval is not yet defined in this session",
                )
            })
    }

    /// Sets the sequence; gives the CSN the session's answer depends on.
    pub fn setval(
        &mut self,
        store: &super::store::CatalogStore,
        worker: &Worker,
        catalog: &Catalog,
        sequence: Oid,
        value: i64,
        called: bool,
    ) -> Result<Csn> {
        let (relation, def) = resolve(catalog, sequence)?;
        if !(def.min..=def.max).contains(&value) {
            let (name, min, max) = (&relation.name, def.min, def.max);
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})"
                ),
            ));
        }
        let found = store.sequences().find(relation.storage);
        let shared = found.ok_or_else(|| {
            SqlError::internal(format!("sequence \"{}\" has no state", relation.name))
        })?;
        let mut state = locked(&shared);
        log(
            store.engine(),
            worker,
            relation.storage,
            &mut state,
            (value, called),
            SequenceDependency::Everything,
        )?;
        state.ahead = 0;
        state.last = value;
        state.called = called;
        if called {
            self.values.insert(sequence, value);
        }
        Ok(state.csn)
    }

    /// DISCARD SEQUENCES.
    pub fn discard(&mut self) {
        *self = SequenceSession::default();
    }
}

/// The columns of every sequence read as a table.
const COLUMNS: [(&str, Oid); 3] = [
    ("last_value", oid::INT8),
    ("log_cnt", oid::INT8),
    ("is_called", oid::BOOL),
];

/// The columns of a sequence's relation.
pub fn columns() -> Vec<Column> {
    let column = |(name, ty): &(&str, Oid)| Column {
        name: (*name).to_owned(),
        ty: SqlType::of(*ty),
        not_null: true,
        default: None,
        identity: None,
        generated: false,
        sequence: None,
        dropped: false,
        domain: None,
        missing: Datum::Null,
    };
    COLUMNS.iter().map(column).collect()
}

/// The next number of an identity column: nextval, without a privilege on the sequence.
pub static OWN_NUMBER: Function = Function {
    oid: 1574,
    name: "nextval",
    args: &[oid::REGCLASS],
    variadic: None,
    result: oid::INT8,
    strict: true,
    volatility: Volatility::Volatile,
    body: Body::Context(|cx, args| match args {
        [Datum::Oid(sequence)] => cx.own_number(*sequence).map(Datum::Int8),
        _ => Ok(Datum::Null),
    }),
};

/// `SELECT * FROM sequence`: the one row of the sequence with this OID.
pub static SEQUENCE_ROW: Function = Function {
    oid: 3078,
    name: "pg_sequence_row",
    args: &[oid::OID],
    variadic: None,
    result: oid::RECORD,
    strict: true,
    volatility: Volatility::Volatile,
    body: Body::Set(|cx, args| match cx.catalog_call("pg_sequence_row", args)? {
        Datum::Array(row) => Ok(vec![row.items.clone()]),
        _ => Ok(Vec::new()),
    }),
};

/// Smallest and largest value of a sequence's type.
pub fn type_range(ty: Oid) -> (i64, i64) {
    match ty {
        oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Name of a sequence's type for messages.
pub fn type_label(ty: Oid) -> String {
    info::format_type(SqlType::of(ty))
}
