//! What CREATE defines by a list of options: aggregates. Operators, base types, collations and text search objects are
//! refused.

use super::routine::{names_of, refused};
use super::routine_ref::unplaced_name;
use super::{Lower, Lowered};
use crate::ast::{DefArg, DefElem, DefineStmt, ObjectType, OperatorName};
use crate::lowered as library;
use crate::{AggregateValue, CreateAggregate, RoutineCommand, StatementKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// 42601 for a value of the wrong kind, in PostgreSQL's words.
pub(super) fn must_be(option: &DefElem, what: &str) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("argument of {} must be a {what}", option.name),
    )
}

/// A type by a name that is a literal.
pub(super) fn type_of_text(text: &str) -> library::DataType {
    library::DataType::Custom(unplaced_name(&[text.into()]), Vec::new())
}

/// The last name of a schema.
fn schema_of(operator: &OperatorName) -> Option<String> {
    operator.schema.last().map(ToString::to_string)
}

impl Lower<'_> {
    pub(super) fn define(&self, stmt: &DefineStmt) -> Result<Lowered> {
        Ok(match stmt.kind {
            ObjectType::Aggregate => {
                let command = RoutineCommand::CreateAggregate(self.create_aggregate(stmt)?);
                Lowered::command(StatementKind::Routine(Box::new(command)))
            }
            ObjectType::Operator => refused("an operator of users"),
            ObjectType::Type => refused("CREATE TYPE of a base type"),
            ObjectType::Collation => refused("CREATE COLLATION"),
            _ => refused("a text search object of users"),
        })
    }

    fn create_aggregate(&self, stmt: &DefineStmt) -> Result<CreateAggregate> {
        let args = stmt.aggregate.as_ref();
        let property = |option: &DefElem| {
            let name = option.name.to_string();
            Ok((name, self.aggregate_value(option)?))
        };
        Ok(CreateAggregate {
            or_replace: stmt.replace,
            name: unplaced_name(&stmt.defnames.names),
            args: args.map(|args| self.arg_clauses(args)).transpose()?,
            direct: args.and_then(|args| args.direct_args),
            properties: stmt
                .definition
                .iter()
                .map(property)
                .collect::<Result<_>>()?,
        })
    }

    fn aggregate_value(&self, option: &DefElem) -> Result<AggregateValue> {
        let Some(value) = &option.arg else {
            return Ok(AggregateValue::None);
        };
        match &*option.name {
            "stype" | "stype1" | "mstype" | "basetype" => self.aggregate_type(option, value),
            "sfunc" | "sfunc1" | "finalfunc" | "combinefunc" | "serialfunc" | "deserialfunc"
            | "msfunc" | "minvfunc" | "mfinalfunc" => Ok(AggregateValue::Function(match value {
                DefArg::String(text) => unplaced_name(std::slice::from_ref(text)),
                DefArg::Type(name) => unplaced_name(names_of(name)?),
                _ => return Err(must_be(option, "name")),
            })),
            "sortop" => Ok(match value {
                DefArg::Operator(operator) => {
                    AggregateValue::Operator(schema_of(operator), operator.name.to_string())
                }
                DefArg::Type(name) => AggregateValue::Operator(None, dotted(names_of(name)?)),
                value => AggregateValue::Text(text_of(option, value)?),
            }),
            _ => Ok(AggregateValue::Text(text_of(option, value)?)),
        }
    }

    fn aggregate_type(&self, option: &DefElem, value: &DefArg) -> Result<AggregateValue> {
        let is_any = |name: &str| name.eq_ignore_ascii_case("any");
        Ok(match value {
            DefArg::String(text) if is_any(text) => AggregateValue::Any,
            DefArg::String(text) => AggregateValue::Type(type_of_text(text)),
            DefArg::Type(name) => match names_of(name)? {
                [name] if is_any(name) => AggregateValue::Any,
                _ => AggregateValue::Type(self.plain_type(name)?),
            },
            _ => return Err(must_be(option, "type name")),
        })
    }
}

fn dotted(names: &[crate::ast::Name]) -> String {
    names.join(".")
}

/// `defGetString`
fn text_of(option: &DefElem, value: &DefArg) -> Result<String> {
    Ok(match value {
        DefArg::String(text) | DefArg::Float(text) => text.to_string(),
        DefArg::Integer(number) => number.to_string(),
        DefArg::Boolean(truth) => truth.to_string(),
        DefArg::Operator(operator) => operator.name.to_string(),
        DefArg::None => "none".to_owned(),
        DefArg::Type(name) => dotted(names_of(name)?),
        _ => return Err(must_be(option, "name")),
    })
}
