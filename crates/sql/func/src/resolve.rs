//! Overload resolution by PostgreSQL's rules (manual, chapter 10): functions, operators, aggregates, common types.
//!
//! Untyped literals and parameters come as `oid::UNKNOWN`. The result says to which type each argument is to be coerced
//! (implicitly, see [`super::find_cast`]). Polymorphic arguments are bound here; nothing else knows of them.

mod common_type;

use super::extensions;
use super::registry;
use super::{Aggregate, Cast, CastContext, Function, WINDOW_FUNCTIONS, WindowFunction, find_cast};
use crate::pg_rows::Operator;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::geometry::is_geometry;
use logstead_sql_types::value::info::{self, by_oid};
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{SqlType, multirange, oid, range, record, user};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;
use smallvec::SmallVec;

use common_type::common_base_type;
pub use common_type::{common_type, common_type_for};

/// A function chosen for a call.
#[derive(Clone)]
pub struct FuncDetail {
    /// The function.
    pub function: &'static Function,
    /// The operator, if the call was one.
    pub operator: Option<&'static Operator>,
    /// Type that each actual argument is coerced to. Unknown literals in `"any"` places become text.
    pub args: Vec<SqlType>,
    /// Type of the result.
    pub result: SqlType,
    /// Index of the first argument of the variadic tail, which the function's code takes flat.
    pub variadic: Option<usize>,
}

/// An aggregate chosen for a call.
#[derive(Clone)]
pub struct ResolvedAggregate {
    /// The aggregate.
    pub aggregate: &'static Aggregate,
    /// Type that each actual argument is coerced to.
    pub args: Vec<SqlType>,
    /// Type of the result.
    pub result: SqlType,
}

/// What a comparison operator asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// <
    Lt,
    /// <=
    Le,
    /// =
    Eq,
    /// >=
    Ge,
    /// >
    Gt,
    /// <>
    Ne,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub fn commuted(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Ge => Comparison::Le,
            Comparison::Gt => Comparison::Lt,
            same => same,
        }
    }
}

/// True for the pseudo-types that stand for any.
pub fn is_polymorphic(t: TypeId) -> bool {
    matches!(
        t,
        oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYENUM
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
    )
}

fn is_array_poly(t: TypeId) -> bool {
    matches!(t, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY)
}

/// The type of the ranges of a range type, which is that itself, or of a multirange type.
fn range_in(ty: TypeId) -> Option<TypeId> {
    match range::is_range(ty) {
        true => Some(ty),
        false => multirange::range_of(ty),
    }
}

/// True if a value of type `from` can stand where `to` is wanted, in the given context.
pub fn can_coerce(from: TypeId, to: TypeId, context: CastContext) -> bool {
    if from == to || to == oid::ANY || from == oid::UNKNOWN {
        return true;
    }
    // A row that is written out, or is no table's, may be of any composite type: its fields are looked at when it
    // becomes one.
    if from == oid::RECORD && user::is_composite(to) {
        return true;
    }
    if is_polymorphic(to) {
        let array = info::element_of(from).is_some() || from == oid::ANYARRAY;
        return match to {
            oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => array,
            oid::ANYNONARRAY | oid::ANYCOMPATIBLENONARRAY => !array,
            oid::ANYENUM => user::is_enum(from),
            oid::ANYRANGE => range::is_range(from),
            oid::ANYMULTIRANGE => multirange::is_multirange(from),
            _ => true,
        };
    }
    find_cast(from, to, context).is_some()
}

fn is_preferred(category: char, t: TypeId) -> bool {
    by_oid(t).is_some_and(|i| i.category == category && i.preferred)
}

/// A possible overload: its declared argument types, variadic tail already repeated.
pub(super) struct Candidate<T> {
    pub(super) what: T,
    pub(super) types: Vec<TypeId>,
}

impl Candidate<&'static Operator> {
    fn of_operator(operator: &'static Operator) -> Self {
        let types = match operator.left {
            None => vec![operator.right],
            Some(left) => vec![left, operator.right],
        };
        Candidate {
            what: operator,
            types,
        }
    }
}

