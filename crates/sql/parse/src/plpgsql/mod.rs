//! PL/pgSQL: what a body says.
//!
//! Owns: reading a body into a tree ([`read`]), the names of conditions. The tree keeps SQL as text, checked when it is read: errors of syntax show when a
//! body is read, those of meaning when it is run, as in PostgreSQL. Bodies are run by `session::routine`.
//! Does not look at the catalog: what a body is told of its function is a [`BodyContext`].

mod conditions;
mod lex;
mod parse;
pub mod tree;

pub use conditions::{condition, state};
pub use tree::{Body, BodyContext, read};
