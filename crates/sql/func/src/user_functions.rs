//! Resolution of calls by a name that users' functions have: they compete with the built-in ones of that name, by the
//! same rules.

use super::registry;
use super::resolve::{Candidate, OverloadError, bind_types, candidate, choose, no_function_shown};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{SqlType, oid, user};
use logstead_types::SqlState;

/// A user's function as a call may mean it.
pub struct UserCandidate {
    /// Declared types of the arguments that are given, a variadic tail repeated.
    pub types: Vec<TypeId>,
    /// Declared type of the result.
    pub result: TypeId,
    /// It hides a built-in function of the same types; otherwise that hides it.
    pub first: bool,
}

/// What a call means.
pub enum CallTarget {
    /// A built-in function.
    BuiltIn,
    /// The user's function with this number, the types of its arguments and of its result.
    User(usize, Vec<SqlType>, SqlType),
}

/// Chooses among users' functions and, if `system`, the built-in ones of the name. `shown` is the call as messages have
/// it; `variadic`: its last argument is VARIADIC.
pub fn resolve_with_user_functions(
    name: &str,
    system: bool,
    args: &[SqlType],
    users: &[UserCandidate],
    shown: &str,
    known: TypeLookup<'_>,
) -> Result<CallTarget> {
    /// Numbers of built-in functions begin here.
    const BUILT_IN: usize = 1 << 32;
    let args: Vec<SqlType> = args.iter().map(|ty| known.types.base_type(*ty)).collect();
    let input: Vec<TypeId> = args.iter().map(|ty| ty.oid).collect();
    let base_of = |ty: &TypeId| known.types.base_type(SqlType::of(*ty)).oid;
    let mut built_in: Vec<Candidate<usize>> = Vec::new();
    if system {
        let all = registry::functions_named(name)
            .filter(|f| registry::schema_of(f) == "pg_catalog")
            .filter_map(|f| candidate(f, args.len()));
        built_in.extend(all.enumerate().map(|(at, c)| Candidate {
            what: BUILT_IN + at,
            types: c.types,
        }));
    }
    let mut candidates: Vec<Candidate<usize>> = Vec::new();
    for (at, one) in users.iter().enumerate() {
        let types: Vec<TypeId> = one.types.iter().map(base_of).collect();
        let same = |c: &Candidate<usize>| c.types == types;
        if !one.first && built_in.iter().any(same) {
            continue;
        }
        built_in.retain(|c| !same(c));
        candidates.push(Candidate { what: at, types });
    }
    candidates.extend(built_in);
    let exact: Vec<usize> = candidates
        .iter()
        .enumerate()
        .filter(|(_, c)| c.types == input)
        .map(|(at, _)| at)
        .collect();
    let chosen = match exact.as_slice() {
        [one] => candidates.into_iter().nth(*one).ok_or(OverloadError::None),
        _ => choose(candidates, &input, known),
    };
    let chosen = chosen.map_err(|failure| no_function_shown(shown, &failure))?;
    let Some(found) = users.get(chosen.what) else {
        return Ok(CallTarget::BuiltIn);
    };
    let elements = [oid::ANYELEMENT, oid::ANYNONARRAY, oid::ANYENUM];
    let mut wanted = chosen.types.iter().chain([&found.result]).copied();
    let mut arrays = chosen.types.iter().zip(&input);
    if arrays.any(|(declared, given)| (*declared, *given) == (oid::ANYARRAY, oid::ANYARRAY))
        && wanted.any(|ty| elements.contains(&ty))
    {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "cannot determine element type of \"anyarray\" argument",
        ));
    }
    let (mut types, result) = bind_types(&chosen.types, found.result, &args, known)?;
    // What is declared as a domain is asked of the domain.
    for (ty, declared) in types.iter_mut().zip(&found.types) {
        if user::domain_in(*declared).is_some() {
            *ty = SqlType::of(*declared);
        }
    }
    Ok(CallTarget::User(chosen.what, types, result))
}
