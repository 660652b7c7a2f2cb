//! The marks by which the library's tree carries what it has no place for, the texts that the catalog keeps, and what
//! is refused here.

use crate::{
    AlterSequence, GeneratedChange, IndexCommand, Parsed, PolicyAction, PolicyClause,
    StatementKind, TriggerAction, ViewCommand, compression, generated_change, identity_change,
    is_reset, sequence_name, type_collation, unique_name,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast::{self, Statement};

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

/// What the value of a default stands for.
fn default(text: &str) -> Result<ast::Expr> {
    match column_operation(text)? {
        ast::AlterColumnOperation::SetDefault { value } => Ok(value),
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
fn the_texts_of_conditions_are_without_their_parentheses() -> Result<()> {
    let text = "CREATE POLICY p ON t USING ( ((a) = 'é') ) WITH CHECK (b /* c */)";
    let StatementKind::Policy(policy) = parsed(text)?.kind else {
        panic!("{text}");
    };
    let PolicyAction::Create { using, check, .. } = policy.action else {
        panic!("{text}");
    };
    let shown = |clause: Option<PolicyClause>| clause.map(|c| part(text, c.range).to_owned());
    assert_eq!(shown(using).as_deref(), Some("((a) = 'é')"));
    assert_eq!(shown(check).as_deref(), Some("b"));
    let text =
        "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW WHEN (new.a > (1)) EXECUTE FUNCTION f()";
    let StatementKind::Trigger(trigger) = parsed(text)?.kind else {
        panic!("{text}");
    };
    let TriggerAction::Create(new) = trigger.action else {
        panic!("{text}");
    };
    let when = new.when.map(|clause| part(text, clause.range).to_owned());
    assert_eq!(when.as_deref(), Some("new.a > (1)"));
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
fn columns_carry_what_the_tree_has_no_place_for() -> Result<()> {
    let text = "CREATE TABLE t (a text COMPRESSION lz4 NOT NULL COLLATE \"C\" UNIQUE NULLS NOT DISTINCT, \
                b int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s.\"Q\" CYCLE CACHE 5), \
                c int REFERENCES p ON DELETE SET NULL (c), \
                LIKE s.o INCLUDING ALL EXCLUDING INDEXES)";
    let table = table(text)?;
    let [a, b, c, like] = table.columns.as_slice() else {
        panic!("{text}");
    };
    let [method, null, collation, unique] = a.options.as_slice() else {
        panic!("{text}");
    };
    let ast::ColumnOption::Collation(method) = &method.option else {
        panic!("{text}");
    };
    assert_eq!(compression(method), Some("lz4"));
    assert_eq!(null.option, ast::ColumnOption::NotNull);
    assert_eq!(collation.option.to_string(), "COLLATE \"C\"");
    let name = unique.name.as_ref().map(|name| name.value.clone());
    assert_eq!(unique_name(name), (None, true));
    let ast::ColumnOption::Generated {
        sequence_options: Some(options),
        ..
    } = &b.options[0].option
    else {
        panic!("{text}");
    };
    let [
        ast::SequenceOptions::Cache(cache),
        ast::SequenceOptions::Cycle(false),
    ] = options.as_slice()
    else {
        panic!("{options:?}");
    };
    let (number, name) = sequence_name(cache).unwrap_or_default();
    assert_eq!(number.map(|n| n.to_string()).as_deref(), Some("5"));
    assert_eq!(name, ["s", "Q"]);
    let ast::ColumnOption::ForeignKey(key) = &c.options[0].option else {
        panic!("{text}");
    };
    let columns = key.index_name.as_ref().map(|name| name.value.as_str());
    assert_eq!(columns, Some("c\0"));
    let letters = like.name.value.strip_prefix(crate::LIKE_MARK);
    assert_eq!(letters, Some("cpkdgiso"));
    Ok(())
}

#[test]
fn changes_of_columns_travel_as_defaults() -> Result<()> {
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
        let value = default(&format!("ALTER TABLE t ALTER a {words}"))?;
        assert_eq!(generated_change(&value), Some(change), "{words}");
    }
    let text = "ALTER TABLE t ALTER a RESTART SET GENERATED ALWAYS SET NO MINVALUE SET START -5";
    let change = identity_change(&default(text)?);
    let change = change.map(|change| (change.always, change.options));
    let options = "NO MINVALUE START WITH -5 RESTART ".to_owned();
    assert_eq!(change, Some((Some(true), options.clone())));
    // It is read as ALTER SEQUENCE.
    let kind = parsed(&format!("ALTER SEQUENCE q {options}"))?.kind;
    let StatementKind::AlterSequence(alter) = kind else {
        panic!("{kind:?}");
    };
    let AlterSequence {
        restart, options, ..
    } = *alter;
    assert_eq!((restart, options.len()), (Some(None), 2));
    Ok(())
}

#[test]
fn a_collation_behind_a_new_type_travels_in_using() -> Result<()> {
    let cases = [
        ("", None, None),
        (" USING b", Some("b"), None),
        (" COLLATE pg_catalog.\"C\"", None, Some("\0C")),
        (" COLLATE \"C\" USING b + 1", Some("(b + 1)"), Some("\0C")),
    ];
    for (words, using, collation) in cases {
        let op = column_operation(&format!("ALTER TABLE t ALTER a TYPE text{words}"))?;
        let ast::AlterColumnOperation::SetDataType { using: said, .. } = op else {
            panic!("{words}");
        };
        let (said, name) = type_collation(said.as_ref());
        assert_eq!(said.map(ToString::to_string).as_deref(), using, "{words}");
        assert_eq!(name.map(|name| name.value.as_str()), collation, "{words}");
    }
    Ok(())
}

#[test]
fn storage_parameters() -> Result<()> {
    let text =
        "ALTER TABLE t SET (fillfactor = 70, A, toast.b = off, c = 'on', d = on), RESET (toast.d)";
    let mut shown = Vec::new();
    for operation in operations(text)? {
        let ast::AlterTableOperation::SetOptionsParens { options } = operation else {
            panic!("{text}");
        };
        for option in options {
            let ast::SqlOption::KeyValue { key, value } = option else {
                panic!("{text}");
            };
            let value = match is_reset(&value) {
                true => "reset".to_owned(),
                false => value.to_string(),
            };
            shown.push(format!("{}={value}", key.value));
        }
    }
    let wanted = [
        "fillfactor=70",
        "a=true",
        "toast.b=off",
        "c='on'",
        "d=on",
        "toast.d=reset",
    ];
    assert_eq!(shown, wanted);
    let text = "ALTER INDEX i RESET (fillfactor, x.y)";
    let StatementKind::Index(command) = parsed(text)?.kind else {
        panic!("{text}");
    };
    let IndexCommand::Reset { options, .. } = *command else {
        panic!("{text}");
    };
    assert_eq!(options, ["fillfactor", "x.y"]);
    Ok(())
}

#[test]
fn attributes_belong_to_the_constraint_before_them() -> Result<()> {
    let text = "CREATE TABLE t (a int UNIQUE COLLATE \"C\" INITIALLY DEFERRED NOT NULL)";
    let table = table(text)?;
    let ast::ColumnOption::Unique(unique) = &table.columns[0].options[0].option else {
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
        ("CREATE SEQUENCE s START 1 CACHE 2 START 3", Some(35)),
        ("CREATE SEQUENCE s SEQUENCE NAME q", Some(19)),
        (
            "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (AS int))",
            Some(53),
        ),
        ("ALTER TABLE t RESET (a = 1)", None),
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
    assert_eq!(
        table("CREATE GLOBAL TEMP TABLE t (a int)")?.global,
        Some(true)
    );
    assert_eq!(
        table("CREATE GLOBAL TEMP TABLE t AS SELECT 1")?.global,
        Some(true)
    );
    assert_eq!(table("CREATE LOCAL TEMP TABLE t (a int)")?.global, None);
    Ok(())
}
