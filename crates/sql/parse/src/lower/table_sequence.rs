//! Sequences, and the options of those that identity columns have.

use super::table::ddl;
use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{
    AlterSeqStmt, AnyName, CreateSeqStmt, DefArg, DefElem, IdentityOption, Location, Persistence,
};
use crate::identity::IdentityChange;
use crate::kind::AlterSequence;
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::fmt::Write;

/// What the options of a sequence say.
#[derive(Default)]
struct SequenceParams {
    data_type: Option<library::DataType>,
    options: Vec<library::SequenceOptions>,
    owned_by: Option<AnyName>,
    restart: Option<Option<i64>>,
    sequence_name: Option<AnyName>,
    /// LOGGED or UNLOGGED.
    persistence: Option<Location>,
}

/// Digits of an option's value, with a sign if it is negative.
fn digits(option: &DefElem) -> Option<String> {
    match &option.arg {
        Some(DefArg::Integer(value)) => Some(value.to_string()),
        Some(DefArg::Float(text)) => Some(text.to_string()),
        _ => None,
    }
}

fn value(option: &DefElem) -> Result<String> {
    digits(option).ok_or_else(|| SqlError::internal("an option of a sequence without a number"))
}

/// The value of RESTART (`defGetInt64`).
fn restart(option: &DefElem) -> Result<Option<i64>> {
    let Some(digits) = digits(option) else {
        return Ok(None);
    };
    digits.parse().map(Some).map_err(|_| {
        let is_whole = digits.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        match is_whole {
            true => SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{digits}\" is out of range for type bigint"),
            ),
            false => SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type bigint: \"{digits}\""),
            ),
        }
    })
}

