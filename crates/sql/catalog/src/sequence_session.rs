//! What one session does with sequences: `nextval`, `setval`, `currval`, `lastval`.
//!
//! Owns: which values the session was given last.
//!
//! Does not: hold the state of sequences, which is everybody's (`sequence`).

use crate::sequence::{LOG_AHEAD, SequenceDependency, locked, log};
use crate::{Catalog, Relation, RelationKind, SequenceDef};
use logstead_engine::Worker;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{Csn, SqlState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
fn resolve(catalog: &Catalog, sequence: RelationId) -> Result<(&Arc<Relation>, &SequenceDef)> {
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
    values: HashMap<RelationId, i64>,
    last: Option<RelationId>,
}

/// The same for another process of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SerializedSequences {
    values: BTreeMap<u32, i64>,
    last: Option<u32>,
}

impl SequenceSession {
    /// What the session was given.
    pub fn serialized(&self) -> SerializedSequences {
        SerializedSequences {
            values: self
                .values
                .iter()
                .map(|(of, value)| (of.get(), *value))
                .collect(),
            last: self.last.map(RelationId::get),
        }
    }

    /// Takes over what a session was given in another process.
    pub fn restore(&mut self, from: SerializedSequences) {
        let values = from.values.into_iter();
        self.values = values
            .map(|(of, value)| (RelationId::new(of), value))
            .collect();
        self.last = from.last.map(RelationId::new);
    }

    /// The next value. `told` hears of the CSN that the session's answer depends on, an error that no value is left
    /// included.
    pub fn nextval(
        &mut self,
        store: &super::store::CatalogStore,
        worker: &Worker,
        catalog: &Catalog,
        sequence: RelationId,
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
    pub fn currval(&self, catalog: &Catalog, sequence: RelationId) -> Result<i64> {
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
    pub fn last(&self) -> Option<RelationId> {
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
        sequence: RelationId,
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
