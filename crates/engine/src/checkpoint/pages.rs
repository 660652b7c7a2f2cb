//! Reading single pages of the newest checkpoint, or of the one that a past is read from ([`Newest::of`]), while the server runs: how what is absent comes back.
//!
//! A page that is looked for in the newest directory may be gone a moment later, because a newer checkpoint was published meanwhile and its
//! objects were collected. So what cannot be read is looked for again, as long as there is a newer checkpoint each time. What then cannot be read
//! is damaged, and is never served.

use std::sync::Arc;

use logstead_checkpoint::{Leaf, PageKey, PageReader};
use logstead_home::LogHome;
use logstead_types::TableId;

use super::Newest;
use crate::absent::FaultError;
use crate::index::Index;
use crate::rows::Rows;
use crate::tree::{LoadError, StoredLeaf};

/// The pages of the newest checkpoint.
pub(crate) struct Pages {
    home: Arc<dyn LogHome>,
    newest: Arc<Newest>,
}

impl Pages {
    pub(crate) fn new(home: Arc<dyn LogHome>, newest: Arc<Newest>) -> Pages {
        Pages { home, newest }
    }

    /// A reader of pages: one for each thread.
    pub(crate) fn reader(&self) -> PageReader {
        PageReader::new(Arc::clone(&self.home))
    }

    /// Brings the leaf of an index that begins at `low` into memory, if it is absent.
    pub(crate) fn load_leaf(
        &self,
        table: TableId,
        index: &Index,
        low: &[u8],
        reader: &mut PageReader,
    ) -> Result<(), FaultError> {
        let key = PageKey::Leaf {
            table,
            index: index.id(),
            low: low.to_vec(),
        };
        index
            .load_leaf(low, || self.read_leaf(&key, &index.rows, reader))
            .map_err(|error| match error {
                LoadError::Read(error) => error,
                LoadError::Unfit(why) => FaultError::Damaged(format!("{key}: {why}")),
            })
    }

    fn read_leaf(
        &self,
        key: &PageKey,
        rows: &Rows,
        reader: &mut PageReader,
    ) -> Result<StoredLeaf, FaultError> {
        let mut leaf = Leaf::default();
        loop {
            let stored = self.newest.of(rows);
            let read = match stored.directory.get(key) {
                Ok(Some(chain)) => reader.leaf(key, &chain, &mut leaf).map_err(Into::into),
                Ok(None) => Err(FaultError::Damaged(format!(
                    "{key}: the checkpoint at CSN {} does not have it",
                    stored.csn
                ))),
                Err(error) => Err(error.into()),
            };
            match read {
                Ok(()) => {
                    let mut found = StoredLeaf {
                        high: leaf.high().map(<[u8]>::to_vec),
                        ..StoredLeaf::default()
                    };
                    leaf.entries().for_each(|entry| found.entries.push(entry));
                    return Ok(found);
                }
                Err(_) if self.newest.is_after(rows, &stored) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
