//! The names of types as PostgreSQL shows them (`format_type`) and as statements say them.

use logstead_sql_parse::ast::{
    self, Expr, Location, Name, TypeName, TypeRef, Visit, Visitor, interval_fields, modifier,
};
use logstead_sql_parse::grammar;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{SqlType, datetime, info, oid, user};
use logstead_types::SqlState;
use std::ops::ControlFlow;

/// What names of users' types mean.
pub trait TypeNames {
    /// The type of a name; without a schema the path is searched. 42501 for a schema that is closed to the role.
    fn user_type(&self, schema: Option<&str>, name: &str) -> Result<Option<TypeId>>;
    /// The users' types that there are, if any are known.
    fn types(&self) -> Option<TypeLookup<'_>>;
    /// 3F000 unless there is such a schema, 42501 if it is closed to the role.
    fn existing(&self, schema: &str) -> Result<()>;
}

/// The types that texts name which are kept, outside of any session: by number.
struct KeptTypes<'a>(Option<&'a UserTypes>);

impl TypeNames for KeptTypes<'_> {
    fn user_type(&self, _: Option<&str>, _: &str) -> Result<Option<TypeId>> {
        Ok(None)
    }
    fn types(&self) -> Option<TypeLookup<'_>> {
        self.0.map(|types| types.lookup(&[]))
    }
    fn existing(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

/// As texts that are kept are printed: whether a type may be looked up there is not asked.
impl TypeNames for TypeLookup<'_> {
    fn user_type(&self, schema: Option<&str>, name: &str) -> Result<Option<TypeId>> {
        Ok(self.types.find(schema, name, self.search_path))
    }
    fn types(&self) -> Option<TypeLookup<'_>> {
        Some(*self)
    }
    fn existing(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

/// The type that a type name of the grammar means, with its modifier. It may be a domain, which no expression's type
/// ever is: see [`UserTypes::base_type`](user::UserTypes::base_type).
pub fn sql_type(name: &TypeName, lookup: impl TypeNames) -> Result<SqlType> {
    let none = UserTypes::default();
    let types = lookup.types().unwrap_or(none.lookup(&[]));
    with_modifiers(name, base_type(name, &lookup)?, types)
}

fn with_modifiers(name: &TypeName, oid: TypeId, types: TypeLookup<'_>) -> Result<SqlType> {
    let args = modifiers(name, oid)?;
    let typmod = match args.is_empty() {
        true => -1,
        false => info::typmod_in(oid, &args, types.types)?,
    };
    let element = SqlType { oid, typmod };
    if name.array_bounds.is_empty() {
        return Ok(element);
    }
    if types.types.element_of(oid).is_some() {
        // int[][] is the same type as int[].
        return match user::class(oid) == Some(user::UserTypeClass::Domain) {
            true => Err(SqlError::unsupported(
                "an array over a domain over an array",
            )),
            false => Ok(element),
        };
    }
    let array = info::array_of(oid).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "could not find array type for data type {}",
                types.format_type(element)
            ),
        )
    })?;
    Ok(SqlType { oid: array, typmod })
}

/// A longer text is no type's name: each of its tokens would take some hundred bytes.
const TYPE_TEXT_BYTES_MAX: usize = 256 << 10;

/// The type that a text names, as `regtype` reads it.
pub fn type_by_text(text: &str, lookup: impl TypeNames) -> Result<TypeId> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b" _[]".contains(&c);
    if text.bytes().all(plain)
        && let Some(found) = info::by_name(text)
    {
        return Ok(found);
    }
    let named = || format!("invalid type name \"{text}\"");
    if text.len() > TYPE_TEXT_BYTES_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("type name of {} bytes is too long", text.len()),
        ));
    }
    let wrong = |mut error: SqlError| {
        error.fields_mut().position = None;
        error.context(named())
    };
    if text.trim().is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, named()));
    }
    let name = grammar::parse_stored_type_name(text).map_err(wrong)?;
    if name.setof {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, named()));
    }
    match sql_type(&name, lookup) {
        Ok(ty) => Ok(ty.oid),
        // Who asks for it by name is told that there is none.
        Err(error) if error.code() == SqlState::FEATURE_NOT_SUPPORTED => Err(undefined(&name)),
        Err(error) => Err(error),
    }
}

