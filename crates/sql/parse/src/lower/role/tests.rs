//! What a command says is not all in its text for people, and the passwords are not at all: so it is asked for here.

use crate::{
    DatabaseCommand, Grant, RightsCommand, RoleCommand, RoleName, RoleOptions, SettingChange,
    StatementKind,
};
use logstead_sql_types::error::{Result, SqlError};

fn kind(text: &str) -> Result<StatementKind> {
    let mut parsed = super::super::parse(text, super::super::MaxDepth::Shallow)?;
    assert_eq!(parsed.len(), 1, "{text}");
    Ok(parsed.remove(0).kind)
}

fn role_command(text: &str) -> Result<RoleCommand> {
    match kind(text)? {
        StatementKind::Role(command) => Ok(*command),
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str) -> SqlError {
    match kind(text) {
        Err(error) => error,
        Ok(kind) => panic!("{text}: {kind:?}"),
    }
}

fn named(name: &str) -> RoleName {
    RoleName::Name(name.to_owned())
}

#[test]
fn options_of_a_role() -> Result<()> {
    let text = "CREATE USER u WITH SUPERUSER NOINHERIT CREATEROLE NOCREATEDB REPLICATION NOBYPASSRLS \
                CONNECTION LIMIT 3 PASSWORD 'secret' VALID UNTIL 'infinity' SYSID 7 \
                IN ROLE a, CURRENT_USER ROLE b ADMIN SESSION_USER";
    let RoleCommand::Create { name, options } = role_command(text)? else {
        panic!("{text}");
    };
    assert_eq!(name, named("u"));
    let wanted = RoleOptions {
        superuser: Some(true),
        inherit: Some(false),
        create_role: Some(true),
        create_db: Some(false),
        // CREATE USER says it.
        login: Some(true),
        replication: Some(true),
        bypass_rls: Some(false),
        connection_limit: Some(3),
        password: Some(Some("secret".to_owned())),
        valid_until: Some("infinity".to_owned()),
        in_role: vec![named("a"), RoleName::Current],
        role: vec![named("b")],
        admin: vec![RoleName::Session],
    };
    assert!(options == wanted);
    Ok(())
}

#[test]
fn who_may_log_in() -> Result<()> {
    for (text, login) in [
        ("CREATE ROLE r", None),
        ("CREATE GROUP r", None),
        ("CREATE USER r", Some(true)),
        ("CREATE USER r NOLOGIN", Some(false)),
        ("CREATE ROLE r LOGIN", Some(true)),
    ] {
        let RoleCommand::Create { options, .. } = role_command(text)? else {
            panic!("{text}");
        };
        assert_eq!(options.login, login, "{text}");
    }
    let RoleCommand::Alter { options, .. } = role_command("ALTER USER r PASSWORD NULL")? else {
        panic!("ALTER USER");
    };
    assert_eq!((options.login, options.password), (None, Some(None)));
    Ok(())
}

#[test]
fn options_said_twice() {
    for (text, at) in [
        ("CREATE ROLE r LOGIN NOLOGIN", 21),
        ("CREATE ROLE r PASSWORD 'a' PASSWORD NULL", 28),
        ("CREATE ROLE r CONNECTION LIMIT 1 CONNECTION LIMIT 2", 34),
        ("CREATE ROLE r VALID UNTIL 'a' VALID UNTIL 'b'", 31),
        ("CREATE ROLE r IN ROLE a IN GROUP b", 25),
        ("CREATE ROLE r ROLE a USER b", 22),
        ("CREATE ROLE r ADMIN a ADMIN b", 23),
        ("CREATE EXTENSION e SCHEMA a SCHEMA b", 29),
        (
            "ALTER DEFAULT PRIVILEGES FOR ROLE a FOR USER b GRANT ALL ON TABLES TO c",
            37,
        ),
        (
            "ALTER DEFAULT PRIVILEGES IN SCHEMA a IN SCHEMA b GRANT ALL ON TABLES TO c",
            38,
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.code().as_str(), "42601", "{text}");
        assert_eq!(error.fields().message, "conflicting or redundant options");
        assert_eq!(error.fields().position, Some(at), "{text}");
    }
    let error = refused("CREATE ROLE r CONNECTION LIMIT -2");
    assert_eq!(error.fields().message, "invalid connection limit: -2");
    assert!(role_command("CREATE ROLE r CONNECTION LIMIT -1").is_ok());
}

#[test]
fn settings_of_sessions() -> Result<()> {
    let set = |name: &str, value: Option<&str>| {
        SettingChange::Set(name.to_owned(), value.map(str::to_owned))
    };
    for (said, wanted) in [
        ("SET work_mem TO '4MB'", set("work_mem", Some("4MB"))),
        (
            "SET DateStyle = iso, dmy",
            set("datestyle", Some("iso, dmy")),
        ),
        (
            "SET search_path TO a, \"B\", 'c d', 'x\"y', e1",
            set("search_path", Some("a, \"B\", \"c d\", \"x\"\"y\", e1")),
        ),
        ("SET a.b TO -1, 2.50, on", set("a.b", Some("-1, 2.50, on"))),
        ("SET TIME ZONE 'UTC'", set("timezone", Some("UTC"))),
        ("SET TIME ZONE LOCAL", set("timezone", None)),
        ("SET x TO DEFAULT", set("x", None)),
        ("RESET x", set("x", None)),
        ("RESET ALL", SettingChange::ResetAll),
        (
            "SET x FROM CURRENT",
            SettingChange::SetFromCurrent("x".to_owned()),
        ),
    ] {
        let text = format!("ALTER DATABASE d {said}");
        match kind(&text)? {
            StatementKind::Database(command) => match *command {
                DatabaseCommand::Setting {
                    change,
                    role: None,
                    of_role: false,
                    ..
                } => assert_eq!(change, wanted, "{text}"),
                other => panic!("{text}: {other:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    }
    let error = refused("ALTER ROLE ALL SET x TO 1");
    assert_eq!(error.fields().message, "ALTER ROLE ALL is not supported");
    match kind("ALTER ROLE ALL IN DATABASE d SET x TO 1")? {
        StatementKind::Database(command) => assert!(matches!(
            *command,
            DatabaseCommand::Setting {
                role: None,
                of_role: true,
                ..
            }
        )),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn members_of_a_group() -> Result<()> {
    for (text, adds) in [
        ("ALTER GROUP g ADD USER a, b", true),
        ("ALTER GROUP g DROP USER a, b", false),
        ("ALTER ROLE g USER a, b", true),
    ] {
        let (roles, members, tag) = match (role_command(text)?, adds) {
            (
                RoleCommand::Grant {
                    roles,
                    members,
                    tag,
                    ..
                },
                true,
            )
            | (
                RoleCommand::Revoke {
                    roles,
                    members,
                    tag,
                    ..
                },
                false,
            ) => (roles, members, tag),
            (other, _) => panic!("{text}: {other:?}"),
        };
        assert_eq!(roles, [named("g")], "{text}");
        assert_eq!(members, [named("a"), named("b")], "{text}");
        assert_eq!(tag, "ALTER ROLE");
    }
    let error = refused("GRANT a(b) TO c");
    assert_eq!(error.code().as_str(), "0LP01");
    Ok(())
}

#[test]
fn privileges_and_their_columns() -> Result<()> {
    let grant = |text: &str| -> Result<Grant> {
        match kind(text)? {
            StatementKind::Rights(command) => match *command {
                RightsCommand::Grant(grant) => Ok(grant),
                other => panic!("{text}: {other:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    };
    let some = grant("GRANT SELECT (a, b), INSERT ON t TO PUBLIC WITH GRANT OPTION")?;
    let columns = vec!["a".to_owned(), "b".to_owned()];
    let wanted = vec![
        ("select".to_owned(), columns.clone()),
        ("insert".to_owned(), Vec::new()),
    ];
    assert_eq!(some.privileges, Some(wanted));
    assert_eq!(some.grantees, [RoleName::Public]);
    assert!(some.option && !some.revoke && !some.cascade);
    let all = grant("REVOKE GRANT OPTION FOR ALL PRIVILEGES (a, b) ON t FROM r CASCADE")?;
    assert_eq!((all.privileges, all.columns), (None, columns));
    assert!(all.option && all.revoke && all.cascade);
    Ok(())
}
