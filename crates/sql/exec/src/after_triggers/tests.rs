use super::*;
use logstead_sql_catalog::classes::PG_PUBLIC_NAMESPACE;
use logstead_sql_catalog::{
    Constraint, ConstraintKind, IndexColumn, IndexDef, Relation, RelationKind,
};
use logstead_sql_plan::constraints::{TableRules, UniqueRule};
use logstead_sql_types::RelationId;
use logstead_types::{IndexId, TableId};

fn set(timing: Timing) -> Arc<RuleSet> {
    let index = Arc::new(IndexDef {
        oid: RelationId::new(2),
        name: "k".to_owned(),
        table: RelationId::new(1),
        storage: IndexId(2),
        unique: true,
        primary: false,
        deferrable: true,
        nulls_not_distinct: false,
        columns: vec![IndexColumn::of(0)],
        include: Vec::new(),
        predicate: None,
        computed: Vec::new(),
        invalid: None,
    });
    let table = Arc::new(Relation {
        oid: RelationId::new(1),
        name: "t".to_owned(),
        schema: PG_PUBLIC_NAMESPACE,
        schema_name: "public".to_owned(),
        kind: RelationKind::Table,
        columns: Vec::new(),
        indexes: vec![Arc::clone(&index)],
        constraints: Vec::new(),
        storage: TableId(1),
        schema_version: 1,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    });
    let mut constraint = Constraint::new(3, "k", ConstraintKind::Unique(RelationId::new(2)));
    constraint.timing = timing;
    Arc::new(RuleSet {
        tables: vec![TableRules {
            generated: Vec::new(),
            unique: vec![UniqueRule::new(&table, &constraint, &index)],
            table,
            child: Vec::new(),
            parent: Vec::new(),
            checks: Vec::new(),
            defaults: Vec::new(),
            triggers: None,
            domains: Vec::new(),
        }],
    })
}

fn push(events: &mut EventQueue, set: &Arc<RuleSet>, rid: u64) {
    let timing = set.tables[0].unique[0].timing;
    let deferred = events.modes.is_deferred(3, timing);
    events.push(set, 0, 0, Rid(rid), EventKind::Unique, deferred);
}

fn due(events: &mut EventQueue) -> Vec<u64> {
    std::iter::from_fn(|| events.next().map(|(event, _)| event.rid.0)).collect()
}

#[test]
fn modes_follow_the_constraint_then_all_then_its_name() {
    let mut modes = SetConstraintState::default();
    assert!(!modes.is_deferred(3, Timing::Immediate));
    assert!(!modes.is_deferred(3, Timing::Deferrable));
    assert!(modes.is_deferred(3, Timing::Deferred));
    modes.set(3, true);
    assert!(modes.is_deferred(3, Timing::Deferrable));
    modes.set_all(false);
    assert!(
        !modes.is_deferred(3, Timing::Deferred),
        "ALL takes names back"
    );
    modes.set(3, true);
    assert!(modes.is_deferred(3, Timing::Deferred));
    assert!(!modes.is_deferred(4, Timing::Deferred));
    modes.set_all(true);
    assert!(
        !modes.is_deferred(3, Timing::Immediate),
        "what is not deferrable is never deferred"
    );
}

#[test]
fn a_savepoint_takes_events_back_and_brings_judged_ones_back() {
    let rules = set(Timing::Deferred);
    let mut events = EventQueue::default();
    push(&mut events, &rules, 1);
    let mark = events.mark();
    push(&mut events, &rules, 2);
    assert!(
        events.has_deferred_for(RelationId::new(1)) && !events.has_deferred_for(RelationId::new(9))
    );
    // SET CONSTRAINTS ALL IMMEDIATE checks both.
    events.modes.set_all(false);
    events.make_due(false);
    assert_eq!(due(&mut events), [1, 2]);
    assert!(!events.has_deferred() && !events.has_deferred_for(RelationId::new(1)));
    push(&mut events, &rules, 3);
    assert_eq!(due(&mut events), [3], "immediate now");
    // Rolled back: 1 is to be checked again, 2 is gone, and the mode is what it was.
    events.rollback_to(&mark);
    assert!(events.has_deferred() && events.has_deferred_for(RelationId::new(1)));
    push(&mut events, &rules, 4);
    assert!(!events.has_due());
    events.make_due(true);
    assert_eq!(due(&mut events), [1, 4]);
    assert!(!events.has_deferred());
    events.compact();
    assert!(events.deferred.is_empty() && events.sets.is_empty());
}

#[test]
fn a_failed_statement_leaves_nothing_due() {
    let rules = set(Timing::Deferrable);
    let mut events = EventQueue::default();
    let mark = events.mark();
    push(&mut events, &rules, 1);
    assert!(events.has_due());
    events.rollback_to(&mark);
    assert!(!events.has_due());
    // SET CONSTRAINTS of another constraint makes nothing due.
    events.modes.set(3, true);
    push(&mut events, &rules, 2);
    events.modes.set(4, false);
    events.make_due(false);
    assert!(!events.has_due() && events.has_deferred());
}
