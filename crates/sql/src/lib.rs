//! SQL: from a statement's text to rows and back, PostgreSQL 15's semantics.
//!
//! The life of a statement:
//! 1. `session` takes the text (simple protocol) or parse / bind / execute calls (extended) from `wire`.
//! 2. `parse` turns text into a syntax tree (library), cached by text.
//! 3. `bind` resolves names against a `catalog` snapshot and types every expression (`expr`).
//! 4. `plan` chooses scans, joins and orders: a tree of `plan::Plan` nodes; cached with the catalog version.
//! 5. `exec` runs the plan on the engine's encoded rows; statements by key take `exec::point`.
//! 6. `session` ends the transaction and waits until what is told to the client is Committed.
//!
//! Talks to the engine only: no sockets, files or clocks here.
#![forbid(unsafe_code)]

pub mod ddl;
pub mod exec;
mod information_schema;
pub mod pg_catalog;
#[cfg(test)]
mod planner_tests;
pub mod session;

pub use logstead_sql_catalog::{self as catalog, context, role, settings};
pub use logstead_sql_func as func;
pub use logstead_sql_parse::{self as parse, plpgsql};
pub use logstead_sql_plan::{self as plan, bind, constraints, expr};
pub use logstead_sql_types::{Result, SqlError, encoding, error, value};
use logstead_sql_types::{interrupt, search, xml};
