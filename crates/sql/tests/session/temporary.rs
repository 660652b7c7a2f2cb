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
