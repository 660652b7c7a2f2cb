//! Temporary objects beside what lasts.

use super::{Script, ask, run, session};

#[test]
fn what_lasts_does_not_name_what_is_temporary() {
    run(async |worker| {
        let (mut a, mut c) = (session(&worker), Script::default());
        ask(
            &mut a,
            &mut c,
            "CREATE TEMP SEQUENCE s; CREATE TABLE t (a int)",
        )
        .await;
        for text in [
            "CREATE TABLE k (a int DEFAULT nextval('s'))",
            "CREATE TABLE k (a regclass CHECK (a <> 's'::regclass))",
            "ALTER TABLE t ALTER COLUMN a SET DEFAULT nextval('s')",
            "ALTER TABLE t ADD COLUMN b bigint DEFAULT nextval('s')",
        ] {
            let said = ask(&mut a, &mut c, text).await;
            assert!(said[0].starts_with("ERROR 0A000"), "{text}: {said:?}");
        }
        let said = ask(&mut a, &mut c, "CREATE VIEW v AS SELECT nextval('s')").await;
        assert_eq!(said[0], "NOTICE 00000: view \"v\" will be a temporary view");
        let said = ask(
            &mut a,
            &mut c,
            "CREATE TEMP TABLE k (a int DEFAULT nextval('s'))",
        )
        .await;
        assert_eq!(said, ["CREATE TABLE"]);
        drop(a);
        let mut b = session(&worker);
        let said = ask(
            &mut b,
            &mut c,
            "SELECT relname FROM pg_class WHERE relname IN ('k', 'v', 's')",
        )
        .await;
        assert_eq!(said.last().map(String::as_str), Some("SELECT 0"));
    });
}

#[test]
fn domains_of_others_columns_stay_as_they_are() {
    run(async |worker| {
        let (mut a, mut b, mut c) = (session(&worker), session(&worker), Script::default());
        ask(
            &mut a,
            &mut c,
            "CREATE DOMAIN d AS int; CREATE DOMAIN dd AS d; CREATE DOMAIN e AS int; CREATE TABLE perm (d d)",
        )
        .await;
        ask(
            &mut a,
            &mut c,
            "CREATE TEMP TABLE t (d d, e e[], o dd); INSERT INTO t VALUES (-1, '{-1}', -1)",
        )
        .await;
        for (text, code) in [
            ("DROP DOMAIN dd", "2BP01"),
            ("DROP DOMAIN e", "2BP01"),
            ("ALTER DOMAIN d ADD CHECK (VALUE > 0)", "0A000"),
            ("ALTER DOMAIN d SET NOT NULL", "0A000"),
            ("ALTER DOMAIN e ADD CHECK (VALUE > 0)", "0A000"),
        ] {
            let said = ask(&mut b, &mut c, text).await;
            assert!(
                said[0].starts_with(&format!("ERROR {code}")),
                "{text}: {said:?}"
            );
        }
        // One that asks nothing yet may come.
        let said = ask(
            &mut b,
            &mut c,
            "ALTER DOMAIN d ADD CONSTRAINT k CHECK (VALUE > 0) NOT VALID",
        )
        .await;
        assert_eq!(said, ["ALTER DOMAIN"]);
        let said = ask(&mut b, &mut c, "ALTER DOMAIN d VALIDATE CONSTRAINT k").await;
        assert!(said[0].starts_with("ERROR 0A000"), "{said:?}");
        let said = ask(&mut a, &mut c, "UPDATE t SET o = 1").await;
        assert_eq!(said, ["UPDATE 1"]);
        let said = ask(&mut a, &mut c, "ALTER TABLE t DROP COLUMN o, DROP COLUMN e").await;
        assert_eq!(said, ["ALTER TABLE"]);
        let said = ask(&mut b, &mut c, "DROP DOMAIN dd; DROP DOMAIN e").await;
        assert_eq!(said, ["DROP DOMAIN", "DROP DOMAIN"]);
        drop(a);
        let said = ask(&mut b, &mut c, "ALTER DOMAIN d VALIDATE CONSTRAINT k").await;
        assert_eq!(said, ["ALTER DOMAIN"]);
    });
}