/// The same of a text that is kept, outside of any session: a built-in type, or one of these by its number.
pub(crate) fn kept_type_by_text(text: &str, types: Option<&UserTypes>) -> Result<TypeId> {
    type_by_text(text, KeptTypes(types))
}

/// What stands in parentheses behind a name, as numbers.
fn modifiers(name: &TypeName, oid: TypeId) -> Result<Vec<i64>> {
    let number = |typmod: &Expr| {
        let written = modifier(typmod).and_then(|written| written.parse::<i64>().ok());
        written.ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "type modifiers must be simple constants or identifiers",
            )
        })
    };
    let args: Vec<i64> = name.typmods.iter().map(number).collect::<Result<_>>()?;
    // The grammar has put the fields of an interval in front of its precision.
    Ok(match args.as_slice() {
        [mask, rest @ ..] if oid == oid::INTERVAL => {
            match (
                i32::try_from(*mask) == Ok(interval_fields::FULL_RANGE),
                rest,
            ) {
                (true, rest) => rest.to_vec(),
                (false, []) => vec![*mask, i64::from(datetime::fields::ANY_PRECISION)],
                (false, _) => args,
            }
        }
        _ => args,
    })
}

/// The OID of a type name, apart from modifiers and dimensions.
fn base_type(name: &TypeName, lookup: &impl TypeNames) -> Result<TypeId> {
    let names = match &name.name {
        TypeRef::Stored(number) => {
            let oid = TypeId::new(*number);
            let types = lookup.types();
            let is_there = types.is_some_and(|known| known.types.name_of(oid).is_some());
            return is_there.then_some(oid).ok_or_else(|| undefined(name));
        }
        TypeRef::Named(names) => names.as_slice(),
    };
    let found = found(names, |schema, name| lookup.user_type(schema, name))?;
    found.ok_or_else(|| match names {
        [schema, _] => match lookup.existing(schema) {
            Ok(()) => undefined(name),
            Err(error) => error,
        },
        _ => undefined(name),
    })
}

/// The type of a name, by what finds users' types.
fn found(
    names: &[Name],
    user_type: impl Fn(Option<&str>, &str) -> Result<Option<TypeId>>,
) -> Result<Option<TypeId>> {
    Ok(match names {
        [only] => match info::by_catalog_name(only) {
            Some(found) => Some(found),
            None => user_type(None, only)?,
        },
        [schema, only] => {
            let own = match &**schema {
                "pg_catalog" => info::by_catalog_name(only),
                "information_schema" => of_standard(only),
                _ => None,
            };
            match own {
                Some(found) => Some(found),
                None => user_type(Some(schema), only)?,
            }
        }
        _ => None,
    })
}

/// The types behind `information_schema`'s domains. Nobody is asked whether a value is one of a domain's: what the
/// views give is.
fn of_standard(name: &str) -> Option<TypeId> {
    match name {
        "cardinal_number" => Some(oid::INT4),
        "character_data" | "yes_or_no" => Some(oid::VARCHAR),
        "sql_identifier" => Some(oid::NAME),
        "time_stamp" => Some(oid::TIMESTAMPTZ),
        _ => None,
    }
}

fn undefined(name: &TypeName) -> SqlError {
    let shown = match &name.name {
        TypeRef::Named(names) => names.join("."),
        TypeRef::Stored(oid) => oid.to_string(),
    };
    let array = match name.array_bounds.is_empty() {
        true => "",
        false => "[]",
    };
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{shown}{array}\" does not exist"),
    )
}

/// The users' types that a query or expression names in its casts, and where.
pub fn types_in(query: &impl Visit, lookup: impl TypeNames) -> Vec<(Location, TypeId)> {
    struct Types<L>(L, Vec<(Location, TypeId)>);
    impl<L: TypeNames> Visitor for Types<L> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            if let ast::Expr::TypeCast(cast) = expr
                && let Ok(oid) = base_type(&cast.type_name, &self.0)
                && user::class(oid).is_some()
            {
                self.1.push((cast.type_name.location, oid));
            }
            ControlFlow::Continue(())
        }
    }
    let mut types = Types(lookup, Vec::new());
    let _all_visited = query.visit(&mut types);
    types.1
}
