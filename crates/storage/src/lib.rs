//! A storage node: what stores the log's segments, named values, side segments and objects for servers elsewhere
//! (Aurora, sections 2 to 4).
//!
//! | file | what |
//! |---|---|
//! | `node` | what listens |
//! | `context` | what all connections share |
//! | `volumes` | the volumes that the node has parts of |
//! | `connection` | one connection: what is asked, done and answered |
//! | `damage` | what is known of damage |
//! | `scrub` | all objects are read again and again, and what is damaged is told |
//! | `fetch` | what the node lacks comes from its peers |
//! | `outbox` | answers on their way, and how much a connection may have in progress |
//! | `encryption` | the node's certificate |
//!
//! The messages and the proof of who may ask are [`logstead_home::node`]'s, which is the other side.
//!
//! Two steps of an append are in the foreground: its bytes are received, and written to the disk; then it is answered.
//!
//! Invariants:
//! - Nothing is done for who has not proved to have the key of a volume, and nothing for another volume than that.
//! - A connection has a bounded number of requests, and of bytes, in progress: beyond that it is not read.
//! - What a connection asks can end that connection, and nothing else.
//! - A node connects to other nodes only for who may write to a volume, and with that volume's key.
//!
//! Does not: apply the log. Pages are made by the server, in its checkpoints (`logstead_engine`).
#![forbid(unsafe_code)]

mod background;
mod connection;
mod context;
mod damage;
mod encryption;
mod fetch;
mod node;
mod note;
mod outbox;
mod scrub;
#[cfg(test)]
mod tests;
mod volumes;

pub use background::NodeBackground;
pub use encryption::{CertificateError, NodeCertificate};
pub use node::{NodeError, NodeOptions, StorageNode};
pub use note::VolumeNote;
pub use scrub::ScrubOptions;
