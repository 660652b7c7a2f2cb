//! System relations: every row has the columns and types of its list; the texts that clients show are PostgreSQL's.

use crate::pg_catalog;
use crate::pg_catalog::calls;
use logstead_sql_catalog::classes::{PG_CLASS, PG_PUBLIC_NAMESPACE};
use logstead_sql_catalog::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_catalog::context::{
    AdvisoryLockRow, BackendActivity, CursorRow, InstanceRow, PreparedRow, ReplyDependencies,
    ServerContext, SessionObjects, StatementRow, WorkerRow,
};
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::settings::{FileSetting, SettingRow};
use logstead_sql_catalog::*;
use logstead_sql_func::{CatalogFunction, RandomNumbers, SessionInfo};
use logstead_sql_parse::CheckOption;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Clock, needs_session};
use logstead_sql_types::value::{Datum, SqlType, info, oid};
use logstead_sql_types::{DatabaseOid, RelationId, TypeId};
use logstead_types::{Csn, IndexId, TableId};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A session without a server. It finds relations in the catalog that it was given last; without one every name is that
/// of the same.
pub(crate) struct TestContext {
    pub(crate) catalog: RefCell<Option<Arc<Catalog>>>,
    /// The database that it is in.
    pub(crate) database: Cell<&'static str>,
}

impl TestContext {
    pub(crate) fn new() -> TestContext {
        TestContext {
            catalog: RefCell::default(),
            database: Cell::new("postgres"),
        }
    }
}

impl PartialContext for TestContext {
    fn clock(&self) -> Result<&dyn Clock> {
        Ok(self)
    }
    fn search_path(&self) -> Vec<String> {
        vec!["public".to_owned()]
    }
    fn relation_by_name(&self, name: &str) -> Result<Option<RelationId>> {
        match &*self.catalog.borrow() {
            Some(catalog) => calls::relation_by_text(
                name,
                NameLookup {
                    catalog,
                    search_path: &["public".to_owned()],
                    session: &ContextAdapter(self),
                },
            ),
            None => Ok(Some(RelationId::new(1))),
        }
    }
    fn random(&self) -> Result<&dyn RandomNumbers> {
        Ok(self)
    }
    fn session_info(&self) -> Result<&dyn SessionInfo> {
        Ok(self)
    }
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies> {
        Ok(self)
    }
    fn session_objects(&self) -> Result<&dyn SessionObjects> {
        Ok(self)
    }
    fn server(&self) -> Result<&dyn ServerContext> {
        Ok(self)
    }
}

impl Clock for TestContext {
    fn transaction_time(&self) -> Result<i64> {
        Ok(0)
    }
    fn statement_time(&self) -> Result<i64> {
        Ok(0)
    }
    fn clock_time(&self) -> Result<i64> {
        Ok(0)
    }
}

impl RandomNumbers for TestContext {
    fn random_u64(&self) -> u64 {
        4
    }
    fn session_u64(&self) -> u64 {
        4
    }
    fn seed(&self, _: u64) {}
}

impl SessionInfo for TestContext {
    fn database(&self) -> &str {
        self.database.get()
    }
    fn session_user(&self) -> String {
        "postgres".to_owned()
    }
    fn current_user(&self) -> String {
        "postgres".to_owned()
    }
    fn backend_pid(&self) -> i32 {
        1
    }
    fn trigger_depth(&self) -> i32 {
        0
    }
    fn listening_channels(&self) -> Vec<Arc<str>> {
        Vec::new()
    }
}

impl ReplyDependencies for TestContext {
    fn reads_sequences(&self) {}
    fn rests_on_commits_below(&self, _: Csn) {}
}

impl SessionObjects for TestContext {
    fn settings(&self) -> Vec<SettingRow> {
        Vec::new()
    }
    fn prepared_statements(&self) -> Vec<PreparedRow> {
        Vec::new()
    }
    fn cursors(&self) -> Vec<CursorRow> {
        Vec::new()
    }
}

impl ServerContext for TestContext {
    fn autoanalyzed(&self, _: RelationId) -> Option<AutoanalyzeEntry> {
        None
    }
    fn terminate_sessions(&self, _: DatabaseOid) -> Result<()> {
        needs_session("other sessions")
    }
    fn file_settings(&self) -> Result<Vec<FileSetting>> {
        Ok(Vec::new())
    }
    fn advisory_locks(&self) -> Vec<AdvisoryLockRow> {
        Vec::new()
    }
    fn activity(&self) -> Vec<BackendActivity> {
        Vec::new()
    }
    fn workers_held(&self) -> Vec<WorkerRow> {
        Vec::new()
    }
    fn instances(&self) -> Vec<InstanceRow> {
        Vec::new()
    }
    fn statement_statistics(&self) -> Vec<StatementRow> {
        Vec::new()
    }
}

