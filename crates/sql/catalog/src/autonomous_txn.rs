//! Small transactions of the catalog's own, which commit whatever becomes of the session's: what sequences hand out,
//! and which OIDs are reserved.
//!
//! Does not: wait for other writers; what such a transaction writes nobody else does.

use crate::write_errors::{commit_error, write_error};
use logstead_engine::{
    FlushMode, FlushOutcome, Isolation, TryCommitError, Txn, Worker, WriteError,
};
use logstead_sql_types::error::{Result, SqlError, load_error, out_of_memory};
use logstead_types::{Csn, SqlState};
use std::time::Duration;

/// Attempts of a small transaction that finds its lane full.
const ATTEMPTS_MAX: usize = 5_000;

/// Pause before the next attempt: the lane's buffer is on its way, or its next segment is being made.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(1);

/// Runs `work` in a transaction of its own and commits it without waiting. Gives its CSN.
pub(crate) fn autonomous(
    worker: &Worker,
    mut work: impl FnMut(&mut Txn) -> Result<(), WriteError>,
) -> Result<Csn> {
    let mut refused = None;
    for _ in 0..ATTEMPTS_MAX {
        let txn = match refused.take() {
            // The same one again: only who waits for an attempt to make room hears that the disk is full.
            Some(txn) => txn,
            None => {
                let mut txn = worker.begin(Isolation::ReadCommitted);
                txn.begin_statement();
                match work(&mut txn) {
                    Ok(()) => {}
                    // What stays in memory is not absent once the start is through; until then nobody is kept waiting.
                    Err(WriteError::Absent(absent)) => {
                        match absent.out_of_memory(&txn) {
                            Some(error) => return Err(out_of_memory(&error)),
                            None => absent.load_here(&txn).map_err(|error| load_error(&error))?,
                        }
                        continue;
                    }
                    Err(error) => return Err(write_error(&error)),
                }
                Box::new(txn)
            }
        };
        match txn.try_precommit() {
            Ok(receipt) => return Ok(receipt.csn.unwrap_or_default()),
            // The lane's buffer is full: write it out and try again. Not every wait ends by itself in no time: making a
            // segment takes a while, and a caller in the middle of an expression cannot give the thread to others.
            Err(TryCommitError::Busy(txn)) => {
                refused = Some(txn);
                if worker.flush(FlushMode::Inline) != FlushOutcome::Durable {
                    logstead_env::sleep(ATTEMPT_PAUSE);
                }
            }
            Err(TryCommitError::Failed(error)) => return Err(commit_error(&error)),
        }
    }
    Err(SqlError::new(
        SqlState::OUT_OF_MEMORY,
        "the log's buffer stays full",
    ))
}
