//! PL/pgSQL: what a body says.
//!
//! Owns: reading a body into a tree ([`read`]), the names of conditions. The tree keeps SQL as text, checked when it
//! is read: errors of syntax show when a
//! body is read, those of meaning when it is run, as in PostgreSQL. Bodies are run by `session::routine`.
//! Does not look at the catalog: what a body is told of its function is a [`BodyContext`].

mod conditions;
mod lex;
mod parse;
pub mod tree;

pub use conditions::{condition, state};
pub use tree::{Body, BodyContext, read};

/// Does a list of checks (`plpgsql.extra_errors`) have this one?
pub fn lists_check(list: &str, check: &str) -> bool {
    let mut names = list.split(',').map(str::trim);
    names.any(|name| name.eq_ignore_ascii_case("all") || name.eq_ignore_ascii_case(check))
}

/// Is a variable that hides another one an error?
pub fn refuses_shadows(session: &dyn logstead_sql_types::value::IoContext) -> bool {
    let errors = session.setting("plpgsql.extra_errors");
    errors.is_some_and(|errors| lists_check(&errors, "shadowed_variables"))
}
