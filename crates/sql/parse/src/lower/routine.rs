//! Functions and procedures: CREATE, ALTER. What they share with aggregates: parameters, properties, settings.

use super::routine_ref::{routine_word, unplaced_name};
use super::{Lower, Lowered};
use crate::ast::{
    AlterFunctionStmt, CreateFunctionStmt, DefArg, DefElem, FunctionParameterMode as Mode, Name,
    SetValue, Stmt, TypeName, TypeRef, Value, VariableSetKind, VariableSetStmt,
};
use crate::lowered as library;
use crate::lowered::Span;
use crate::{
    AlterRoutine, ArgClause, ConfigClause, CreateRoutine, RoutineCommand, RoutineOption,
    StatementKind, Volatility,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What ALTER TYPE and CREATE TYPE of a base type come to, and the like.
pub(super) fn refused(what: &'static str) -> Lowered {
    Lowered::command(StatementKind::Unsupported(what))
}

/// The names of a type, which has none by number in a client's text.
pub(super) fn names_of(type_name: &TypeName) -> Result<&[Name]> {
    match &type_name.name {
        TypeRef::Named(names) => Ok(names),
        TypeRef::Stored(_) => Err(SqlError::internal("a type by number in a statement")),
    }
}

/// The text of an option that PostgreSQL's grammar gives as one.
fn text(option: &DefElem) -> Result<&str> {
    match &option.arg {
        Some(DefArg::String(text)) => Ok(text),
        _ => Err(wrong(option)),
    }
}

fn truth(option: &DefElem) -> Result<bool> {
    match &option.arg {
        Some(DefArg::Boolean(truth)) => Ok(*truth),
        _ => Err(wrong(option)),
    }
}

fn amount(option: &DefElem) -> Result<f64> {
    match &option.arg {
        Some(DefArg::Integer(number)) => Ok(f64::from(*number)),
        Some(DefArg::Float(number)) => number.parse().map_err(|_| wrong(option)),
        _ => Err(wrong(option)),
    }
}

/// The grammar gives each option a value of its kind.
fn wrong(option: &DefElem) -> SqlError {
    SqlError::internal(format!("the value of the option {}", option.name))
}

impl Lower<'_> {
    /// Lowers a statement about functions and types.
    pub(super) fn of_type_or_routine(&self, stmt: &Stmt) -> Result<Lowered> {
        let kind = match stmt {
            Stmt::CreateFunction(stmt) => self.create_function(stmt)?,
            Stmt::AlterFunction(stmt) => self.alter_function(stmt)?,
            Stmt::CreateDomain(stmt) => self.create_domain(stmt)?,
            Stmt::AlterDomain(stmt) => self.alter_domain(stmt)?,
            Stmt::Define(stmt) => return self.define(stmt),
            Stmt::CompositeType(stmt) => self.composite_type(stmt)?,
            Stmt::CreateEnum(stmt) => self.create_enum(stmt),
            Stmt::CreateRange(stmt) => self.create_range(stmt)?,
            Stmt::AlterEnum(stmt) => self.alter_enum(stmt),
            Stmt::AlterTable(stmt) => self.alter_attributes(stmt)?,
            Stmt::AlterType(_) => return Ok(refused("this form of ALTER TYPE")),
            _ => return Err(SqlError::internal("no statement about functions or types")),
        };
        Ok(Lowered::command(kind))
    }

    /// A type without SETOF.
    pub(super) fn plain_type(&self, type_name: &TypeName) -> Result<library::DataType> {
        match type_name.setof {
            true => self.data_type(&TypeName {
                setof: false,
                ..type_name.clone()
            }),
            false => self.data_type(type_name),
        }
    }

    fn create_function(&self, stmt: &CreateFunctionStmt) -> Result<StatementKind> {
        let clauses = |of_table: bool| -> Result<Vec<ArgClause>> {
            let all = stmt.parameters.iter();
            all.filter(|parameter| (parameter.mode == Mode::Table) == of_table)
                .map(|parameter| self.arg_clause(parameter))
                .collect()
        };
        let returns = stmt.return_type.as_ref().filter(|_| !stmt.returns_table);
        let create = CreateRoutine {
            procedure: stmt.is_procedure,
            or_replace: stmt.replace,
            name: unplaced_name(&stmt.funcname.names),
            args: clauses(false)?,
            returns: returns
                .map(|returns| self.type_clause(returns))
                .transpose()?,
            table: stmt.returns_table.then(|| clauses(true)).transpose()?,
            options: self.routine_options(&stmt.options)?,
            inline: stmt.sql_body_range,
        };
        Ok(of(RoutineCommand::Create(create)))
    }

    fn alter_function(&self, stmt: &AlterFunctionStmt) -> Result<StatementKind> {
        let word = routine_word(stmt.objtype)
            .ok_or_else(|| SqlError::internal("ALTER of what is no routine"))?;
        Ok(of(RoutineCommand::Alter {
            word,
            target: self.routine_ref(&stmt.func)?,
            alter: AlterRoutine::Options(self.routine_options(&stmt.actions)?),
        }))
    }

    /// Properties, each with where it stands.
    fn routine_options(&self, options: &[DefElem]) -> Result<Vec<(RoutineOption, Span)>> {
        let lowered = |option: &DefElem| {
            let span = self.span(option.location);
            Ok((self.routine_option(option)?, span))
        };
        options.iter().map(lowered).collect()
    }

    fn routine_option(&self, option: &DefElem) -> Result<RoutineOption> {
        use RoutineOption as O;
        Ok(match &*option.name {
            "volatility" => O::Volatility(match text(option)? {
                "immutable" => Volatility::Immutable,
                "stable" => Volatility::Stable,
                _ => Volatility::Volatile,
            }),
            "strict" => O::Strict(truth(option)?),
            "security" => O::Definer(truth(option)?),
            "leakproof" => O::Leakproof(truth(option)?),
            "parallel" => O::Parallel(text(option)?.to_owned()),
            "cost" => O::Cost(amount(option)?),
            "rows" => O::Rows(amount(option)?),
            "language" => O::Language(text(option)?.to_owned()),
            "window" => O::Window,
            "transform" => O::Transform,
            "support" => O::Support,
            "as" => match &option.arg {
                Some(DefArg::List(parts)) => O::As(texts(option, parts)?),
                _ => return Err(wrong(option)),
            },
            "set" => match &option.arg {
                Some(DefArg::Set(set)) => O::Config(config(set)?),
                _ => return Err(wrong(option)),
            },
            _ => return Err(wrong(option)),
        })
    }
}

