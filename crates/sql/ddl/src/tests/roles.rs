//! What statements about roles and privileges say, as it is kept.

use super::world::World;
use logstead_sql_catalog::role::Role;
use logstead_sql_types::error::SqlError;
use std::sync::Arc;

fn role(world: &World, name: &str) -> Arc<Role> {
    let roles = Arc::clone(&world.catalog().roles);
    Arc::clone(roles.by_name(name).unwrap())
}

fn refused(world: &World, text: &str) -> SqlError {
    match world.run(text) {
        Err(error) => error,
        Ok(done) => panic!("{text}: {done:?}"),
    }
}

/// Names of the roles that a role is a member of, with whether it may make others members.
fn member_of(world: &World, name: &str) -> Vec<(String, bool)> {
    let roles = Arc::clone(&world.catalog().roles);
    let all = role(world, name).member_of.clone();
    let mut named: Vec<_> = all
        .iter()
        .map(|m| (roles.get(m.role).unwrap().name.clone(), m.admin))
        .collect();
    named.sort();
    named
}

fn owned(names: &[(&str, bool)]) -> Vec<(String, bool)> {
    let names = names.iter();
    names
        .map(|(name, admin)| ((*name).to_owned(), *admin))
        .collect()
}

#[test]
fn options_of_a_role() {
    let world = World::new();
    world
        .run("create role a; create role b; create role c")
        .unwrap();
    world
        .run(
            "CREATE USER u WITH SUPERUSER NOINHERIT CREATEROLE NOCREATEDB REPLICATION NOBYPASSRLS \
             CONNECTION LIMIT 3 PASSWORD 'secret' VALID UNTIL '2030-01-01 00:00:00+00' SYSID 7 \
             IN ROLE a ROLE b ADMIN c",
        )
        .unwrap();
    let u = role(&world, "u");
    assert!(u.superuser && !u.inherit && u.create_role && !u.create_db);
    // CREATE USER says that it may log in.
    assert!(u.login && u.replication && !u.bypass_rls);
    assert_eq!(u.connection_limit, 3);
    assert!(u.password.is_some() && u.valid_until.is_some());
    assert_eq!(member_of(&world, "u"), owned(&[("a", false)]));
    assert_eq!(member_of(&world, "b"), owned(&[("u", false)]));
    assert_eq!(member_of(&world, "c"), owned(&[("u", true)]));
}

#[test]
fn who_may_log_in() {
    for (text, login) in [
        ("CREATE ROLE r", false),
        ("CREATE GROUP r", false),
        ("CREATE USER r", true),
        ("CREATE USER r NOLOGIN", false),
        ("CREATE ROLE r LOGIN", true),
    ] {
        let world = World::new();
        world.run(text).unwrap();
        assert_eq!(role(&world, "r").login, login, "{text}");
    }
    let world = World::new();
    world
        .run("CREATE ROLE r LOGIN PASSWORD 'secret'; ALTER USER r PASSWORD NULL")
        .unwrap();
    let r = role(&world, "r");
    assert!(r.login && r.password.is_none());
}

#[test]
fn options_said_twice() {
    let world = World::new();
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
        ("CREATE DATABASE d OWNER a TEMPLATE b OWNER c", 38),
        (
            "CREATE FUNCTION f() RETURNS int STABLE VOLATILE AS '' LANGUAGE sql",
            40,
        ),
        ("CREATE TYPE r AS RANGE (subtype = int, subtype = text)", 40),
    ] {
        let error = refused(&world, text);
        assert_eq!(error.code().as_str(), "42601", "{text}");
        assert_eq!(error.fields().message, "conflicting or redundant options");
        assert_eq!(error.fields().position, Some(at), "{text}");
    }
    let error = refused(&world, "CREATE ROLE r CONNECTION LIMIT -2");
    assert_eq!(error.fields().message, "invalid connection limit: -2");
    assert!(world.run("CREATE ROLE r CONNECTION LIMIT -1").is_ok());
}

#[test]
fn settings_of_a_role_in_one_database_and_in_all() {
    let world = World::new();
    world
        .run("CREATE DATABASE d; CREATE ROLE r; ALTER ROLE r SET work_mem TO '4MB'")
        .unwrap();
    let kept = [("work_mem".to_owned(), "4MB".to_owned())];
    assert_eq!(role(&world, "r").settings, kept);
    world
        .run("ALTER ROLE ALL IN DATABASE d SET work_mem TO '8MB'")
        .unwrap();
    let catalog = world.catalog();
    let d = catalog.notes.databases.by_name("d").unwrap();
    assert_eq!(d.settings.keys().copied().collect::<Vec<_>>(), [None]);
    world.run("ALTER ROLE r RESET ALL").unwrap();
    assert!(role(&world, "r").settings.is_empty());
    let error = refused(&world, "ALTER ROLE ALL SET work_mem TO '1MB'");
    assert_eq!(error.fields().message, "ALTER ROLE ALL is not supported");
}

#[test]
fn members_of_a_group() {
    let world = World::new();
    world
        .run("create role g; create role a; create role b")
        .unwrap();
    for (text, members) in [
        ("ALTER GROUP g ADD USER a, b", true),
        ("ALTER GROUP g DROP USER a, b", false),
        ("ALTER ROLE g USER a, b", true),
    ] {
        let (tag, _) = world.run(text).unwrap();
        assert_eq!(tag, "ALTER ROLE");
        for member in ["a", "b"] {
            let wanted = if members {
                owned(&[("g", false)])
            } else {
                Vec::new()
            };
            assert_eq!(member_of(&world, member), wanted, "{text}");
        }
    }
    let error = refused(&world, "GRANT a(b) TO c");
    assert_eq!(error.code().as_str(), "0LP01");
}

#[test]
fn privileges_and_their_columns() {
    let world = World::new();
    world
        .run("create table t (a int, b int, c int); create role r")
        .unwrap();
    let acl = |world: &World, column: Option<usize>| {
        let catalog = world.catalog();
        let table = catalog.relation(None, "t", &world.path).unwrap().oid;
        let privileges = catalog.stored_privileges(table);
        let acl = match column {
            Some(at) => privileges.columns.get(&at).cloned(),
            None => privileges.acl,
        };
        let roles = Arc::clone(&catalog.roles);
        let r = roles.by_name("r").unwrap().oid;
        let items = acl.into_iter().flat_map(|acl| acl.0);
        let own = items.filter(|item| item.grantee == r);
        own.map(|item| (item.privileges, item.grantable))
            .collect::<Vec<_>>()
    };
    use logstead_sql_catalog::role::acl::privilege as p;
    world
        .run("GRANT SELECT (a, b), INSERT ON t TO r WITH GRANT OPTION")
        .unwrap();
    assert_eq!(acl(&world, None), [(p::INSERT, p::INSERT)]);
    assert_eq!(acl(&world, Some(0)), [(p::SELECT, p::SELECT)]);
    assert_eq!(acl(&world, Some(1)), [(p::SELECT, p::SELECT)]);
    assert_eq!(acl(&world, Some(2)), []);
    world
        .run("REVOKE GRANT OPTION FOR ALL PRIVILEGES (a, b) ON t FROM r CASCADE")
        .unwrap();
    assert_eq!(acl(&world, Some(1)), [(p::SELECT, 0)]);
    assert_eq!(acl(&world, None), [(p::INSERT, p::INSERT)]);
    let error = refused(&world, "GRANT SELECT (a) ON SCHEMA public TO r");
    assert_eq!(error.code().as_str(), "0LP01");
}
