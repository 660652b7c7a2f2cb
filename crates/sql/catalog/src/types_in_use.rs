//! Which types of users the temporary objects of all sessions use.

use crate::routine::Routine;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::user::TypeLookup;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// What of a temporary object uses a user's type.
pub(crate) enum TypeUser {
    /// A part of a relation, as messages name it.
    Part(String),
    Routine(Arc<Routine>),
}

impl TypeUser {
    /// As messages name it.
    fn label(&self, types: TypeLookup<'_>) -> String {
        match self {
            TypeUser::Part(label) => label.clone(),
            TypeUser::Routine(routine) => {
                let name = format!("{}.{}", routine.schema_name, routine.name);
                format!("function {}", routine.signature(&name, types))
            }
        }
    }
}

/// A use of a user's type by a temporary object.
pub(crate) struct TypeUse {
    pub(crate) ty: TypeId,
    pub(crate) user: TypeUser,
    /// Values of the type, or arrays of them, are stored.
    pub(crate) stored: bool,
}

/// The users' types that committed temporary objects use, by the sessions' schemas: no session sees another's objects,
/// and a type must not go while one is of it.
#[derive(Default)]
pub struct TypesInUse(Mutex<HashMap<String, Vec<TypeUse>>>);

impl TypesInUse {
    /// What else than the session with the schema `own` uses the type, as messages name it, which print types by these.
    pub fn of(&self, ty: TypeId, own: Option<&str>, types: TypeLookup<'_>) -> Vec<String> {
        let all = self.0.lock();
        let others = all
            .iter()
            .filter(|(schema, _)| Some(schema.as_str()) != own);
        let users = others.flat_map(|(_, users)| users);
        let users = users.filter(|user| user.ty == ty);
        let mut labels: Vec<String> = users.map(|user| user.user.label(types)).collect();
        labels.sort();
        labels
    }

    /// Does a table of another session than the one with the schema `own` store values of the type?
    pub fn stored(&self, ty: TypeId, own: Option<&str>) -> bool {
        let all = self.0.lock();
        all.iter()
            .filter(|(schema, _)| Some(schema.as_str()) != own)
            .flat_map(|(_, users)| users)
            .any(|user| user.stored && user.ty == ty)
    }

    pub(crate) fn set(&self, schema: &str, users: Vec<TypeUse>) {
        let mut all = self.0.lock();
        match users.is_empty() {
            true => all.remove(schema),
            false => all.insert(schema.to_owned(), users),
        };
    }
}
