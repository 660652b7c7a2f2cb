//! SQL's values: what a value is, how it reads, prints, is stored, compared and ordered; and the errors that clients
//! see.
//!
//! Owns: [`value`] with every type, [`encoding`]s, documents of XML ([`xml`]), PostgreSQL's regular expressions
//! ([`regex`]), [`error`]s, what large values may take ([`memory`]), and where long computations look whether they are
//! to end ([`interrupt`]).
//!
//! Invariant: nothing here knows statements, catalogs, functions or sessions. What types need of those they ask by
//! [`value::IoContext`], [`value::user::TypeCatalog`] and [`interrupt::RunningTask`].
#![forbid(unsafe_code)]

pub mod encoding;
pub mod error;
pub mod interrupt;
pub mod memory;
mod oid;
pub mod persistent;
pub mod regex;
mod thread_context;
pub mod value;
pub mod xml;

pub use error::{Result, SqlError};
pub use oid::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};
