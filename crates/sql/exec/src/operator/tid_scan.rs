//! The one row of WHERE CURRENT OF: that on which a cursor stands, in the version that the statement sees.
//!
//! A row keeps its number when it is changed, so a cursor that has been gone past by changes of its own row still finds
//! it, as in PostgreSQL. That the number is not another row's by now is the cursor's to see to: it locks the row, or
//! keeps its snapshot.

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::operator::scan::ScanProjection;
use logstead_engine::Table;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::context::Context;
use logstead_sql_plan::{CursorName, Scan};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::{Rid, SqlState};
use std::sync::Arc;

/// State of such a scan.
pub(crate) struct TidScanState {
    emitter: ScanProjection,
    table: Option<Arc<Table>>,
    /// The row, once the cursor has been asked.
    rid: Option<Option<Rid>>,
    done: bool,
    evaluation: ResumableEvaluation,
}

impl TidScanState {
    pub(crate) fn new(scan: &Scan) -> TidScanState {
        TidScanState {
            emitter: ScanProjection::new(scan),
            table: None,
            rid: None,
            done: false,
            evaluation: ResumableEvaluation::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        scan: &'a Scan,
        cursor: &CursorName,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(self.emitter.width());
        if self.done {
            return Ok(Step::Done);
        }
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        let rid = match self.rid {
            Some(rid) => rid,
            None => {
                let name = match cursor {
                    CursorName::Known(name) => name,
                    CursorName::Param(number) => match cx.params.get(*number) {
                        Some(Datum::Text(name)) => name,
                        _ => {
                            return Err(SqlError::new(
                                SqlState::INVALID_CURSOR_NAME,
                                "a cursor without a name has no current row",
                            ));
                        }
                    },
                };
                let current = current_row(name, &scan.table, cx.session)?;
                *self.rid.insert(current)
            }
        };
        let Some(rid) = rid else {
            self.done = true;
            return Ok(Step::Done);
        };
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(scan.table.storage)?),
        };
        let guard = cx.txn()?.pin();
        let row = match cx.txn()?.read(table, rid, &guard) {
            Ok(row) => row,
            Err(absent) => return Ok(Step::Wait(absent.into())),
        };
        if let Some(row) = row
            && let Err(absent) = self
                .emitter
                .emit(scan, &row, &mut self.evaluation, cx, out)?
        {
            return Ok(Step::Wait(absent));
        }
        self.done = true;
        Ok(match out.is_empty() {
            true => Step::Done,
            false => Step::Batch,
        })
    }

    pub(crate) fn rewind(&mut self) {
        self.done = false;
        self.evaluation.reset();
    }
}

/// The row of a table on which a cursor stands; none if the table gave none of the cursor's row.
fn current_row(name: &str, table: &Relation, session: &dyn Context) -> Result<Option<Rid>> {
    let cursors = session.session_objects()?.cursors();
    let Some(cursor) = cursors.into_iter().find(|cursor| cursor.name == name) else {
        return Err(SqlError::new(
            SqlState::INVALID_CURSOR_NAME,
            format!("cursor \"{name}\" does not exist"),
        ));
    };
    let refused = |what: String| {
        let message = format!("cursor \"{name}\" {what}");
        Err(SqlError::new(SqlState::new(b"24000"), message))
    };
    let current = cursor.current;
    if current.persisted {
        return refused("is held from a previous transaction".to_owned());
    }
    let mut rows = current.rows.iter().filter(|(of, _)| *of == table.oid);
    let relation = &table.name;
    let (found, twice) = (rows.next(), rows.next().is_some());
    match (found, current.locks) {
        (None, true) => {
            return refused(format!(
                "does not have a FOR UPDATE/SHARE reference to table \"{relation}\""
            ));
        }
        (Some(_), true) if twice => {
            return refused(format!(
                "has multiple FOR UPDATE/SHARE references to table \"{relation}\""
            ));
        }
        (None, false) => {
            return refused(format!(
                "is not a simply updatable scan of table \"{relation}\""
            ));
        }
        (Some(_), _) => {}
    }
    if !current.on_row {
        return refused("is not positioned on a row".to_owned());
    }
    Ok(found.and_then(|(_, rid)| rid.map(|rid| Rid(rid.cast_unsigned()))))
}
