//! Judging the rows that are there already by a foreign key that is new or becomes valid.
//!
//! Both tables are seen as they are now, at one moment, at every isolation level. Whoever writes to them meanwhile, or
//! comes later, has the rule in his plan.

use super::ExecContext;
use super::wait::wait_for;
use logstead_engine::{Absent, ScanCursor};
use logstead_sql_plan::constraints::{ForeignRule, KeyParts};
use logstead_sql_types::error::Result;
use logstead_types::Rid;

/// Rows judged between two yields.
const EXAMINED_MAX: usize = 1_024;

/// Fails with 23503 if a row of the referencing table, however old, references nothing.
pub async fn validate(cx: &mut ExecContext<'_>, rule: &ForeignRule) -> Result<()> {
    cx.txn.begin_statement();
    let mut rows = Validated {
        rule,
        cursor: ScanCursor::new(rule.child_table(cx.engine)?),
        open: None,
        key: Vec::new(),
    };
    let mut view = cx.txn.latest_view();
    loop {
        cx.cancel.check()?;
        cx.txn.swap_view(&mut view);
        let judged = rows.judge(cx);
        cx.txn.swap_view(&mut view);
        match judged? {
            Judged::All => return Ok(()),
            Judged::Some => tokio::task::yield_now().await,
            Judged::Absent(absent) => wait_for(absent.into(), cx.txn, cx.cancel).await?,
        }
    }
}

/// How far a validation has come.
enum Judged {
    All,
    Some,
    Absent(Absent),
}

/// The rows that are validated, one after the other.
struct Validated<'r> {
    rule: &'r ForeignRule,
    cursor: ScanCursor,
    /// The row that the cursor has gone past and that is not judged yet: what it references was not in memory.
    open: Option<Rid>,
    key: Vec<u8>,
}

impl Validated<'_> {
    /// Judges the next rows.
    fn judge(&mut self, cx: &mut ExecContext<'_>) -> Result<Judged> {
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
                Ok(None) => return Ok(Judged::All),
                Err(absent) => return Ok(Judged::Absent(absent)),
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
                    return Ok(Judged::Absent(absent));
                }
            }
        }
        Ok(Judged::Some)
    }
}
