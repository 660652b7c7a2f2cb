//! Functions and operators of json and jsonb.
//!
//! Owns: their rows of the registry ([`table`], [`aggregate`]) and their code. Text is read by
//! [`logstead_sql_types::value::json`], whose errors
//! are the input functions'. Where json and jsonb do the same, one function does it over a [`node`] of either.

mod access;
pub(super) mod aggregate;
mod assign;
mod cast;
mod datetime;
mod expand;
mod item;
mod make;
pub(crate) mod node;
mod path;
mod path_calls;
mod populate;
mod set_path;
pub(super) mod table;

pub use assign::JSONB_SET_ELEMENT;
