//! Command tags: what a statement is called where it has ended, and in messages (`CreateCommandTag`).

use super::{
    DiscardMode, ObjectType, RelationKind, Stmt, TransactionStmtKind, UserMappingAction,
    VariableSetKind,
};

/// The words of a kind of objects behind a verb.
macro_rules! tag_of_kind {
    ($verb:literal, $kind:expr) => {
        match $kind {
            ObjectType::AccessMethod => concat!($verb, " ACCESS METHOD"),
            ObjectType::Aggregate => concat!($verb, " AGGREGATE"),
            ObjectType::Cast => concat!($verb, " CAST"),
            ObjectType::Collation => concat!($verb, " COLLATION"),
            ObjectType::Conversion => concat!($verb, " CONVERSION"),
            ObjectType::Database => concat!($verb, " DATABASE"),
            ObjectType::Domain | ObjectType::DomConstraint => concat!($verb, " DOMAIN"),
            ObjectType::EventTrigger => concat!($verb, " EVENT TRIGGER"),
            ObjectType::Extension => concat!($verb, " EXTENSION"),
            ObjectType::Fdw => concat!($verb, " FOREIGN DATA WRAPPER"),
            ObjectType::ForeignServer => concat!($verb, " SERVER"),
            ObjectType::ForeignTable => concat!($verb, " FOREIGN TABLE"),
            ObjectType::Function => concat!($verb, " FUNCTION"),
            ObjectType::Index => concat!($verb, " INDEX"),
            ObjectType::Language => concat!($verb, " LANGUAGE"),
            ObjectType::LargeObject => concat!($verb, " LARGE OBJECT"),
            ObjectType::MatView => concat!($verb, " MATERIALIZED VIEW"),
            ObjectType::OpClass => concat!($verb, " OPERATOR CLASS"),
            ObjectType::Operator => concat!($verb, " OPERATOR"),
            ObjectType::OpFamily => concat!($verb, " OPERATOR FAMILY"),
            ObjectType::ParameterAcl => concat!($verb, " PARAMETER"),
            ObjectType::Policy => concat!($verb, " POLICY"),
            ObjectType::Procedure => concat!($verb, " PROCEDURE"),
            ObjectType::Publication => concat!($verb, " PUBLICATION"),
            ObjectType::Role => concat!($verb, " ROLE"),
            ObjectType::Routine => concat!($verb, " ROUTINE"),
            ObjectType::Rule => concat!($verb, " RULE"),
            ObjectType::Schema => concat!($verb, " SCHEMA"),
            ObjectType::Sequence => concat!($verb, " SEQUENCE"),
            ObjectType::Subscription => concat!($verb, " SUBSCRIPTION"),
            ObjectType::StatisticExt => concat!($verb, " STATISTICS"),
            ObjectType::Column | ObjectType::TabConstraint | ObjectType::Table => {
                concat!($verb, " TABLE")
            }
            ObjectType::Tablespace => concat!($verb, " TABLESPACE"),
            ObjectType::Transform => concat!($verb, " TRANSFORM"),
            ObjectType::Trigger => concat!($verb, " TRIGGER"),
            ObjectType::TsConfiguration => concat!($verb, " TEXT SEARCH CONFIGURATION"),
            ObjectType::TsDictionary => concat!($verb, " TEXT SEARCH DICTIONARY"),
            ObjectType::TsParser => concat!($verb, " TEXT SEARCH PARSER"),
            ObjectType::TsTemplate => concat!($verb, " TEXT SEARCH TEMPLATE"),
            ObjectType::Attribute | ObjectType::Type => concat!($verb, " TYPE"),
            ObjectType::View => concat!($verb, " VIEW"),
        }
    };
}

/// `AlterObjectTypeCommandTag`
fn alter_tag(kind: ObjectType) -> &'static str {
    tag_of_kind!("ALTER", kind)
}

/// The tag of ALTER of a relation.
fn alter_relation_tag(kind: RelationKind) -> &'static str {
    alter_tag(match kind {
        RelationKind::Table => ObjectType::Table,
        RelationKind::Index => ObjectType::Index,
        RelationKind::Sequence => ObjectType::Sequence,
        RelationKind::View => ObjectType::View,
        RelationKind::MaterializedView => ObjectType::MatView,
        RelationKind::ForeignTable => ObjectType::ForeignTable,
        RelationKind::Type => ObjectType::Type,
    })
}

