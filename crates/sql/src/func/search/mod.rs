//! Functions and operators of text search: what SQL calls, over `crate::search`.

mod headlines;
mod queries;
pub(super) mod table;
mod texts;
pub(crate) use texts::to_vector as text_vector;
mod vectors;
