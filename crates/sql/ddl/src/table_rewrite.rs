//! Walking a table's stored rows: validating what a new constraint demands, and copying them into a new storage.
//!
//! The caller holds the table's ACCESS EXCLUSIVE lock, so the newest version of every row is the row: also in
//! REPEATABLE READ, where the snapshot may be older. VALIDATE CONSTRAINT goes on beside writers, who keep to the
//! constraint already: it looks at what is committed when it begins, because a newest version that is not may be taken
//! back.
//!
//! Does not: decide whether rows are copied (`alter_table`, `alter_column`, `generated`).

use super::DdlContext;
use super::expressions::{eval, refuse_calls};
use logstead_engine::{CursorSnapshot, RowBuilder, RowRef, ScanCursor};
use logstead_sql_catalog::Relation;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::value::{Datum, stored};
use logstead_types::SqlState;

/// Rows looked at between two yields.
const BATCH_ROWS: usize = 256;

/// All attribute positions of a stored row; those that are not stored are NULL.
pub(super) fn decode_row(relation: &Relation, row: RowRef<'_>) -> Result<Vec<Datum>> {
    let value = |(position, column): (usize, &logstead_sql_catalog::Column)| {
        if !column.is_stored() {
            Ok(Datum::Null)
        } else if row.is_missing(position) {
            Ok(column.missing.clone())
        } else {
            row.column(position).map_or(Ok(Datum::Null), |bytes| {
                stored::decode(column.ty.oid, bytes)
            })
        }
    };
    relation.columns.iter().enumerate().map(value).collect()
}

/// Encodes a full row.
pub(super) fn encode_row(relation: &Relation, values: &[Datum], builder: &mut RowBuilder) {
    builder.start(relation.schema_version, relation.columns.len());
    for (column, value) in relation.columns.iter().zip(values) {
        match value {
            Datum::Null => builder.push_null(),
            _ if !column.is_stored() => builder.push_null(),
            value => builder.push_with(|out| stored::encode(value, out)),
        }
    }
}

/// Gives every row of the table in its newest version to `each`, some hundred at a time; yields between.
async fn each_batch(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    each: impl AsyncFnMut(&mut DdlContext<'_>, Vec<Vec<Datum>>) -> Result<()>,
) -> Result<()> {
    batches(cx, relation, None, each).await
}

/// The same, of the versions that `view` shows.
async fn batches(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    mut view: Option<CursorSnapshot>,
    mut each: impl AsyncFnMut(&mut DdlContext<'_>, Vec<Vec<Datum>>) -> Result<()>,
) -> Result<()> {
    cx.catalog()?.check_types_of_own(relation)?;
    let table = cx.storage(relation)?;
    let mut cursor = ScanCursor::new(&table);
    loop {
        cx.cancel.check()?;
        let mut batch = Vec::new();
        let mut done = false;
        let mut absent = None;
        {
            let guard = cx.txn.pin();
            if let Some(view) = &mut view {
                cx.txn.swap_view(view);
            }
            let mut decoded = Ok(());
            while decoded.is_ok() && batch.len() < BATCH_ROWS {
                let row = match view {
                    Some(_) => cx.txn.scan_next(&mut cursor, &guard),
                    None => cx.txn.scan_newest(&mut cursor, &guard),
                };
                match row {
                    Ok(Some(row)) => {
                        decoded = decode_row(relation, row.bytes).map(|r| batch.push(r))
                    }
                    Ok(None) => {
                        done = true;
                        break;
                    }
                    Err(missing) => {
                        absent = Some(missing);
                        break;
                    }
                }
            }
            if let Some(view) = &mut view {
                cx.txn.swap_view(view);
            }
            decoded?;
        }
        each(cx, batch).await?;
        if let Some(absent) = absent {
            cx.wait(absent).await?;
        }
        if done {
            return Ok(());
        }
        yield_once().await;
    }
}

/// Fails with 23502 if a row has NULL at `position`.
pub(super) async fn validate_not_null(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    position: usize,
) -> Result<()> {
    each_batch(cx, relation, async |_, rows| {
        if rows
            .iter()
            .any(|row| matches!(row.get(position), Some(Datum::Null) | None))
        {
            let column = relation
                .columns
                .get(position)
                .map_or("?", |c| c.name.as_str());
            return Err(SqlError::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "column \"{column}\" of relation \"{}\" contains null values",
                    relation.name
                ),
            )
            .table(&relation.schema_name, &relation.name)
            .column(column));
        }
        Ok(())
    })
    .await
}

