//! Rows that a replica tells its primary, as of a read point: what that has let go of because its log is durable.
//!
//! The replica waits until it shows everything below the read point, and tells its newest rows then. The chunk has not
//! changed at the primary since the read point, so they are the rows that were there, however far the replica has come
//! (`crate::version`, `evict_to_log`, 4); if it has changed, for somebody else has brought it in meanwhile, nobody
//! takes the answer. So no snapshot has to be held.
//!
//! Does not: answer for another life of the primary than the one that is followed.

use std::sync::Arc;
use std::time::Duration;

use logstead_checkpoint::PageReader;

use super::Replica;
use crate::checkpoint::walk::row_at;
use crate::engine::Engine;
use crate::page_store::{PageRead, PageReadAnswer, PageRow, ReplicaBase};
use crate::version::{CHUNK_SLOTS, Guard, SlotSet};

/// How long it waits for the log. The primary waits for twice as long before it asks somebody else: the refusal comes
/// in time.
const WAIT_MAX: Duration = Duration::from_millis(500);
const WAIT_STEP: Duration = Duration::from_millis(1);
/// How often rows are looked for again that have left meanwhile.
const LOOKS_MAX: usize = 100;
/// An answer is not longer. Of a chunk with more the log tells the primary.
const ANSWER_BYTES_MAX: usize = 512 << 10;

/// Tells a primary rows of its replica, on a thread of its own.
pub struct ReplicaPageReader {
    engine: Engine,
    base: Arc<ReplicaBase>,
    pages: PageReader,
}

impl Replica<'_> {
    /// Who tells rows, for another thread.
    pub fn page_reader(&self) -> ReplicaPageReader {
        let engine = self.engine().clone();
        ReplicaPageReader {
            base: Arc::clone(self.applier.shared_base()),
            pages: engine.inner().chunks.reader().of_single_pages(),
            engine,
        }
    }
}

impl ReplicaPageReader {
    /// Answers. Blocks until the log is applied so far, a while at most, and while pages are read.
    pub fn answer(&mut self, asked: &PageRead) -> PageReadAnswer {
        PageReadAnswer {
            number: asked.number,
            rows: self.rows(asked),
        }
    }

    fn rows(&mut self, asked: &PageRead) -> Result<Vec<PageRow>, String> {
        let mut waited = Duration::ZERO;
        while self.engine.next_csn() < asked.from {
            if waited >= WAIT_MAX {
                return Err(format!("CSN {} is not applied yet", asked.from));
            }
            logstead_env::sleep(WAIT_STEP);
            waited += WAIT_STEP;
        }
        if !self.base.follows(asked.epoch) {
            return Err("another life of the primary is followed".into());
        }
        let Some(table) = self.engine.table(asked.table) else {
            return Err(format!("there is no table {}", asked.table));
        };
        let wanted = SlotSet::of_bits(asked.slots);
        for _ in 0..LOOKS_MAX {
            let Some(chunk) = table.rows.chunk(asked.chunk) else {
                return Ok(Vec::new());
            };
            let (mut rows, mut absent) = (Vec::new(), SlotSet::NONE);
            let mut bytes = 0;
            for slot in wanted.iter().filter(|slot| *slot < CHUNK_SLOTS) {
                let guard = Guard::pin();
                match row_at(chunk, slot, self.engine.next_csn(), &guard) {
                    Ok(None) => {}
                    Ok(Some((csn, row))) => {
                        bytes += row.len();
                        rows.push(PageRow {
                            slot: slot as u8,
                            csn,
                            row: row.to_vec(),
                        });
                    }
                    Err(_) => absent.insert(slot),
                }
                if bytes > ANSWER_BYTES_MAX {
                    return Err("the rows are too long for an answer".into());
                }
            }
            if absent.is_empty() {
                return Ok(rows);
            }
            let chunks = &self.engine.inner().chunks;
            let (pages, base) = (&mut self.pages, &self.base);
            base.read_rows(|| chunks.load_to_answer(&table.rows, asked.chunk, &absent, pages))
                .map_err(|error| error.to_string())?;
        }
        Err("the rows leave memory again and again".into())
    }
}
