//! Where the rows lie of chunks with many pages, of which single rows are brought in.
//!
//! A chunk of large rows is many pages, and which of them has a row is told by all of them alone. Who brings in one row
//! reads all of that once; what it finds is kept, so that the next row of that chunk costs the pages that have it. (A
//! chunk of 64 rows of a megabyte each took 64 times 64 megabytes to be read row by row.)
//!
//! Invariant: what is kept is of one chain, and used for that chain alone. Pages never change, so it is true as long as
//! it is there. It is a hint all the same: what does not come as it says is read as if it were not there.

use std::collections::VecDeque;
use std::sync::Arc;

use logstead_checkpoint::{PageChain, PageKey, PageReader, RowPageSpans};
use logstead_types::Csn;
use parking_lot::Mutex;

use super::LoadedChunk;
use crate::memory::Memory;
use crate::row::RowRef;
use crate::version::{SlotSet, UnsharedSlots};

/// A chunk with more pages than this is large: one that is not has a base page and at most four deltas.
const PAGES_MAX: usize = 5;
/// Chunks of which it is known: half a kilobyte each.
const LOCATED_MAX: usize = 64;

struct Located {
    key: PageKey,
    chain: PageChain,
    /// The slots with a row.
    saved: SlotSet,
    spans: Arc<RowPageSpans>,
}

/// See the module's documentation.
pub(super) struct RowLocationCache {
    located: Mutex<VecDeque<Located>>,
    memory: &'static Memory,
}

impl RowLocationCache {
    pub(super) fn new(memory: &'static Memory) -> RowLocationCache {
        RowLocationCache {
            located: Mutex::default(),
            memory,
        }
    }

    /// Reads some rows of a large chunk, if it is known where they lie. Nothing if it is not, or if they do not come as
    /// they should.
    pub(super) fn read(
        &self,
        reader: &mut PageReader,
        key: &PageKey,
        chain: &PageChain,
        wanted: &SlotSet,
        csn: Csn,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Option<LoadedChunk> {
        let (saved, spans) = {
            let places = self.located.lock();
            let is_it = |located: &&Located| located.key == *key && located.chain == *chain;
            let located = places.iter().find(is_it)?;
            (located.saved, Arc::clone(&located.spans))
        };
        let mut filled = LoadedChunk {
            slots: UnsharedSlots::new(self.memory),
            saved,
            known: SlotSet::ALL,
            damage: None,
        };
        for slot in wanted.both(&saved).iter() {
            let (mut came, mut more) = (false, true);
            let read = reader.row(key, chain, &spans, slot as u16, |written, row| {
                if written < csn
                    && let Ok(row) = RowRef::parse(row)
                {
                    filled.slots.replace(slot, written, Some(row.bytes()));
                    came = true;
                    more = goes_on(filled.slots.bytes());
                }
            });
            if read.is_err() || !came {
                return None;
            }
            if !more {
                break;
            }
        }
        Some(filled)
    }

    /// A chunk was read, all of it: it is kept where its rows lie, if it is large.
    pub(super) fn note(
        &self,
        reader: &PageReader,
        key: &PageKey,
        chain: &PageChain,
        filled: &LoadedChunk,
    ) {
        if chain.pages().count() <= PAGES_MAX || filled.damage.is_some() {
            return;
        }
        let located = Located {
            key: key.clone(),
            chain: chain.clone(),
            saved: filled.saved,
            spans: Arc::from(reader.spans()),
        };
        let mut places = self.located.lock();
        places.retain(|other| other.key != *key);
        if places.len() >= LOCATED_MAX {
            places.pop_front();
        }
        places.push_back(located);
    }
}
