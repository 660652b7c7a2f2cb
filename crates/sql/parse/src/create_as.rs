//! CREATE TABLE AS: bare column names and WITH [NO] DATA, which the grammar library lacks there; and SELECT INTO, which is the same.

/// The subquery that a query with a list of columns becomes.
pub const NAMED_QUERY: &str = "query";
