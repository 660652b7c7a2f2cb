//! Trees of queries and expressions as text, as PostgreSQL prints what it keeps (`ruleutils.c`).
//!
//! Works on trees whose types and names are explicit: prints, decides nothing.

mod expr;
mod normal_form;
mod query;
mod sort;
mod special;
mod xml;

pub(crate) use expr::{normal, pretty, qualified};
pub(crate) use normal_form::{bit_literal, expr_to_sql};
pub(crate) use query::definition;
pub(crate) use sort::sort_shown;
