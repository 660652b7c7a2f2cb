//! Functions and operators of json and jsonb.
//!
//! Owns: their rows of the registry ([`table`]) and their code. Text is read by [`crate::value::json`], whose errors are the input
//! functions'.

mod cast;
pub(super) mod table;
