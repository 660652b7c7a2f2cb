//! The PostgreSQL protocol: bytes to statements and back.
//!
//! Owns: the messages (`decode`, `encode`, `rows`), the buffers of a connection (`link`) and its life (`connection`).
//! Knows no SQL: a session of `logstead-sql-session` answers. The loop is ours because one write per Sync is what makes
//! prepared statements fast; the messages are ours because decoding borrows from the receive buffer and must survive
//! any input.
#![forbid(unsafe_code)]

pub mod access;
mod authenticate;
pub mod connection;
pub mod decode;
pub mod encode;
mod link;
mod recode;
mod rows;
pub mod tls;

pub use connection::{serve, serve_arrived};
