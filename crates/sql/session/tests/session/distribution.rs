//! By what tables are divided: what is said, decided and refused, that it outlives a server whatever the number of its
//! instances is, and that the keys of rows and of index entries agree.

use super::{Env, MemoryHome, Script, ask, converse_with, session, worker_with};
use logstead_engine::{EngineOptions, FlushMode, Isolation, KeyKind, ScanCursor};
use logstead_home::LogHome;
use logstead_sql_catalog::{Relation, distribution};
use logstead_sql_exec::index_keys;
use logstead_sql_session::WorkerSessions;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

fn server(instances: usize, home: MemoryHome) -> Rc<WorkerSessions> {
    let (env, _files) = Env::simulated(7);
    let options = EngineOptions {
        workers: instances,
        instances,
        ..EngineOptions::default()
    };
    worker_with(options, LogHome::from(home), env)
}

fn with_instances(instances: usize, conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    let home = MemoryHome::new(1 << 20);
    converse_with(true, || server(instances, home), conversation);
}

/// What each statement of a script gives; a line is a statement, or a comment.
async fn transcript(worker: &Rc<WorkerSessions>, script: &str) -> String {
    let (mut s, mut c) = (session(worker), Script::default());
    let mut said = String::new();
    for line in script.lines() {
        if line.starts_with("--") {
            writeln!(said, "{line}").unwrap();
            continue;
        }
        writeln!(said, "> {line}").unwrap();
        for answer in ask(&mut s, &mut c, line).await {
            writeln!(said, "{answer}").unwrap();
        }
    }
    said
}

#[test]
fn what_is_said_and_decided_and_refused() {
    with_instances(3, async |worker| {
        let found = transcript(&worker, include_str!("distribution/statements.sql")).await;
        println!("{found}");
        let expected = include_str!("distribution/expected.txt");
        for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "line {} of expected.txt", number + 1);
        }
        assert_eq!(found.len(), expected.len());
    });
}

/// The table of a name in the default database.
fn relation(worker: &WorkerSessions, name: &str) -> Arc<Relation> {
    let catalog = worker.instance.store.current("postgres").unwrap();
    let found = catalog.relation(Some("public"), name, &[]);
    Arc::clone(found.unwrap())
}

#[test]
fn with_one_instance_nothing_is_decided() {
    with_instances(1, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        for text in [
            "CREATE TABLE t (id int PRIMARY KEY)",
            "CREATE TABLE said (id int PRIMARY KEY) WITH (distribution = 'hash (id)')",
            "CREATE TABLE later (id int)",
            "ALTER TABLE later ADD PRIMARY KEY (id)",
        ] {
            ask(&mut s, &mut c, text).await;
        }
        for (name, columns) in [("t", None), ("said", Some(&[0][..])), ("later", None)] {
            let relation = relation(&worker, name);
            assert_eq!(relation.distribution.columns(), columns, "{name}");
            let table = worker.instance.engine.table(relation.storage).unwrap();
            assert_eq!(table.is_divided(), columns.is_some(), "{name}");
        }
    });
}

#[test]
fn a_distribution_outlives_its_server() {
    let home = MemoryHome::new(1 << 20);
    let tables = [
        ("decided", Some(&[1, 0][..]), false),
        ("said", Some(&[1][..]), true),
        ("single", None, true),
        ("changed", Some(&[0][..]), true),
        ("before", None, false),
        ("kept", Some(&[0][..]), true),
    ];
    let check = async |worker: &Rc<WorkerSessions>| {
        for (name, columns, is_said) in tables {
            let relation = relation(worker, name);
            assert_eq!(relation.distribution.columns(), columns, "{name}");
            assert_eq!(relation.distribution.is_said(), is_said, "{name}");
            let table = worker.instance.engine.table(relation.storage).unwrap();
            assert_eq!(table.is_divided(), columns.is_some(), "{name}");
        }
        let (mut s, mut c) = (session(worker), Script::default());
        let text = "SELECT (SELECT b FROM decided WHERE a = 7 AND c = 1), (SELECT a FROM said WHERE a = 7), \
                    (SELECT count(*) FROM changed WHERE a BETWEEN 10 AND 19), (SELECT count(*) FROM kept)";
        assert_eq!(ask(&mut s, &mut c, text).await[1], "7|7|10|50");
    };
    let opened = home.clone();
    converse_with(
        false,
        move || server(3, opened),
        async |worker| {
            let (mut s, mut c) = (session(&worker), Script::default());
            for text in [
                "CREATE TABLE decided (c int, a int, b int, PRIMARY KEY (a, c))",
                "INSERT INTO decided SELECT g % 3, g, g FROM generate_series(1, 50) g",
                "CREATE TABLE said (b int, a int PRIMARY KEY) WITH (distribution = 'hash (a)')",
                "INSERT INTO said SELECT g % 3, g FROM generate_series(1, 50) g",
                "CREATE TABLE single (a int PRIMARY KEY) WITH (distribution = single)",
                "CREATE TABLE changed (a int UNIQUE)",
                "INSERT INTO changed SELECT g FROM generate_series(1, 50) g",
                "ALTER TABLE changed SET (distribution = 'hash (a)')",
                "CREATE TABLE before (a int)",
                "CREATE MATERIALIZED VIEW kept WITH (distribution = 'hash (a)') AS SELECT a FROM said",
            ] {
                let said = ask(&mut s, &mut c, text).await;
                assert!(!said[0].starts_with("ERROR"), "{text}: {said:?}");
                worker.worker.flush(FlushMode::Inline);
            }
            check(&worker).await;
        },
    );
    for instances in [1, 2, 5] {
        home.crash();
        let opened = home.clone();
        converse_with(
            false,
            move || server(instances, opened),
            async |worker| {
                check(&worker).await;
            },
        );
    }
}