/// True if the polymorphic arguments can be bound together.
fn consistent(declared: &[TypeId], input: &[TypeId], types: TypeLookup<'_>) -> bool {
    if !declared.iter().any(|d| is_polymorphic(*d)) {
        return true;
    }
    let known: Vec<(TypeId, TypeId)> = declared
        .iter()
        .zip(input)
        .filter(|(_, i)| **i != oid::UNKNOWN)
        .map(|(d, i)| (*d, *i))
        .collect();
    if declared.contains(&oid::ANYENUM) && known.is_empty() {
        return false;
    }
    let element = |d: TypeId, i: TypeId| {
        if is_array_poly(d) {
            types.types.element_of(i).unwrap_or(oid::INVALID)
        } else if matches!(d, oid::ANYRANGE | oid::ANYMULTIRANGE) {
            range_in(i)
                .and_then(|range| types.types.range_subtype(range))
                .unwrap_or(oid::INVALID)
        } else {
            i
        }
    };
    let family = |members: &[TypeId]| -> Vec<SqlType> {
        let of = known
            .iter()
            .filter(|(d, i)| members.contains(d) && *i != oid::ANYARRAY);
        of.map(|(d, i)| SqlType::of(element(*d, *i))).collect()
    };
    let same = family(&[
        oid::ANYELEMENT,
        oid::ANYARRAY,
        oid::ANYNONARRAY,
        oid::ANYENUM,
        oid::ANYRANGE,
        oid::ANYMULTIRANGE,
    ]);
    let common = family(&[
        oid::ANYCOMPATIBLE,
        oid::ANYCOMPATIBLEARRAY,
        oid::ANYCOMPATIBLENONARRAY,
    ]);
    same.windows(2).all(|w| w[0].oid == w[1].oid)
        && (common.is_empty() || common_base_type("CASE", &common, types).is_ok())
}

/// Why no overload was chosen.
pub(super) enum OverloadError {
    None,
    Ambiguous,
}

pub(super) fn choose<T: Copy>(
    candidates: Vec<Candidate<T>>,
    input: &[TypeId],
    types: TypeLookup<'_>,
) -> Result<Candidate<T>, OverloadError> {
    let fits = |c: &Candidate<T>, input: &[TypeId]| {
        c.types
            .iter()
            .zip(input)
            .all(|(t, i)| can_coerce(*i, *t, CastContext::Implicit))
            && consistent(&c.types, input, types)
    };
    let mut cs: Vec<Candidate<T>> = candidates.into_iter().filter(|c| fits(c, input)).collect();
    let single = |cs: &mut Vec<Candidate<T>>| if cs.len() == 1 { cs.pop() } else { None };
    if cs.is_empty() {
        return Err(OverloadError::None);
    }
    if let Some(c) = single(&mut cs) {
        return Ok(c);
    }
    let keep_best =
        |cs: Vec<Candidate<T>>, score: &dyn Fn(&Candidate<T>) -> usize| -> Vec<Candidate<T>> {
            let best = cs.iter().map(score).max().unwrap_or(0);
            cs.into_iter().filter(|c| score(c) == best).collect()
        };
    // Most exact matches.
    cs = keep_best(cs, &|c| {
        c.types
            .iter()
            .zip(input)
            .filter(|(t, i)| **i != oid::UNKNOWN && t == i)
            .count()
    });
    if let Some(c) = single(&mut cs) {
        return Ok(c);
    }
    // Most exact or preferred matches.
    cs = keep_best(cs, &|c| {
        let good = |(t, i): &(&TypeId, &TypeId)| {
            **i != oid::UNKNOWN && (t == i || is_preferred(info::category(**i), **t))
        };
        c.types.iter().zip(input).filter(good).count()
    });
    if let Some(c) = single(&mut cs) {
        return Ok(c);
    }
    if !input.contains(&oid::UNKNOWN) {
        return Err(OverloadError::Ambiguous);
    }
    if let Some(slots) = unknown_categories(&cs, input) {
        let accepts = |c: &Candidate<T>| {
            slots.iter().zip(&c.types).all(|(slot, t)| match slot {
                None => true,
                Some((category, preferred)) => {
                    info::category(*t) == *category
                        && (!preferred || by_oid(*t).is_some_and(|i| i.preferred))
                }
            })
        };
        if cs.iter().any(accepts) {
            cs.retain(accepts);
        }
        if let Some(c) = single(&mut cs) {
            return Ok(c);
        }
    }
    // All known arguments of one type: take the unknown ones for the same.
    let mut known = input.iter().filter(|i| **i != oid::UNKNOWN);
    if let Some(&first) = known.next()
        && known.all(|k| *k == first)
    {
        let same = vec![first; input.len()];
        let mut fit: Vec<Candidate<T>> = cs.into_iter().filter(|c| fits(c, &same)).collect();
        if let Some(c) = single(&mut fit) {
            return Ok(c);
        }
    }
    Err(OverloadError::Ambiguous)
}

