//! The stored form of functions and procedures. As types are ([`crate::stored::types`]), they are rows of the
//! relations'
//! table under names of their own: a name with the numbers of its input types, so that two transactions that make one
//! function meet. Builds without functions refuse the database.

use crate::aggregate::{Aggregate, AggregateComputation, AggregateKind, FinalModify};
use crate::routine::{ArgMode, Argument, Language, Parallel, Routine, RoutineBody};
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow};
use logstead_sql_func::Volatility;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, FunctionId, SchemaId, TypeId};
use std::sync::Arc;

/// Set in the namespace of a routine's row. Neither OIDs nor those of types come near it.
const ROUTINE_NAMESPACE: Oid = 1 << 30;
/// Version of the definitions of routines.
const FORMAT: u8 = 9;

/// True for the row of a function or procedure.
pub fn is_routine(row: &ObjectRow) -> bool {
    row.key.namespace & ROUTINE_NAMESPACE != 0 && row.key.namespace & (1 << 31) == 0
}

/// The row of a function or procedure.
pub fn encode(database: DatabaseOid, routine: &Routine) -> ObjectRow {
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    w.bytes(routine.name.as_bytes());
    w.u8(u8::from(routine.procedure)
        | u8::from(routine.set) << 1
        | u8::from(routine.strict) << 2
        | u8::from(routine.leakproof) << 3
        | u8::from(routine.definer) << 4);
    w.u8(match routine.language {
        Language::Sql => b's',
        Language::PlPgSql => b'p',
    });
    w.u8(match routine.volatility {
        Volatility::Immutable => b'i',
        Volatility::Stable => b's',
        Volatility::Volatile => b'v',
    });
    w.u8(routine.parallel.letter() as u8);
    w.u32(routine.cost.to_bits());
    w.u32(routine.rows.to_bits());
    w.u32(routine.result.get());
    w.list(&routine.args, |w, arg| {
        w.bytes(arg.name.as_bytes());
        w.u8(arg.mode.letter() as u8);
        w.u32(arg.ty.get());
        w.opt(arg.default.as_ref(), |w, text| w.bytes(text.as_bytes()));
    });
    w.list(&routine.config, |w, item| w.bytes(item.as_bytes()));
    // Builds that know of no aggregates refuse the kind of the body.
    match (&routine.aggregate, &routine.body) {
        (Some(aggregate), _) => {
            w.u8(b'a');
            write_aggregate(&mut w, aggregate);
        }
        (None, RoutineBody::Text(text)) => {
            w.u8(b't');
            w.bytes(text.as_bytes());
        }
    }
    let types: Vec<String> = routine
        .input_types()
        .iter()
        .map(ToString::to_string)
        .collect();
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: routine.schema.get() | ROUTINE_NAMESPACE,
            name: format!("{}({})", routine.name, types.join(",")),
        },
        oid: routine.oid.get(),
        definition: w.0,
    }
}

/// Reads the row of a function or procedure. `schema_name` is filled in by the caller.
pub fn decode(row: &ObjectRow) -> Result<Routine> {
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    if format != FORMAT {
        return Err(corrupt(&format!(
            "definition of function \"{}\" has format {format}, this build reads {FORMAT}",
            row.key.name
        )));
    }
    let name = r.str()?;
    let flags = r.u8()?;
    let language = match r.u8()? {
        b's' => Language::Sql,
        b'p' => Language::PlPgSql,
        _ => return Err(corrupt("unknown language of a function")),
    };
    let volatility = match r.u8()? {
        b'i' => Volatility::Immutable,
        b's' => Volatility::Stable,
        b'v' => Volatility::Volatile,
        _ => return Err(corrupt("unknown volatility of a function")),
    };
    let parallel = match r.u8()? {
        b'u' => Parallel::Unsafe,
        b'r' => Parallel::Restricted,
        b's' => Parallel::Safe,
        _ => return Err(corrupt("a function that is parallel in an unknown way")),
    };
    let (cost, rows) = (f32::from_bits(r.u32()?), f32::from_bits(r.u32()?));
    let result = TypeId::new(r.u32()?);
    let args = r.list(|r| {
        let name = r.str()?;
        let mode = ArgMode::of_letter(r.u8()?);
        Ok(Argument {
            name,
            mode: mode.ok_or_else(|| corrupt("unknown mode of an argument"))?,
            ty: TypeId::new(r.u32()?),
            default: r.opt(DefinitionReader::str)?,
        })
    })?;
    let config = r.list(DefinitionReader::str)?;
    let mut aggregate = None;
    let body = match r.u8()? {
        b't' => RoutineBody::Text(r.str()?),
        b'a' => {
            aggregate = Some(Arc::new(read_aggregate(&mut r)?));
            RoutineBody::Text(AGGREGATE_SOURCE.to_owned())
        }
        _ => return Err(corrupt("unknown kind of body of a function")),
    };
    if !r.0.is_empty() {
        return Err(corrupt("a definition has bytes left over"));
    }
    let is = |bit: u8| flags & 1 << bit != 0;
    Ok(Routine {
        oid: FunctionId::new(row.oid),
        name,
        schema: SchemaId::new(row.key.namespace & !ROUTINE_NAMESPACE),
        schema_name: String::new(),
        procedure: is(0),
        language,
        args,
        result,
        set: is(1),
        volatility,
        strict: is(2),
        leakproof: is(3),
        definer: is(4),
        parallel,
        cost,
        rows,
        config,
        body,
        aggregate,
    })
}

