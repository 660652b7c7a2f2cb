//! The values of options in lists of options (`define.c`).
//!
//! An option whose value the grammar has as a name, a literal or a number is read as the kind of value that the
//! statement expects there, or refused in PostgreSQL's words.

use logstead_sql_parse::ast::{DefArg, DefElem, Location, Name, TypeName, TypeRef};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// 42601 for an option that is said twice (`errorConflictingDefElem`). `text` is that of the statement.
pub fn conflicting(option: &DefElem, text: &str) -> SqlError {
    conflicting_at(option.location, text)
}

/// The same of what stands at a place.
pub fn conflicting_at(location: Location, text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
        .at(location.character(text))
}

/// Sets what an option says, unless an earlier one has.
pub fn set_once<T>(place: &mut Option<T>, value: T, option: &DefElem, text: &str) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(conflicting(option, text)),
    }
}

/// 42601 for an option without a value.
pub fn requires_parameter(option: &DefElem) -> SqlError {
    syntax(format!("{} requires a parameter", option.name))
}

/// An option whose value is of a kind that the grammar does not give it.
pub(crate) fn unexpected(option: &DefElem) -> SqlError {
    SqlError::internal(format!("the value of the option {}", option.name))
}

/// The names of a type's name, which is by number in stored texts only.
pub(crate) fn type_names(name: &TypeName) -> Result<&[Name]> {
    match &name.name {
        TypeRef::Named(names) => Ok(names),
        TypeRef::Stored(_) => Err(SqlError::internal("a type by number in a statement")),
    }
}

/// The value as a text (`defGetString`).
pub fn get_string(option: &DefElem) -> Result<String> {
    Ok(match &option.arg {
        None => return Err(requires_parameter(option)),
        Some(DefArg::String(text) | DefArg::Float(text)) => text.to_string(),
        Some(DefArg::Integer(number)) => number.to_string(),
        Some(DefArg::Boolean(truth)) => truth.to_string(),
        Some(DefArg::Type(name)) => type_names(name)?.join("."),
        Some(DefArg::Name(name)) => name.names.join("."),
        Some(DefArg::Operator(operator)) => operator.name.to_string(),
        Some(DefArg::Star) => "*".to_owned(),
        Some(DefArg::None) => "none".to_owned(),
        Some(_) => return Err(unexpected(option)),
    })
}

/// The value as a truth value; true where none is said (`defGetBoolean`).
pub fn get_boolean(option: &DefElem) -> Result<bool> {
    let value = match &option.arg {
        None => Some(true),
        Some(DefArg::Boolean(truth)) => Some(*truth),
        Some(DefArg::Integer(0)) => Some(false),
        Some(DefArg::Integer(1)) => Some(true),
        Some(DefArg::Integer(_)) => None,
        Some(_) => match get_string(option)?.to_lowercase().as_str() {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        },
    };
    value.ok_or_else(|| syntax(format!("{} requires a Boolean value", option.name)))
}

/// The value as a whole number (`defGetInt32`).
pub fn get_int32(option: &DefElem) -> Result<i32> {
    match &option.arg {
        None => Err(requires_parameter(option)),
        Some(DefArg::Integer(number)) => Ok(*number),
        Some(_) => Err(syntax(format!("{} requires an integer value", option.name))),
    }
}

/// The value as a whole number of eight bytes (`defGetInt64`).
pub fn get_int64(option: &DefElem) -> Result<i64> {
    let written = match &option.arg {
        None => return Err(requires_parameter(option)),
        Some(DefArg::Integer(number)) => return Ok(i64::from(*number)),
        // What is too large for four bytes is no integer to the grammar.
        Some(DefArg::Float(written)) => written,
        Some(_) => {
            return Err(syntax(format!("{} requires a numeric value", option.name)));
        }
    };
    written.parse().map_err(|_| {
        let digits = written.strip_prefix('-').unwrap_or(written);
        match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{written}\" is out of range for type bigint"),
            ),
            false => SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type bigint: \"{written}\""),
            ),
        }
    })
}

/// The value as a number (`defGetNumeric`).
pub fn get_numeric(option: &DefElem) -> Result<f64> {
    let number = match &option.arg {
        None => return Err(requires_parameter(option)),
        Some(DefArg::Integer(number)) => Some(f64::from(*number)),
        Some(DefArg::Float(written)) => written.parse().ok(),
        Some(_) => None,
    };
    number.ok_or_else(|| syntax(format!("{} requires a numeric value", option.name)))
}

