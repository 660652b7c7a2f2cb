//! UNIQUE NULLS [NOT] DISTINCT of a column, which the grammar library knows of tables' constraints alone.
//!
//! NOT DISTINCT travels in the constraint's name, as a beginning that nobody can write.

/// What such a name begins with; the name that was written follows, if one was.
pub(super) const MARK: &str = "\0nulls not distinct";

/// The name of a column's UNIQUE as it was written, and whether NULLs are not distinct.
pub fn unique_name(name: Option<String>) -> (Option<String>, bool) {
    match name.as_deref().and_then(|name| name.strip_prefix(MARK)) {
        None => (name, false),
        Some(rest) => ((!rest.is_empty()).then(|| rest.to_owned()), true),
    }
}
