//! The PostgreSQL protocol: bytes to statements and back.
//!
//! Owns: the messages (`decode`, `encode`, `rows`), the buffers of a connection (`client_connection`) and its life
//! (`connection`), also on its way to another worker (`moving`). Knows no SQL: a session of `logstead-sql-session`
//! answers. The loop is ours because one write per Sync is what makes prepared statements fast; the messages are ours
//! because decoding borrows from the receive buffer and must survive any input.
#![forbid(unsafe_code)]

mod authenticate;
mod client_connection;
pub mod connection;
pub mod decode;
pub mod encode;
pub mod hba;
mod moving;
mod recode;
pub mod replication;
mod rows;
pub mod tls;

pub use connection::{serve, serve_arrived, serve_moved, serve_restored};
pub use moving::MovingClient;
