//! A catalog with a few tables, and a session that stands still.

use logstead_sql_catalog::classes::PG_PUBLIC_NAMESPACE;
use logstead_sql_catalog::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_catalog::{
    Catalog, Column, Constraint, ConstraintKind, IndexColumn, IndexDef, IndexKey, Relation,
    RelationKind, SequenceDef,
};
use logstead_sql_parse::parse;
use logstead_sql_plan::permissions::NotExecuted;
use logstead_sql_plan::{ExplainOptions, PlanContext, Planned, explain, plan_statement};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_sql_types::{DatabaseOid, RelationId, TypeId};
use logstead_types::{IndexId, SqlState, TableId};
use std::sync::Arc;

thread_local! {
    /// Whoever asks is told to end.
    pub(super) static STOP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

pub(super) struct TestContext;

impl PartialContext for TestContext {
    fn relation_by_name(&self, name: &str) -> Result<Option<RelationId>> {
        Ok((name == "pg_class").then_some(RelationId::new(1259)))
    }
    fn interrupted(&self) -> Result<()> {
        match STOP.get() {
            true => Err(SqlError::new(SqlState::QUERY_CANCELED, "stopped")),
            false => Ok(()),
        }
    }
}

fn column(name: &str, ty: TypeId, typmod: i32) -> Column {
    Column {
        name: name.to_owned(),
        ty: SqlType { oid: ty, typmod },
        not_null: false,
        default: None,
        identity: None,
        generated: false,
        sequence: None,
        dropped: false,
        domain: None,
        missing: Datum::Null,
    }
}

fn index(
    oid: RelationId,
    name: &str,
    table: RelationId,
    positions: &[usize],
    unique: bool,
    primary: bool,
) -> Arc<IndexDef> {
    Arc::new(IndexDef {
        oid,
        name: name.to_owned(),
        table,
        storage: IndexId(oid.get()),
        unique,
        primary,
        nulls_not_distinct: false,
        deferrable: false,
        include: Vec::new(),
        predicate: None,
        computed: Vec::new(),
        invalid: None,
        columns: positions.iter().map(|&p| IndexColumn::of(p)).collect(),
    })
}

fn table(
    oid: RelationId,
    name: &str,
    columns: Vec<Column>,
    indexes: Vec<Arc<IndexDef>>,
) -> Relation {
    let constraints = indexes
        .iter()
        .filter(|i| i.primary)
        .map(|i| {
            Arc::new(Constraint::new(
                i.oid.get() + 1_000,
                i.name.clone(),
                ConstraintKind::PrimaryKey(i.oid),
            ))
        })
        .collect();
    Relation {
        oid,
        name: name.to_owned(),
        schema: PG_PUBLIC_NAMESPACE,
        schema_name: "public".to_owned(),
        kind: RelationKind::Table,
        columns,
        indexes,
        constraints,
        storage: TableId(oid.get()),
        schema_version: 1,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    }
}

fn expression(text: &str, ty: TypeId) -> IndexColumn {
    IndexColumn {
        key: IndexKey::Expression {
            text: text.to_owned(),
            ty: SqlType::of(ty),
            name: "expr".to_owned(),
        },
        desc: false,
        nulls_first: false,
    }
}

fn descending(position: usize) -> IndexColumn {
    IndexColumn {
        desc: true,
        nulls_first: true,
        ..IndexColumn::of(position)
    }
}

/// create table x (id int primary key, name text, v varchar, a int, b int, c int not null, flag bool, s text);
/// create index x_lower on x (lower(name)); create index x_v on x (lower(v)); create index x_sum on x ((a + b) desc);
/// create index x_ab on x (a, b); create index x_cb on x (c desc, b); create index x_some on x (s) where a > 10;
/// create index x_done on x (id) where s = 'done'; create unique index x_flag on x (b, c) where flag and s is not null;
/// create index x_bf on x (flag);
fn many_indexes() -> Relation {
    let made = |oid, name: &str, columns, predicate: Option<&str>| {
        let mut made = IndexDef::clone(&index(
            oid,
            name,
            RelationId::new(16_500),
            &[],
            false,
            false,
        ));
        made.columns = columns;
        made.predicate = predicate.map(str::to_owned);
        Arc::new(made)
    };
    let unique = |index: Arc<IndexDef>| {
        let mut index = IndexDef::clone(&index);
        index.unique = true;
        Arc::new(index)
    };
    let columns = IndexColumn::of;
    let sum = IndexColumn {
        desc: true,
        nulls_first: true,
        ..expression("(a + b)", oid::INT4)
    };
    let mut relation = table(
        RelationId::new(16_500),
        "x",
        vec![
            column("id", oid::INT4, -1),
            column("name", oid::TEXT, -1),
            column("v", oid::VARCHAR, -1),
            column("a", oid::INT4, -1),
            column("b", oid::INT4, -1),
            column("c", oid::INT4, -1),
            column("flag", oid::BOOL, -1),
            column("s", oid::TEXT, -1),
        ],
        vec![
            index(
                RelationId::new(16_501),
                "x_pkey",
                RelationId::new(16_500),
                &[0],
                true,
                true,
            ),
            made(
                RelationId::new(16_502),
                "x_lower",
                vec![expression("lower(name)", oid::TEXT)],
                None,
            ),
            made(
                RelationId::new(16_503),
                "x_v",
                vec![expression("lower((v)::text)", oid::TEXT)],
                None,
            ),
            made(RelationId::new(16_504), "x_sum", vec![sum], None),
            index(
                RelationId::new(16_505),
                "x_ab",
                RelationId::new(16_500),
                &[3, 4],
                false,
                false,
            ),
            made(
                RelationId::new(16_506),
                "x_cb",
                vec![descending(5), columns(4)],
                None,
            ),
            made(
                RelationId::new(16_507),
                "x_some",
                vec![columns(7)],
                Some("(a > 10)"),
            ),
            made(
                RelationId::new(16_508),
                "x_done",
                vec![columns(0)],
                Some("(s = 'done'::text)"),
            ),
            unique(made(
                RelationId::new(16_509),
                "x_flag",
                vec![columns(4), columns(5)],
                Some("(flag AND (s IS NOT NULL))"),
            )),
            made(RelationId::new(16_510), "x_bf", vec![columns(6)], None),
        ],
    );
    for position in [0, 5] {
        relation.columns[position].not_null = true;
    }
    relation
}

/// create table t (id int primary key, a int, b text, c varchar(3), d numeric(10,2), e timestamptz default now(), check
/// (a > 0)); create index t_a_b_idx on t (a, b); create table u (id bigint primary key, t_id int, x text); create index
/// u_t_id_idx on u (t_id); create table v (k1 int, k2 int, val text, primary key (k1, k2)); create table g (id int
/// generated always as identity, gone text, n int); alter table g drop column gone;
pub(super) fn catalog() -> Arc<Catalog> {
    let mut catalog = crate::pg_catalog::system_catalog().database(DatabaseOid::new(5), "postgres");
    let mut t = table(
        RelationId::new(16_400),
        "t",
        vec![
            Column {
                not_null: true,
                ..column("id", oid::INT4, -1)
            },
            column("a", oid::INT4, -1),
            column("b", oid::TEXT, -1),
            column("c", oid::VARCHAR, 7),
            column("d", oid::NUMERIC, (10 << 16) + 2 + 4),
            Column {
                default: Some("now()".to_owned()),
                ..column("e", oid::TIMESTAMPTZ, -1)
            },
        ],
        vec![
            index(
                RelationId::new(16_401),
                "t_pkey",
                RelationId::new(16_400),
                &[0],
                true,
                true,
            ),
            index(
                RelationId::new(16_402),
                "t_a_b_idx",
                RelationId::new(16_400),
                &[1, 2],
                false,
                false,
            ),
        ],
    );
    t.constraints.push(Arc::new(Constraint::new(
        17_500,
        "t_a_check",
        ConstraintKind::Check("a > 0".to_owned()),
    )));
    catalog.put_relation(Arc::new(t));
    catalog.put_relation(Arc::new(many_indexes()));
    catalog.put_relation(Arc::new(table(
        RelationId::new(16_410),
        "u",
        vec![
            Column {
                not_null: true,
                ..column("id", oid::INT8, -1)
            },
            column("t_id", oid::INT4, -1),
            column("x", oid::TEXT, -1),
        ],
        vec![
            index(
                RelationId::new(16_411),
                "u_pkey",
                RelationId::new(16_410),
                &[0],
                true,
                true,
            ),
            index(
                RelationId::new(16_412),
                "u_t_id_idx",
                RelationId::new(16_410),
                &[1],
                false,
                false,
            ),
        ],
    )));
    catalog.put_relation(Arc::new(table(
        RelationId::new(16_420),
        "v",
        vec![
            column("k1", oid::INT4, -1),
            column("k2", oid::INT4, -1),
            column("val", oid::TEXT, -1),
        ],
        vec![index(
            RelationId::new(16_421),
            "v_pkey",
            RelationId::new(16_420),
            &[0, 1],
            true,
            true,
        )],
    )));
    catalog.put_relation(Arc::new(table(
        RelationId::new(16_430),
        "g",
        vec![
            Column {
                identity: Some(true),
                sequence: Some(RelationId::new(16_439)),
                ..column("id", oid::INT4, -1)
            },
            Column {
                dropped: true,
                ..column("........pg.dropped.2........", oid::TEXT, -1)
            },
            column("n", oid::INT4, -1),
        ],
        Vec::new(),
    )));
    let mut sequence = table(RelationId::new(16_439), "g_id_seq", Vec::new(), Vec::new());
    sequence.kind = RelationKind::Sequence(SequenceDef {
        ty: oid::INT4,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::from(i32::MAX),
        cache: 1,
        cycle: false,
    });
    catalog.put_relation(Arc::new(sequence));
    Arc::new(catalog)
}

pub(super) fn planned(sql: &str) -> Result<Planned> {
    let catalog = catalog();
    let parsed = parse(sql)?;
    let rows = |relation: &Relation| match relation.name.as_str() {
        "t" => 100_000.0,
        "u" => 1_000_000.0,
        _ => 500.0,
    };
    let path = ["public".to_owned()];
    let cx = PlanContext {
        catalog: &catalog,
        search_path: &path,
        param_types: &[],
        parameters_fixed: false,
        session: &ContextAdapter(&TestContext),
        variables: None,
        rows_of: &rows,
        evaluate: logstead_sql_exec::evaluate,
    };
    plan_statement(&parsed[0].statement, sql, &cx)
}

/// EXPLAIN (COSTS OFF), one string; the error in one line if there is one.
pub(super) fn plan(sql: &str) -> String {
    match planned(sql) {
        Ok(planned) => {
            let options = ExplainOptions {
                costs: false,
                ..ExplainOptions::default()
            };
            let plan = planned.plan.check(&mut NotExecuted).unwrap();
            let catalog = catalog();
            let types = TypeLookup {
                types: &catalog.types,
                search_path: &["public".to_owned()],
            };
            explain(&plan, &options, types).join("\n")
        }
        Err(error) => format!("ERROR: {error} at {:?}", error.fields().position),
    }
}

/// "code position message | DETAIL | HINT" of the error that `sql` gives.
pub(super) fn error(sql: &str) -> String {
    match planned(sql) {
        Ok(planned) => format!("planned: {:?}", planned.columns),
        Err(error) => {
            let fields = error.fields();
            let mut text = format!(
                "{} {} {}",
                fields.code,
                fields
                    .position
                    .map_or_else(|| "-".to_owned(), |p| p.to_string()),
                fields.message
            );
            for extra in [&fields.detail, &fields.hint].into_iter().flatten() {
                text.push_str(" | ");
                text.push_str(extra);
            }
            text
        }
    }
}
