//! CREATE TABLE AS with names of columns.

/// The subquery that a query with a list of columns becomes.
pub const NAMED_QUERY: &str = "query";
