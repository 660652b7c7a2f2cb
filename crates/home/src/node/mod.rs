//! A storage node as a home: the server's side of its protocol.
//!
//! | file | what |
//! |---|---|
//! | `frame` | messages as they are moved |
//! | `message` | what is asked and answered |
//! | `handshake` | how both sides make sure of each other |
//! | `session` | a connection, its threads, and who waits for which answer |
//! | `home` | the calls of a home as requests |
//! | `peers` | what nodes fetch from one another, and how a server has them do it |
//! | `fleet` | several nodes as one home, and who they are to be |
//! | `address` | URLs of nodes and fleets, and their secret |
//!
//! The node itself is the `storage` crate's, which speaks the same messages from the other side.
//!
//! A node by itself is one copy: it is gone when the node is. Several as one are a
//! [`ReplicatedHome`](crate::ReplicatedHome), which a `fleet://` URL opens: a majority of six nodes in three zones
//! stores each append (Aurora, section 2.1: a write quorum of four, a read quorum of three).

mod address;
mod fleet;
pub mod frame;
pub mod handshake;
mod home;
pub mod message;
pub mod peers;
mod session;
mod volume_nodes;

pub(crate) use address::open_node;
pub use address::{SECRET_FILE_VARIABLE, SECRET_VARIABLE, fleet_node, fleet_nodes, secret};
pub use fleet::{
    FleetChange, FleetGroup, add_fleet_group, change_fleet, fleet_groups, forget_fleet_group,
};
pub(crate) use fleet::{open_fleet, open_fleet_to_store_objects};
pub use home::NodeHome;
pub use volume_nodes::FleetPeers;

fn is_done(answer: message::Answer) -> Result<(), crate::HomeError> {
    match answer {
        message::Answer::Done => Ok(()),
        _ => Err(crate::HomeError::io("ask a storage node", unexpected())),
    }
}

fn unexpected() -> std::io::Error {
    let what = "a storage node has given an answer to something else";
    std::io::Error::new(std::io::ErrorKind::InvalidData, what)
}
