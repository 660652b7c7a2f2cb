//! Text search: tsvector, tsquery, and what is between them and a text.
//!
//! Owns: the two types ([`vector`], [`query`], [`query_parser`]), the default parser ([`parser`]), dictionaries and
//! configurations ([`dictionary`], [`language`]), matching ([`matching`]) and ranking ([`rank`], [`headline`]). The
//! functions that SQL calls are in `func::search`. PostgreSQL 15 is the specification, down to the places of words and
//! the last bit of a rank: texts that were indexed there must mean the same here.

pub mod dictionary;
pub mod headline;
pub mod language;
pub mod matching;
pub mod parser;
pub mod query;
pub mod query_parser;
pub mod rank;
#[cfg(test)]
mod tests;
mod token;
pub mod vector;
