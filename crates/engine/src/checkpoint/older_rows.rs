//! Rows that are absent of a chunk which is written anew: the pages that the checkpoint before has of it have them,
//! unchanged.
//!
//! Invariant: what is taken from there was checked as for a load: every row that is absent is there, once, older than
//! that checkpoint.
//!
//! # Where a page cannot be read
//!
//! The chunk cannot be written whole then, and gets a delta with each checkpoint. So that they do not grow without end,
//! one delta takes the place of all of them that are newer than the page that cannot be read
//! ([`OlderRowsLookup::Newer`]). Nothing of what they say may be lost, for they may be all there is:
//! - *A row* that is in memory is written; one that is absent and in a newer page is copied from there.
//! - *A slot without a row*, in memory or by a newer page, is named as empty: an older page, once it is whole again,
//!   may have a row there.
//! - *A change of a row* that is in an older page stays where it is: its page is not replaced. What the new delta says
//!   of the same slot is newer, and counts.
//! - Of other slots the new delta says nothing, as the pages that it replaces: the page that cannot be read says it, or
//!   an older one. All these stay in the chain.
//!
//! A row whose pieces lie partly in the page that cannot be read is not known, and its newer pieces are not among what
//! is replaced ([`NewerPages::first`]).
//!
//! Memory: up to [`COPIED_BYTES_MIN`] are kept; of larger rows one at a time, for which the pages are read again that
//! have it, and no others: all of them for each row would take time for the square of the rows.

use std::ops::Range;

use logstead_checkpoint::{
    CheckpointError as PagesError, NewerPages, PAGE_BYTES, PageChain, PageKey, PageReader, PageRef,
    RowPageSpans,
};
use logstead_home::HomeError;
use logstead_types::Csn;

use super::take::COPIED_BYTES_MIN;
use crate::page_store::CheckpointError;
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
    pages: Option<(PageKey, PageChain, Box<RowPageSpans>)>,
}

/// So many pages are worth being folded into one, at least.
const FOLDED_MIN: usize = 4;

/// What was found of the rows of a chunk that are absent.
pub(super) enum OlderRowsLookup {
    /// All of them.
    All(OlderRows),
    /// Those that are in pages newer than one that cannot be read.
    Newer(OlderRows, FoldedPages),
    /// What is there is no use.
    Nothing,
}

/// Pages of a chain for which one delta can stand.
pub(super) struct FoldedPages {
    pages: NewerPages,
    /// Absent slots that have no row, as they say.
    pub(super) empty: SlotSet,
}

impl FoldedPages {
    /// Are they so many that a delta with all the rows, which take so many bytes, is worth writing? One that is larger
    /// replaces more: it costs no more than twice what the pages did that it stands for.
    pub(super) fn are_many(&self, chain: &PageChain, bytes: usize) -> bool {
        let first = self.first(chain);
        let all = chain.pages().count().saturating_sub(first);
        let stay = self.pages.of_changes.iter().filter(|at| **at >= first);
        let replaced = all.saturating_sub(stay.count());
        // A page for those that are small, and for each that is large one that is not full.
        let new = 1 + 2 * bytes / PAGE_BYTES;
        replaced >= FOLDED_MIN.max(2 * new)
    }

    /// The chain with this delta in their place.
    pub(super) fn replaced(&self, chain: &PageChain, delta: &[PageRef]) -> Option<PageChain> {
        chain.folded(self.first(chain), &self.pages.of_changes, delta)
    }

    /// The first of them: a delta, whatever could be read.
    fn first(&self, chain: &PageChain) -> usize {
        self.pages.first.max(1 + chain.parts().len())
    }
}

impl OlderRows {
    /// Reads them, all that are `absent`, from the pages of a checkpoint at `since`.
    pub(super) fn read(
        reader: &mut PageReader,
        key: &PageKey,
        chain: &PageChain,
        absent: &SlotSet,
        since: Csn,
    ) -> OlderRowsLookup {
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
        let known = match read {
            Ok(()) => SlotSet::ALL,
            Err(PagesError::Damaged(_) | PagesError::Home(HomeError::Io { .. })) => {
                SlotSet::of_bits(reader.known())
            }
            Err(_) => return OlderRowsLookup::Nothing,
        };
        if wrong {
            return OlderRowsLookup::Nothing;
        }
        older.rows.retain(|(slot, ..)| known.contains(*slot));
        older.rows.sort_unstable_by_key(|(slot, ..)| *slot);
        if older.bytes >= COPIED_BYTES_MIN {
            older.kept = Vec::new();
            older.pages = Some((key.clone(), chain.clone(), reader.spans()));
        }
        if older.rows.len() == absent.len() {
            return OlderRowsLookup::All(older);
        }
        let mut empty = absent.both(&known);
        older.rows.iter().for_each(|(slot, ..)| empty.remove(*slot));
        let pages = reader.newer_pages();
        OlderRowsLookup::Newer(older, FoldedPages { pages, empty })
    }

    /// Is the row in this slot one of them?
    pub(super) fn contains(&self, slot: usize) -> bool {
        let at = self.rows.binary_search_by_key(&slot, |(slot, ..)| *slot);
        at.is_ok()
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
