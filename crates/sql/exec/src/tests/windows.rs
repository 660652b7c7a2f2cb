//! Windows over many rows: what they cost, what they keep, and that they stop when they are told to.

use super::world::*;
use crate::{Cancel, CancelReason, Execution, StatementContext, prepare};
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_func::{
    Aggregate, AggregateState, WINDOW_FUNCTIONS, functions_named, resolve_aggregate,
};
use logstead_sql_plan::*;
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, oid};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Rows that the counting aggregate has taken, and taken back.
    static ADDED: Cell<usize> = const { Cell::new(0) };
    static REMOVED: Cell<usize> = const { Cell::new(0) };
    /// What is set then.
    static CANCEL: Arc<Cancel> = Arc::default();
}

/// Ends a statement that can be cancelled when the aggregate has taken this many rows.
const CANCEL_AT: usize = 10_000;

struct Counting {
    rows: i64,
    exact: bool,
}

impl AggregateState for Counting {
    fn add(&mut self, _: &[Datum]) -> Result<()> {
        ADDED.set(ADDED.get() + 1);
        if ADDED.get() == CANCEL_AT {
            CANCEL.with(|cancel| cancel.cancel(CancelReason::User));
        }
        self.rows += 1;
        Ok(())
    }
    fn remove(&mut self, _: &[Datum]) -> Result<bool> {
        REMOVED.set(REMOVED.get() + 1);
        self.rows -= 1;
        Ok(self.exact)
    }
    fn value(&self) -> Result<Datum> {
        Ok(Datum::Int8(self.rows))
    }
}

static EXACT: Aggregate = Aggregate {
    oid: FunctionId::new(1),
    name: "exact",
    args: &[],
    result: oid::INT8,
    start: |_| {
        Box::new(Counting {
            rows: 0,
            exact: true,
        })
    },
    strict: false,
};

static INEXACT: Aggregate = Aggregate {
    oid: FunctionId::new(2),
    name: "inexact",
    args: &[],
    result: oid::INT8,
    start: |_| {
        Box::new(Counting {
            rows: 0,
            exact: false,
        })
    },
    strict: false,
};

fn series(rows: i32) -> Plan {
    let mut named = functions_named("generate_series");
    let function = named.find(|f| f.args == [oid::INT4, oid::INT4]).unwrap();
    let node = Node::FunctionScan {
        function,
        args: vec![int(1), int(rows)],
        ordinality: false,
        alias: "g".into(),
    };
    plan(node, &[INT])
}

fn call(function: WindowFunction, args: Vec<logstead_sql_plan::expr::Expr>) -> WindowCall {
    WindowCall {
        function,
        user: None,
        args,
        filter: None,
        ty: BIGINT,
    }
}

fn rows_frame(start: FrameBound, end: FrameBound) -> WindowFrame {
    WindowFrame {
        units: FrameUnits::Rows,
        start,
        end,
        exclude: FrameExclusion::NoOthers,
    }
}

/// Calls over a window ordered by the only column.
fn window(input: Plan, frame: WindowFrame, calls: Vec<WindowCall>) -> Plan {
    let mut types = vec![INT];
    types.extend(calls.iter().map(|call| call.ty));
    let order = vec![SortKey {
        expr: column(0, INT),
        desc: false,
        nulls_first: false,
    }];
    let window = Window {
        partition: Vec::new(),
        order,
        frame,
        calls,
    };
    let node = Node::Window {
        input: Box::new(input),
        window: Box::new(window),
    };
    plan(node, &types)
}

/// Runs with so much memory, under [`CANCEL`]; the rows, or the SQLSTATE.
fn run_small(plan: Plan, work_mem_bytes: usize) -> Result<Vec<Vec<Datum>>, String> {
    let world = World::new();
    let cancel = CANCEL.with(Arc::clone);
    block_on(async {
        let mut txn = world.begin();
        txn.begin_statement();
        let mut cx = StatementContext {
            txn: &mut txn,
            params: &[],
            session: &ContextAdapter(&TestContext),
            catalog: &world.catalog,
            engine: &world.engine,
            cancel: &cancel,
            events: &mut crate::after_triggers::EventQueue::default(),
            work_mem_bytes,
            spill: None,
        };
        let mut sink = Sink::default();
        let mut execution = Execution::new(Arc::new(prepare(plan)));
        match execution.run(&mut cx, 0, &mut sink).await {
            Ok(_) => Ok(sink.0),
            Err(error) => Err(error.code().as_str().to_owned()),
        }
    })
}

