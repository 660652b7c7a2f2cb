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
pub use tree::{BodyContext, PlpgsqlFunction, read};

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

#[cfg(test)]
mod tests {
    use super::tree::{PlpgsqlFunction, PlpgsqlStatement};
    use super::*;
    use logstead_sql_types::error::Result;

    fn body(text: &str) -> Result<PlpgsqlFunction> {
        let given = BodyContext {
            returns_nothing: true,
            returns_void: true,
            ..BodyContext::default()
        };
        read(text, &given)
    }

    #[test]
    fn strings_are_those_of_sql() {
        let read = body("begin raise notice E'a\\041' -- it's\n '%', $x$'$x$; end").unwrap();
        let PlpgsqlStatement::Block(block) = &read.block.body[0].kind else {
            panic!("a block");
        };
        let PlpgsqlStatement::Raise(raise) = &block.body[0].kind else {
            panic!("RAISE");
        };
        let (format, params) = raise.message.as_ref().unwrap();
        assert_eq!(format, "a!%");
        assert_eq!(&*params[0].text, "$x$'$x$");
    }

    #[test]
    fn what_no_token_begins_with_is_told_where_the_reader_comes_to_it() {
        for (text, message, position) in [
            (
                "begin\n  ä y 'open; end",
                "unterminated quoted string at or near \"'open; end\"",
                13,
            ),
            (
                "begin raise notic; perform 'open; end",
                "unrecognized exception condition \"notic\"",
                13,
            ),
            (
                "begin perform 1end; end",
                "trailing junk after numeric literal at or near \"1end\"",
                15,
            ),
            (
                "begin null; end loop",
                "syntax error at or near \"loop\"",
                17,
            ),
            ("begin null;", "syntax error at end of input", 12),
        ] {
            let error = body(text).unwrap_err();
            let fields = error.fields();
            let told = (&*fields.message, fields.position);
            assert_eq!(told, (message, Some(position)), "{text}");
        }
    }
}
