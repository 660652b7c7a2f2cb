//! How the parts of tables are lowered, the texts that the catalog keeps, and what is refused here.

use crate::ast::table_like;
use crate::lowered::{self as ast, Statement};
use crate::{GeneratedChange, Parsed, StatementKind, ViewCommand};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

fn parsed(text: &str) -> Result<Parsed> {
    let mut parsed = super::super::parse(text, super::super::MaxDepth::Shallow)?;
    assert_eq!(parsed.len(), 1, "{text}");
    Ok(parsed.remove(0))
}

fn refused(text: &str) -> SqlError {
    match parsed(text) {
        Err(error) => error,
        Ok(parsed) => panic!("{text}: {parsed:?}"),
    }
}

fn table(text: &str) -> Result<ast::CreateTable> {
    match &**parsed(text)?.statement {
        Statement::CreateTable(table) => Ok(table.clone()),
        other => panic!("{text}: {other:?}"),
    }
}

fn operations(text: &str) -> Result<Vec<ast::AlterTableOperation>> {
    match &**parsed(text)?.statement {
        Statement::AlterTable(alter) => Ok(alter.operations.clone()),
        other => panic!("{text}: {other:?}"),
    }
}

fn column_operation(text: &str) -> Result<ast::AlterColumnOperation> {
    match operations(text)?.remove(0) {
        ast::AlterTableOperation::AlterColumn { op, .. } => Ok(op),
        other => panic!("{text}: {other:?}"),
    }
}

fn part(text: &str, (start, end): (usize, usize)) -> &str {
    &text[start..end]
}

#[test]
fn the_text_of_a_view_is_its_query() -> Result<()> {
    let queries = [
        ("CREATE VIEW v AS", "SELECT 'é' AS a", "/* c */"),
        (
            "CREATE VIEW v AS",
            "(SELECT 1 AS a)",
            "WITH LOCAL CHECK OPTION",
        ),
        (
            "CREATE OR REPLACE VIEW v (a) AS",
            "((TABLE t))",
            "WITH CHECK OPTION",
        ),
        ("CREATE RECURSIVE VIEW v (a) AS", "VALUES (1)", ""),
        (
            "CREATE MATERIALIZED VIEW v AS",
            "SELECT 1 LIMIT (2)",
            "WITH NO DATA",
        ),
    ];
    for (before, query, behind) in queries {
        let text = format!("{before} /* é */ {query} {behind};");
        let StatementKind::View(command) = parsed(&text)?.kind else {
            panic!("{text}");
        };
        let ViewCommand::Create(create) = *command else {
            panic!("{text}");
        };
        assert_eq!(part(&text, create.range), query, "{text}");
        assert_eq!(create.check.is_some(), behind.contains("CHECK"), "{text}");
        assert_eq!(create.data, !behind.contains("NO DATA"), "{text}");
    }
    Ok(())
}

#[test]
fn a_recursive_view_is_a_query_around_its_text() -> Result<()> {
    let text = "CREATE RECURSIVE VIEW s.v (a, \"B\") AS SELECT 1, 2";
    let StatementKind::View(command) = parsed(text)?.kind else {
        panic!("{text}");
    };
    let ViewCommand::Create(create) = *command else {
        panic!("{text}");
    };
    let before = "WITH RECURSIVE v (a, \"B\") AS (".to_owned();
    let behind = ") SELECT a, \"B\" FROM v".to_owned();
    assert_eq!(create.around, Some((before, behind)));
    assert!(create.query.with.is_some_and(|with| with.recursive));
    Ok(())
}

#[test]
fn elements_of_a_schema_are_done_in_their_order() -> Result<()> {
    let text = "CREATE SCHEMA s GRANT SELECT ON t TO PUBLIC CREATE VIEW v AS SELECT 1 \
                CREATE TABLE t (a int) CREATE SEQUENCE q";
    let StatementKind::SchemaElements(elements) = parsed(text)?.kind else {
        panic!("{text}");
    };
    let shown: Vec<&str> = elements
        .iter()
        .map(|element| part(text, (element.start, element.end)))
        .collect();
    let wanted = [
        "CREATE SEQUENCE q",
        "CREATE TABLE t (a int)",
        "CREATE VIEW v AS SELECT 1",
        "GRANT SELECT ON t TO PUBLIC",
    ];
    assert_eq!(shown, wanted);
    Ok(())
}

#[test]
fn columns_carry_all_that_is_said_of_them() -> Result<()> {
    let text = "CREATE TABLE t (a text COMPRESSION lz4 NOT NULL COLLATE \"C\" UNIQUE NULLS NOT DISTINCT, \
                b int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s.\"Q\" CYCLE CACHE 5), \
                c int REFERENCES p ON DELETE SET NULL (c), \
                LIKE s.o INCLUDING ALL EXCLUDING INDEXES)";
    let table = table(text)?;
    use ast::TableElement::{Column, Like};
    let [Column(a), Column(b), Column(c), Like(_, included)] = table.columns.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(a.compression.as_deref(), Some("lz4"));
    let [null, collation, unique] = a.options.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(null.option, ast::ColumnOption::NotNull);
    assert!(
        matches!(&collation.option, ast::ColumnOption::Collation(name) if name.to_string() == "\"C\"")
    );
    let ast::ColumnOption::Unique(key) = &unique.option else {
        panic!("{text}");
    };
    assert!(unique.name.is_none() && key.nulls_not_distinct);
    let ast::ColumnOption::Identity(ast::GeneratedAs::Always, options) = &b.options[0].option
    else {
        panic!("{text}");
    };
    let names: Vec<&str> = options.iter().map(|option| &*option.name).collect();
    assert_eq!(names, ["sequence_name", "cycle", "cache"]);
    let ast::ColumnOption::ForeignKey(key) = &c.options[0].option else {
        panic!("{text}");
    };
    let columns: Vec<&str> = key.set_columns.iter().map(|c| c.value.as_str()).collect();
    assert_eq!(columns, ["c"]);
    assert_eq!(*included, table_like::ALL & !table_like::INDEXES);
    Ok(())
}

