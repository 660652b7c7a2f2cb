//! Values as text where there is no session: in what the catalog keeps, and in the texts of plans.

use crate::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_func as func;
use logstead_sql_types::value::{FIRST_USER_OID, Oid, OutputStyle, RegType};

/// Values in UTC, with the names of built-in functions.
pub const OUTPUT_STYLE: OutputStyle<'static> = OutputStyle {
    names: Some(&ContextAdapter(&WithoutSession)),
    ..OutputStyle::UTC
};

/// Knows the names of built-in functions, and nothing else: numbers stand for other objects.
pub struct WithoutSession;

impl PartialContext for WithoutSession {
    fn object_text(&self, ty: RegType, object: Oid) -> Option<String> {
        match ty {
            RegType::Proc if object < FIRST_USER_OID => {
                let name = func::name_of(object);
                name.or_else(|| super::io_functions::io_function_name(object))
                    .map(str::to_owned)
            }
            _ => None,
        }
    }
}
