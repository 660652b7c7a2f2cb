//! Functions and operators of text search: what SQL calls, over `logstead_sql_types::value::search`.

mod headlines;
mod queries;
pub(super) mod table;
mod texts;
pub use texts::to_vector as text_vector;
mod vectors;
