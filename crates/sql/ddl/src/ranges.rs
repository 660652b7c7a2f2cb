//! CREATE TYPE ... AS RANGE: a range over any type that has an order, with its multirange.

use super::relation_attributes::collation_oid;
use super::types::{add, array_name, free};
use super::{DdlContext, def_elem};
use crate::pg_catalog::{operator_class, operator_class_name};
use logstead_sql_catalog::text::{NAME_LENGTH_MAX, truncate_name};
use logstead_sql_func as func;
use logstead_sql_parse::ast::{CreateRangeStmt, Name, TypeName};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{
    self, RangeType, UserKind, UserType, UserTypeClass, multirange_over, of_users,
};
use logstead_sql_types::value::{Oid, info, oid};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// What CREATE TYPE says, each once.
#[derive(Default)]
struct Clauses {
    subtype: Option<TypeName>,
    class: Option<Vec<Name>>,
    collation: Option<Vec<Name>>,
    canonical: Option<Vec<Name>>,
    difference: Option<Vec<Name>>,
    multirange: Option<Vec<Name>>,
}

impl Clauses {
    fn of(stmt: &CreateRangeStmt, text: &str) -> Result<Clauses> {
        let mut all = Clauses::default();
        for option in &stmt.params {
            let place = match &*option.name {
                "subtype" => {
                    let name = def_elem::get_type_name(option)?;
                    def_elem::set_once(&mut all.subtype, name, option, text)?;
                    continue;
                }
                "subtype_opclass" => &mut all.class,
                "collation" => &mut all.collation,
                "canonical" => &mut all.canonical,
                "subtype_diff" => &mut all.difference,
                "multirange_type_name" => &mut all.multirange,
                other => return Err(syntax(format!("type attribute \"{other}\" not recognized"))),
            };
            def_elem::set_once(place, def_elem::get_qualified_name(option)?, option, text)?;
        }
        Ok(all)
    }
}

/// What bounds may be of here: values that say themselves how they are compared.
fn refuse(subtype: TypeId, cx: &mut DdlContext<'_>) -> Result<()> {
    let element = cx.catalog()?.types.element_of(subtype).unwrap_or(subtype);
    let refused = matches!(
        element,
        oid::BPCHAR | oid::CITEXT | oid::HSTORE | oid::RECORD
    ) || matches!(
        user::class(element),
        Some(
            UserTypeClass::Domain
                | UserTypeClass::Composite
                | UserTypeClass::Range
                | UserTypeClass::Multirange
        )
    ) || info::by_oid(element).is_some_and(|t| matches!(t.kind, 'r' | 'm'));
    match refused {
        true => Err(SqlError::unsupported(format!(
            "a range over type {}",
            cx.format_type_bare(subtype)?
        ))),
        false => Ok(()),
    }
}

/// The B-tree operator class of the bounds' type.
fn class_of(subtype: TypeId, named: Option<&Vec<Name>>, cx: &mut DdlContext<'_>) -> Result<Oid> {
    let shown = cx.format_type_bare(subtype)?;
    let own = operator_class(subtype);
    let Some(named) = named else {
        if own == 0 {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "data type {shown} has no default operator class for access method \"btree\""
                ),
            )
            .hint("You must specify an operator class for the range type or define a default operator class for the subtype."));
        }
        return Ok(own);
    };
    let (_, name) = cx.lookup_parts(named.as_slice())?;
    let Some((class, input)) = operator_class_name(&name) else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("operator class \"{name}\" does not exist for access method \"btree\""),
        ));
    };
    // Those of a type that its values can be taken for without a change are of it too.
    if class == own || operator_class(input) == own && own != 0 {
        return Ok(class);
    }
    Err(SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("operator class \"{name}\" does not accept data type {shown}"),
    ))
}