/// Fails with 23514 if a row makes the condition false. Writers may go on beside it if they keep to the condition.
pub(super) async fn validate_check(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    condition: &Expr,
    name: &str,
) -> Result<()> {
    // What an operation before it in the same statement has written is there.
    cx.txn.begin_statement();
    let view = cx.txn.latest_view();
    batches(cx, relation, Some(view), async |cx, rows| {
        if !rows.is_empty() {
            refuse_calls(condition)?;
        }
        for row in &rows {
            check_for_interrupts()?;
            if let Datum::Bool(false) = eval(cx, condition, row)? {
                return Err(SqlError::new(
                    SqlState::CHECK_VIOLATION,
                    format!(
                        "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                        relation.name
                    ),
                )
                .table(&relation.schema_name, &relation.name)
                .constraint(name));
            }
        }
        Ok(())
    })
    .await
}

/// True if every value of a column is not NULL; with a condition over a row of the value alone, if it is false for
/// none.
pub(super) async fn every_value(
    cx: &mut DdlContext<'_>,
    relation: &Relation,
    position: usize,
    condition: Option<&Expr>,
) -> Result<bool> {
    let mut all = true;
    each_batch(cx, relation, async |cx, rows| {
        for row in &rows {
            check_for_interrupts()?;
            let value = row.get(position).cloned().unwrap_or_default();
            all &= match condition {
                None => !value.is_null(),
                Some(condition) => !matches!(eval(cx, condition, &[value])?, Datum::Bool(false)),
            };
        }
        Ok(())
    })
    .await?;
    Ok(all)
}

/// True if the table has no row at all.
pub(super) async fn is_empty(cx: &mut DdlContext<'_>, relation: &Relation) -> Result<bool> {
    let table = cx.storage(relation)?;
    let mut cursor = ScanCursor::new(&table);
    loop {
        let absent = {
            let guard = cx.txn.pin();
            match cx.txn.scan_newest(&mut cursor, &guard) {
                Ok(row) => return Ok(row.is_none()),
                Err(absent) => absent,
            }
        };
        cx.wait(absent).await?;
    }
}

/// Copies every row of `old` into the (new, empty, private) storage of `new`; `change` makes the new row of the old
/// one.
pub(super) async fn copy_rows(
    cx: &mut DdlContext<'_>,
    old: &Relation,
    new: &Relation,
    mut change: impl FnMut(&mut DdlContext<'_>, Vec<Datum>) -> Result<Vec<Datum>>,
) -> Result<()> {
    let target = cx.storage(new)?;
    let mut builder = RowBuilder::new();
    each_batch(cx, old, async |cx, rows| {
        for row in rows {
            check_for_interrupts()?;
            let row = change(cx, row)?;
            not_null(new, &row)?;
            encode_row(new, &row, &mut builder);
            loop {
                match cx.txn.insert(&target, builder.finish()) {
                    Ok(_) => break,
                    Err(error) => cx.wait_after(error).await?,
                }
            }
        }
        Ok(())
    })
    .await
}

fn not_null(relation: &Relation, row: &[Datum]) -> Result<()> {
    for (column, value) in relation.columns.iter().zip(row) {
        if column.not_null && !column.dropped && matches!(value, Datum::Null) {
            return Err(SqlError::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "column \"{}\" of relation \"{}\" contains null values",
                    column.name, relation.name
                ),
            )
            .table(&relation.schema_name, &relation.name)
            .column(&column.name));
        }
    }
    Ok(())
}

/// Gives a changed table a new storage with the rows of the old one, and its indexes on it.
pub(super) async fn rewrite(
    cx: &mut DdlContext<'_>,
    old: &Relation,
    mut new: Relation,
    change: impl FnMut(&mut DdlContext<'_>, Vec<Datum>) -> Result<Vec<Datum>>,
) -> Result<std::sync::Arc<Relation>> {
    new.storage = cx.new_storage()?;
    // Rows written from here on have every column.
    new.columns.iter_mut().for_each(|c| c.missing = Datum::Null);
    crate::relations::make_storage(cx, &new)?;
    copy_rows(cx, old, &new, change).await?;
    for index in &new.indexes {
        if !cx.state.is_stale(index.oid) {
            cx.attach(&new, index).await?;
        }
    }
    cx.state.unused(old.storage);
    cx.update_relation(new).await
}

/// Rows looked at between two yields.
pub(crate) const SCAN_ROWS: usize = 1_024;

/// Lets other tasks of the worker run, those too whose requests are still in their sockets. Who wakes itself instead
/// goes on some sixty times before the runtime looks at the sockets.
pub(crate) async fn yield_once() {
    tokio::task::yield_now().await;
}
