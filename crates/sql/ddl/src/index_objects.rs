//! Indexes as DDL makes them: registered, built, checked. What a statement may say of one is decided in `index`;
//! that none of its entries is missing is the engine's proof (`index_build`).

use super::index_expression_columns::PendingIndexBuild;
use super::{DdlContext, index_expression_columns};
use crate::relations::name_taken;
use crate::table_rewrite::{SCAN_ROWS, yield_once};
use logstead_engine::{Index, ScanCursor, Table, WriteError};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::routine::named_in;
use logstead_sql_catalog::storages::attach_index;
use logstead_sql_catalog::stored::RELATIONS;
use logstead_sql_catalog::{Catalog, IndexDef, Relation};
use logstead_sql_exec::index_keys::RowKeys;
use logstead_sql_exec::{index_keys, may_show_key};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user;
use logstead_types::SqlState;
use std::sync::Arc;

/// Rows that go into an index between two looks at who else wants the worker.
const STEP_ROWS_MAX: u64 = 4_096;

/// The same if keys are computed: the first rows may be long ones, whatever steps without rows have taken.
const STEP_ROWS_COMPUTED: u64 = 16;

/// About how long a step may take.
const STEP_US: i64 = 1_000;

/// Rows of the step after one of `rows` whose keys took so long to compute.
fn rows_of_next_step(rows: u64, took_us: i64) -> u64 {
    match took_us {
        ..STEP_US => (rows * 2).min(STEP_ROWS_COMPUTED),
        STEP_US..=4_000 => rows,
        _ => 1,
    }
}

