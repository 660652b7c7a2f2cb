//! Index keys from stored rows.
//!
//! Owns: [`RowKeys`], the engine's `KeyExtractor` of every user index.
//!
//! Invariants:
//! - A row's key never changes. The extractor is made when the index is, from the columns as they are then: positions
//!   never change, dropped columns keep theirs, rows older than a column have its `missing` value. Expressions are
//!   immutable functions of the row, evaluated with a fixed session ([`ImmutableContext`]), so that settings do not
//!   reach them.
//! - An expression that calls a function that users have made is not evaluated here: its value stands in the row
//!   ([`index_expressions`](logstead_sql_catalog::index_expressions)).
//! - An index whose text cannot be read at the start is invalid: it has no keys, and a row that a UNIQUE one would
//!   have to check is not written.
//! - An index that begins with its table's distribution columns, ascending and with NULLs last, is divided: the key of
//!   a row then begins with the row's distribution key, byte for byte, because both are the encoded columns.
//! - An expression that fails for a row is `KeyKind::Failed`. The engine refuses to write such a row, and to build an
//!   index over one that is current; so no current version lacks its entry. An older version may: only a snapshot from
//!   before the index sees it, and only a statement that computes the expression itself, and fails, would have found
//!   it.

use super::{EvalContext, StoredColumn};
use crate::context::ExecutorContext;
use logstead_engine::Txn;
use logstead_engine::{Index, KeyExtractor, KeyKind, RowRef};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::{Catalog, IndexDef, IndexKey, Relation};
use logstead_sql_plan::bind::index_expression::{ImmutableContext, bind_alone};
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::{check_for_interrupts, hold_interrupts};
use logstead_sql_types::value::key_length::KeyShape;
use logstead_sql_types::value::{Datum, OutputStyle, info, key, stored, text_io};
use logstead_types::SqlState;
use smallvec::SmallVec;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// How values become keys, and what immutable functions give. To be raised when either changes: indexes that were
/// stored by another version of the program are then built anew from rows.
const KEYS: u64 = 1;

enum Source {
    /// Straight from stored bytes: position, stored form for rows without the column (`None` is NULL).
    Column(usize, Option<Vec<u8>>),
    Expression(Expr),
}

struct IndexKeyColumn {
    source: Source,
    ty: TypeId,
    desc: bool,
    nulls_first: bool,
}

/// The columns at the beginning of an index's keys that its table is distributed by.
type LeadingShapes = SmallVec<[KeyShape; 4]>;

/// Keys of one index.
pub struct RowKeys {
    /// The table as it was when the index was made.
    relation: Relation,
    index: Arc<IndexDef>,
    parts: Vec<IndexKeyColumn>,
    predicate: Option<Expr>,
    /// The columns that expressions read.
    read: Vec<StoredColumn>,
    /// All columns that a key is made of, unless rows that lack one have another value there than NULL.
    positions: Option<Vec<usize>>,
    /// The index is divided by these columns; by none it is not.
    leading: LeadingShapes,
}

impl RowKeys {
    /// Are there expressions to evaluate, which take whatever time they take?
    pub fn computes(&self) -> bool {
        !self.read.is_empty() || self.predicate.is_some()
    }

    /// The extractor of `index` on `relation`.
    pub(crate) fn new(
        relation: &Relation,
        index: &Arc<IndexDef>,
        catalog: &Arc<Catalog>,
    ) -> Result<RowKeys> {
        if index.invalid.is_some() {
            return Ok(RowKeys::none(relation, index));
        }
        let bound = bind_alone(relation, index, catalog, super::evaluate)?;
        let mut positions = Vec::new();
        let mut all = bound.keys.iter().chain(&bound.predicate);
        if !all.all(|e| super::columns_read(e, &mut positions)) {
            return Err(SqlError::internal("an index expression with a subquery"));
        }
        if let Some(predicate) = &bound.predicate {
            super::columns_read(predicate, &mut positions);
        }
        let mut parts = Vec::with_capacity(bound.keys.len());
        for (column, expr) in index.columns.iter().zip(bound.keys) {
            let ty = expr.ty().oid;
            let position = match (&column.key, &expr) {
                (IndexKey::Column(position), _) => Some(*position),
                // Computed when the row was written.
                (IndexKey::Expression { .. }, Expr::Column(position, _)) => Some(*position),
                (IndexKey::Expression { .. }, _) => None,
            };
            let source = match position {
                None => Source::Expression(expr),
                Some(position) => {
                    let column = relation.columns.get(position).ok_or_else(|| {
                        SqlError::internal("an index on a column that is not there")
                    })?;
                    let missing = match &column.missing {
                        Datum::Null => None,
                        value => {
                            let mut bytes = Vec::new();
                            stored::encode(value, &mut bytes);
                            Some(bytes)
                        }
                    };
                    Source::Column(position, missing)
                }
            };
            parts.push(IndexKeyColumn {
                source,
                ty,
                desc: column.desc,
                nulls_first: column.nulls_first,
            });
        }
        positions.sort_unstable();
        positions.dedup();
        let reads_null = |position: usize| {
            let column = relation.columns.get(position);
            column.is_some_and(|column| column.missing == Datum::Null)
        };
        let plain = bound.predicate.is_none()
            && parts.iter().all(|p| matches!(p.source, Source::Column(..)));
        let read = if plain {
            Vec::new()
        } else {
            let read = positions.iter().map(|p| StoredColumn::of(relation, *p));
            read.collect::<Result<_>>()?
        };
        let shapes = |columns: usize| {
            let leading = parts.get(..columns)?.iter();
            leading.map(|part| KeyShape::of(part.ty)).collect()
        };
        let leading = relation.distribution.leads(index).and_then(shapes);
        Ok(RowKeys {
            relation: relation.clone(),
            index: Arc::clone(index),
            leading: leading.unwrap_or_default(),
            parts,
            predicate: bound.predicate,
            read,
            positions: positions
                .iter()
                .all(|p| reads_null(*p))
                .then_some(positions),
        })
    }