/// For each unknown argument the category it is taken for, and whether a preferred type of it is on offer.
fn unknown_categories<T>(
    cs: &[Candidate<T>],
    input: &[TypeId],
) -> Option<Vec<Option<(char, bool)>>> {
    let mut slots = Vec::with_capacity(input.len());
    for (i, t) in input.iter().enumerate() {
        if *t != oid::UNKNOWN {
            slots.push(None);
            continue;
        }
        let mut slot: Option<(char, bool)> = None;
        let mut conflict = false;
        for c in cs {
            let (category, preferred) =
                by_oid(c.types[i]).map_or(('X', false), |t| (t.category, t.preferred));
            match &mut slot {
                None => slot = Some((category, preferred)),
                Some((have, p)) if *have == category => *p |= preferred,
                Some(s) if category == 'S' => *s = (category, preferred),
                Some(_) => conflict = true,
            }
        }
        if conflict && slot.is_some_and(|(c, _)| c != 'S') {
            return None;
        }
        slots.push(slot);
    }
    Some(slots)
}

/// Binds polymorphic types: the types of the arguments after coercion, and of the result.
pub fn bind_types(
    declared: &[TypeId],
    result: TypeId,
    input: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<(Vec<SqlType>, SqlType)> {
    let mismatch = |m: &str| SqlError::new(SqlState::DATATYPE_MISMATCH, m);
    let mut element: Option<TypeId> = None;
    let mut array_like: Option<TypeId> = None;
    let mut range_like: Option<TypeId> = None;
    let mut compatible: Vec<SqlType> = Vec::new();
    let (mut any, mut compat) = (false, false);
    for (d, i) in declared.iter().zip(input) {
        let unknown = i.oid == oid::UNKNOWN;
        match *d {
            oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => {
                any = true;
                if !unknown && *element.get_or_insert(i.oid) != i.oid {
                    return Err(
                        mismatch("arguments declared \"anyelement\" are not all alike").detail(
                            format!(
                                "{} versus {}",
                                types.format_type_bare(element.unwrap_or(oid::INVALID)),
                                types.format_type_bare(i.oid)
                            ),
                        ),
                    );
                }
            }
            oid::ANYRANGE | oid::ANYMULTIRANGE => {
                any = true;
                if !unknown {
                    let range = range_in(i.oid).unwrap_or(oid::INVALID);
                    range_like.get_or_insert(range);
                    let e = types.types.range_subtype(range).unwrap_or(oid::INVALID);
                    if *element.get_or_insert(e) != e {
                        let message = format!(
                            "argument declared {} is not consistent with argument declared anyelement",
                            info::built_in_name(*d)
                        );
                        return Err(mismatch(&message));
                    }
                }
            }
            oid::ANYARRAY => {
                any = true;
                if !unknown {
                    let e = types.types.element_of(i.oid).unwrap_or(oid::INVALID);
                    array_like.get_or_insert(i.oid);
                    if i.oid != oid::ANYARRAY && *element.get_or_insert(e) != e {
                        return Err(mismatch(
                            "argument declared anyarray is not consistent with argument declared anyelement",
                        ));
                    }
                }
            }
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => {
                compat = true;
                compatible.push(*i);
            }
            oid::ANYCOMPATIBLEARRAY => {
                compat = true;
                if !unknown && i.oid != oid::ANYARRAY {
                    compatible.push(SqlType::of(
                        types.types.element_of(i.oid).unwrap_or(oid::TEXT),
                    ));
                }
            }
            _ => {}
        }
    }
    if any && element.is_none() && array_like.is_none() {
        return Err(mismatch(
            "could not determine polymorphic type because input has type unknown",
        ));
    }
    // A range's type does not follow from that of its bounds.
    let ranges = [oid::ANYRANGE, oid::ANYMULTIRANGE];
    if range_like.is_none()
        && let Some(d) = declared.iter().find(|d| ranges.contains(d))
    {
        return Err(mismatch(&format!(
            "could not determine polymorphic type {} because input has type unknown",
            info::built_in_name(*d)
        )));
    }
    let common = if compat && !compatible.is_empty() {
        Some(common_base_type("CASE", &compatible, types)?.oid)
    } else {
        None
    };
    let common = common.or(compat.then_some(oid::TEXT));
    let array = |e: Option<TypeId>| e.and_then(info::array_of);
    let bind = |d: TypeId, actual: Option<&SqlType>| -> SqlType {
        let ty = match d {
            oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM => element.unwrap_or(oid::TEXT),
            oid::ANYRANGE => range_like.unwrap_or(oid::TEXT),
            oid::ANYMULTIRANGE => range_like
                .and_then(multirange::multirange_of)
                .unwrap_or(oid::TEXT),
            // A vector stays what it is: it has no array type of its own kind.
            oid::ANYARRAY => match actual {
                Some(a) if a.oid != oid::UNKNOWN => a.oid,
                _ => array_like
                    .filter(|a| types.types.element_of(*a) == element)
                    .or_else(|| array(element))
                    .unwrap_or(oid::TEXT_ARRAY),
            },
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => common.unwrap_or(oid::TEXT),
            oid::ANYCOMPATIBLEARRAY => array(common).unwrap_or(oid::TEXT_ARRAY),
            oid::ANY => match actual {
                Some(a) if a.oid != oid::UNKNOWN => return *a,
                _ => oid::TEXT,
            },
            _ => d,
        };
        match actual {
            Some(a) if a.oid == ty => *a,
            _ => SqlType::of(ty),
        }
    };
    let args = declared
        .iter()
        .zip(input)
        .map(|(d, i)| bind(*d, Some(i)))
        .collect();
    let polymorphic = is_polymorphic(result);
    let mut result = if is_array_poly(result) && element.is_some() && result == oid::ANYARRAY {
        SqlType::of(array(element).or(array_like).unwrap_or(oid::TEXT_ARRAY))
    } else {
        bind(result, None)
    };
    // Records are of the kind that the arguments are, if those are alike.
    if polymorphic && matches!(result.oid, oid::RECORD | oid::RECORD_ARRAY) {
        let is_record = |ty: &&SqlType| matches!(ty.oid, oid::RECORD | oid::RECORD_ARRAY);
        let mut kinds = input.iter().filter(is_record).map(|ty| ty.typmod);
        let first = kinds.next().unwrap_or(-1);
        result.typmod = match kinds.all(|kind| kind == first) {
            true => first,
            false => -1,
        };
    }
    Ok((args, result))
}

fn signature(name: &str, args: &[SqlType], types: TypeLookup<'_>) -> String {
    let list: Vec<String> = args.iter().map(|t| types.format_type_bare(t.oid)).collect();
    format!("{name}({})", list.join(", "))
}

fn no_function(
    name: &str,
    args: &[SqlType],
    failure: &OverloadError,
    types: TypeLookup<'_>,
) -> SqlError {
    no_function_shown(&signature(name, args, types), failure)
}

/// 42883 or 42725 for a call as it is shown.
pub(super) fn no_function_shown(shown: &str, failure: &OverloadError) -> SqlError {
    match failure {
        OverloadError::None => {
            SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function {shown} does not exist")).hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
        }
        OverloadError::Ambiguous => {
            SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("function {shown} is not unique")).hint(
                "Could not choose a best candidate function. You might need to add explicit type casts.",
            )
        }
    }
}

