//! What is known and not supported, by name: answered with 0A000.

use logstead_sql_parse::ast::{
    AlterTableCmd, AlterTableStmt, CreateStmt, DropStmt, Name, ObjectRef, ObjectType, RelationKind,
    Stmt,
};

/// What a statement about a kind of objects would make, alter or drop.
fn kind(kind: ObjectType) -> &'static str {
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

/// What is not supported of objects of a kind in ALTER.
fn alter(of: ObjectType) -> &'static str {
    match of {
        ObjectType::Schema => "ALTER SCHEMA",
        ObjectType::Extension => "this ALTER EXTENSION",
        other => kind(other),
    }
}

fn is_routine(kind: ObjectType) -> bool {
    matches!(
        kind,
        ObjectType::Function | ObjectType::Procedure | ObjectType::Routine | ObjectType::Aggregate
    )
}

fn drop(stmt: &DropStmt) -> Option<&'static str> {
    Some(match stmt.remove_type {
        ObjectType::Collation => "DROP of this kind of object",
        ObjectType::Transform => "DROP TRANSFORM",
        ObjectType::Language => {
            let built_in = ["c", "internal", "plpgsql", "sql"];
            let is_built_in = |object: &ObjectRef| match object {
                ObjectRef::Name(name) => name.names.iter().any(|name| built_in.contains(&&**name)),
                _ => false,
            };
            return { stmt.objects.iter().any(is_built_in) }.then_some("DROP LANGUAGE");
        }
        of @ (ObjectType::Cast
        | ObjectType::OpClass
        | ObjectType::Operator
        | ObjectType::OpFamily
        | ObjectType::Rule) => kind(of),
        _ => return None,
    })
}

/// The name by which an action of ALTER TABLE is refused, and its statement with it.
fn action(cmd: &AlterTableCmd) -> Option<&'static str> {
    use AlterTableCmd as Cmd;
    Some(match cmd {
        Cmd::ClusterOn(_) | Cmd::DropCluster => "ALTER TABLE CLUSTER ON",
        Cmd::AddInherit(_) | Cmd::DropInherit(_) => "INHERITS",
        Cmd::AddOf(_) | Cmd::DropOf => "CREATE TABLE OF a type",
        Cmd::AttachPartition { .. } => "ATTACH PARTITION",
        Cmd::DetachPartition { .. } | Cmd::DetachPartitionFinalize(_) => "DETACH PARTITION",
        Cmd::SetAccessMethod(_) => "an access method",
        Cmd::SetOptions { .. } | Cmd::ResetOptions { .. } => "ALTER COLUMN ... SET (options)",
        Cmd::SetTableSpace(_) => "ALTER TABLE SET TABLESPACE",
        Cmd::AlterColumnGenericOptions { .. } | Cmd::GenericOptions(_) => {
            kind(ObjectType::ForeignTable)
        }
        _ => return None,
    })
}

fn alter_table(stmt: &AlterTableStmt) -> Option<&'static str> {
    let cmds = stmt.cmds.as_slice();
    let of_cmds = || cmds.iter().find_map(action);
    match stmt.objtype {
        RelationKind::Type | RelationKind::Index => None,
        RelationKind::ForeignTable => Some(kind(ObjectType::ForeignTable)),
        _ if matches!(cmds, [AlterTableCmd::ChangeOwner(_)]) => None,
        RelationKind::Sequence => Some(match cmds {
            [AlterTableCmd::SetLogged | AlterTableCmd::SetUnlogged] => "ALTER SEQUENCE SET LOGGED",
            _ => "this form of ALTER SEQUENCE",
        }),
        RelationKind::View => of_cmds().map(|_| "this form of ALTER VIEW"),
        RelationKind::MaterializedView => of_cmds().map(|_| "this form of ALTER MATERIALIZED VIEW"),
        RelationKind::Table => {
            let of_constraint =
                |cmd: &AlterTableCmd| matches!(cmd, AlterTableCmd::AlterConstraint { .. });
            match cmds.len() > 1 && cmds.iter().any(of_constraint) {
                true => Some("ALTER CONSTRAINT together with other changes of a table"),
                false => of_cmds(),
            }
        }
    }
}

fn create_table(stmt: &CreateStmt) -> Option<&'static str> {
    let refusals = [
        (stmt.foreign.is_some(), kind(ObjectType::ForeignTable)),
        (stmt.of_typename.is_some(), "CREATE TABLE OF a type"),
        (
            is_other_access_method(stmt.access_method.as_ref()),
            "an access method",
        ),
        (stmt.partspec.is_some(), "PARTITION BY"),
        (stmt.partbound.is_some(), "PARTITION OF"),
        (!stmt.inh_relations.is_empty(), "INHERITS"),
    ];
    { refusals.iter() }.find_map(|(refused, what)| refused.then_some(*what))
}

