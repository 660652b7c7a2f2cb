//! Functions with SET clauses: their bodies are bound with the `search_path` that they set, but evaluated with the
//! settings of the session.
//!
//! Names are looked up when a body is bound, those in literals (`'t'::regclass`) too. What would look at a setting in
//! the course of evaluation is refused.

use super::Binder;
use super::coerce::is_pseudo;
use crate::query::expr::Expr;
use logstead_sql_catalog::routine::Routine;
use logstead_sql_func::Function;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, oid, record};

const PATH: &str = "search_path";

/// Does a built-in function look names up, or spell them as they have to be spelled?
fn reads_path(name: &str) -> bool {
    let spelled = [
        "format_type",
        "pg_describe_object",
        "pg_identify_object",
        "pg_identify_object_as_address",
        "pg_get_object_address",
        "row_security_active",
    ];
    name.starts_with("current_schema")
        || name.starts_with("to_reg")
        || name.ends_with("_is_visible")
        || (name.starts_with("has_") && name.ends_with("_privilege"))
        || (name.starts_with("pg_get_") && !matches!(name, "pg_get_keywords" | "pg_get_userbyid"))
        || spelled.contains(&name)
}

/// Have values of the type a text that depends on `search_path`?
fn is_spelled(ty: SqlType, types: &UserTypes) -> bool {
    if let Some(element) = types.element_of(ty.oid) {
        return is_spelled(SqlType::of(element), types);
    }
    if record::is_record(ty.oid) {
        let shape = types.tuple_desc_of(ty);
        return shape.is_none_or(|shape| shape.iter().any(|(_, ty)| is_spelled(*ty, types)));
    }
    is_name_of_object(ty.oid)
}

fn is_name_of_object(ty: TypeId) -> bool {
    matches!(
        ty,
        oid::REGCLASS
            | oid::REGTYPE
            | oid::REGPROC
            | oid::REGPROCEDURE
            | oid::REGOPER
            | oid::REGOPERATOR
    )
}

impl Binder<'_> {
    /// Is a setting another in the body that is being bound than in the session?
    fn is_set_around(&self, name: &str) -> bool {
        self.set_around.iter().any(|set| set == name)
    }

    fn refuse_set(&self, what: &str, setting: &str) -> SqlError {
        SqlError::unsupported(format!("{what} in a function with SET {setting}"))
    }

    /// 0A000 for a call of a built-in function that looks at what a function around it sets.
    pub(super) fn refuse_settings_read(&self, function: &Function, args: &[Expr]) -> Result<()> {
        let Some(first) = self.set_around.first().filter(|_| !self.checks_routine) else {
            return Ok(());
        };
        let name = function.name;
        if matches!(
            name,
            "current_setting" | "set_config" | "pg_show_all_settings"
        ) {
            return match args.first() {
                Some(Expr::Const(Datum::Text(setting), _))
                    if !self.is_set_around(&setting.to_lowercase()) =>
                {
                    Ok(())
                }
                _ => Err(self.refuse_set(&format!("calling {name}"), first)),
            };
        }
        if !self.is_set_around(PATH) {
            return Ok(());
        }
        let declared = |at: usize| function.args.get(at).copied().or(function.variadic);
        let spells = name != "pg_typeof"
            && !is_spelled(SqlType::of(function.result), self.user_types())
            && args.iter().enumerate().any(|(at, arg)| {
                is_spelled(arg.ty(), self.user_types()) && declared(at).is_some_and(is_pseudo)
            });
        match reads_path(name) || spells {
            true => Err(self.refuse_set(&format!("calling {name}"), PATH)),
            false => Ok(()),
        }
    }

    /// 0A000 for a cast that looks names up, or spells them, when it is evaluated.
    pub(super) fn refuse_spelling(&self, from: SqlType, to: SqlType) -> Result<()> {
        if self.checks_routine || !self.is_set_around(PATH) {
            return Ok(());
        }
        let number = |ty: SqlType| {
            matches!(ty.oid, oid::OID | oid::INT2 | oid::INT4 | oid::INT8)
                || is_name_of_object(ty.oid)
        };
        if (number(from) && number(to))
            || is_spelled(from, self.user_types()) == is_spelled(to, self.user_types())
        {
            return Ok(());
        }
        let what = format!(
            "a cast from {} to {}",
            self.types().format_type_bare(from.oid),
            self.types().format_type_bare(to.oid)
        );
        Err(self.refuse_set(&what, PATH))
    }

    /// 0A000 for a function that the session runs, where it would have to run it with other settings or rights than its
    /// own.
    pub(super) fn refuse_called(&self, routine: &Routine) -> Result<()> {
        if self.checks_routine {
            return Ok(());
        }
        let what = format!("calling function {}, which is run apart,", routine.name);
        if self.definer.is_some() && !routine.definer {
            return Err(SqlError::unsupported(format!(
                "{what} in a function with SECURITY DEFINER"
            )));
        }
        let other = { self.set_around.iter() }.find(|name| routine.setting(name).is_none());
        match other {
            Some(setting) => Err(self.refuse_set(&what, setting)),
            None => Ok(()),
        }
    }

    /// 0A000 for a relation that shows what is set.
    pub(super) fn refuse_settings_shown(&self, relation: &str) -> Result<()> {
        match self.set_around.first() {
            Some(setting) if relation == "pg_settings" && !self.checks_routine => {
                Err(self.refuse_set("pg_settings", setting))
            }
            _ => Ok(()),
        }
    }
}