pub(super) fn candidate(
    f: &'static Function,
    count: usize,
) -> Option<Candidate<&'static Function>> {
    let mut types = f.args.to_vec();
    match f.variadic {
        None if types.len() == count => {}
        // At least one argument goes to the tail.
        Some(tail) if count > types.len() => types.resize(count, tail),
        _ => return None,
    }
    Some(Candidate { what: f, types })
}

/// No function is of domains: their base types count.
fn without_domains(given: &[SqlType], types: &UserTypes) -> Vec<SqlType> {
    given.iter().map(|ty| types.base_type(*ty)).collect()
}

/// Does a call with this schema, or none, mean the function?
fn is_in_sight(function: &Function, schema: Option<&str>, types: TypeLookup<'_>) -> bool {
    match extensions::of_function(function) {
        Some(name) => types.extension(name).is_some_and(|(extension, searched)| {
            schema.map_or(searched, |schema| schema == extension.schema_name)
        }),
        None => registry::schema_of(function) == schema.unwrap_or("pg_catalog"),
    }
}

/// Chooses the function for a call. `schema` may be `pg_catalog` or none: all functions here live there.
pub fn resolve_function(
    schema: Option<&str>,
    name: &str,
    args: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<FuncDetail> {
    let args = &without_domains(args, types.types)[..];
    let full = schema.map_or_else(|| name.to_owned(), |s| format!("{s}.{name}"));
    let missing = |f: &OverloadError| no_function(&full, args, f, types);
    let input: Vec<TypeId> = args.iter().map(|a| a.oid).collect();
    let mut candidates: Vec<_> = registry::functions_named(name)
        .filter(|f| is_in_sight(f, schema, types))
        .filter_map(|f| candidate(f, args.len()))
        .collect();
    // Of two that take the same, the one that is not variadic is meant.
    let plain = |c: &Candidate<&Function>| c.what.variadic.is_none().then(|| c.types.clone());
    let plain: Vec<Vec<TypeId>> = candidates.iter().filter_map(plain).collect();
    if plain.len() < candidates.len() {
        candidates.retain(|c| c.what.variadic.is_none() || !plain.contains(&c.types));
    }
    let exact = candidates
        .iter()
        .position(|c| c.types == input && c.what.variadic.is_none());
    let chosen = match exact {
        Some(i) => candidates.into_iter().nth(i).ok_or(OverloadError::None),
        None => choose(candidates, &input, types),
    };
    let c = chosen.map_err(|f| missing(&f))?;
    let (args, result) = bind_types(&c.types, c.what.result, args, types)?;
    let variadic = c.what.variadic.map(|_| c.what.args.len());
    Ok(FuncDetail {
        function: c.what,
        operator: None,
        args,
        result,
        variadic,
    })
}

/// Chooses the function for a call whose last argument is VARIADIC: the array that stands for the tail.
pub fn resolve_variadic(
    schema: Option<&str>,
    name: &str,
    args: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<FuncDetail> {
    let args = &without_domains(args, types.types)[..];
    let full = schema.map_or_else(|| name.to_owned(), |s| format!("{s}.{name}"));
    let input: Vec<TypeId> = args.iter().map(|a| a.oid).collect();
    let candidates: Vec<_> = registry::functions_named(name)
        .filter(|f| is_in_sight(f, schema, types) && f.args.len() + 1 == args.len())
        .filter_map(|f| {
            let tail = match f.variadic? {
                oid::ANY => oid::ANY,
                element => info::array_of(element)?,
            };
            let types = f.args.iter().copied().chain([tail]).collect();
            Some(Candidate { what: f, types })
        })
        .collect();
    let c = choose(candidates, &input, types).map_err(|f| no_function(&full, args, &f, types))?;
    let tail = input.last().copied().unwrap_or(oid::UNKNOWN);
    if c.types.last() == Some(&oid::ANY) && types.types.element_of(tail).is_none() {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "VARIADIC argument must be an array",
        ));
    }
    let (args, result) = bind_types(&c.types, c.what.result, args, types)?;
    Ok(FuncDetail {
        function: c.what,
        operator: None,
        args,
        result,
        variadic: None,
    })
}

