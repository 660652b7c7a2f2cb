//! Rows of a chunk, out of its pages.

use logstead_checkpoint::{CheckpointError, PageChain, PageKey, PageReader};
use logstead_home::HomeError;
use logstead_types::Csn;

use crate::memory::Memory;
use crate::row::RowRef;
use crate::version::{SlotSet, UnsharedSlots};

/// Rows of a chunk as a checkpoint has them.
pub(crate) struct LoadedChunk {
    /// With those that were wanted.
    pub(crate) slots: UnsharedSlots,
    /// All the slots that have a row in the checkpoint, of those that are known.
    pub(crate) saved: SlotSet,
    /// Those of which is known what they are: all, unless something is damaged.
    pub(crate) known: SlotSet,
    /// What is damaged, or cannot be read now.
    pub(crate) damage: Option<CheckpointError>,
}

/// Why a chunk's pages are not what they should be.
pub(crate) enum ReadError {
    /// A page cannot be read, or is damaged.
    Page(CheckpointError),
    /// A row is none, or does not belong there.
    Row(usize, &'static str),
}

/// Reads those rows of a chunk that are `wanted` as the checkpoint at `csn` has them, as long as `goes_on`, which is
/// told how much the rows take so far: what comes after it has said no is left out.
pub(crate) fn read_chunk(
    reader: &mut PageReader,
    key: &PageKey,
    chain: Option<&PageChain>,
    wanted: &SlotSet,
    csn: Csn,
    memory: &'static Memory,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<LoadedChunk, ReadError> {
    let mut filled = LoadedChunk {
        slots: UnsharedSlots::new(memory),
        saved: SlotSet::default(),
        known: SlotSet::ALL,
        damage: None,
    };
    // A chunk without pages had no rows.
    let Some(chain) = chain else {
        return Ok(filled);
    };
    let (mut wrong, mut ended) = (None, false);
    let is_wanted = |slot| wanted.contains(usize::from(slot));
    let read = reader.rows(key, chain, is_wanted, |slot, written, row| {
        let slot = usize::from(slot);
        if written >= csn {
            wrong = Some((slot, "it is newer than its checkpoint"));
        }
        filled.saved.insert(slot);
        let Some(row) = row.filter(|_| !ended) else {
            return;
        };
        match RowRef::parse(row) {
            Ok(row) => {
                filled.slots.replace(slot, written, Some(row.bytes()));
                ended = !goes_on(filled.slots.bytes());
            }
            Err(_) => wrong = Some((slot, "it is no row")),
        }
    });
    match read {
        Ok(()) => {}
        Err(
            damage @ (CheckpointError::Damaged(_) | CheckpointError::Home(HomeError::Io { .. })),
        ) => {
            filled.known = SlotSet::of_bits(reader.known());
            filled.saved = filled.saved.both(&filled.known);
            for slot in SlotSet::ALL.minus(&filled.known).iter() {
                filled.slots.replace(slot, Csn::ZERO, None);
            }
            filled.damage = Some(damage);
        }
        Err(error) => return Err(ReadError::Page(error)),
    }
    match wrong {
        Some((slot, why)) => Err(ReadError::Row(slot, why)),
        None => Ok(filled),
    }
}
