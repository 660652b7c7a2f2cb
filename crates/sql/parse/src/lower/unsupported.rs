//! What is known and not supported.

use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{ObjectType, Stmt};
use crate::lowered as library;
use logstead_sql_types::error::Result;

/// What a statement about a kind of objects would make, alter or drop, as 0A000 names it.
pub(super) fn unsupported_kind(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::AccessMethod => "an access method",
        ObjectType::Cast => "a user's cast",
        ObjectType::Conversion => "a conversion",
        ObjectType::EventTrigger => "an event trigger",
        ObjectType::Fdw | ObjectType::ForeignServer | ObjectType::ForeignTable => {
            "a foreign table or server"
        }
        ObjectType::Language => "a language of users",
        ObjectType::OpClass | ObjectType::Operator | ObjectType::OpFamily => "an operator of users",
        ObjectType::Tablespace => "a tablespace",
        ObjectType::Publication | ObjectType::Subscription => "logical replication",
        ObjectType::Rule => "a rule",
        ObjectType::StatisticExt => "statistics of several columns",
        ObjectType::TsConfiguration
        | ObjectType::TsDictionary
        | ObjectType::TsParser
        | ObjectType::TsTemplate => "a text search object of users",
        _ => "this statement",
    }
}

impl Lowered {
    /// A statement that is refused by this name when it is run.
    pub(super) fn unsupported(what: &'static str) -> Lowered {
        Lowered::command(StatementKind::Unsupported(what))
    }

    /// A statement for the catalog, with its command tag.
    pub(super) fn ddl(statement: library::Statement, tag: &'static str) -> Lowered {
        Lowered {
            statement,
            kind: StatementKind::Ddl(tag),
            as_of: None,
        }
    }
}

impl Lower<'_> {
    /// Refuses by name what the server does not have.
    pub(super) fn unsupported(&self, stmt: &Stmt) -> Result<Lowered> {
        let kind = match stmt {
            Stmt::CreateEventTrig(_) | Stmt::AlterEventTrig(_) => ObjectType::EventTrigger,
            Stmt::Rule(_) => ObjectType::Rule,
            Stmt::AlterOperator(_)
            | Stmt::CreateOpClass(_)
            | Stmt::CreateOpFamily(_)
            | Stmt::AlterOpFamily(_) => ObjectType::Operator,
            Stmt::CreateCast(_) => ObjectType::Cast,
            Stmt::CreateConversion(_) => ObjectType::Conversion,
            Stmt::CreatePLang(_) => ObjectType::Language,
            Stmt::CreateAm(_) => ObjectType::AccessMethod,
            Stmt::AlterTableSpaceOptions(_) => ObjectType::Tablespace,
            Stmt::Fdw(_) | Stmt::CreateForeignServer(_) | Stmt::AlterForeignServer(_) => {
                ObjectType::ForeignServer
            }
            Stmt::CreatePublication(_)
            | Stmt::AlterPublication(_)
            | Stmt::CreateSubscription(_)
            | Stmt::AlterSubscription(_) => ObjectType::Publication,
            Stmt::AlterTsDictionary(_) => ObjectType::TsDictionary,
            Stmt::AlterTsConfiguration(_) => ObjectType::TsConfiguration,
            Stmt::CreateTransform(_) => return Ok(Lowered::unsupported("CREATE TRANSFORM")),
            Stmt::CreateTableSpace(_) => return Ok(Lowered::unsupported("CREATE TABLESPACE")),
            Stmt::ImportForeignSchema(_) => {
                return Ok(Lowered::unsupported("IMPORT FOREIGN SCHEMA"));
            }
            Stmt::UserMapping(_) => return Ok(Lowered::unsupported("USER MAPPING")),
            _ => return Ok(Lowered::unsupported("this statement")),
        };
        Ok(Lowered::unsupported(unsupported_kind(kind)))
    }
}
