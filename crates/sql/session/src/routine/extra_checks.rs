//! What `plpgsql.extra_errors` and `plpgsql.extra_warnings` ask a running body to look at besides.

use super::values::VariableKind;
use super::{Activation, Session};
use crate::client::Client;
use logstead_sql_parse::plpgsql::lists_check;
use logstead_sql_parse::plpgsql::tree::Target;
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user;
use logstead_sql_types::value::user::UserTypes;
use logstead_types::SqlState;

/// What is said of what one check finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing.
    #[default]
    Off,
    /// A WARNING.
    Warning,
    /// An error.
    Error,
}

/// The checks of a body that is being run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraChecks {
    /// A SELECT INTO that gives several rows.
    pub(super) too_many_rows: Level,
    /// An assignment of several values to another number of targets.
    pub(super) assignment: Level,
}

impl Session {
    /// The checks that the settings ask for.
    pub(super) fn extra_checks(&self) -> ExtraChecks {
        let settings = self.context.settings.borrow();
        let set = |name: &str| settings.canonical_value(name).unwrap_or_default();
        let errors = set("plpgsql.extra_errors");
        let warnings = set("plpgsql.extra_warnings");
        if errors == "none" && warnings == "none" {
            return ExtraChecks::default();
        }
        let level = |check: &str| {
            if lists_check(errors, check) {
                Level::Error
            } else if lists_check(warnings, check) {
                Level::Warning
            } else {
                Level::Off
            }
        };
        ExtraChecks {
            too_many_rows: level("too_many_rows"),
            assignment: level("strict_multi_assignment"),
        }
    }

    /// Looks at an assignment of a row's columns to targets.
    pub(super) fn check_assignment(
        &self,
        act: &Activation,
        targets: &[Target],
        columns: &[OutputColumn],
        client: Option<&mut dyn Client>,
    ) -> Result<()> {
        let level = act.checks.assignment;
        if level == Level::Off || fits(act, targets, columns, &self.context.types()) {
            return Ok(());
        }
        let list = match level {
            Level::Error => "extra_errors",
            _ => "extra_warnings",
        };
        let error = SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "number of source and target fields in assignment does not match",
        )
        .detail(format!(
            "strict_multi_assignment check of {list} is active."
        ))
        .hint("Make sure the query returns the exact list of columns.");
        match (level, client) {
            (Level::Error, _) => Err(error),
            (_, Some(client)) => {
                client.notice("WARNING", error.fields());
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }
}

/// Has each column its target, and each target its column?
fn fits(act: &Activation, targets: &[Target], columns: &[OutputColumn], types: &UserTypes) -> bool {
    if let [Target::Variable(variable)] = targets {
        match act.routine.kinds[*variable] {
            VariableKind::Record => return true,
            VariableKind::Row(ty) => {
                let shape = match user::is_composite(ty.oid) {
                    true => types.declared_shape(ty.oid),
                    false => types.tuple_desc_of(ty),
                };
                return shape.is_none_or(|shape| shape.len() == columns.len());
            }
            VariableKind::Scalar(_) => {}
        }
    }
    targets.len() == columns.len()
}
