//! Values as text where there is no session: in what the catalog keeps, and in the texts of plans.

use crate::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_func as func;
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{FIRST_USER_OID, Oid, OutputStyle, RegType};

/// Values in UTC, with the names of built-in functions and types.
pub const OUTPUT_STYLE: OutputStyle<'static> = OutputStyle {
    names: Some(&ContextAdapter(&WithoutSession { types: None })),
    ..OutputStyle::UTC
};

/// Knows the names of built-in functions and of types, and nothing else: numbers stand for other objects.
pub struct WithoutSession<'c> {
    /// The users' types, and where they are searched; without them there are none.
    pub types: Option<TypeLookup<'c>>,
}

impl PartialContext for WithoutSession<'_> {
    fn types(&self) -> Option<&UserTypes> {
        self.types.map(|types| types.types)
    }
    fn search_path(&self) -> Vec<String> {
        self.types
            .map_or_else(Vec::new, |types| types.search_path.to_vec())
    }
    fn object_text(&self, ty: RegType, object: Oid) -> Option<String> {
        match ty {
            RegType::Proc if object < FIRST_USER_OID => {
                let function = FunctionId::new(object);
                let name = func::name_of(function);
                name.or_else(|| super::io_functions::io_function_name(function))
                    .map(str::to_owned)
            }
            _ => None,
        }
    }
}