/// Types of distribution columns, with values of which some are equal and written otherwise.
const TYPES: [(&str, &[&str]); 33] = [
    ("smallint", &["0", "-1", "32767"]),
    ("integer", &["0", "-2147483648", "255", "256"]),
    ("bigint", &["0", "-9223372036854775808", "65535"]),
    (
        "numeric",
        &[
            "0", "-0.00", "1.0", "1.00", "-12.5", "NaN", "Infinity", "1e40", "100",
        ],
    ),
    ("real", &["0", "-0", "NaN", "1.5"]),
    ("double precision", &["0", "-0", "-1e300", "Infinity"]),
    ("money", &["1.00", "-3.5"]),
    ("boolean", &["t", "f"]),
    ("text", &["", "a", "a b", "ä"]),
    ("text COLLATE \"C\"", &["", "B", "a"]),
    ("varchar(5)", &["", "abc"]),
    ("char(5)", &["", "a", "a  "]),
    ("\"char\"", &["x", ""]),
    ("name", &["n"]),
    ("bytea", &["\\x", "\\x00", "\\x00ff00", "\\xff"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("date", &["2020-02-29", "-infinity", "0001-01-01 BC"]),
    ("time", &["00:00", "23:59:59.999999"]),
    ("timetz", &["12:00+02", "10:00+00"]),
    ("timestamp", &["2020-01-01 10:00", "infinity"]),
    (
        "timestamptz",
        &["2020-01-01 10:00+02", "2020-01-01 08:00+00"],
    ),
    ("interval", &["1 month", "30 days", "-1 day"]),
    ("inet", &["10.0.0.1", "10.0.0.1/24", "::1"]),
    ("cidr", &["10.0.0.0/8", "::/0"]),
    ("macaddr", &["08:00:2b:01:02:03"]),
    ("bit(9)", &["101010101"]),
    ("varbit", &["", "1", "10", "000000001"]),
    ("oid", &["0", "4294967295"]),
    ("pg_lsn", &["0/0", "FFFFFFFF/1"]),
    (
        "integer[]",
        &["{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={1,2}"],
    ),
    ("text[]", &["{}", "{\"\"}", "{a,b}"]),
    ("int4range", &["empty", "[1,5)", "(,)"]),
    ("nummultirange", &["{}", "{[1.0,2],[5,)}"]),
];

#[test]
fn the_keys_of_a_row_and_of_its_index_entries_agree() {
    with_instances(2, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        for (number, (ty, values)) in TYPES.iter().enumerate() {
            let name = format!("t{number}");
            let rows: Vec<String> = values
                .iter()
                .map(|value| format!("('{value}', 1), ('{value}', NULL)"))
                .collect();
            for text in [
                format!(
                    "CREATE TABLE {name} (gone int, x {ty}, y int, z {ty}) WITH (distribution = 'hash (x, y)')"
                ),
                format!("ALTER TABLE {name} DROP COLUMN gone"),
                format!(
                    "INSERT INTO {name} (x, y) VALUES (NULL, 1), (NULL, NULL), {}",
                    rows.join(", ")
                ),
                format!("UPDATE {name} SET z = x"),
                format!("CREATE INDEX {name}_same ON {name} (x, y)"),
                format!(
                    "CREATE INDEX {name}_longer ON {name} (x, y, z DESC) WHERE y IS NOT NULL OR x IS NULL"
                ),
                format!("CREATE INDEX {name}_first ON {name} (x)"),
                format!("CREATE INDEX {name}_order ON {name} (y, x)"),
                format!("CREATE INDEX {name}_desc ON {name} (x, y DESC)"),
                format!("CREATE INDEX {name}_nulls ON {name} (x NULLS FIRST, y)"),
                format!("CREATE INDEX {name}_expression ON {name} (x, (y + 0))"),
            ] {
                let said = ask(&mut s, &mut c, &text).await;
                assert!(!said[0].starts_with("ERROR"), "{text}: {said:?}");
            }
            check_keys(&worker, &name, 2 + 2 * values.len());
        }
    });
}

/// Divided are just the indexes `_same` and `_longer`, and their keys of a row begin with its distribution key.
fn check_keys(worker: &WorkerSessions, name: &str, rows: usize) {
    let relation = relation(worker, name);
    let catalog = worker.instance.store.current("postgres").unwrap();
    let distribution = distribution::key_of(&relation).unwrap();
    let extractors: Vec<_> = relation
        .indexes
        .iter()
        .map(|index| {
            let keys = index_keys::extractor(&relation, index, &catalog).unwrap();
            let divided = ["_same", "_longer"]
                .iter()
                .any(|end| index.name.ends_with(end));
            assert_eq!(keys.is_divided(), divided, "{}", index.name);
            let mut single = Relation::clone(&relation);
            single.distribution = Default::default();
            let undivided = index_keys::extractor(&single, index, &catalog).unwrap();
            assert!(!undivided.is_divided());
            assert_eq!(keys.keys() == undivided.keys(), !divided, "{}", index.name);
            keys
        })
        .collect();
    let table = worker.instance.engine.table(relation.storage).unwrap();
    let mut txn = worker.worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut cursor = ScanCursor::new(&table);
    let mut found = 0;
    let guard = txn.pin();
    while let Some(row) = txn.scan_next(&mut cursor, &guard).unwrap() {
        found += 1;
        let mut wanted = Vec::new();
        assert!(distribution.distribution_key(row.bytes, &mut wanted));
        for keys in extractors.iter().filter(|keys| keys.is_divided()) {
            let mut key = Vec::new();
            if keys.key(row.bytes, &mut key) == KeyKind::Absent {
                continue;
            }
            assert_eq!(keys.distribution_prefix(&key), Some(wanted.len()), "{name}");
            assert_eq!(key[..wanted.len()], wanted, "{name}");
            let cut = keys.distribution_prefix(&key[..wanted.len() - 1]);
            assert_eq!(cut, None, "{name}: some of its columns are no key");
        }
    }
    drop(guard);
    txn.abort();
    assert_eq!(found, rows, "{name}");
}

/// The partitions that EXPLAIN tells of, by statement.
async fn explained(worker: &Rc<WorkerSessions>) -> Vec<Vec<String>> {
    let (mut s, mut c) = (session(worker), Script::default());
    for line in [
        "create table d (a int, b int, c int, primary key (a, b)) with (distribution = 'hash (a, b)')",
        "create index d_c on d (c)",
        "create table one (a int primary key) with (distribution = 'single')",
        "set enable_seqscan = off",
    ] {
        let said = ask(&mut s, &mut c, line).await;
        assert!(
            !said.iter().any(|line| line.starts_with("ERROR")),
            "{said:?}"
        );
    }
    let mut all = Vec::new();
    for query in [
        "select * from d where a = 1 and b = 2",
        "update d set c = 1 where a = 1 and b = 2",
        "select * from d where a = 1 and b = any ('{1,2,3}')",
        "select * from d where a = 1 order by a, b",
        "select * from d where c = 1",
        "select * from d",
        "select * from one where a = 1",
    ] {
        let said = ask(&mut s, &mut c, &format!("explain (costs off) {query}")).await;
        let told = said.iter().filter(|line| line.contains("Partitions"));
        all.push(told.map(|line| line.trim().to_owned()).collect());
    }
    let json = "explain (costs off, format json) select * from d where a = 1 and b = 2";
    let said = ask(&mut s, &mut c, json).await.join("\n");
    let told = said.lines().filter(|line| line.contains("Partitions"));
    all.push(told.map(|line| line.trim().to_owned()).collect());
    all
}

#[test]
fn explain_tells_the_partitions_that_are_read_where_there_are_instances() {
    with_instances(3, async |worker| {
        let found = explained(&worker).await;
        let expected: [&[&str]; 8] = [
            &["Partitions: 1 of 64"],
            &["Partitions: 1 of 64"],
            &["Partitions: 1 of 64 for each element"],
            &["Partitions: 64 of 64"],
            &[],
            &["Partitions: 64 of 64"],
            &[],
            &["\"Partitions\": \"1 of 64\""],
        ];
        assert_eq!(found, expected);
    });
    with_instances(1, async |worker| {
        assert!(explained(&worker).await.iter().all(Vec::is_empty));
    });
}
