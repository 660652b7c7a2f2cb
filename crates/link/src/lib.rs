//! Connections between processes of Logstead: of a replica to its primary, of a server to a storage node.
//!
//! Does not: open sockets, judge certificates, or know what is said.
#![forbid(unsafe_code)]

mod stream;

pub use stream::{LinkListener, LinkStream, TlsStream, encrypt};