/// `typename(x)` is a cast when no such function fits: the type, if this call is one.
pub fn type_cast_call(name: &str, args: &[SqlType], types: &UserTypes) -> Option<TypeId> {
    let [arg] = args else { return None };
    let target = match name {
        "citext" if types.exists(oid::CITEXT) => oid::CITEXT,
        "hstore" if types.exists(oid::HSTORE) => oid::HSTORE,
        _ => {
            info::TYPES
                .iter()
                .find(|t| t.name == name && matches!(t.kind, 'b' | 'r' | 'm'))?
                .oid
        }
    };
    if arg.oid == oid::UNKNOWN {
        return Some(target);
    }
    // A row is no text by itself: it may have a column of the name.
    if record::is_record(arg.oid) && info::category(target) == 'S' {
        return None;
    }
    match find_cast(arg.oid, target, CastContext::Explicit)? {
        Cast::Relabel => Some(target),
        // A row's text is not what a function's name asks for: it may be a column's.
        Cast::ViaText if info::category(target) == 'S' && record::is_record(arg.oid) => None,
        // Only between strings and other types, as in PostgreSQL.
        Cast::ViaText if info::category(target) == 'S' || info::category(arg.oid) == 'S' => {
            Some(target)
        }
        _ => None,
    }
}

/// Chooses an operator. `left` is `None` for prefix operators.
pub fn resolve_operator(
    op: &str,
    left: Option<SqlType>,
    right: SqlType,
    types: TypeLookup<'_>,
) -> Result<FuncDetail> {
    let actual = left.into_iter().chain([right]);
    let actual: SmallVec<[SqlType; 2]> = actual.map(|ty| types.types.base_type(ty)).collect();
    let input: SmallVec<[TypeId; 2]> = actual.iter().map(|t| t.oid).collect();
    let op = if op == "!=" { "<>" } else { op };
    let named = registry::operators_named(op);
    // Mostly the types are an operator's own. One side unknown: first try the other side's type for both.
    let guess = match input[..] {
        [l, oid::UNKNOWN] => (Some(l), l),
        [oid::UNKNOWN, r] => (Some(r), r),
        [l, r] => (Some(l), r),
        _ => (None, types.types.base_type(right).oid),
    };
    let exact = named
        .iter()
        .find(|o| (o.left, o.right) == guess && guess.1 != oid::UNKNOWN);
    let chosen = match exact {
        Some(o) => Ok(Candidate::of_operator(o)),
        None => {
            let fitting = named.iter().filter(|o| o.left.is_none() == left.is_none());
            choose(
                fitting.map(|o| Candidate::of_operator(o)).collect(),
                &input,
                types,
            )
        }
    };
    let c = chosen.map_err(|f| {
        let names: Vec<String> = actual.iter().map(|t| types.format_type_bare(t.oid)).collect();
        let shown = match names.as_slice() {
            [l, r] => format!("{l} {op} {r}"),
            _ => format!("{op} {}", names.join(" ")),
        };
        match f {
            OverloadError::None => SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {shown}"))
                .hint("No operator matches the given name and argument types. You might need to add explicit type casts."),
            OverloadError::Ambiguous => SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {shown}"))
                .hint("Could not choose a best candidate operator. You might need to add explicit type casts."),
        }
    })?;
    let (args, result) = bind_types(&c.types, c.what.result, &actual, types)?;
    let function = registry::function_by_oid(c.what.function)
        .ok_or_else(|| SqlError::internal(format!("operator {op} has no function")))?;
    Ok(FuncDetail {
        function,
        operator: Some(c.what),
        args,
        result,
        variadic: None,
    })
}