/// Are rows to be stored in another way than the one that there is?
fn is_other_access_method(name: Option<&Name>) -> bool {
    name.is_some_and(|name| **name != *"heap")
}

/// By which name a statement is refused, if it is.
pub(super) fn refusal(stmt: &Stmt) -> Option<&'static str> {
    Some(match stmt {
        Stmt::Create(stmt) => return create_table(stmt),
        Stmt::CreateTableAs(create)
            if !create.is_materialized_view
                && is_other_access_method(create.into.access_method.as_ref()) =>
        {
            "an access method"
        }
        Stmt::Index(index) if index.table_space.is_some() => "TABLESPACE of an index",
        Stmt::AlterTable(stmt) => return alter_table(stmt),
        Stmt::AlterTableMoveAll(_) => "ALTER ... ALL IN TABLESPACE",
        Stmt::CreateStats(_) | Stmt::AlterStats(_) => kind(ObjectType::StatisticExt),
        Stmt::Drop(stmt) => return drop(stmt),
        Stmt::Rename(rename) => match rename.rename_type {
            ObjectType::Column => match rename.relation_type {
                None | Some(ObjectType::Table | ObjectType::View | ObjectType::MatView) => {
                    return None;
                }
                Some(of) => alter(of),
            },
            ObjectType::Policy if rename.missing_ok => "ALTER POLICY IF EXISTS",
            ObjectType::Type
            | ObjectType::Attribute
            | ObjectType::Domain
            | ObjectType::DomConstraint
            | ObjectType::Policy
            | ObjectType::Trigger
            | ObjectType::Database
            | ObjectType::Role
            | ObjectType::Index
            | ObjectType::Sequence
            | ObjectType::Table
            | ObjectType::View
            | ObjectType::MatView
            | ObjectType::TabConstraint => return None,
            of if is_routine(of) => return None,
            of => alter(of),
        },
        Stmt::AlterObjectSchema(set) => match set.object_type {
            ObjectType::Type
            | ObjectType::Domain
            | ObjectType::Table
            | ObjectType::View
            | ObjectType::MatView => return None,
            ObjectType::Sequence => "ALTER SEQUENCE SET SCHEMA / OWNER TO",
            of if is_routine(of) => return None,
            of => alter(of),
        },
        Stmt::AlterObjectDepends(depends) => match depends.object_type {
            ObjectType::Index => return None,
            ObjectType::Trigger => "ALTER TRIGGER ... DEPENDS ON EXTENSION",
            ObjectType::MatView => "this form of ALTER MATERIALIZED VIEW",
            _ => "DEPENDS ON EXTENSION",
        },
        Stmt::AlterOwner(owner) => match owner.object_type {
            ObjectType::Schema
            | ObjectType::Database
            | ObjectType::Type
            | ObjectType::Domain
            | ObjectType::LargeObject => return None,
            of if is_routine(of) => return None,
            of => alter(of),
        },
        Stmt::Comment(comment) => match comment.objtype {
            ObjectType::Tablespace => "COMMENT ON TABLESPACE",
            ObjectType::ForeignTable => "COMMENT ON FOREIGN TABLE",
            ObjectType::Transform => "COMMENT ON TRANSFORM",
            _ => return None,
        },
        Stmt::SecLabel(_) => "SECURITY LABEL",
        Stmt::AlterExtension(alter) if !alter.options.is_empty() => "ALTER EXTENSION ... UPDATE TO",
        Stmt::AlterExtensionContents(_) => "this ALTER EXTENSION",
        Stmt::AlterType(_) => "this form of ALTER TYPE",
        Stmt::Define(define) => match define.kind {
            ObjectType::Aggregate => return None,
            ObjectType::Operator => "an operator of users",
            ObjectType::Type => "CREATE TYPE of a base type",
            ObjectType::Collation => "CREATE COLLATION",
            _ => "a text search object of users",
        },
        Stmt::CreateEventTrig(_) | Stmt::AlterEventTrig(_) => kind(ObjectType::EventTrigger),
        Stmt::Rule(_) => kind(ObjectType::Rule),
        Stmt::AlterOperator(_)
        | Stmt::CreateOpClass(_)
        | Stmt::CreateOpFamily(_)
        | Stmt::AlterOpFamily(_) => kind(ObjectType::Operator),
        Stmt::CreateCast(_) => kind(ObjectType::Cast),
        Stmt::CreateConversion(_) => kind(ObjectType::Conversion),
        Stmt::CreatePLang(_) => kind(ObjectType::Language),
        Stmt::CreateAm(_) => kind(ObjectType::AccessMethod),
        Stmt::AlterTableSpaceOptions(_) => kind(ObjectType::Tablespace),
        Stmt::Fdw(_) | Stmt::CreateForeignServer(_) | Stmt::AlterForeignServer(_) => {
            kind(ObjectType::ForeignServer)
        }
        Stmt::CreatePublication(_)
        | Stmt::AlterPublication(_)
        | Stmt::CreateSubscription(_)
        | Stmt::AlterSubscription(_) => kind(ObjectType::Publication),
        Stmt::AlterTsDictionary(_) => kind(ObjectType::TsDictionary),
        Stmt::AlterTsConfiguration(_) => kind(ObjectType::TsConfiguration),
        Stmt::CreateTransform(_) => "CREATE TRANSFORM",
        Stmt::CreateTableSpace(_) => "CREATE TABLESPACE",
        Stmt::ImportForeignSchema(_) => "IMPORT FOREIGN SCHEMA",
        Stmt::UserMapping(_) => "USER MAPPING",
        Stmt::AlterCollation(_) => "this statement",
        Stmt::Load(_) => "LOAD",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_make_is_refused_by_name() {
        for (text, name) in [
            (
                "create operator @#@ (rightarg = int8, function = f)",
                Some("an operator of users"),
            ),
            (
                "drop operator if exists === (int, int)",
                Some("an operator of users"),
            ),
            (
                "create operator family f using btree",
                Some("an operator of users"),
            ),
            (
                "create or replace language l handler h",
                Some("a language of users"),
            ),
            (
                "create trusted procedural language l",
                Some("a language of users"),
            ),
            ("drop language plpgsql", Some("DROP LANGUAGE")),
            (
                "create default conversion c for 'LATIN1' to 'UTF8' from f",
                Some("a conversion"),
            ),
            ("alter tablespace t rename to u", Some("a tablespace")),
            ("DROP LANGUAGE nosuch", None),
            ("DROP TEXT SEARCH DICTIONARY IF EXISTS a.b, \"C\"", None),
            ("DROP CAST (a AS b)", Some("a user's cast")),
            ("DROP RULE r ON t", Some("a rule")),
            ("ALTER SCHEMA s RENAME TO t", Some("ALTER SCHEMA")),
            (
                "CREATE SERVER s FOREIGN DATA WRAPPER w",
                Some("a foreign table or server"),
            ),
            ("ALTER ROLE r RENAME TO s", None),
            ("CREATE TABLE t OF y", Some("CREATE TABLE OF a type")),
            (
                "CREATE TABLE IF NOT EXISTS s.t OF pair",
                Some("CREATE TABLE OF a type"),
            ),
            ("CREATE TABLE \"of\" (\"of\" int)", None),
            (
                "CREATE TABLE t (a int) USING other",
                Some("an access method"),
            ),
            (
                "CREATE TABLE t USING other AS SELECT 1",
                Some("an access method"),
            ),
            (
                "CREATE INDEX i ON t (a) TABLESPACE x",
                Some("TABLESPACE of an index"),
            ),
            ("CREATE INDEX i ON ONLY t (a)", None),
            ("CREATE UNIQUE INDEX i ON t (a) NULLS NOT DISTINCT", None),
            (
                "CREATE STATISTICS s ON a, b FROM t",
                Some("statistics of several columns"),
            ),
            ("ALTER TABLE t ADD b int, INHERIT p", Some("INHERITS")),
            (
                "ALTER TABLE t ALTER a SET (n_distinct = 1)",
                Some("ALTER COLUMN ... SET (options)"),
            ),
            ("ALTER TABLE t CLUSTER ON i", Some("ALTER TABLE CLUSTER ON")),
            (
                "ALTER TABLE t SET WITHOUT CLUSTER",
                Some("ALTER TABLE CLUSTER ON"),
            ),
            ("ALTER TABLE t SET (fillfactor = 70)", None),
            (
                "ALTER TABLE t ALTER CONSTRAINT c DEFERRABLE, ADD b int",
                Some("ALTER CONSTRAINT together with other changes of a table"),
            ),
            (
                "ALTER MATERIALIZED VIEW v CLUSTER ON i",
                Some("this form of ALTER MATERIALIZED VIEW"),
            ),
            (
                "ALTER SEQUENCE q SET LOGGED",
                Some("ALTER SEQUENCE SET LOGGED"),
            ),
            ("CREATE SCHEMA s", None),
            ("CREATE TABLE t AS SELECT 1 AS execute", None),
            ("CREATE AGGREGATE a(int) (sfunc = f, stype = int)", None),
            (
                "CREATE OPERATOR + (function = f)",
                Some("an operator of users"),
            ),
        ] {
            let parsed =
                logstead_sql_parse::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(refusal(&parsed[0].statement), name, "{text}");
        }
    }
}
