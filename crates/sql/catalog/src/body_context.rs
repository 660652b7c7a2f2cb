//! What a body is told of the function that it belongs to.

use super::routine::Routine;
use logstead_sql_parse::plpgsql::BodyContext;
use logstead_sql_parse::plpgsql::tree::TypeName;
use logstead_sql_types::value::user::{self, TypeLookup};
use logstead_sql_types::value::{SqlType, oid};

/// What a function's body is told before it begins.
pub fn body_context(definition: &Routine, given: &[SqlType], types: TypeLookup<'_>) -> BodyContext {
    let mut inputs = given.iter().copied();
    // When a body is only looked at, nobody knows what polymorphic types are.
    let known = definition.output_types(given, types).unwrap_or_default();
    let mut outputs = known.into_iter();
    let parameters = definition.args.iter().map(|arg| {
        let output = arg.mode.is_output().then(|| outputs.next()).flatten();
        let declared = output.unwrap_or(SqlType::of(arg.ty));
        let ty = match arg.mode.is_input() {
            true => match (inputs.next(), user::domain_in(arg.ty)) {
                (Some(ty), None) => ty,
                _ => declared,
            },
            false => declared,
        };
        let name = (!arg.name.is_empty()).then(|| arg.name.clone());
        (name, ty)
    });
    let parameters = parameters.collect();
    BodyContext {
        parameters,
        name: Some(definition.name.clone()),
        variables: match definition.result {
            oid::TRIGGER => trigger_variables(),
            _ => Vec::new(),
        },
        returns_set: definition.set,
        returns_nothing: definition.procedure
            || definition.result == oid::VOID
            || definition.outputs().next().is_some(),
        returns_void: definition.result == oid::VOID && !definition.procedure,
        procedure: definition.procedure,
        refuses_shadows: false,
    }
}

/// The variables of a trigger's body, in this order from the first of all on: it has no parameters.
fn trigger_variables() -> Vec<(String, TypeName)> {
    let known = |ty| TypeName::Known(SqlType::of(ty));
    let all = [
        ("new", TypeName::Record),
        ("old", TypeName::Record),
        ("tg_name", known(oid::NAME)),
        ("tg_when", known(oid::TEXT)),
        ("tg_level", known(oid::TEXT)),
        ("tg_op", known(oid::TEXT)),
        ("tg_relid", known(oid::OID)),
        ("tg_relname", known(oid::NAME)),
        ("tg_table_name", known(oid::NAME)),
        ("tg_table_schema", known(oid::NAME)),
        ("tg_nargs", known(oid::INT4)),
        ("tg_argv", known(oid::TEXT_ARRAY)),
    ];
    all.into_iter()
        .map(|(name, ty)| (name.to_owned(), ty))
        .collect()
}