#[test]
fn changes_of_columns() -> Result<()> {
    let changes = [
        (
            "DROP IDENTITY IF EXISTS",
            GeneratedChange::DropIdentity(true),
        ),
        ("DROP EXPRESSION", GeneratedChange::DropExpression(false)),
        ("SET STORAGE External", GeneratedChange::Storage('e')),
        (
            "SET COMPRESSION pglz",
            GeneratedChange::Compression(Some('p')),
        ),
        (
            "SET COMPRESSION DEFAULT",
            GeneratedChange::Compression(None),
        ),
        ("SET STATISTICS -1", GeneratedChange::Statistics(-1)),
    ];
    for (words, change) in changes {
        let op = column_operation(&format!("ALTER TABLE t ALTER a {words}"))?;
        assert_eq!(op, ast::AlterColumnOperation::Set(change), "{words}");
    }
    Ok(())
}

#[test]
fn a_collation_behind_a_new_type() -> Result<()> {
    let cases = [
        ("", false, None),
        (" USING b", true, None),
        (" COLLATE pg_catalog.\"C\"", false, Some("C")),
        (" COLLATE \"C\" USING b + 1", true, Some("C")),
    ];
    for (words, has_using, name) in cases {
        let op = column_operation(&format!("ALTER TABLE t ALTER a TYPE text{words}"))?;
        let ast::AlterColumnOperation::SetDataType {
            using, collation, ..
        } = op
        else {
            panic!("{words}");
        };
        assert_eq!(using.is_some(), has_using, "{words}");
        assert_eq!(collation.as_deref(), name, "{words}");
    }
    Ok(())
}

#[test]
fn attributes_belong_to_the_constraint_before_them() -> Result<()> {
    let text = "CREATE TABLE t (a int UNIQUE COLLATE \"C\" INITIALLY DEFERRED NOT NULL)";
    let table = table(text)?;
    let ast::TableElement::Column(a) = &table.columns[0] else {
        panic!("{text}");
    };
    let ast::ColumnOption::Unique(unique) = &a.options[0].option else {
        panic!("{text}");
    };
    let said = unique.characteristics.and_then(|said| said.initially);
    assert_eq!(said, Some(ast::DeferrableInitial::Deferred));
    Ok(())
}

#[test]
fn what_is_wrong_is_told_where_it_stands() {
    let cases = [
        ("CREATE TABLE t (a int DEFERRABLE)", Some(23)),
        (
            "CREATE TABLE t (a int UNIQUE NOT NULL DEFERRABLE)",
            Some(39),
        ),
        (
            "CREATE TABLE t (a int UNIQUE DEFERRABLE NOT DEFERRABLE)",
            Some(41),
        ),
        (
            "CREATE TABLE t (a int UNIQUE NOT DEFERRABLE INITIALLY DEFERRED)",
            Some(45),
        ),
    ];
    for (text, position) in cases {
        let error = refused(text);
        let told = (error.code(), error.fields().position);
        assert_eq!(
            told,
            (SqlState::SYNTAX_ERROR, position),
            "{text}: {error:?}"
        );
    }
}

#[test]
fn what_is_not_supported_is_told_by_name() -> Result<()> {
    let kinds = [
        ("CREATE TABLE t OF y", "CREATE TABLE OF a type"),
        ("CREATE TABLE t (a int) USING other", "an access method"),
        (
            "CREATE INDEX i ON t (a) TABLESPACE x",
            "TABLESPACE of an index",
        ),
        (
            "CREATE STATISTICS s ON a, b FROM t",
            "statistics of several columns",
        ),
        ("ALTER TABLE t ADD b int, INHERIT p", "INHERITS"),
        (
            "ALTER TABLE t ALTER a SET (n_distinct = 1)",
            "ALTER COLUMN ... SET (options)",
        ),
        ("ALTER SEQUENCE q SET LOGGED", "ALTER SEQUENCE SET LOGGED"),
    ];
    for (text, name) in kinds {
        let kind = parsed(text)?.kind;
        assert!(
            matches!(kind, StatementKind::Unsupported(what) if what == name),
            "{text}: {kind:?}"
        );
    }
    let errors = [
        "CREATE UNLOGGED VIEW v AS SELECT 1",
        "CREATE UNLOGGED MATERIALIZED VIEW v AS SELECT 1",
        "CREATE VIEW v AS SELECT 1 INTO x",
        "CREATE TABLE t (a int, UNIQUE (a) WITH (fillfactor = 70))",
        "CREATE INDEX i ON t (a) INCLUDE ((b + 1))",
        "ALTER MATERIALIZED VIEW v CLUSTER ON i",
        "ALTER TABLE t ALTER CONSTRAINT c DEFERRABLE, ADD b int",
    ];
    for text in errors {
        assert_eq!(
            refused(text).code(),
            SqlState::FEATURE_NOT_SUPPORTED,
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn global_is_told() -> Result<()> {
    assert!(table("CREATE GLOBAL TEMP TABLE t (a int)")?.global);
    assert!(table("CREATE GLOBAL TEMP TABLE t AS SELECT 1")?.global);
    assert!(!table("CREATE LOCAL TEMP TABLE t (a int)")?.global);
    Ok(())
}
