//! Joins of many items.

use super::world::{STOP, plan, planned};

/// Each item is joined to the one before it.
fn chain(items: usize) -> String {
    let mut sql = "select 1 from t t0".to_owned();
    for i in 1..items {
        sql.push_str(&format!(" join t t{i} on t{i}.id = t{}.a", i - 1));
    }
    sql
}

#[test]
fn many_items_are_planned_and_the_work_can_be_ended() {
    assert!(planned(&chain(200)).is_ok());
    STOP.set(true);
    let ended = planned(&chain(200));
    STOP.set(false);
    let error = ended.err().map(|e| e.code().as_str().to_owned());
    assert_eq!(error.as_deref(), Some("57014"));
}

#[test]
fn equality_with_a_constant_passes_on() {
    let found = plan("select 1 from t join u on u.t_id = t.id where u.t_id = 7");
    assert!(found.contains("Index Cond: (t.id = 7)"), "{found}");
    assert!(found.contains("Index Cond: (u.t_id = 7)"), "{found}");
    assert!(!found.contains("(u.t_id = t.id)"), "{found}");
}

#[test]
fn what_all_arms_of_an_or_say_is_said_beside_it() {
    let found = plan(
        "select 1 from t, u where (u.t_id = t.id and t.a = 1 and u.x = 'p') or (u.t_id = t.id and t.a = 2 and u.x = 'q')",
    );
    assert!(found.contains("(u.t_id = t.id)"), "{found}");
    // And each side is narrowed by what every arm says of it.
    assert!(found.contains("((t.a = 1) OR (t.a = 2))"), "{found}");
    assert!(
        found.contains("((u.x = 'p'::text) OR (u.x = 'q'::text))"),
        "{found}"
    );
    let found = plan("select 1 from t where (a = 1 and b = 'x') or a = 1");
    assert!(
        found.contains("Index Cond: (a = 1)") && !found.contains("Filter"),
        "{found}"
    );
}

#[test]
fn conditions_go_down_into_queries() {
    for (sql, inside) in [
        (
            "select * from (select a, count(*) c from t group by a) s where a = 5",
            true,
        ),
        (
            "select * from (select a, count(*) c from t group by a) s where c = 5",
            false,
        ),
        (
            "select * from (select a from t union all select t_id from u) s where a = 5",
            true,
        ),
        (
            "select * from (select a from t except select t_id from u) s where a = 5",
            false,
        ),
        (
            "select * from (select a from t limit 10) s where a = 5",
            false,
        ),
        (
            "select * from (select a, rank() over (partition by a order by id) r from t) s where a = 5",
            true,
        ),
        (
            "select * from (select a, rank() over (order by id) r from t) s where a = 5",
            false,
        ),
        (
            "select * from (select distinct a from t) s where a = 5",
            true,
        ),
        (
            "select * from (select distinct on (b) a, b from t order by b) s where a = 5",
            false,
        ),
        (
            "select * from (select a, random() r from t) s where a = 5",
            true,
        ),
        (
            "select * from (select a, random() r from t) s where r = 5",
            false,
        ),
        (
            "with q as (select a from t where c = 'x') select * from q where a = 5",
            true,
        ),
        (
            "with q as materialized (select a from t) select * from q where a = 5",
            false,
        ),
        (
            "with q as (select a from t) select * from q q1, q q2 where q1.a = 5",
            false,
        ),
        (
            "with q as not materialized (select a from t) select * from q q1, q q2 where q1.a = 5",
            true,
        ),
        (
            "with q as (select a, random() from t) select * from q where a = 5",
            false,
        ),
    ] {
        let found = plan(sql);
        let cond = found.contains("Index Cond: (a = 5)") || found.contains("Index Cond: (t.a = 5)");
        assert_eq!(cond, inside, "{sql}\n{found}");
    }
}

#[test]
fn a_constant_passes_on_along_a_chain_that_begins_far_from_it() {
    let items: Vec<String> = (0..40).map(|i| format!("t t{i}")).collect();
    let mut conditions: Vec<String> = (1..40)
        .map(|i| format!("t{}.id = t{i}.id", i - 1))
        .collect();
    conditions.push("t39.id = 5".to_owned());
    let found = plan(&format!(
        "select 1 from {} where {}",
        items.join(", "),
        conditions.join(" and ")
    ));
    assert_eq!(found.matches(".id = 5)").count(), 40, "{found}");
}

#[test]
fn conditions_are_read_only_while_nobody_says_to_end() {
    STOP.set(true);
    let ended = planned("select 1 from t where id = a and a = 5");
    STOP.set(false);
    let error = ended.err().map(|e| e.code().as_str().to_owned());
    assert_eq!(error.as_deref(), Some("57014"));
}

#[test]
fn a_semi_join_with_one_partner_is_an_inner_one() {
    for (sql, is_inner) in [
        (
            "select 1 from u where exists (select 1 from t where t.id = u.t_id)",
            true,
        ),
        (
            "select 1 from u where t_id in (select id from t where b = 'x')",
            true,
        ),
        // A part of a key, another column, and another comparison find several.
        (
            "select 1 from u where exists (select 1 from v where v.k1 = u.t_id)",
            false,
        ),
        (
            "select 1 from t where exists (select 1 from u where u.t_id = t.id)",
            false,
        ),
        (
            "select 1 from u where exists (select 1 from t where t.id < u.t_id)",
            false,
        ),
        (
            "select 1 from u where not exists (select 1 from t where t.id = u.t_id)",
            false,
        ),
    ] {
        let found = plan(sql);
        let half = found.contains("Semi") || found.contains("Anti");
        assert_eq!(!half, is_inner, "{sql}\n{found}");
    }
}

#[test]
fn subqueries_of_subqueries_become_joins() {
    for (sql, joins) in [
        (
            "select 1 from t where exists (select from u where u.t_id = t.id \
             and exists (select from v where v.k1 = u.id and v.k2 = 1))",
            2,
        ),
        (
            "select 1 from t where id in (select t_id from u where id in (select k1 from v))",
            2,
        ),
        // The inner one looks two rows out: the one around it stays.
        (
            "select 1 from t where exists (select from u where u.t_id = t.id \
             and exists (select from v where v.k1 = u.id and v.k2 = t.a))",
            0,
        ),
        // Rows that are locked are asked again under the whole condition.
        (
            "select 1 from t where exists (select from u where u.t_id = t.id) for update",
            0,
        ),
        ("select 1 from t where id not in (select t_id from u)", 0),
    ] {
        let found = plan(sql);
        let half = found.matches("Semi Join").count() + found.matches("Anti Join").count();
        assert_eq!(half, joins, "{sql}\n{found}");
        assert_eq!(found.contains("SubPlan"), joins < 2, "{sql}\n{found}");
    }
}