fn column(name: &str, ty: SqlType) -> Column {
    Column {
        name: name.to_owned(),
        ty,
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

/// A database with a table `"T x"` (a integer primary key, b varchar(3) default, dropped, d numeric) and a sequence.
pub(crate) fn sample() -> Catalog {
    let mut catalog = crate::pg_catalog::system_catalog().database(DatabaseOid::new(5), "postgres");
    let mut columns = vec![
        Column {
            not_null: true,
            sequence: Some(RelationId::new(20_001)),
            identity: Some(true),
            ..column("a", SqlType::of(oid::INT4))
        },
        Column {
            default: Some("'x'::character varying".to_owned()),
            missing: Datum::Text("x".into()),
            ..column(
                "b",
                SqlType {
                    oid: oid::VARCHAR,
                    typmod: 7,
                },
            )
        },
        Column {
            dropped: true,
            ..column("........pg.dropped.3........", SqlType::of(oid::INT4))
        },
        column(
            "d",
            SqlType {
                oid: oid::NUMERIC,
                typmod: ((10 << 16) | 2) + 4,
            },
        ),
        column("e", SqlType::of(oid::TEXT_ARRAY)),
    ];
    columns[3].not_null = true;
    let key = |position, desc| IndexColumn {
        key: IndexKey::Column(position),
        desc,
        nulls_first: desc,
    };
    let index = |oid, name: &str, primary, columns| {
        let name = name.to_owned();
        Arc::new(IndexDef {
            oid,
            name,
            table: RelationId::new(20_000),
            storage: IndexId(oid.get()),
            unique: primary,
            primary,
            nulls_not_distinct: false,
            include: Vec::new(),
            predicate: None,
            computed: Vec::new(),
            invalid: None,
            deferrable: false,
            columns,
        })
    };
    catalog.put_relation(Arc::new(Relation {
        oid: RelationId::new(20_000),
        name: "T x".to_owned(),
        schema: PG_PUBLIC_NAMESPACE,
        schema_name: "public".to_owned(),
        kind: RelationKind::Table,
        columns,
        indexes: vec![
            index(
                RelationId::new(20_002),
                "T x_pkey",
                true,
                vec![key(0, false)],
            ),
            index(
                RelationId::new(20_003),
                "by_b",
                false,
                vec![key(1, true), key(3, false)],
            ),
        ],
        constraints: vec![
            Arc::new(Constraint::new(
                20_004,
                "T x_pkey",
                ConstraintKind::PrimaryKey(RelationId::new(20_002)),
            )),
            Arc::new(Constraint::new(
                20_005,
                "ck",
                ConstraintKind::Check("(a > 0)".into()),
            )),
        ],
        storage: TableId(20_000),
        schema_version: 3,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    }));
    let def = SequenceDef {
        ty: oid::INT4,
        start: 1,
        increment: 1,
        min: 1,
        max: 99,
        cache: 1,
        cycle: false,
    };
    catalog.put_relation(Arc::new(Relation {
        oid: RelationId::new(20_001),
        name: "s".to_owned(),
        schema: PG_PUBLIC_NAMESPACE,
        schema_name: "public".to_owned(),
        kind: RelationKind::Sequence(def),
        columns: Vec::new(),
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: TableId(20_001),
        schema_version: 0,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    }));
    let source = ViewSource {
        object: ViewObject::Relation(RelationId::new(20_000)),
        schema: "public".to_owned(),
        name: "T x".to_owned(),
        columns: vec![(0, "a".to_owned()), (1, "was b".to_owned())],
        used: vec![1],
    };
    let query = format!("SELECT \"was b\" AS b FROM {}", source_name(0));
    let view = View::new(20_007, query, vec![source], Some(CheckOption::Local));
    catalog.put_relation(Arc::new(Relation {
        oid: RelationId::new(20_006),
        name: "v".to_owned(),
        schema: PG_PUBLIC_NAMESPACE,
        schema_name: "public".to_owned(),
        kind: RelationKind::View(Arc::new(view)),
        columns: vec![column("b", SqlType::of(oid::VARCHAR))],
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: TableId(20_006),
        schema_version: 0,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    }));
    catalog
        .notes
        .comments
        .insert((PG_CLASS, 20_000, 1), "a column".into());
    let databases = [(5, "postgres"), (16_384, "logstead")];
    let databases = databases.map(|(oid, name)| Database::new(DatabaseOid::new(oid), name));
    catalog.notes.databases = Arc::new(databases.into_iter().collect());
    catalog
}

fn fits(value: &Datum, ty: TypeId) -> bool {
    match value {
        Datum::Null => true,
        Datum::Bool(_) => ty == oid::BOOL,
        Datum::Int2(_) => ty == oid::INT2,
        Datum::Int4(_) => ty == oid::INT4,
        Datum::Int8(_) => ty == oid::INT8,
        Datum::Float4(_) => ty == oid::FLOAT4,
        Datum::Float8(_) => ty == oid::FLOAT8,
        Datum::Oid(_) => [oid::OID, oid::XID, oid::REGPROC, oid::REGTYPE].contains(&ty),
        Datum::Char(_) => ty == oid::CHAR,
        Datum::Text(_) => [oid::TEXT, oid::NAME, oid::VARCHAR, oid::PG_NODE_TREE].contains(&ty),
        Datum::TimestampTz(_) => ty == oid::TIMESTAMPTZ,
        Datum::Interval(_) => ty == oid::INTERVAL,
        Datum::Array(_) => {
            info::by_oid(ty).is_some_and(|t| t.category == 'A' || ty == oid::ANYARRAY)
        }
        _ => false,
    }
}

#[test]
fn rows_have_the_columns_of_their_list() {
    let catalog = sample();
    let session = TestContext::new();
    let cx = VirtualContext {
        catalog: &catalog,
        session: &ContextAdapter(&session),
    };
    let mut oids = std::collections::HashSet::new();
    for table in pg_catalog::tables() {
        assert!(oids.insert(table.oid), "{} shares its OID", table.name);
        for row in (table.rows)(&cx).unwrap() {
            assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            for (value, (column, ty)) in row.iter().zip(table.columns) {
                assert!(fits(value, *ty), "{}.{column}: {value:?}", table.name);
            }
        }
    }
    assert!(catalog.relation(None, "pg_class", &[]).is_some());
    assert!(
        catalog
            .relation(Some("information_schema"), "columns", &[])
            .is_some()
    );
}

fn call(function: CatalogFunction, args: &[Datum]) -> String {
    let catalog = sample();
    let session = TestContext::new();
    match calls::catalog_call(
        function,
        args,
        &VirtualContext {
            catalog: &catalog,
            session: &ContextAdapter(&session),
        },
    ) {
        Ok(Datum::Text(text)) => text.to_string(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn definitions_read_as_in_postgresql() {
    let text = |s: &str| Datum::Text(s.into());
    assert_eq!(
        call(CatalogFunction::GetIndexdef, &[Datum::Oid(20_003)]),
        "CREATE INDEX by_b ON public.\"T x\" USING btree (b DESC, d)"
    );
    assert_eq!(
        call(
            CatalogFunction::GetIndexdef,
            &[Datum::Oid(20_003), Datum::Int4(2), Datum::Bool(true)]
        ),
        "d"
    );
    assert_eq!(
        call(CatalogFunction::GetConstraintdef, &[Datum::Oid(20_005)]),
        "CHECK ((a > 0))"
    );
    assert_eq!(
        call(
            CatalogFunction::GetConstraintdef,
            &[Datum::Oid(20_005), Datum::Bool(true)]
        ),
        "CHECK (a > 0)"
    );
    assert_eq!(
        call(CatalogFunction::GetConstraintdef, &[Datum::Oid(20_004)]),
        "PRIMARY KEY (a)"
    );
    assert_eq!(
        call(
            CatalogFunction::GetSerialSequence,
            &[text("\"T x\""), text("a")]
        ),
        "public.s"
    );
    assert_eq!(
        call(
            CatalogFunction::GetSerialSequence,
            &[text("nope"), text("a")]
        ),
        "42P01: relation \"nope\" does not exist"
    );
    assert_eq!(
        call(
            CatalogFunction::ColDescription,
            &[Datum::Oid(20_000), Datum::Int4(1)]
        ),
        "a column"
    );
    let path = ["public".to_owned()];
    let found = calls::relation_by_text(
        "public.by_b",
        NameLookup {
            catalog: &sample(),
            search_path: &path,
            session: &ContextAdapter(&TestContext::new()),
        },
    );
    assert_eq!(found.unwrap(), Some(RelationId::new(20_003)));
    assert_eq!(
        call(CatalogFunction::TableIsVisible, &[Datum::Oid(20_000)]),
        "Bool(true)"
    );
    assert_eq!(
        call(CatalogFunction::GetUserbyid, &[Datum::Oid(10)]),
        "postgres"
    );
}

#[test]
fn names_are_quoted_when_they_must_be() {
    assert_eq!(text::quote_ident("plain_1"), "plain_1");
    assert_eq!(text::quote_ident("order"), "\"order\"");
    assert_eq!(text::quote_ident("a\"b"), "\"a\"\"b\"");
    assert_eq!(
        text::split_qualified("Public.\"A.b\"").unwrap(),
        ["public", "A.b"]
    );
    assert!(text::split_qualified("a..b").is_err());
}
