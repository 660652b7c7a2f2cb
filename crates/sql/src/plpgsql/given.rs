//! What a body is told of the function that it belongs to.

use super::Given;
use crate::catalog::routine::Routine;
use crate::value::{SqlType, oid, user};

/// What a function's body is told before it begins.
pub fn given(definition: &Routine, types: &[SqlType]) -> Given {
    let mut inputs = types.iter().copied();
    let parameters = definition.args.iter().map(|arg| {
        let declared = SqlType::of(arg.ty);
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
    Given {
        parameters,
        name: Some(definition.name.clone()),
        variables: Vec::new(),
        returns_set: definition.set,
        returns_nothing: definition.procedure
            || definition.result == oid::VOID
            || definition.outputs().next().is_some(),
        procedure: definition.procedure,
    }
}
