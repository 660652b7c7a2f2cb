//! Newtypes, units and error kinds shared by every crate of Logstead.
//!
//! Owns: the identifiers that cross crate borders and the SQLSTATE constants. Depends on nothing, does nothing: no
//! I/O, no clock, no allocation beyond error texts.
#![forbid(unsafe_code)]

mod ids;
mod sqlstate;

pub use ids::{
    BlockNo, Csn, DatabaseId, Dsn, Epoch, IndexId, InstanceId, LaneId, PartitionId, Rid, TableId,
    WorkerId,
};
pub use sqlstate::SqlState;
