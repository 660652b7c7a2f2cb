//! Checking the rows that are there already by a foreign key that is new or becomes valid.
//!
//! Both tables are seen as they are now, at one moment, at every isolation level. Whoever writes to them meanwhile, or
//! comes later, has the rule in his plan.

use super::StatementContext;
use super::wait::wait_for;
use logstead_engine::{PageFault, ScanCursor};
use logstead_sql_plan::constraints::{ForeignRule, KeyParts};
use logstead_sql_types::error::Result;
use logstead_types::Rid;

/// Rows checked between two yields.
const EXAMINED_MAX: usize = 1_024;

/// Fails with 23503 if a row of the referencing table, however old, references nothing.
pub async fn validate(cx: &mut StatementContext<'_>, rule: &ForeignRule) -> Result<()> {
    cx.txn.begin_statement();
    let mut rows = ForeignKeyValidation {
        rule,
        cursor: ScanCursor::new(rule.child_table(cx.engine)?),
        open: None,
        key: Vec::new(),
    };
    let mut view = cx.txn.latest_view();
    loop {
        cx.cancel.check()?;
        cx.txn.swap_view(&mut view);
        let judged = rows.check_next(cx);
        cx.txn.swap_view(&mut view);
        match judged? {
            ValidationStep::All => return Ok(()),
            ValidationStep::Some => tokio::task::yield_now().await,
            ValidationStep::Absent(absent) => wait_for(absent.into(), cx.txn, cx.cancel).await?,
        }
    }
}

/// How far a validation has come.
enum ValidationStep {
    All,
    Some,
    Absent(PageFault),
}

/// The rows that are validated, one after the other.
struct ForeignKeyValidation<'r> {
    rule: &'r ForeignRule,
    cursor: ScanCursor,
    /// The row that the cursor has gone past and that is not checked yet: what it references was not in memory.
    open: Option<Rid>,
    key: Vec<u8>,
}

impl ForeignKeyValidation<'_> {
    /// Checks the next rows.
    fn check_next(&mut self, cx: &mut StatementContext<'_>) -> Result<ValidationStep> {
        let rule = self.rule;
        let child = rule.child_table(cx.engine)?;
        let (_, index) = rule.parent_table(cx.engine)?;
        let guard = cx.txn.pin();
        for _ in 0..EXAMINED_MAX {
            let row = match self.open {
                Some(rid) => cx.txn.read(child, rid, &guard),
                None => cx.txn.scan_next(&mut self.cursor, &guard),
            };
            let row = match row {
                Ok(Some(row)) => row,
                Ok(None) if self.open.take().is_some() => continue,
                Ok(None) => return Ok(ValidationStep::All),
                Err(absent) => return Ok(ValidationStep::Absent(absent)),
            };
            self.open = None;
            match rule.parts(row.bytes) {
                KeyParts::Nothing => continue,
                KeyParts::Mixed => return Err(rule.mixed()),
                KeyParts::Whole => {}
            }
            self.key.clear();
            rule.parent_key(row.bytes, cx.session, &mut self.key)?;
            match cx
                .txn
                .get(index, &self.key, &guard)
                .map(|row| row.is_some())
            {
                Ok(true) => {}
                Ok(false) => return Err(rule.not_present(row.bytes, cx.session)),
                Err(absent) => {
                    self.open = Some(row.rid);
                    return Ok(ValidationStep::Absent(absent));
                }
            }
        }
        Ok(ValidationStep::Some)
    }
}
