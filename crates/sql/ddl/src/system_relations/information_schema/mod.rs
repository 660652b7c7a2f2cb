//! `information_schema`: the standard's views over a catalog snapshot.
//!
//! Owns: the list of views with PostgreSQL 15's columns, and the rows of those that clients read; the others are empty.
//! System relations are not listed: whoever wants them asks `pg_catalog`.

mod composites;
mod domains;
mod privileges;
mod routines;
mod rows;
mod views;

use logstead_sql_catalog::VirtualTable;

/// All views.
pub(crate) fn views() -> &'static [VirtualTable] {
    views::VIEWS
}