fn transaction_tag(kind: &TransactionStmtKind) -> &'static str {
    match kind {
        TransactionStmtKind::Begin => "BEGIN",
        TransactionStmtKind::Start => "START TRANSACTION",
        TransactionStmtKind::Commit { .. } => "COMMIT",
        TransactionStmtKind::Rollback { .. } | TransactionStmtKind::RollbackTo(_) => "ROLLBACK",
        TransactionStmtKind::Savepoint(_) => "SAVEPOINT",
        TransactionStmtKind::Release(_) => "RELEASE",
        TransactionStmtKind::Prepare(_) => "PREPARE TRANSACTION",
        TransactionStmtKind::CommitPrepared(_) => "COMMIT PREPARED",
        TransactionStmtKind::RollbackPrepared(_) => "ROLLBACK PREPARED",
    }
}

impl Stmt {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            Stmt::Select(_) | Stmt::Return(_) => "SELECT",
            Stmt::Insert(_) => "INSERT",
            Stmt::Update(_) => "UPDATE",
            Stmt::Delete(_) => "DELETE",
            Stmt::Merge(_) => "MERGE",
            Stmt::Drop(drop) => tag_of_kind!("DROP", drop.remove_type),
            Stmt::Define(define) => tag_of_kind!("CREATE", define.kind),
            Stmt::Rename(rename) => alter_tag(match rename.rename_type {
                ObjectType::Column => rename.relation_type.unwrap_or(ObjectType::Table),
                kind => kind,
            }),
            Stmt::AlterObjectSchema(alter) => alter_tag(alter.object_type),
            Stmt::AlterObjectDepends(alter) => alter_tag(alter.object_type),
            Stmt::AlterOwner(alter) => alter_tag(alter.object_type),
            Stmt::AlterTable(alter) => alter_relation_tag(alter.objtype),
            Stmt::AlterFunction(alter) => alter_tag(alter.objtype),
            Stmt::Comment(_) => "COMMENT",
            Stmt::SecLabel(_) => "SECURITY LABEL",
            Stmt::Transaction(transaction) => transaction_tag(&transaction.kind),
            _ => self.definition_tag().unwrap_or_else(|| self.utility_tag()),
        }
    }

    /// The tag of a statement that makes or alters an object of one kind.
    fn definition_tag(&self) -> Option<&'static str> {
        Some(match self {
            Stmt::Create(_) => "CREATE TABLE",
            Stmt::CreateTableAs(create) if create.is_materialized_view => {
                "CREATE MATERIALIZED VIEW"
            }
            Stmt::CreateTableAs(create) if create.is_select_into => "SELECT INTO",
            Stmt::CreateTableAs(_) => "CREATE TABLE AS",
            Stmt::RefreshMatView(_) => "REFRESH MATERIALIZED VIEW",
            Stmt::View(_) => "CREATE VIEW",
            Stmt::Index(_) => "CREATE INDEX",
            Stmt::CreateSeq(_) => "CREATE SEQUENCE",
            Stmt::AlterSeq(_) => "ALTER SEQUENCE",
            Stmt::AlterTableMoveAll(alter) => alter_relation_tag(alter.objtype),
            Stmt::CreateStats(_) => "CREATE STATISTICS",
            Stmt::AlterStats(_) => "ALTER STATISTICS",
            Stmt::CreateSchema(_) => "CREATE SCHEMA",
            Stmt::CreateExtension(_) => "CREATE EXTENSION",
            Stmt::AlterExtension(_) | Stmt::AlterExtensionContents(_) => "ALTER EXTENSION",
            Stmt::CreateFunction(create) if create.is_procedure => "CREATE PROCEDURE",
            Stmt::CreateFunction(_) => "CREATE FUNCTION",
            Stmt::CreateTrig(_) => "CREATE TRIGGER",
            Stmt::CreateEventTrig(_) => "CREATE EVENT TRIGGER",
            Stmt::AlterEventTrig(_) => "ALTER EVENT TRIGGER",
            Stmt::Rule(_) => "CREATE RULE",
            Stmt::CreateDomain(_) => "CREATE DOMAIN",
            Stmt::AlterDomain(_) => "ALTER DOMAIN",
            Stmt::CompositeType(_) | Stmt::CreateEnum(_) | Stmt::CreateRange(_) => "CREATE TYPE",
            Stmt::AlterEnum(_) | Stmt::AlterType(_) => "ALTER TYPE",
            Stmt::AlterOperator(_) => "ALTER OPERATOR",
            Stmt::AlterCollation(_) => "ALTER COLLATION",
            Stmt::CreateOpClass(_) => "CREATE OPERATOR CLASS",
            Stmt::CreateOpFamily(_) => "CREATE OPERATOR FAMILY",
            Stmt::AlterOpFamily(_) => "ALTER OPERATOR FAMILY",
            Stmt::CreateCast(_) => "CREATE CAST",
            Stmt::CreateTransform(_) => "CREATE TRANSFORM",
            Stmt::CreateConversion(_) => "CREATE CONVERSION",
            Stmt::CreatePLang(_) => "CREATE LANGUAGE",
            Stmt::CreateAm(_) => "CREATE ACCESS METHOD",
            Stmt::CreateTableSpace(_) => "CREATE TABLESPACE",
            Stmt::AlterTableSpaceOptions(_) => "ALTER TABLESPACE",
            Stmt::Fdw(fdw) if fdw.is_alter => "ALTER FOREIGN DATA WRAPPER",
            Stmt::Fdw(_) => "CREATE FOREIGN DATA WRAPPER",
            Stmt::CreateForeignServer(_) => "CREATE SERVER",
            Stmt::AlterForeignServer(_) => "ALTER SERVER",
            Stmt::ImportForeignSchema(_) => "IMPORT FOREIGN SCHEMA",
            Stmt::UserMapping(mapping) => match mapping.action {
                UserMappingAction::Create { .. } => "CREATE USER MAPPING",
                UserMappingAction::Alter => "ALTER USER MAPPING",
                UserMappingAction::Drop { .. } => "DROP USER MAPPING",
            },
            Stmt::CreatePublication(_) => "CREATE PUBLICATION",
            Stmt::AlterPublication(_) => "ALTER PUBLICATION",
            Stmt::CreateSubscription(_) => "CREATE SUBSCRIPTION",
            Stmt::AlterSubscription(_) => "ALTER SUBSCRIPTION",
            Stmt::AlterTsDictionary(_) => "ALTER TEXT SEARCH DICTIONARY",
            Stmt::AlterTsConfiguration(_) => "ALTER TEXT SEARCH CONFIGURATION",
            Stmt::CreatePolicy(_) => "CREATE POLICY",
            Stmt::AlterPolicy(_) => "ALTER POLICY",
            Stmt::CreateRole(_) => "CREATE ROLE",
            Stmt::AlterRole(_) | Stmt::AlterRoleSet(_) => "ALTER ROLE",
            Stmt::DropRole(_) => "DROP ROLE",
            Stmt::DropOwned(_) => "DROP OWNED",
            Stmt::ReassignOwned(_) => "REASSIGN OWNED",
            Stmt::Grant(grant) if grant.is_grant => "GRANT",
            Stmt::Grant(_) => "REVOKE",
            Stmt::GrantRole(grant) if grant.is_grant => "GRANT ROLE",
            Stmt::GrantRole(_) => "REVOKE ROLE",
            Stmt::AlterDefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES",
            Stmt::Createdb(_) => "CREATE DATABASE",
            Stmt::AlterDatabase(_)
            | Stmt::AlterDatabaseRefreshColl(_)
            | Stmt::AlterDatabaseSet(_) => "ALTER DATABASE",
            Stmt::Dropdb(_) => "DROP DATABASE",
            _ => return None,
        })
    }

    /// The tag of a statement that makes nothing.
    fn utility_tag(&self) -> &'static str {
        match self {
            Stmt::Truncate(_) => "TRUNCATE TABLE",
            Stmt::Do(_) => "DO",
            Stmt::Call(_) => "CALL",
            Stmt::ConstraintsSet(_) => "SET CONSTRAINTS",
            Stmt::VariableSet(set) => match set.kind {
                VariableSetKind::Reset | VariableSetKind::ResetAll => "RESET",
                _ => "SET",
            },
            Stmt::VariableShow(_) => "SHOW",
            Stmt::AlterSystem(_) => "ALTER SYSTEM",
            Stmt::Discard(mode) => match mode {
                DiscardMode::All => "DISCARD ALL",
                DiscardMode::Plans => "DISCARD PLANS",
                DiscardMode::Sequences => "DISCARD SEQUENCES",
                DiscardMode::Temp => "DISCARD TEMP",
            },
            Stmt::Prepare(_) => "PREPARE",
            Stmt::Execute(_) => "EXECUTE",
            Stmt::Deallocate(None) => "DEALLOCATE ALL",
            Stmt::Deallocate(_) => "DEALLOCATE",
            Stmt::DeclareCursor(_) => "DECLARE CURSOR",
            Stmt::Fetch(fetch) if fetch.ismove => "MOVE",
            Stmt::Fetch(_) => "FETCH",
            Stmt::ClosePortal(None) => "CLOSE CURSOR ALL",
            Stmt::ClosePortal(_) => "CLOSE CURSOR",
            Stmt::Explain(_) => "EXPLAIN",
            Stmt::Copy(_) => "COPY",
            Stmt::Lock(_) => "LOCK TABLE",
            Stmt::Notify(_) => "NOTIFY",
            Stmt::Listen(_) => "LISTEN",
            Stmt::Unlisten(_) => "UNLISTEN",
            Stmt::Vacuum(vacuum) if vacuum.is_vacuumcmd => "VACUUM",
            Stmt::Vacuum(_) => "ANALYZE",
            Stmt::Cluster(_) => "CLUSTER",
            Stmt::Reindex(_) => "REINDEX",
            Stmt::CheckPoint => "CHECKPOINT",
            Stmt::Load(_) => "LOAD",
            _ => "???",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::grammar;

    fn tag(text: &str) -> &'static str {
        match grammar::parse(text).as_deref() {
            Ok([raw]) => raw.stmt.tag(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_object_is_dropped_and_made_by_its_words() {
        for kind in [
            "ACCESS METHOD",
            "CONVERSION",
            "EVENT TRIGGER",
            "FOREIGN DATA WRAPPER",
            "FOREIGN TABLE",
            "LANGUAGE",
            "PUBLICATION",
            "SERVER",
            "STATISTICS",
            "SUBSCRIPTION",
            "TABLESPACE",
            "TEXT SEARCH CONFIGURATION",
            "TEXT SEARCH DICTIONARY",
            "TEXT SEARCH PARSER",
            "TEXT SEARCH TEMPLATE",
            "MATERIALIZED VIEW",
            "DOMAIN",
        ] {
            let text = format!("DROP {kind} IF EXISTS a");
            assert_eq!(tag(&text), format!("DROP {kind}"));
        }
    }

    #[test]
    fn a_tag_is_of_what_is_altered() {
        for (text, wanted) in [
            ("ALTER TABLE t OWNER TO r", "ALTER TABLE"),
            ("ALTER VIEW v OWNER TO r", "ALTER VIEW"),
            ("ALTER VIEW v RENAME COLUMN a TO b", "ALTER VIEW"),
            ("ALTER TABLE t RENAME CONSTRAINT a TO b", "ALTER TABLE"),
            ("ALTER TYPE t RENAME ATTRIBUTE a TO b", "ALTER TYPE"),
            ("ALTER DOMAIN d RENAME CONSTRAINT a TO b", "ALTER DOMAIN"),
            ("ALTER GROUP g ADD USER a", "ALTER ROLE"),
            ("ALTER ROLE r IN DATABASE d RESET ALL", "ALTER ROLE"),
            ("ALTER DATABASE d RESET ALL", "ALTER DATABASE"),
            ("ALTER AGGREGATE a(int) OWNER TO r", "ALTER AGGREGATE"),
            ("REVOKE SELECT ON t FROM r", "REVOKE"),
            ("REVOKE a FROM b", "REVOKE ROLE"),
            (
                "CREATE PROCEDURE p() LANGUAGE sql AS ''",
                "CREATE PROCEDURE",
            ),
            ("CREATE TYPE t AS ENUM ()", "CREATE TYPE"),
            (
                "CREATE AGGREGATE a(int) (sfunc = f, stype = int)",
                "CREATE AGGREGATE",
            ),
        ] {
            assert_eq!(tag(text), wanted, "{text}");
        }
    }
}
