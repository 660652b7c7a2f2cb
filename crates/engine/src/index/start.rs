//! What a start does with a stored index.

use super::Index;
use crate::tree::AbsentLeaf;

impl Index {
    /// Inserts an entry that cannot conflict; where its leaf begins, if that is absent.
    pub(crate) fn insert_stored(&self, entry: &[u8]) -> Result<(), Box<[u8]>> {
        self.tree.insert(entry).map_err(|AbsentLeaf { low }| low)
    }
}