/// The value as a name that may be qualified (`defGetQualifiedName`).
pub fn get_qualified_name(option: &DefElem) -> Result<Vec<Name>> {
    match &option.arg {
        None => Err(requires_parameter(option)),
        Some(DefArg::Type(name)) => Ok(type_names(name)?.to_vec()),
        Some(DefArg::Name(name)) => Ok(name.names.to_vec()),
        Some(DefArg::String(name)) => Ok(vec![name.clone()]),
        Some(_) => Err(syntax(format!(
            "argument of {} must be a name",
            option.name
        ))),
    }
}

/// The value as the name of a type (`defGetTypeName`).
pub fn get_type_name(option: &DefElem) -> Result<TypeName> {
    match &option.arg {
        None => Err(requires_parameter(option)),
        Some(DefArg::Type(name)) => Ok(TypeName::clone(name)),
        // A name in quotes as a literal.
        Some(DefArg::String(name)) => Ok(TypeName {
            name: TypeRef::Named([name.clone()].into_iter().collect()),
            setof: false,
            pct_type: false,
            typmods: Vec::new(),
            array_bounds: Vec::new(),
            location: Location::UNKNOWN,
        }),
        Some(_) => Err(syntax(format!(
            "argument of {} must be a type name",
            option.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::Stmt;

    /// The options of CREATE TYPE ... AS RANGE, which may have any value.
    fn options(text: &str) -> Vec<DefElem> {
        let text = format!("CREATE TYPE t AS RANGE ({text})");
        let parsed = logstead_sql_parse::parse(&text).unwrap().remove(0);
        match &**parsed.statement {
            Stmt::CreateRange(create) => create.params.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn refused<T: std::fmt::Debug>(found: Result<T>) -> String {
        match found {
            Err(error) if error.code() == SqlState::SYNTAX_ERROR => error.fields().message.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_truth_value_is_a_word_or_a_digit() {
        for (option, wanted) in [
            ("a", true),
            ("a = TRUE", true),
            ("a = 'On'", true),
            ("a = 1", true),
            ("a = off", false),
            ("a = 0", false),
        ] {
            let truth = get_boolean(&options(option)[0]);
            assert!(matches!(truth, Ok(truth) if truth == wanted), "{option}");
        }
        for option in ["a = yes", "a = 2", "a = 1.0"] {
            let found = get_boolean(&options(option)[0]);
            assert_eq!(refused(found), "a requires a Boolean value", "{option}");
        }
    }

    #[test]
    fn numbers_are_no_texts() {
        let all = options("a = 7, b = 1.5, c = '7', d");
        assert!(matches!(get_int32(&all[0]), Ok(7)));
        assert!(matches!(get_numeric(&all[1]), Ok(number) if number == 1.5));
        assert_eq!(refused(get_int32(&all[1])), "b requires an integer value");
        assert_eq!(refused(get_int32(&all[2])), "c requires an integer value");
        assert_eq!(refused(get_numeric(&all[2])), "c requires a numeric value");
        assert_eq!(refused(get_string(&all[3])), "d requires a parameter");
    }

    #[test]
    fn names_are_of_words_and_of_literals() {
        let all = options("a = s.\"F\", b = 'g', c = =, d = 3");
        assert_eq!(
            get_qualified_name(&all[0]).unwrap_or_default(),
            [Name::from("s"), Name::from("F")]
        );
        assert_eq!(
            get_qualified_name(&all[1]).unwrap_or_default(),
            [Name::from("g")]
        );
        assert_eq!(get_string(&all[0]).unwrap_or_default(), "s.F");
        assert_eq!(get_string(&all[2]).unwrap_or_default(), "=");
        assert_eq!(
            refused(get_qualified_name(&all[3])),
            "argument of d must be a name"
        );
        assert_eq!(
            refused(get_type_name(&all[3])),
            "argument of d must be a type name"
        );
    }

    #[test]
    fn an_option_said_twice_is_told_where() {
        let (option, text) = (
            &options("é = 1, b = 2")[1],
            "CREATE TYPE t AS RANGE (é = 1, b = 2)",
        );
        let mut place = None;
        assert!(set_once(&mut place, 1, option, text).is_ok());
        let error = set_once(&mut place, 2, option, text);
        let position = error.map_err(|error| error.fields().position);
        assert_eq!(position, Err(Some(32)));
    }
}