/// The function that tells the difference between two bounds.
fn difference_of(subtype: TypeId, named: &[Name], cx: &mut DdlContext<'_>) -> Result<FunctionId> {
    let (schema, name) = cx.lookup_parts(named)?;
    let types = [subtype, subtype];
    let system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
    let built_in = func::functions_named(&name).find(|f| system && f.args == types);
    let mut called = None;
    let (found, result, immutable) = match built_in {
        Some(f) => (f.oid, f.result, f.volatility == func::Volatility::Immutable),
        None => {
            let catalog = cx.catalog()?;
            let all = catalog.routines_named(schema.as_deref(), &name, cx.search_path);
            let found = all.iter().find(|(_, r)| r.input_types() == types);
            let Some((_, routine)) = found else {
                let shown = cx.format_type_bare(subtype)?;
                return Err(SqlError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("function {name}({shown}, {shown}) does not exist"),
                ));
            };
            let immutable = routine.volatility == func::Volatility::Immutable;
            called = Some(routine.oid);
            (routine.oid, routine.result, immutable)
        }
    };
    let shown = cx.format_type_bare(subtype)?;
    let wrong = |must: &str| {
        SqlError::new(
            SqlState::new(b"42P17"),
            format!("range subtype diff function {name}({shown}, {shown}) must {must}"),
        )
    };
    if result != oid::FLOAT8 {
        return Err(wrong("return type double precision"));
    }
    if !immutable {
        return Err(wrong("be immutable"));
    }
    if let Some(users) = called {
        cx.must_call(users)?;
    }
    Ok(found)
}

/// What the multirange is called if nobody says it.
fn multirange_name(range: &str) -> String {
    match range.find("range") {
        Some(at) => {
            let (before, from) = range.split_at(at);
            truncate_name(&format!("{before}multi{from}")).to_owned()
        }
        None => {
            const TAIL: &str = "_multirange";
            let mut end = range.len().min(NAME_LENGTH_MAX - TAIL.len());
            while !range.is_char_boundary(end) {
                end -= 1;
            }
            format!("{}{TAIL}", range.get(..end).unwrap_or_default())
        }
    }
}

/// Runs CREATE TYPE ... AS RANGE.
pub(super) async fn create(stmt: &CreateRangeStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (schema, name) = cx.new_type_name(&stmt.type_name)?;
    free(&schema.name, schema.oid, &name, cx)?;
    let clauses = Clauses::of(stmt, cx.text)?;
    let subtype = clauses
        .subtype
        .ok_or_else(|| syntax("type attribute \"subtype\" is required".to_owned()))?;
    let subtype = cx.sql_type(&subtype)?.oid;
    cx.must_use_types(of_users(subtype))?;
    let shown = cx.format_type_bare(subtype)?;
    let known = cx.catalog()?.types.type_info(subtype);
    if known.is_some_and(|t| t.kind == 'p') {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("range subtype cannot be {shown}"),
        ));
    }
    if clauses.canonical.is_some() {
        return Err(SqlError::new(
            SqlState::new(b"42P17"),
            "cannot specify a canonical function without a pre-created shell type",
        )
        .hint("Create the type as a shell type, then create its canonicalization function, then do a full CREATE TYPE."));
    }
    let own_collation = known.map_or(0, |t| t.collation());
    let collation = match &clauses.collation {
        None => own_collation,
        Some(_) if own_collation == 0 => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "range collation specified but subtype does not support collation",
            ));
        }
        Some(named) => collation_oid(named.as_slice())?,
    };
    let class = class_of(subtype, clauses.class.as_ref(), cx)?;
    refuse(subtype, cx)?;
    let difference = match &clauses.difference {
        Some(named) => Some(difference_of(subtype, named, cx)?),
        None => None,
    };
    let (oid, csn) = cx.store.new_range_oid(cx.worker)?;
    cx.depends_on(csn);
    let multirange = match &clauses.multirange {
        None => multirange_name(&name),
        Some(named) => match cx.lookup_parts(named.as_slice())? {
            (Some(other), _) if other != schema.name => {
                return Err(SqlError::unsupported(
                    "a multirange type in another schema than its range",
                ));
            }
            (_, plain) => plain.to_string(),
        },
    };
    let taken = multirange == name;
    if taken || free(&schema.name, schema.oid, &multirange, cx).is_err() {
        let error = SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("type \"{multirange}\" already exists"),
        );
        return Err(match clauses.multirange {
            Some(_) => error,
            None => error
                .detail(format!(
                    "Failed while creating a multirange type for type \"{name}\"."
                ))
                .hint("You can manually specify a multirange type name using the \"multirange_type_name\" attribute."),
        });
    }
    let range = RangeType {
        subtype,
        collation,
        class,
        difference,
        multirange_array_name: array_name(&schema.name, &multirange, multirange_over(oid), cx)?,
        multirange_name: multirange,
    };
    let ty = UserType {
        oid,
        array_name: array_name(&schema.name, &name, oid, cx)?,
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: UserKind::Range(Box::new(range)),
    };
    add(ty, cx).await
}