fn of(command: RoutineCommand) -> StatementKind {
    StatementKind::Routine(Box::new(command))
}

fn texts(option: &DefElem, parts: &[DefArg]) -> Result<Vec<String>> {
    let text = |part: &DefArg| match part {
        DefArg::String(text) => Ok(text.to_string()),
        _ => Err(wrong(option)),
    };
    parts.iter().map(text).collect()
}

/// SET and RESET among the properties.
fn config(set: &VariableSetStmt) -> Result<ConfigClause> {
    let name = || set.name.as_deref().unwrap_or_default().to_owned();
    Ok(match &set.kind {
        VariableSetKind::Value(values) => {
            let values = values.iter().map(setting_value).collect::<Result<_>>()?;
            ConfigClause::Set(name(), values)
        }
        VariableSetKind::Current => ConfigClause::FromCurrent(name()),
        VariableSetKind::Default | VariableSetKind::Reset => ConfigClause::Reset(name()),
        VariableSetKind::ResetAll => ConfigClause::ResetAll,
        // No setting has this name.
        VariableSetKind::Snapshot(_) => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                "unrecognized configuration parameter \"TRANSACTION SNAPSHOT\"",
            ));
        }
        VariableSetKind::Transaction { .. } => {
            return Err(SqlError::internal("SET TRANSACTION of a function"));
        }
    })
}

fn setting_value(value: &SetValue) -> Result<String> {
    let SetValue::Const(value) = value else {
        return Err(SqlError::unsupported("SET TIME ZONE INTERVAL"));
    };
    match &value.value {
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(text) | Value::String(text) => Ok(text.to_string()),
        _ => Err(SqlError::internal("the value of a setting")),
    }
}