    /// Those of an index that is [invalid](IndexDef::invalid).
    fn none(relation: &Relation, index: &Arc<IndexDef>) -> RowKeys {
        RowKeys {
            relation: relation.clone(),
            index: Arc::clone(index),
            parts: Vec::new(),
            predicate: None,
            read: Vec::new(),
            positions: None,
            leading: LeadingShapes::new(),
        }
    }

    /// 55000 for a row that is to be written while the index is invalid and UNIQUE.
    fn refused(&self) -> Option<SqlError> {
        let why = self.index.invalid.as_ref().filter(|_| self.index.unique)?;
        let name = &self.index.name;
        Some(
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("index \"{name}\" cannot be kept: {why}"),
            )
            .hint("REINDEX the index, or drop it."),
        )
    }

    /// Stands for how keys are made: equal for two indexes only if each row has the same key in both. Stored with the
    /// index's leaves, so it follows from the definition alone, and from [`KEYS`].
    fn number(&self) -> u64 {
        let mut text = KEYS.to_le_bytes().to_vec();
        let mut add = |bytes: &[u8]| {
            text.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            text.extend_from_slice(bytes);
        };
        // No leaf of an index that was kept is one of this.
        if self.index.invalid.is_some() {
            add(b"invalid");
        }
        for (part, column) in self.parts.iter().zip(&self.index.columns) {
            add(&part.ty.get().to_le_bytes());
            // Since keys tell arrays apart by their dimensions.
            if info::element_of(part.ty).is_some() {
                add(b"dimensions");
            }
            add(&[u8::from(part.desc), u8::from(part.nulls_first)]);
            match (&part.source, &column.key) {
                (Source::Column(position, missing), _) => {
                    add(&(*position as u64).to_le_bytes());
                    add(missing.as_deref().unwrap_or_default());
                    add(&[u8::from(missing.is_some())]);
                }
                (Source::Expression(_), IndexKey::Expression { text, .. }) => add(text.as_bytes()),
                (Source::Expression(_), IndexKey::Column(_)) => add(b"?"),
            }
        }
        if let Some(predicate) = &self.index.predicate {
            add(b"WHERE");
            add(predicate.as_bytes());
        }
        // An entry lies in the partition that these columns say.
        if self.is_divided() {
            add(b"divided");
            add(&self.leading.len().to_le_bytes());
        }
        fnv1a(&text)
    }

    /// The index as it was made.
    pub fn index(&self) -> &Arc<IndexDef> {
        &self.index
    }

    /// The values of a row's key, none if it is not in the index; an error is the one that the statement that writes
    /// such a row fails with.
    pub fn values(&self, row: RowRef<'_>) -> Result<Vec<Datum>> {
        if let Some(refused) = self.refused() {
            return Err(refused);
        }
        let mut datums = Vec::new();
        self.decode(row, &mut datums)?;
        if let Some(predicate) = &self.predicate
            && !matches!(compute(predicate, &datums)?, Datum::Bool(true))
        {
            return Ok(Vec::new());
        }
        let value = |part: &IndexKeyColumn| match &part.source {
            Source::Column(position, _) => StoredColumn::of(&self.relation, *position)?.decode(row),
            Source::Expression(expr) => compute(expr, &datums),
        };
        self.parts.iter().map(value).collect()
    }

    /// A row's key as errors show it: `(names)=(values)`; `relation` and `index` have the names as
    /// they are now.
    pub fn described(
        &self,
        relation: &Relation,
        index: &IndexDef,
        row: RowRef<'_>,
        session: &dyn Context,
    ) -> Result<String> {
        let style = OutputStyle::of(session);
        let values = self.values(row)?;
        let texts: Vec<String> = values
            .iter()
            .zip(&index.columns)
            .map(|(value, column)| match value {
                Datum::Null => "null".to_owned(),
                value => text_io::message_text(value, column.ty(relation), &style),
            })
            .collect();
        let names: Vec<String> = index
            .columns
            .iter()
            .map(|column| session.index_column_shown(column, relation))
            .collect();
        Ok(format!("({})=({})", names.join(", "), texts.join(", ")))
    }

    fn decode(&self, row: RowRef<'_>, out: &mut Vec<Datum>) -> Result<()> {
        out.clear();
        out.resize(self.relation.columns.len(), Datum::Null);
        for column in &self.read {
            if let Some(slot) = out.get_mut(column.position) {
                *slot = column.decode(row)?;
            }
        }
        Ok(())
    }

    fn append(&self, row: RowRef<'_>, datums: &[Datum], out: &mut Vec<u8>) -> Result<KeyKind> {
        if let Some(predicate) = &self.predicate
            && !matches!(compute(predicate, datums)?, Datum::Bool(true))
        {
            return Ok(KeyKind::Absent);
        }
        let mut kind = KeyKind::Unique;
        for part in &self.parts {
            let is_null = match &part.source {
                Source::Column(position, missing) => {
                    let value = if row.is_missing(*position) {
                        missing.as_deref()
                    } else {
                        row.column(*position)
                    };
                    key::encode_key_stored(part.ty, value, part.desc, part.nulls_first, out)?;
                    value.is_none()
                }
                Source::Expression(expr) => {
                    let datum = compute(expr, datums)?;
                    key::encode_key(part.ty, &datum, part.desc, part.nulls_first, out);
                    datum.is_null()
                }
            };
            if is_null && !self.index.nulls_not_distinct {
                kind = KeyKind::Nullable;
            }
        }
        Ok(kind)
    }
}