/// What stands for the body of an aggregate: `pg_proc.prosrc`.
pub const AGGREGATE_SOURCE: &str = "aggregate_dummy";

/// What stands for a function that an aggregate does not have.
const NO_FUNCTION: u32 = 0;
/// What stands for the type of a state that it does not have.
const NO_TYPE: u32 = 0;

fn write_aggregate(w: &mut DefinitionWriter, aggregate: &Aggregate) {
    w.u8(aggregate.kind.letter() as u8);
    w.u32(u32::from(aggregate.direct));
    w.u32(aggregate.combine.map_or(NO_FUNCTION, FunctionId::get));
    w.u32(aggregate.sort_operator);
    for how in [&aggregate.plain, &aggregate.moving] {
        w.u32(how.transition.map_or(NO_FUNCTION, FunctionId::get));
        w.u32(how.inverse.map_or(NO_FUNCTION, FunctionId::get));
        w.u32(how.finish.map_or(NO_FUNCTION, FunctionId::get));
        w.u8(u8::from(how.finish_extra));
        w.u8(how.finish_modify.letter() as u8);
        w.u32(how.state.map_or(NO_TYPE, TypeId::get));
        w.u32(how.state_bytes.cast_unsigned());
        w.opt(how.initial.as_ref(), |w, text| w.bytes(text.as_bytes()));
    }
}

fn read_type(r: &mut DefinitionReader<'_>) -> Result<Option<TypeId>> {
    let ty = r.u32()?;
    Ok((ty != NO_TYPE).then(|| TypeId::new(ty)))
}

fn read_function(r: &mut DefinitionReader<'_>) -> Result<Option<FunctionId>> {
    let function = r.u32()?;
    Ok((function != NO_FUNCTION).then(|| FunctionId::new(function)))
}

fn read_aggregate(r: &mut DefinitionReader<'_>) -> Result<Aggregate> {
    let kind = match r.u8()? {
        b'n' => AggregateKind::Normal,
        b'o' => AggregateKind::OrderedSet,
        _ => return Err(corrupt("unknown kind of an aggregate")),
    };
    let direct = u16::try_from(r.u32()?).map_err(|_| corrupt("an aggregate's arguments"))?;
    let (combine, sort_operator) = (read_function(r)?, r.u32()?);
    let computation = |r: &mut DefinitionReader<'_>| {
        Ok(AggregateComputation {
            transition: read_function(r)?,
            inverse: read_function(r)?,
            finish: read_function(r)?,
            finish_extra: r.u8()? != 0,
            finish_modify: FinalModify::of_letter(r.u8()?)
                .ok_or_else(|| corrupt("unknown kind of an aggregate's final function"))?,
            state: read_type(r)?,
            state_bytes: r.u32()?.cast_signed(),
            initial: r.opt(DefinitionReader::str)?,
        })
    };
    Ok(Aggregate {
        kind,
        direct,
        plain: computation(r)?,
        moving: computation(r)?,
        combine,
        sort_operator,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::PG_PUBLIC_NAMESPACE;
    use crate::stored::decode_relation;
    use logstead_sql_types::value::oid;

    #[test]
    fn what_is_stored_is_read_and_checked() {
        let arg = |name: &str, mode, default: Option<&str>| Argument {
            name: name.to_owned(),
            mode,
            ty: oid::INT4,
            default: default.map(str::to_owned),
        };
        let routine = Routine {
            oid: FunctionId::new(16_400),
            name: "f(x".to_owned(),
            schema: PG_PUBLIC_NAMESPACE,
            schema_name: String::new(),
            procedure: false,
            language: Language::PlPgSql,
            args: vec![
                arg("a", ArgMode::In, None),
                arg("", ArgMode::InOut, Some("7")),
                arg("c", ArgMode::Table, None),
            ],
            result: oid::RECORD,
            set: true,
            volatility: Volatility::Stable,
            strict: true,
            leakproof: false,
            definer: true,
            parallel: Parallel::Restricted,
            cost: 1.5,
            rows: 10.0,
            config: vec!["search_path=public".to_owned()],
            body: RoutineBody::Text("BEGIN END".to_owned()),
            aggregate: None,
        };
        let computation = |transition, initial: Option<&str>| AggregateComputation {
            transition,
            inverse: None,
            finish: Some(FunctionId::new(16_401)),
            finish_extra: true,
            finish_modify: FinalModify::ReadWrite,
            state: Some(oid::INT4),
            state_bytes: -1,
            initial: initial.map(str::to_owned),
        };
        let aggregate = Routine {
            body: RoutineBody::Text(AGGREGATE_SOURCE.to_owned()),
            aggregate: Some(Arc::new(Aggregate {
                kind: AggregateKind::OrderedSet,
                direct: 1,
                plain: computation(Some(FunctionId::new(177)), Some("0")),
                moving: computation(None, None),
                combine: Some(FunctionId::new(177)),
                sort_operator: 97,
            })),
            ..routine.clone()
        };
        assert_eq!(
            decode(&encode(DatabaseOid::new(5), &aggregate)).unwrap(),
            aggregate
        );
        let row = encode(DatabaseOid::new(5), &routine);
        assert!(is_routine(&row));
        assert!(!crate::stored::types::is_type(&row));
        assert_eq!(row.key.name, "f(x(23,23)");
        assert_eq!(decode(&row).unwrap(), routine);
        for end in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(end);
            assert!(decode(&cut).is_err(), "{end} bytes");
        }
        // A build without functions takes the row for a relation's, and refuses it.
        let error = decode_relation(&row).unwrap_err();
        assert!(error.fields().message.contains("has format 9"));
    }
}