impl DdlContext<'_> {
    /// Stores a new index, attaches it to the table's storage and fills it: unless rows that are there must first have
    /// what is computed for it.
    pub(super) async fn create_index(
        &mut self,
        relation: &Relation,
        mut index: IndexDef,
    ) -> Result<Arc<IndexDef>> {
        let named = index.texts().into_iter().flat_map(named_in);
        self.lock_routines(named.collect::<Vec<_>>()).await?;
        for ty in index.texts().into_iter().flat_map(user::types_named) {
            self.lock_type(ty).await?;
        }
        let prepared = index_expression_columns::add_expression_columns(&mut index, self).await?;
        let relation = prepared.as_deref().unwrap_or(relation);
        if relation.is_temporary() {
            self.temporary_name_is_free(relation.schema, &index.name, index.oid)?;
        } else {
            let row = self.index_row(relation.schema, &index)?;
            if !self.insert_row(RELATIONS, &row).await? {
                return Err(name_taken(&index.name));
            }
        }
        if prepared.is_some()
            && index_expression_columns::must_wait_for_rows(relation, self).await?
        {
            let pending_builds = PendingIndexBuild {
                index: index.clone(),
                old: None,
            };
            self.state.defer_index_build(pending_builds);
            return Ok(Arc::new(index));
        }
        let index = Arc::new(index);
        self.attach(relation, &index).await?;
        self.state.push(CatalogChange::PutIndex(Arc::clone(&index)));
        Ok(index)
    }

    /// Attaches an index to the table's storage and fills it, some rows at a time, while writers go on. Whatever goes
    /// wrong, the statement's undoing detaches it again.
    pub(super) async fn attach(
        &mut self,
        relation: &Relation,
        index: &Arc<IndexDef>,
    ) -> Result<()> {
        let catalog = self.catalog()?;
        self.attach_of(relation, index, &catalog).await
    }

    /// The same, of a table that this catalog has: keys are computed by what is in it.
    pub(super) async fn attach_of(
        &mut self,
        relation: &Relation,
        index: &Arc<IndexDef>,
        catalog: &Arc<Catalog>,
    ) -> Result<()> {
        let table = self.storage(relation)?;
        let keys = self.store.system().index_keys(relation, index, catalog)?;
        attach_index(self.store.engine(), &table, index, keys);
        self.state.attached(Arc::clone(&table), Arc::clone(index));
        let built = table
            .index(index.storage)
            .ok_or_else(|| SqlError::internal("a new index is missing"))?;
        let mut next = 0;
        // Keys that are computed take whatever time they take, and a step is not interrupted.
        let computes = index_keys::of(&built).is_some_and(RowKeys::computes);
        let mut rows = match computes {
            true => 1,
            false => STEP_ROWS_MAX,
        };
        loop {
            user::enter(catalog);
            let began = self.session.clock_time()?;
            let step = self.txn.build_index_step(&table, &built, &mut next, rows);
            if computes {
                rows = rows_of_next_step(rows, self.session.clock_time()? - began);
            }
            match step {
                Ok(false) if index.unique && index.deferrable => {
                    return self.check_built(relation, index, &table, &built).await;
                }
                Ok(false) => return Ok(()),
                Ok(true) => {
                    self.cancel.check()?;
                    yield_once().await;
                }
                Err(WriteError::Unique { rid, .. }) => {
                    return Err(self.duplicate(relation, index, &table, rid).await);
                }
                Err(WriteError::NoKey { .. }) => {
                    return Err(self.without_key(&table, &built).await);
                }
                // What was done stays done: the step goes on where it stood.
                Err(error) => self.wait_after(error).await?,
            }
        }
    }

    /// Building an index of a deferrable constraint checks nothing: each row is checked afterwards.
    async fn check_built(
        &mut self,
        relation: &Relation,
        index: &Arc<IndexDef>,
        table: &Arc<Table>,
        built: &Arc<logstead_engine::Index>,
    ) -> Result<()> {
        let mut cursor = ScanCursor::new(table);
        loop {
            self.cancel.check()?;
            let mut rids = Vec::new();
            let mut absent = None;
            {
                let guard = self.txn.pin();
                while rids.len() < 4_096 {
                    match self.txn.scan_newest(&mut cursor, &guard) {
                        Ok(Some(row)) => rids.push(row.rid),
                        Ok(None) => break,
                        Err(missing) => {
                            absent = Some(missing);
                            break;
                        }
                    }
                }
            }
            match absent {
                Some(absent) => self.wait(absent).await?,
                None if rids.is_empty() => return Ok(()),
                None => {}
            }
            for rid in rids {
                loop {
                    match self.txn.check_unique(table, built, rid) {
                        Ok(()) => break,
                        Err(WriteError::Unique { rid, .. }) => {
                            return Err(self.duplicate(relation, index, table, rid).await);
                        }
                        Err(error) => self.wait_after(error).await?,
                    }
                }
            }
            yield_once().await;
        }
    }

    async fn duplicate(
        &mut self,
        relation: &Relation,
        index: &IndexDef,
        table: &Arc<Table>,
        rid: logstead_types::Rid,
    ) -> SqlError {
        let error = SqlError::new(
            SqlState::UNIQUE_VIOLATION,
            format!("could not create unique index \"{}\"", index.name),
        )
        .table(&relation.schema_name, &relation.name)
        .constraint(&index.name);
        let keys = table.index(index.storage);
        let keys = keys.as_deref().and_then(index_keys::of);
        let session = self.session;
        let keys = keys.filter(|_| may_show_key(relation, index, session));
        let key = self.read_newest(table, rid, |row| {
            keys.zip(row)
                .and_then(|(keys, row)| keys.described(relation, index, row.bytes, session).ok())
        });
        match key.await {
            Ok(Some(key)) => error.detail(format!("Key {key} is duplicated.")),
            Ok(None) => error,
            Err(error) => error,
        }
    }

    /// The error of an index expression over a stored row.
    async fn without_key(&mut self, table: &Arc<Table>, index: &Index) -> SqlError {
        let mut cursor = ScanCursor::new(table);
        let Some(keys) = index_keys::of(index) else {
            return SqlError::internal("an index without keys");
        };
        loop {
            let mut absent = None;
            {
                let guard = self.txn.pin();
                for _ in 0..SCAN_ROWS {
                    let row = match self.txn.scan_newest(&mut cursor, &guard) {
                        Ok(Some(row)) => row,
                        Ok(None) => {
                            return SqlError::internal("a row without a key has one after all");
                        }
                        Err(missing) => {
                            absent = Some(missing);
                            break;
                        }
                    };
                    if let Err(error) = keys.values(row.bytes) {
                        return error;
                    }
                }
            }
            let waited = match absent {
                Some(absent) => self.wait(absent).await,
                None => self.cancel.check(),
            };
            if let Err(error) = waited {
                return error;
            }
            yield_once().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_computed_keys_is_short_whatever_the_steps_before_it_were() {
        let quick = (0..20).fold(1, |rows, _| rows_of_next_step(rows, 0));
        assert_eq!(quick, STEP_ROWS_COMPUTED);
        assert_eq!(rows_of_next_step(quick, 2_000), quick);
        assert_eq!(rows_of_next_step(quick, 100_000), 1);
    }
}
