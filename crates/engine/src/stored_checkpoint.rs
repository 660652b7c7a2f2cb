//! A published checkpoint, as whoever reads its pages has it.
//!
//! Does not: know which one is the newest (`page_store`).

use logstead_checkpoint::Directory;
use logstead_types::Csn;

/// A published checkpoint.
#[derive(Clone)]
pub(crate) struct StoredCheckpoint {
    /// How many this life has published before it. Not even the CSN tells two apart: the first checkpoint of a life may
    /// have that of the one that was loaded, if nobody has committed since.
    pub(crate) publication: u64,
    /// It holds what was committed below this.
    pub(crate) csn: Csn,
    /// Where its pages lie.
    pub(crate) directory: Directory,
}
