//! The system's relations: what shows the catalog and the server as rows.
//!
//! Owns: `pg_catalog` with the `logstead_*` views, and `information_schema`. They are one: each lists the relations of
//! both.
//!
//! Invariant: their rows are computed from a catalog and never stored.
//!
//! Does not: change anything; the functions in `pg_catalog::calls` answer questions only.

pub(crate) mod information_schema;
pub mod pg_catalog;