fn compute(expr: &Expr, row: &[Datum]) -> Result<Datum> {
    let cx = EvalContext {
        params: &[],
        session: &ContextAdapter(&ImmutableContext::default()),
    };
    super::eval(expr, row, &cx)
}

thread_local! {
    /// The decoded row, taken for the time of one key.
    static DATUMS: Cell<Vec<Datum>> = const { Cell::new(Vec::new()) };
    /// Expressions of indexes were computed for a row.
    static COMPUTED: Cell<bool> = const { Cell::new(false) };
}

/// Looks for interrupts if expressions of indexes were computed on the thread since this was last asked: they take
/// whatever time they take, and are
/// not interrupted themselves. Whoever writes rows asks before each.
#[inline]
pub(crate) fn check_after_computing() -> Result<()> {
    match COMPUTED.take() {
        true => check_for_interrupts(),
        false => Ok(()),
    }
}

impl ExecutorContext<'_> {
    /// The transaction, for a write.
    #[inline]
    pub(crate) fn writing_txn(&mut self) -> Result<&mut Txn> {
        check_after_computing()?;
        self.txn()
    }
}

impl KeyExtractor for RowKeys {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        // Under locks of the engine, and of rows that are taken back, too: a key that was cancelled would leave its
        // entry behind.
        hold_interrupts(|| {
            if self.index.invalid.is_some() {
                return match self.index.unique {
                    true => KeyKind::Failed,
                    false => KeyKind::Absent,
                };
            }
            if !self.computes() {
                // A value that does not decode was damaged before it came here; reading the row reports it.
                return self.append(row, &[], out).unwrap_or(KeyKind::Failed);
            }
            COMPUTED.set(true);
            let mut datums = DATUMS.take();
            let key = self
                .decode(row, &mut datums)
                .and_then(|()| self.append(row, &datums, out));
            datums.clear();
            DATUMS.set(datums);
            key.unwrap_or(KeyKind::Failed)
        })
    }

    fn keys(&self) -> u64 {
        self.number()
    }

    fn columns(&self) -> Option<&[usize]> {
        self.positions.as_deref()
    }

    fn is_divided(&self) -> bool {
        !self.leading.is_empty()
    }

    #[inline]
    fn distribution_prefix(&self, key: &[u8]) -> Option<usize> {
        if !self.is_divided() {
            return None;
        }
        let mut length = 0;
        for column in &self.leading {
            length += column.column_length(key.get(length..)?)?;
        }
        Some(length)
    }

    fn definition(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(self)
    }
}

/// The 64-bit FNV-1a hash, never 0: the same on every machine, in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.max(1)
}

/// What extracts the keys of an index, as the catalog wants it.
pub fn extractor(
    relation: &Relation,
    index: &Arc<IndexDef>,
    catalog: &Arc<Catalog>,
) -> Result<Arc<dyn KeyExtractor>> {
    Ok(Arc::new(RowKeys::new(relation, index, catalog)?))
}

/// The keys of an index that the catalog made.
pub fn of(index: &Index) -> Option<&RowKeys> {
    index.definition()?.downcast_ref()
}
