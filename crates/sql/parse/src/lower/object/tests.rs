use crate::lowered::Statement;
use crate::{Commented, ExtensionCommand, LargeObjectCommand, Parsed, StatementKind};
use logstead_sql_types::error::Result;

fn parsed(text: &str) -> Result<Parsed> {
    let mut parsed = super::super::parse(text, super::super::MaxDepth::Shallow)?;
    assert_eq!(parsed.len(), 1, "{text}");
    Ok(parsed.remove(0))
}

fn refused(text: &str) -> (String, String) {
    match parsed(text) {
        Err(error) => (
            error.code().as_str().to_owned(),
            error.fields().message.to_string(),
        ),
        Ok(parsed) => panic!("{text}: {:?}", parsed.kind),
    }
}

#[test]
fn numbers_of_large_objects() -> Result<()> {
    for (written, wanted) in [("7", 7), ("4294967295", u32::MAX), ("-1", u32::MAX)] {
        let text = format!("COMMENT ON LARGE OBJECT {written} IS 'x'");
        match parsed(&text)?.kind {
            StatementKind::LargeObject(command) => match *command {
                LargeObjectCommand::Comment { object, .. } => assert_eq!(object, wanted),
                other => panic!("{text}: {other:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    }
    let (code, message) = refused("COMMENT ON LARGE OBJECT 4294967296 IS 'x'");
    assert_eq!(code, "22003");
    assert_eq!(message, "value \"4294967296\" is out of range for type oid");
    let (code, message) = refused("ALTER LARGE OBJECT 1.5 OWNER TO r");
    assert_eq!(code, "22P02");
    assert_eq!(message, "invalid input syntax for type oid: \"1.5\"");
    Ok(())
}

#[test]
fn operators_as_regoperator_reads_them() -> Result<()> {
    for (named, wanted) in [
        ("pg_catalog.+ (INT, text)", "pg_catalog.+(integer, text)"),
        ("\"S\".<> (text, NONE)", "\"S\".<>(text, none)"),
        ("- (NONE, \"T\")", "-(none, \"T\")"),
    ] {
        let text = format!("COMMENT ON OPERATOR {named} IS NULL");
        match parsed(&text)?.kind {
            StatementKind::CommentOn(on) => match on.other {
                Some(Commented::Operator(operator)) => assert_eq!(operator, wanted),
                other => panic!("{text}: {other:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    }
    Ok(())
}

#[test]
fn what_nobody_can_make_is_not_there() -> Result<()> {
    match parsed("DROP TEXT SEARCH DICTIONARY IF EXISTS a.b, \"C\"")?.kind {
        StatementKind::Extension(command) => match *command {
            ExtensionCommand::DropAbsent {
                kind,
                if_exists,
                names,
            } => {
                assert_eq!(kind, "text search dictionary");
                assert!(if_exists);
                assert_eq!(names, ["a.b", "C"]);
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
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
    ] {
        let text = format!("DROP {kind} IF EXISTS a");
        match parsed(&text)?.kind {
            StatementKind::Extension(command) => assert_eq!(command.tag(), format!("DROP {kind}")),
            other => panic!("{text}: {other:?}"),
        }
    }
    for (text, name) in [
        ("DROP LANGUAGE plpgsql", "DROP LANGUAGE"),
        ("DROP CAST (a AS b)", "a user's cast"),
        ("DROP RULE r ON t", "a rule"),
        ("ALTER SCHEMA s RENAME TO t", "ALTER SCHEMA"),
        (
            "CREATE SERVER s FOREIGN DATA WRAPPER w",
            "a foreign table or server",
        ),
    ] {
        let kind = parsed(text)?.kind;
        assert!(
            matches!(kind, StatementKind::Unsupported(what) if what == name),
            "{text}: {kind:?}"
        );
    }
    Ok(())
}

#[test]
fn arrays_are_not_dropped_by_their_elements_name() -> Result<()> {
    let (code, message) = refused("DROP TYPE a[]");
    assert_eq!(code, "0A000");
    assert_eq!(message, "DROP TYPE of an array or a set is not supported");
    let parsed = parsed("DROP INDEX CONCURRENTLY a.b CASCADE")?;
    match &**parsed.statement {
        Statement::Drop {
            names,
            cascade,
            concurrently,
            ..
        } => {
            assert_eq!(
                names.iter().map(ToString::to_string).collect::<Vec<_>>(),
                ["a.b"]
            );
            assert!(*cascade && *concurrently);
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}