#[test]
fn a_moving_aggregate_takes_each_row_once_if_it_can_take_it_back() {
    let world = World::new();
    let frame = || rows_frame(FrameBound::Preceding(big(99)), FrameBound::CurrentRow);
    for (aggregate, added, removed) in [(&EXACT, 2000, 1900), (&INEXACT, 190_100, 1900)] {
        ADDED.set(0);
        REMOVED.set(0);
        let counted = window(
            series(2000),
            frame(),
            vec![call(WindowFunction::Aggregate(aggregate), Vec::new())],
        );
        let rows = world.rows(counted, &[]);
        let expected = (1..=2000).map(|i| format!("{i} {}", i.min(100)));
        assert_eq!(rows, expected.collect::<Vec<_>>());
        assert_eq!(
            (ADDED.get(), REMOVED.get()),
            (added, removed),
            "{}",
            aggregate.name
        );
    }
}

#[test]
fn a_growing_frame_takes_each_row_once() {
    ADDED.set(0);
    let counted = window(
        series(3000),
        WindowFrame::default(),
        vec![call(WindowFunction::Aggregate(&INEXACT), Vec::new())],
    );
    assert_eq!(World::new().rows(counted, &[]).len(), 3000);
    assert_eq!(ADDED.get(), 3000);
}

#[test]
fn what_streams_keeps_few_rows_and_what_does_not_fails_when_it_keeps_too_many() {
    let sum = resolve_aggregate("sum", &[INT], UserTypes::default().lookup(&[]))
        .unwrap()
        .aggregate;
    let own = |name: &str| {
        let function = WINDOW_FUNCTIONS.iter().find(|f| f.name == name).unwrap();
        WindowFunction::Own(function)
    };
    let over = |frame, last: WindowCall| {
        let calls = vec![
            call(own("row_number"), Vec::new()),
            call(WindowFunction::Aggregate(sum), vec![column(0, INT)]),
            last,
        ];
        window(series(30_000), frame, calls)
    };
    let moving = || rows_frame(FrameBound::Preceding(big(5)), FrameBound::Following(big(5)));
    let lag = || call(own("lag"), vec![column(0, INT), int(3)]);
    let lead = || call(own("lead"), vec![column(0, INT), int(300)]);
    // 30,000 rows are 700 kB; some hundreds have to be enough.
    for (frame, last) in [
        (WindowFrame::default(), lag()),
        (moving(), lag()),
        (moving(), lead()),
    ] {
        let rows = run_small(over(frame, last), 16 << 10).unwrap();
        assert_eq!(rows.len(), 30_000);
        assert_eq!(rows[29_999][1], Datum::Int8(30_000));
    }
    let whole = rows_frame(FrameBound::Unbounded, FrameBound::Unbounded);
    assert_eq!(
        run_small(over(whole, lag()), 16 << 10).unwrap_err(),
        "53200"
    );
    let total = call(own("cume_dist"), Vec::new());
    let total = over(WindowFrame::default(), total);
    assert_eq!(run_small(total, 16 << 10).unwrap_err(), "53200");
}

/// One row's frame may be large: it is left in its middle.
#[test]
fn a_cancelled_statement_does_not_finish_its_frame() {
    ADDED.set(0);
    let whole = rows_frame(FrameBound::Unbounded, FrameBound::Unbounded);
    let calls = vec![call(WindowFunction::Aggregate(&INEXACT), Vec::new())];
    let cancelled = run_small(window(series(100_000), whole, calls), 64 << 20);
    assert_eq!(cancelled.unwrap_err(), "57014");
    assert!(
        ADDED.get() < CANCEL_AT + 10_000,
        "{} rows were taken",
        ADDED.get()
    );
}
