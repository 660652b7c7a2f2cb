//! What does not fit into `work_mem`: rows in temporary files.
//!
//! 1. A server has one [`SpillSpace`]: a directory, and two threads that do all reading and writing (`spill_threads`).
//!    Operators
//!    are synchronous and run on workers, which never touch a file: what has to be waited for comes up as a step, like
//!    a lock.
//! 2. A session has a [`Spill`]: the space with the session's own account, which `temp_file_limit` bounds.
//! 3. An operator that holds more than it may makes a `TempFile` and writes rows to `Stream`s in it: sorted runs,
//!    or partitions by hash. All streams of an operator share its file, which is made of blocks (`file`); room of
//!    blocks that have been read for the last time is used again.
//! 4. A `Reader` gives a stream's rows in the order in which they were written, one block read ahead.
//!
//! Invariants:
//! - A file has no name once it is open: whatever ends the statement or the process, nothing is left. The moment
//!   between making and unlinking it is covered by the next start, which removes what carries a dead server's name.
//! - Rows are written with their key: no expression is evaluated twice, for it may be volatile, or wait.
//! - A block is checked (length, CRC32C) when it comes back: what is not what was written is XX001.
//! - Nothing here is durable, and nothing is synced.
//!
//! Does not: decide when to spill or how to divide rows; the operators do.

mod file;
pub(crate) mod hash_spill;
mod pages;
mod partition;
mod record;
mod space;
mod spool;
mod stream;

pub(crate) use file::TempFile;
pub use pages::Pages;
pub(crate) use partition::{FANOUT, LEVELS_MAX, partition_of};
pub use space::{Spill, SpillAllowance, SpillCounts, SpillSpace};
pub(crate) use spool::{Spool, SpoolReader};
pub(crate) use stream::{ReadStep, Reader, Stream};
