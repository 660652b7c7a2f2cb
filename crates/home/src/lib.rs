//! The homes of the log: where lanes, side segments, small named values and immutable objects live.
//!
//! A *home* stores bytes and promises what happens to them when the machine stops. It knows positions and lengths, and
//! nothing of blocks, entries or transactions: that is the `wal` crate's. Each of its interfaces is a trait with a
//! contract of its own:
//!
//! | interface | what |
//! |---|---|
//! | [`LaneAppends`], [`InlineAppends`], [`SegmentRollover`] | appends to lanes |
//! | [`LaneSegments`] | what appends have left: lists, reads, fences, trims |
//! | [`NamedValues`] | small values that are compared and swapped |
//! | [`SideSegments`] | the records of large transactions |
//! | [`ObjectReader`], [`ImmutableObjects`], [`ObjectCopies`] | immutable objects |
//! | [`Copies`] | the copies of a home that consists of several |
//! | [`HomeStatus`] | what people are told |
//!
//! [`LogHome`] puts them together. What a home does not have is `None` there, never a method that answers wrongly.
//! Each home that answers all of them ([`HomeBackend`]) passes the one conformance suite in [`conformance`].
//!
//! | home | opened by | where | fencing |
//! |---|---|---|---|
//! | [`LocalHome`] | `file:///dir`, or a plain path | preallocated files written with O_DIRECT and O_DSYNC | the kernel's lock on `DIR/lock` |
//! | [`MemoryHome`] | `memory:` | this process | none needed |
//! | [`ObjectHome`] | a bucket ([`bucket`]) | objects that are appended to, or one per append | a lease, and [`LaneSegments::fence`] |
//!
//! [`open()`] turns a URL into a home. [`ObjectCache`] puts a cache of objects' blocks on the local disk around one.
#![forbid(unsafe_code)]

mod branch;
pub mod bucket;
mod cache;
pub mod conformance;
mod copies;
mod error;
mod groups;
mod immutable;
mod lane;
mod local;
mod log_home;
mod memory;
mod named_values;
pub mod node;
mod objects;
mod open;
mod peer_copies;
mod placement;
mod prices;
mod replicated;
mod room_request;
pub mod segment_copy;
mod side_segments;
pub mod simulated;
mod usage;

pub use branch::{BranchObjects, branch_home};
pub use cache::{CacheOptions, CacheStats, ObjectCache};
pub use copies::Copies;
pub use error::{HomeError, NoRoom};
pub use groups::{
    GroupOpener, GroupedHome, VolumeGroup, add_group, forget_group, is_of_further_group,
    volume_groups,
};
pub use immutable::{
    DamageCheck, ImmutableObjects, OBJECT_BYTES_MAX, ObjectCopies, ObjectId, ObjectInfo,
    ObjectReader, ObjectRepair, SeenCopy,
};
pub use lane::{
    Completion, HomeCapabilities, InlineAppends, LaneAppends, LaneSegments, Position, Rollover,
    RoomListener, SegmentInfo, SegmentRollover,
};
pub use local::{
    IoMethod, LocalHome, LocalObjects, LocalOptions, LocalVolume, NAMED_VALUE_BYTES_MAX,
};
pub use log_home::{BYTES_FROM_PEERS, DAMAGED_OBJECTS, HomeBackend, HomeStatus, LogHome};
pub use memory::{Availability, MemoryHome, ObjectPutPause};
pub use named_values::{NamedValues, Tag};
pub use node::{
    FleetChange, FleetGroup, FleetPeers, NodeHome, SECRET_FILE_VARIABLE, SECRET_VARIABLE,
    add_fleet_group, change_fleet, fleet_groups, fleet_node, fleet_nodes, forget_fleet_group,
    secret,
};
pub use objects::{ObjectHome, ObjectOptions, Timer, TimerControl};
pub use open::{
    HomeOptions, ObjectsAndValue, check_copy, open, open_beside, open_objects, open_read_only,
    open_to_follow, open_to_store_objects, readers_of, url_below,
};
pub use peer_copies::{CopyDone, CopyItem, CopyOrder, CopyOrders, Peer, PeerCopies};
pub use prices::{Price, PriceList, ProviderPrice};
pub use replicated::{
    MemberList, MemberOpener, OpenPurpose, Opener, RecordedMembers, ReplicatedHome,
    ReplicatedOptions, Source, WriteConcern, members_in_record, named_in_record,
};
pub use room_request::RoomRequest;
pub use side_segments::{SideCompletion, SideSegments, SideWriter};
pub use simulated::{SimulatedHome, SimulatedOptions};
pub use usage::{HomeUsage, RequestKind, Usage};

pub use logstead_env::Buffer;
pub use logstead_types::{Epoch, LaneId};