/// True if some aggregate has this name.
pub fn is_aggregate(name: &str) -> bool {
    registry::aggregates_named(name).next().is_some()
}

/// True if some aggregate of this name takes so many arguments.
pub fn aggregate_takes(name: &str, count: usize) -> bool {
    registry::aggregates_named(name).any(|aggregate| aggregate.args.len() == count)
}

/// Chooses the aggregate for a call; no arguments is `count(*)`.
pub fn resolve_aggregate(
    name: &str,
    args: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<ResolvedAggregate> {
    let input: Vec<TypeId> = args.iter().map(|a| a.oid).collect();
    let candidates: Vec<Candidate<&'static Aggregate>> = registry::aggregates_named(name)
        .filter(|a| a.args.len() == args.len())
        .map(|a| Candidate {
            what: a,
            types: a.args.to_vec(),
        })
        .collect();
    let chosen = match candidates.iter().position(|c| c.types == input) {
        Some(i) => candidates.into_iter().nth(i).ok_or(OverloadError::None),
        None => choose(candidates, &input, types),
    };
    let c = chosen.map_err(|f| no_function(name, args, &f, types))?;
    let (args, result) = bind_types(&c.types, c.what.result, args, types)?;
    Ok(ResolvedAggregate {
        aggregate: c.what,
        args,
        result,
    })
}

/// True if some function of windows has this name.
pub fn is_window_function(name: &str) -> bool {
    WINDOW_FUNCTIONS
        .iter()
        .any(|function| function.name == name)
}

/// Chooses the function for a call over a window, with the types of its arguments and of its result.
pub fn resolve_window_function(
    name: &str,
    args: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<(&'static WindowFunction, Vec<SqlType>, SqlType)> {
    let input: Vec<TypeId> = args.iter().map(|a| a.oid).collect();
    let candidates: Vec<Candidate<&'static WindowFunction>> = WINDOW_FUNCTIONS
        .iter()
        .filter(|f| f.name == name && f.args.len() == args.len())
        .map(|f| Candidate {
            what: f,
            types: f.args.to_vec(),
        })
        .collect();
    let chosen =
        choose(candidates, &input, types).map_err(|f| no_function(name, args, &f, types))?;
    let (args, result) = bind_types(&chosen.types, chosen.what.result, args, types)?;
    Ok((chosen.what, args, result))
}

/// What an operator's function compares, for index conditions: the comparison and the types of its sides. `None` for
/// functions that are no comparison of a B-tree's order.
pub fn operator_class(function: FunctionId) -> Option<(Comparison, TypeId, TypeId)> {
    let f = registry::function_by_oid(function)?;
    let &[left, right] = f.args else { return None };
    // Comparisons of different kinds (date with timestamp) follow no one key order; integers of all widths share
    // theirs.
    let integer = |t| matches!(t, oid::INT2 | oid::INT4 | oid::INT8);
    let float = |t| matches!(t, oid::FLOAT4 | oid::FLOAT8);
    let text = |t| matches!(t, oid::TEXT | oid::NAME);
    if left != right
        && !(integer(left) && integer(right))
        && !(float(left) && float(right))
        && !(text(left) && text(right))
    {
        return None;
    }
    // What geometric types call equal is no equivalence: boxes of one area.
    if f.result != oid::BOOL || is_geometry(left) {
        return None;
    }
    let op = registry::all_operators_of(function)?;
    let c = match op.name {
        "<" => Comparison::Lt,
        "<=" => Comparison::Le,
        "=" => Comparison::Eq,
        ">=" => Comparison::Ge,
        ">" => Comparison::Gt,
        "<>" => Comparison::Ne,
        _ => return None,
    };
    Some((c, left, right))
}
