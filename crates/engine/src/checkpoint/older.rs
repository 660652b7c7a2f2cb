//! Rows that are absent of a chunk which is written anew: the pages that the checkpoint before has of it have them, unchanged.
//!
//! Invariant: what is taken from there was checked as for a load: every row that is absent is there, once, older than that checkpoint.
//!
//! Memory: up to [`COPIED_BYTES_MIN`] are kept; of larger rows one at a time, for which the pages are read again that have it, and no others: all of them for each row would take time for the
//! square of the rows.

use std::ops::Range;

use logstead_checkpoint::{Chain, PageKey, PageReader, Spans};
use logstead_types::Csn;

use super::CheckpointError;
use super::take::COPIED_BYTES_MIN;
use crate::row::RowRef;
use crate::version::SlotSet;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct OlderRows {
    /// By slot.
    rows: Vec<(usize, Csn, Range<usize>)>,
    kept: Vec<u8>,
    /// What all of them take.
    bytes: usize,
    /// Where they lie, if they are too large to be kept.
    pages: Option<(PageKey, Chain, Box<Spans>)>,
}

impl OlderRows {
    /// Reads them, all that are `absent`, from the pages of a checkpoint at `since`. `None`: they are damaged, or cannot be read.
    pub(super) fn read(
        reader: &mut PageReader,
        key: &PageKey,
        chain: &Chain,
        absent: &SlotSet,
        since: Csn,
    ) -> Option<OlderRows> {
        let mut older = OlderRows::default();
        let mut wrong = false;
        let is_absent = |slot| absent.contains(usize::from(slot));
        let read = reader.rows(key, chain, is_absent, |slot, csn, row| {
            let Some(row) = row else { return };
            wrong |= csn >= since || RowRef::parse(row).is_err();
            older.bytes += row.len();
            let start = older.kept.len();
            if older.bytes < COPIED_BYTES_MIN {
                older.kept.extend_from_slice(row);
            }
            let end = older.kept.len();
            older.rows.push((usize::from(slot), csn, start..end));
        });
        if read.is_err() || wrong || older.rows.len() != absent.len() {
            return None;
        }
        older.rows.sort_unstable_by_key(|(slot, ..)| *slot);
        if older.bytes >= COPIED_BYTES_MIN {
            older.kept = Vec::new();
            older.pages = Some((key.clone(), chain.clone(), reader.spans()));
        }
        Some(older)
    }

    /// What they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The row in a slot, if it is one of them and they are kept.
    pub(super) fn row(&self, slot: usize) -> Option<(Csn, &[u8])> {
        let at = self.rows.binary_search_by_key(&slot, |(slot, ..)| *slot);
        let (_, csn, range) = &self.rows[at.ok()?];
        Some((*csn, self.kept.get(range.clone())?))
    }

    /// Puts the row of a slot in `into`, wherever it is.
    pub(super) fn copy(
        &self,
        slot: usize,
        reader: &mut PageReader,
        into: &mut Vec<u8>,
    ) -> Result<Csn, CheckpointError> {
        let mut found = None;
        let mut put = |csn, row: &[u8]| {
            into.clear();
            into.extend_from_slice(row);
            found = Some(csn);
        };
        match (&self.pages, self.row(slot)) {
            (Some((key, chain, spans)), _) => reader.row(key, chain, spans, slot as u16, put)?,
            (None, Some((csn, row))) => put(csn, row),
            (None, None) => {}
        }
        found.ok_or_else(missing)
    }
}

/// A row is absent, and no checkpoint has it.
pub(super) fn missing() -> CheckpointError {
    let what = "a row that is not in memory is in no page";
    logstead_checkpoint::CheckpointError::Misuse(what).into()
}