impl Lower<'_> {
    /// 42601 for an option that is said twice, or where it says nothing (`errorConflictingDefElem`).
    fn conflicting_at(&self, location: Location) -> SqlError {
        let message = "conflicting or redundant options";
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(location.character(self.text()))
    }

    fn sequence_params(&self, options: &[DefElem]) -> Result<SequenceParams> {
        use library::SequenceOptions as Options;
        let mut params = SequenceParams::default();
        for (at, option) in options.iter().enumerate() {
            if options[..at].iter().any(|o| o.name == option.name) {
                return Err(self.conflicting_at(option.location));
            }
            let optional = || match option.arg {
                Some(_) => value(option).map(Some),
                None => Ok(None),
            };
            params.options.push(match (&*option.name, &option.arg) {
                ("increment", _) => Options::IncrementBy(value(option)?),
                ("minvalue", _) => Options::MinValue(optional()?),
                ("maxvalue", _) => Options::MaxValue(optional()?),
                ("start", _) => Options::StartWith(value(option)?),
                ("cache", _) => Options::Cache(value(option)?),
                ("cycle", arg) => Options::Cycle(*arg != Some(DefArg::Boolean(false))),
                ("as", Some(DefArg::Type(name))) => {
                    params.data_type = Some(self.data_type(name)?);
                    continue;
                }
                ("owned_by", Some(DefArg::Name(name))) => {
                    params.owned_by = Some(name.clone());
                    continue;
                }
                ("sequence_name", Some(DefArg::Name(name))) => {
                    params.sequence_name = Some(name.clone());
                    continue;
                }
                ("restart", _) => {
                    params.restart = Some(restart(option)?);
                    continue;
                }
                ("logged" | "unlogged", _) => {
                    params.persistence = Some(option.location);
                    continue;
                }
                _ => return Err(SqlError::internal("an option that no sequence has")),
            });
        }
        Ok(params)
    }

    /// The same of a sequence that is no column's own.
    fn free_sequence_params(&self, options: &[DefElem]) -> Result<SequenceParams> {
        let params = self.sequence_params(options)?;
        let wrong = |message: &str, location: Location| {
            SqlError::new(SqlState::SYNTAX_ERROR, message).at(location.character(self.text()))
        };
        if params.sequence_name.is_some() {
            let option = options.iter().find(|o| &*o.name == "sequence_name");
            let location = option.map_or(Location::UNKNOWN, |o| o.location);
            return Err(wrong("invalid sequence option SEQUENCE NAME", location));
        }
        match params.persistence {
            Some(location) => Err(wrong(
                "invalid sequence option LOGGED or UNLOGGED",
                location,
            )),
            None => Ok(params),
        }
    }

    /// OWNED BY, where NONE is a word.
    fn owner_column(&self, name: &AnyName) -> library::ObjectName {
        match name.names.as_slice() {
            [none] if &**none == "none" => {
                library::ObjectName::from(vec![library::Ident::new("none")])
            }
            names => self.object_name(names, name.location),
        }
    }

    pub(super) fn create_sequence(&self, create: &CreateSeqStmt) -> Result<Lowered> {
        let params = self.free_sequence_params(&create.options)?;
        if params.restart.is_some() {
            return Err(SqlError::unsupported("RESTART of a new sequence"));
        }
        let statement = library::Statement::CreateSequence {
            temporary: create.sequence.persistence == Persistence::Temporary,
            if_not_exists: create.if_not_exists,
            name: self.relation_name(&create.sequence),
            data_type: params.data_type,
            sequence_options: params.options,
            owned_by: params.owned_by.map(|name| self.owner_column(&name)),
        };
        Ok(ddl(statement, "CREATE SEQUENCE"))
    }

    pub(super) fn alter_sequence(&self, alter: &AlterSeqStmt) -> Result<Lowered> {
        let params = self.free_sequence_params(&alter.options)?;
        let alter = AlterSequence {
            if_exists: alter.missing_ok,
            name: self.relation_name(&alter.sequence),
            restart: params.restart,
            data_type: params.data_type,
            options: params.options,
            owned_by: params.owned_by.map(|name| self.owner_column(&name)),
            rename: None,
        };
        let kind = StatementKind::AlterSequence(Box::new(alter));
        Ok(Lowered::command(kind))
    }

    /// The options of an identity column's sequence.
    pub(super) fn identity_options(
        &self,
        options: &[DefElem],
    ) -> Result<Vec<library::SequenceOptions>> {
        let mut params = self.sequence_params(options)?;
        let said = |name: &str| options.iter().find(|o| &*o.name == name);
        // The column's type is the sequence's.
        if let Some(option) = said("as") {
            return Err(self.conflicting_at(option.location));
        }
        if params.owned_by.is_some() {
            return Err(SqlError::unsupported("OWNED BY of an identity column"));
        }
        if params.restart.is_some() {
            return Err(SqlError::unsupported("RESTART of a new identity column"));
        }
        if let Some(name) = &params.sequence_name {
            let parts = name.names.iter().map(ToString::to_string);
            params
                .options
                .push(library::SequenceOptions::Name(parts.collect()));
        }
        Ok(params.options)
    }

    /// SET and RESTART of an identity column.
    pub(super) fn identity_change(&self, options: &[IdentityOption]) -> Result<IdentityChange> {
        let mut always = None;
        let (mut changes, mut restart) = (String::new(), String::new());
        for option in options {
            match option {
                IdentityOption::Generated {
                    by_default,
                    location,
                } => {
                    if always.replace(!*by_default).is_some() {
                        return Err(self.conflicting_at(*location));
                    }
                }
                IdentityOption::Sequence(option) if &*option.name == "restart" => {
                    self.write_option(option, &mut restart)?;
                }
                IdentityOption::Sequence(option) => self.write_option(option, &mut changes)?,
            }
        }
        Ok(IdentityChange {
            always,
            options: format!("{changes}{restart}"),
        })
    }

    /// An option as ALTER SEQUENCE has it, with a space behind it.
    fn write_option(&self, option: &DefElem, out: &mut String) -> Result<()> {
        let number = digits(option);
        let words = match (&*option.name, &number) {
            ("increment", _) => "INCREMENT BY",
            ("minvalue", Some(_)) => "MINVALUE",
            ("minvalue", None) => "NO MINVALUE",
            ("maxvalue", Some(_)) => "MAXVALUE",
            ("maxvalue", None) => "NO MAXVALUE",
            ("start", _) => "START WITH",
            ("cache", _) => "CACHE",
            ("cycle", _) if option.arg == Some(DefArg::Boolean(false)) => "NO CYCLE",
            ("cycle", _) => "CYCLE",
            ("restart", Some(_)) => "RESTART WITH",
            ("restart", None) => "RESTART",
            ("logged", _) => "LOGGED",
            ("unlogged", _) => "UNLOGGED",
            ("sequence_name", _) => "SEQUENCE NAME",
            _ => return Err(SqlError::internal("an option that no identity column sets")),
        };
        let _ = write!(out, "{words} ");
        if let Some(number) = number {
            let _ = write!(out, "{number} ");
        }
        if let Some(DefArg::Name(name)) = &option.arg {
            let _ = write!(out, "{} ", self.object_name(&name.names, name.location));
        }
        Ok(())
    }
}
