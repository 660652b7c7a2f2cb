//! Arguments by name, `make_interval(days => 3)`: brought into order, what is left out filled with its default.

use logstead_sql_parse::ast::{self, FuncArg, Value};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Names of parameters, and defaults of those that may be left out, of functions that are called so.
const PARAMETERS: &[(&str, &[(&str, &str)])] = &[
    (
        "make_interval",
        &[
            ("years", "0"),
            ("months", "0"),
            ("weeks", "0"),
            ("days", "0"),
            ("hours", "0"),
            ("mins", "0"),
            ("secs", "0.0"),
        ],
    ),
    ("make_date", &[("year", ""), ("month", ""), ("day", "")]),
    (
        "table_to_xml",
        &[
            ("tbl", ""),
            ("nulls", ""),
            ("tableforest", ""),
            ("targetns", ""),
        ],
    ),
    (
        "query_to_xml",
        &[
            ("query", ""),
            ("nulls", ""),
            ("tableforest", ""),
            ("targetns", ""),
        ],
    ),
    (
        "schema_to_xml",
        &[
            ("schema", ""),
            ("nulls", ""),
            ("tableforest", ""),
            ("targetns", ""),
        ],
    ),
    (
        "database_to_xml",
        &[("nulls", ""), ("tableforest", ""), ("targetns", "")],
    ),
    ("make_time", &[("hour", ""), ("min", ""), ("sec", "")]),
    (
        "make_timestamp",
        &[
            ("year", ""),
            ("month", ""),
            ("mday", ""),
            ("hour", ""),
            ("min", ""),
            ("sec", ""),
        ],
    ),
    (
        "make_timestamptz",
        &[
            ("year", ""),
            ("month", ""),
            ("mday", ""),
            ("hour", ""),
            ("min", ""),
            ("sec", ""),
            ("timezone", ""),
        ],
    ),
    (
        "jsonb_set",
        &[
            ("jsonb_in", ""),
            ("path", ""),
            ("replacement", ""),
            ("create_if_missing", "true"),
        ],
    ),
    (
        "jsonb_insert",
        &[
            ("jsonb_in", ""),
            ("path", ""),
            ("replacement", ""),
            ("insert_after", "false"),
        ],
    ),
    (
        "jsonb_set_lax",
        &[
            ("jsonb_in", ""),
            ("path", ""),
            ("replacement", ""),
            ("create_if_missing", "true"),
            ("null_value_treatment", "use_json_null"),
        ],
    ),
    ("jsonb_path_exists", JSONPATH),
    ("jsonb_path_exists_tz", JSONPATH),
    ("jsonb_path_match", JSONPATH),
    ("jsonb_path_match_tz", JSONPATH),
    ("jsonb_path_query", JSONPATH),
    ("jsonb_path_query_array", JSONPATH),
    ("jsonb_path_query_array_tz", JSONPATH),
    ("jsonb_path_query_first", JSONPATH),
    ("jsonb_path_query_first_tz", JSONPATH),
    ("jsonb_path_query_tz", JSONPATH),
    ("parse_ident", &[("str", ""), ("strict", "true")]),
    ("pg_terminate_backend", &[("pid", ""), ("timeout", "0")]),
];

/// Parameters of all functions that follow a path.
const JSONPATH: &[(&str, &str)] = &[
    ("target", ""),
    ("path", ""),
    ("vars", "{}"),
    ("silent", "false"),
];

fn default(text: &str) -> ast::Expr {
    ast::Expr::value(match text {
        "true" | "false" => Value::Boolean(text == "true"),
        text if !text.starts_with(|c: char| c.is_ascii_digit()) => Value::from(text),
        number => Value::number(number),
    })
}

/// The arguments in order, if any has a name; none if none has.
pub(super) fn in_order(name: &str, args: &[FuncArg]) -> Result<Option<Vec<FuncArg>>> {
    let positional = args.iter().take_while(|arg| arg.name.is_none()).count();
    if positional == args.len() {
        return Ok(None);
    }
    let Some((_, parameters)) = PARAMETERS.iter().find(|(function, _)| *function == name) else {
        return Err(SqlError::unsupported("a named argument"));
    };
    let mut places: Vec<Option<FuncArg>> = vec![None; parameters.len()];
    let no_function = || {
        SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {name} with these arguments does not exist"),
        )
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
    };
    for (at, arg) in args.iter().enumerate() {
        let place = match &arg.name {
            None if at < positional => at,
            None => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "positional argument cannot follow named argument",
                ));
            }
            Some((said, _)) => {
                let place = parameters.iter().position(|(known, _)| *known == &**said);
                place.ok_or_else(no_function)?
            }
        };
        let slot = places.get_mut(place).ok_or_else(no_function)?;
        if slot.replace(FuncArg::from(arg.value.clone())).is_some() {
            let said = parameters.get(place).map_or("", |(known, _)| known);
            return Err(match at < positional {
                true => no_function(),
                false => SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("argument name \"{said}\" used more than once"),
                ),
            });
        }
    }
    // What is left out behind the last has its default anyway, and make_timestamptz comes without a time zone, too.
    while places.last().is_some_and(Option::is_none) {
        places.pop();
    }
    let filled = places
        .into_iter()
        .zip(*parameters)
        .map(|(slot, (_, or))| match slot {
            Some(arg) => Ok(arg),
            None if or.is_empty() => Err(no_function()),
            None => Ok(FuncArg::from(default(or))),
        });
    filled.collect::<Result<Vec<_>>>().map(Some)
}
