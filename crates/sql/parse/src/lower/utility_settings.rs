//! SET, RESET, SHOW.

use super::utility::transaction_modes;
use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{
    Const, Expr, Location, SetValue, TransactionMode, Value, VariableSetKind, VariableSetStmt,
    VariableShowStmt, interval_fields,
};
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};

impl Lower<'_> {
    /// Lowers SET and RESET. SET ROLE, SET NAMES, SET TIME ZONE and their like are SET of a setting.
    pub(super) fn variable_set(&self, set: &VariableSetStmt) -> Result<Lowered> {
        let reset = |reset| {
            let statement = library::Statement::Reset(reset);
            Ok(setting(statement))
        };
        let values = match &set.kind {
            VariableSetKind::Transaction { session, modes } => {
                return Ok(set_transaction(*session, modes));
            }
            VariableSetKind::Snapshot(name) => {
                return Ok(Lowered {
                    statement: library::Statement::Set(library::Set::SetTransaction {
                        modes: Vec::new(),
                        snapshot: Some(name.to_string()),
                        session: false,
                    }),
                    kind: StatementKind::Transaction(None),
                    as_of: None,
                });
            }
            VariableSetKind::ResetAll => return reset(library::Reset::All),
            VariableSetKind::Reset => {
                return reset(library::Reset::ConfigurationParameter(
                    self.setting_name(set),
                ));
            }
            VariableSetKind::Current => return Err(SqlError::unsupported("SET FROM CURRENT")),
            VariableSetKind::Default => {
                vec![library::Expr::Identifier(library::Ident::new("DEFAULT"))]
            }
            VariableSetKind::Value(values) => values
                .iter()
                .map(|value| self.setting_value(value))
                .collect::<Result<_>>()?,
        };
        Ok(setting(library::Statement::Set(
            library::Set::SingleAssignment {
                local: set.is_local,
                variable: self.setting_name(set),
                values,
            },
        )))
    }

    fn setting_name(&self, set: &VariableSetStmt) -> library::ObjectName {
        let name = set.name.as_deref().unwrap_or_default();
        library::ObjectName::from(self.setting_parts(name, set.location))
    }

    fn setting_parts(&self, name: &str, location: Location) -> Vec<library::Ident> {
        name.split('.')
            .map(|part| self.ident(part, location))
            .collect()
    }

    fn setting_value(&self, value: &SetValue) -> Result<library::Expr> {
        match value {
            SetValue::Const(constant) => self.setting_constant(constant),
            SetValue::Interval(cast) => {
                let Expr::Const(literal) = &cast.arg else {
                    return Err(SqlError::internal("an interval that is no literal"));
                };
                let mask = match cast.type_name.typmods.first() {
                    Some(Expr::Const(Const {
                        value: Value::Integer(mask),
                        ..
                    })) => *mask,
                    _ => interval_fields::FULL_RANGE,
                };
                let has = |field| mask != interval_fields::FULL_RANGE && mask & field != 0;
                let hour = has(interval_fields::HOUR).then_some(library::DateTimeField::Hour);
                let minute = has(interval_fields::MINUTE).then_some(library::DateTimeField::Minute);
                let (leading_field, last_field) = match hour {
                    Some(hour) => (Some(hour), minute),
                    None => (minute, None),
                };
                Ok(library::Expr::Interval(library::Interval {
                    value: Box::new(self.setting_constant(literal)?),
                    leading_field,
                    leading_precision: None,
                    last_field,
                    fractional_seconds_precision: None,
                }))
            }
        }
    }

    fn setting_constant(&self, constant: &Const) -> Result<library::Expr> {
        let span = self.span(constant.location);
        let value = |value: library::Value| library::Expr::Value(value.with_span(span));
        let number = |written: &str| match written.strip_prefix('-') {
            Some(digits) => library::Expr::UnaryOp {
                op: library::UnaryOperator::Minus,
                expr: Box::new(value(library::Value::Number(digits.to_owned()))),
            },
            None => value(library::Value::Number(written.to_owned())),
        };
        match &constant.value {
            Value::Integer(integer) => Ok(number(&integer.to_string())),
            Value::Float(written) => Ok(number(written)),
            Value::String(text) => Ok(value(library::Value::String(text.to_string()))),
            _ => Err(SqlError::internal("a setting's value of another kind")),
        }
    }

    /// Lowers SHOW.
    pub(super) fn variable_show(&self, show: &VariableShowStmt) -> Lowered {
        setting(library::Statement::ShowVariable {
            variable: self.setting_parts(&show.name, show.location),
        })
    }
}

fn setting(statement: library::Statement) -> Lowered {
    Lowered {
        statement,
        kind: StatementKind::Setting,
        as_of: None,
    }
}

/// SET TRANSACTION, SET SESSION CHARACTERISTICS.
fn set_transaction(session: bool, modes: &[TransactionMode]) -> Lowered {
    let (modes, deferrable) = transaction_modes(modes);
    Lowered {
        statement: library::Statement::Set(library::Set::SetTransaction {
            modes,
            snapshot: None,
            session,
        }),
        kind: StatementKind::Transaction(deferrable),
        as_of: None,
    }
}
