//! EXPLAIN: a plan as PostgreSQL shows one, as text or as JSON.
//!
//! The plan is read once into a tree of what is to be shown ([`Shown`]); `text` and `json` print that. What is no node
//! in PostgreSQL's eyes is none here: a projection is the output of the node below, a condition over a join or an
//! aggregate is that node's filter, the kept side of a hash join stands under a node `Hash`, WITH is a plan beside the
//! one that reads it.

mod joins;
mod json;
mod names;
mod partitions;
mod text;
mod title;

use super::explain_expr::{Names, expr_text, qualified};
use super::{CursorName, KeyRange, Node, Plan, ScanKey, SetOpKind, SortKey, cost, walk};
use crate::instrumentation::{NodeStats, children};
use crate::query::expr::{Expr, Subquery};
use logstead_sql_catalog::IndexKey;
use logstead_sql_types::value::user::TypeLookup;
use std::sync::Arc;

/// What EXPLAIN shows.
#[derive(Clone, Copy, Debug)]
pub struct ExplainOptions<'s> {
    /// Estimates.
    pub costs: bool,
    /// Output columns of each node.
    pub verbose: bool,
    /// EXPLAIN ANALYZE: statistics by node in pre-order, as `exec` gives them.
    pub stats: Option<&'s [NodeStats]>,
    /// Times beside the counts of ANALYZE.
    pub timing: bool,
    /// There are instances: partitions that are read of divided tables.
    pub partitions: bool,
    /// Of an INSERT only where its rows come from: it belongs to a CREATE TABLE AS.
    pub source_of: bool,
}

impl Default for ExplainOptions<'_> {
    fn default() -> Self {
        ExplainOptions {
            costs: true,
            partitions: false,
            source_of: false,
            verbose: false,
            stats: None,
            timing: true,
        }
    }
}

/// Times of a whole statement, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplainTimes {
    /// Planning it.
    pub planning_ms: Option<f64>,
    /// Running it.
    pub execution_ms: Option<f64>,
}

/// The lines of EXPLAIN.
pub fn explain(plan: &Plan, options: &ExplainOptions<'_>, types: TypeLookup<'_>) -> Vec<String> {
    text::lines(&shown(plan, options, types), options)
}

/// The same as JSON, with the times.
pub fn explain_json(
    plan: &Plan,
    options: &ExplainOptions<'_>,
    times: ExplainTimes,
    types: TypeLookup<'_>,
) -> String {
    json::document(&shown(plan, options, types), options, times)
}

fn shown(plan: &Plan, options: &ExplainOptions<'_>, types: TypeLookup<'_>) -> Shown {
    let mut reader = Reader {
        options,
        types,
        next: 0,
        qualify: options.verbose || tables(plan) > 1,
        subplan_count: 0,
        withs: Vec::new(),
    };
    let mut all = reader.node(plan, &[]);
    match options.source_of && all.inputs.len() == 1 {
        true => all.inputs.remove(0).1,
        false => all,
    }
}

/// Number of relations in a plan: with more than one, columns are shown with their table.
fn tables(plan: &Plan) -> usize {
    let own = usize::from(matches!(
        plan.node,
        Node::SeqScan(_)
            | Node::RowScan { .. }
            | Node::IndexScan { .. }
            | Node::VirtualScan { .. }
            | Node::FunctionScan { .. }
            | Node::RoutineScan { .. }
            | Node::CteScan { .. }
    ));
    own + children(plan).into_iter().map(tables).sum::<usize>()
}

/// What is said of a node beside its cost.
enum Value {
    Text(String),
    List(Vec<String>),
    Flag(bool),
    Count(u64),
}

/// A node to be shown.
struct Shown {
    /// As text has it.
    title: String,
    /// "Node Type" and what says more of it, in the order of JSON.
    kind: Vec<(&'static str, String)>,
    /// What stands behind "Async Capable".
    target: Vec<(&'static str, String)>,
    startup: f64,
    cost: f64,
    rows: f64,
    width: usize,
    stats: Option<NodeStats>,
    output: Vec<String>,
    details: Vec<(&'static str, Value)>,
    /// Each with its relation to this one.
    inputs: Vec<(&'static str, Shown)>,
    /// Plans beside it: relation, name.
    beside: Vec<(&'static str, String, Shown)>,
}

impl Shown {
    fn detail(&mut self, label: &'static str, text: impl Into<String>) {
        self.details.push((label, Value::Text(text.into())));
    }
}

/// Reads a plan.
struct Reader<'o> {
    options: &'o ExplainOptions<'o>,
    /// Types are printed by these.
    types: TypeLookup<'o>,
    /// Place of the next node in the statistics.
    next: usize,
    qualify: bool,
    subplan_count: usize,
    /// Names of the queries of WITH.
    withs: Vec<(usize, Arc<str>)>,
}

/// A node's title and what JSON calls it.
struct Title {
    text: String,
    kind: Vec<(&'static str, String)>,
    target: Vec<(&'static str, String)>,
}

impl Reader<'_> {
    fn stats(&mut self) -> Option<NodeStats> {
        let all = self.options.stats;
        self.next += 1;
        all.map(|all| all.get(self.next - 1).copied().unwrap_or_default())
    }

    /// Reads a node. `outer` are the names of enclosing rows, innermost first.
    fn node(&mut self, plan: &Plan, outer: &[Names]) -> Shown {
        match &plan.node {
            Node::Project { input, exprs } => {
                self.stats();
                let names = self.names(input);
                let output: Names = exprs
                    .iter()
                    .map(|e| expr_text(e, &names, outer, self.types))
                    .collect();
                let mut subplans = Vec::new();
                exprs
                    .iter()
                    .for_each(|e| collect_subplans(e, &mut subplans));
                let mut shown = self.node(input, outer);
                shown.output = output;
                shown.cost = plan.cost;
                shown.width = width(plan);
                self.subplans(&mut shown, subplans, &names, outer);
                shown
            }
            Node::Filter { input, condition }
                if takes_filter(input)
                    && (matches!(input.node, Node::OneRow)
                        || !walk::is_one_time_filter(input, condition)) =>
            {
                let stats = self.stats();
                let mut subplans = Vec::new();
                collect_subplans(condition, &mut subplans);
                let names = self.names(input);
                let mut shown = self.node(input, outer);
                let label = match input.node {
                    Node::OneRow => "One-Time Filter",
                    _ => "Filter",
                };
                shown.detail(label, expr_text(condition, &names, outer, self.types));
                if let (Some(stats), Some(below)) = (stats, shown.stats) {
                    let removed = below.rows.saturating_sub(stats.rows);
                    if removed > 0 && label == "Filter" {
                        let each = removed / below.loops.max(1);
                        let removed = ("Rows Removed by Filter", Value::Count(each));
                        shown.details.push(removed);
                    }
                }
                let detail = shown.stats.map(|below| below.detail);
                shown.stats = stats.or(shown.stats);
                if let (Some(stats), Some(detail)) = (&mut shown.stats, detail) {
                    stats.detail = detail;
                }
                (shown.rows, shown.cost) = (plan.rows, plan.cost);
                self.subplans(&mut shown, subplans, &names, outer);
                shown
            }
            Node::With {
                slot,
                name,
                definition,
                recursive,
                body,
                ..
            } => {
                self.withs.push((*slot, Arc::clone(name)));
                self.stats();
                let definition = match recursive {
                    None => self.node(definition, outer),
                    Some((term, _)) => {
                        let first = self.node(definition, outer);
                        let second = self.node(term, outer);
                        let kind = vec![("Node Type", "Recursive Union".to_owned())];
                        Shown {
                            title: "Recursive Union".to_owned(),
                            kind,
                            target: Vec::new(),
                            startup: 0.0,
                            cost: first.cost + second.cost * 10.0,
                            rows: first.rows + second.rows * 10.0,
                            width: first.width,
                            stats: None,
                            output: first.output.clone(),
                            details: Vec::new(),
                            inputs: vec![("Outer", first), ("Inner", second)],
                            beside: Vec::new(),
                        }
                    }
                };
                let mut shown = self.node(body, outer);
                shown.cost = plan.cost;
                let beside = ("InitPlan", format!("CTE {name}"), definition);
                shown.beside.insert(0, beside);
                shown
            }
            _ => self.own(plan, outer),
        }
    }

    /// A node that PostgreSQL has, too.
    fn own(&mut self, plan: &Plan, outer: &[Names]) -> Shown {
        let stats = self.stats();
        let title = self.title(plan);
        let mut shown = Shown {
            title: title.text,
            kind: title.kind,
            target: title.target,
            startup: startup(plan),
            cost: plan.cost,
            rows: plan.rows,
            width: width(plan),
            stats,
            // Names are made for whoever shows them: a join of many items has many at every level.
            output: match self.options.verbose {
                true => self.names(plan),
                false => Vec::new(),
            },
            details: Vec::new(),
            inputs: Vec::new(),
            beside: Vec::new(),
        };
        let mut subplans: Vec<Arc<Subquery>> = Vec::new();
        self.details(plan, &mut shown, outer, &mut subplans);
        self.inputs(plan, &mut shown, outer);
        if !subplans.is_empty() {
            let own = self.input_names(plan);
            self.subplans(&mut shown, subplans, &own, outer);
        }
        shown
    }

    /// The plans of subqueries in a node's expressions, which see a row of `own` names.
    fn subplans(
        &mut self,
        shown: &mut Shown,
        subplans: Vec<Arc<Subquery>>,
        own: &Names,
        outer: &[Names],
    ) {
        for subquery in subplans {
            self.subplan_count += 1;
            let name = format!("SubPlan {}", self.subplan_count);
            let mut inner = vec![own.clone()];
            inner.extend(outer.iter().cloned());
            // Subqueries of expressions are not measured.
            let options = ExplainOptions {
                stats: None,
                ..*self.options
            };
            let mut reader = Reader {
                options: &options,
                types: self.types,
                next: 0,
                qualify: self.qualify,
                subplan_count: self.subplan_count,
                withs: self.withs.clone(),
            };
            let below = reader.node(&subquery.plan, &inner);
            self.subplan_count = reader.subplan_count;
            shown.beside.push(("SubPlan", name, below));
        }
    }

    fn inputs(&mut self, plan: &Plan, shown: &mut Shown, outer: &[Names]) {
        match &plan.node {
            Node::NestedLoop {
                left,
                right,
                lateral,
                ..
            } => {
                let below = self.node(left, outer);
                shown.inputs.push(("Outer", below));
                let right = if *lateral {
                    let mut inner = vec![self.names(left)];
                    inner.extend(outer.iter().cloned());
                    self.node(right, &inner)
                } else {
                    self.node(right, outer)
                };
                shown.inputs.push(("Inner", right));
            }
            Node::HashJoin { left, right, .. } => {
                let below = self.node(left, outer);
                shown.inputs.push(("Outer", below));
                let below = self.node(right, outer);
                // What is told of the table stands with the table.
                let table = shown
                    .stats
                    .as_mut()
                    .map(|stats| std::mem::take(&mut stats.detail));
                let hash = Shown {
                    title: "Hash".to_owned(),
                    kind: vec![("Node Type", "Hash".to_owned())],
                    target: Vec::new(),
                    startup: below.cost,
                    cost: below.cost,
                    rows: below.rows,
                    width: below.width,
                    stats: below.stats.map(|stats| NodeStats {
                        detail: table.unwrap_or_default(),
                        ..stats
                    }),
                    output: below.output.clone(),
                    details: Vec::new(),
                    inputs: vec![("Outer", below)],
                    beside: Vec::new(),
                };
                shown.inputs.push(("Inner", hash));
            }
            // A chain of UNION ALL is one node.
            Node::SetOp {
                kind: SetOpKind::Union,
                left,
                right,
                ..
            } => {
                for side in [left, right] {
                    let chained = matches!(
                        side.node,
                        Node::SetOp {
                            kind: SetOpKind::Union,
                            all: true,
                            ..
                        }
                    );
                    let below = self.node(side, outer);
                    if chained {
                        shown.inputs.extend(below.inputs);
                    } else {
                        shown.inputs.push(("Member", below));
                    }
                }
            }
            _ => {
                for (at, child) in children(plan).into_iter().enumerate() {
                    let below = self.node(child, outer);
                    let relation = if at == 0 { "Outer" } else { "Inner" };
                    shown.inputs.push((relation, below));
                }
            }
        }
    }

    fn details(
        &mut self,
        plan: &Plan,
        shown: &mut Shown,
        outer: &[Names],
        subplans: &mut Vec<Arc<Subquery>>,
    ) {
        let input = match &plan.node {
            Node::NestedLoop {
                condition: None, ..
            }
            | Node::HashJoin {
                condition: None, ..
            }
            | Node::MergeJoin {
                condition: None, ..
            } => Vec::new(),
            _ => self.input_names(plan),
        };
        let print = |expr: &Expr, subplans: &mut Vec<Arc<Subquery>>| {
            collect_subplans(expr, subplans);
            expr_text(expr, &input, outer, self.types)
        };
        let list = |keys: &[Expr], subplans: &mut Vec<Arc<Subquery>>| -> Vec<String> {
            keys.iter().map(|k| print(k, subplans)).collect()
        };
        match &plan.node {
            Node::SeqScan(scan) => {
                self.partitions(partitions::of_scan(&scan.table), shown);
                if let Some(filter) = scan.filter.condition() {
                    shown.detail("Filter", print(filter, subplans));
                }
            }
            Node::RowScan { scan, cursor } => {
                let cursor = match cursor {
                    CursorName::Known(name) => name.to_string(),
                    CursorName::Param(number) => format!("${}", number + 1),
                };
                shown.detail("TID Cond", format!("CURRENT OF {cursor}"));
                if let Some(filter) = scan.filter.condition() {
                    shown.detail("Filter", print(filter, subplans));
                }
            }
            Node::IndexScan {
                scan, index, range, ..
            } => {
                let columns: Vec<String> = index
                    .columns
                    .iter()
                    .map(|c| match &c.key {
                        IndexKey::Column(_) => {
                            qualified(&scan.alias, c.name(&scan.table), self.qualify)
                        }
                        IndexKey::Expression { text, .. } => text.clone(),
                    })
                    .collect();
                if let Some(text) = self.range_text(range, &columns, &input, outer) {
                    shown.detail("Index Cond", text);
                }
                self.partitions(partitions::of_index(&scan.table, index, range), shown);
                if let Some(filter) = scan.filter.condition() {
                    shown.detail("Filter", print(filter, subplans));
                }
            }
            // WHERE false.
            Node::Values(rows) if rows.is_empty() => shown.detail("One-Time Filter", "false"),
            Node::VirtualScan {
                filter: Some(filter),
                ..
            } => shown.detail("Filter", print(filter, subplans)),
            Node::Filter { input, condition } => {
                let label = match walk::is_one_time_filter(input, condition) {
                    true => "One-Time Filter",
                    false => "Filter",
                };
                shown.detail(label, print(condition, subplans));
            }
            Node::NestedLoop { condition, .. } => {
                shown.details.push(("Inner Unique", Value::Flag(false)));
                if let Some(condition) = condition {
                    shown.detail("Join Filter", print(condition, subplans));
                }
            }
            Node::HashJoin { condition, .. } | Node::MergeJoin { condition, .. } => {
                shown.details.push(("Inner Unique", Value::Flag(false)));
                if let Some((label, pairs)) = self.join_keys(plan, outer) {
                    shown.detail(label, joined(&pairs));
                }
                if let Some(condition) = condition {
                    shown.detail("Join Filter", print(condition, subplans));
                }
            }
            Node::Aggregate {
                keys,
                aggregates,
                sets,
                ..
            } => {
                for call in aggregates {
                    call.args.iter().for_each(|a| collect_subplans(a, subplans));
                }
                let text = list(keys, subplans);
                if let Some(sets) = sets {
                    // The largest first, as PostgreSQL has them; a set without keys needs no hash.
                    for set in sets.sets.iter().rev() {
                        let keys = set.iter().filter_map(|key| text.get(*key)).cloned();
                        let keys: Vec<String> = keys.collect();
                        match keys.is_empty() {
                            true => shown.detail("Group Key", "()"),
                            false => shown.details.push(("Hash Key", Value::List(keys))),
                        }
                    }
                } else if !keys.is_empty() {
                    shown.details.push(("Group Key", Value::List(text)));
                }
            }
            Node::Distinct(_) => {
                let keys = input.clone();
                shown.details.push(("Group Key", Value::List(keys)));
            }
            Node::Sort { keys, input: below } => {
                let text = keys
                    .iter()
                    .map(|k| self.sort_key(k, below, &input, outer))
                    .collect();
                shown.details.push(("Sort Key", Value::List(text)));
            }
            Node::DistinctOn { keys, .. } => {
                keys.iter().for_each(|key| collect_subplans(key, subplans))
            }
            Node::Window { window, .. } => window.exprs(&mut |e| collect_subplans(e, subplans)),
            Node::ProjectSet { exprs, .. } => {
                exprs.iter().for_each(|e| collect_subplans(e, subplans));
            }
            Node::Insert(insert) => {
                if let Some(conflict) = &insert.conflict {
                    let action = if conflict.update.is_some() {
                        "UPDATE"
                    } else {
                        "NOTHING"
                    };
                    shown.detail("Conflict Resolution", action);
                    if !conflict.indexes.is_empty() {
                        let names = conflict.indexes.iter().map(|i| i.name.clone()).collect();
                        let label = "Conflict Arbiter Indexes";
                        shown.details.push((label, Value::List(names)));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether a condition over a node is shown as the node's own.
fn takes_filter(plan: &Plan) -> bool {
    match &plan.node {
        Node::OneRow
        | Node::Values(_)
        | Node::FunctionScan { .. }
        | Node::RoutineScan { .. }
        | Node::CteScan { .. }
        | Node::NestedLoop { .. }
        | Node::HashJoin { .. }
        | Node::MergeJoin { .. }
        | Node::Aggregate { .. } => true,
        Node::Project { input, .. } => takes_filter(input) && !matches!(input.node, Node::OneRow),
        _ => false,
    }
}

fn joined(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        several => format!("({})", several.join(" AND ")),
    }
}

fn collect_subplans(expr: &Expr, out: &mut Vec<Arc<Subquery>>) {
    if let Expr::Subquery(subquery) = expr {
        out.push(subquery.clone());
    }
    super::walk::children(expr, &mut |e| collect_subplans(e, out));
}

/// Cost before the first row: everything below a node that must see all its input.
fn startup(plan: &Plan) -> f64 {
    let first = match &plan.node {
        Node::Sort { input, .. } | Node::Aggregate { input, .. } => input.cost,
        Node::Distinct(input) => input.cost,
        Node::HashJoin { left, right, .. } => right.cost + startup(left),
        Node::NestedLoop { left, .. } => startup(left),
        Node::MergeJoin { left, right, .. } => startup(left) + startup(right),
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Window { input, .. }
        | Node::DistinctOn { input, .. }
        | Node::Limit { input, .. } => startup(input),
        _ => 0.0,
    };
    first.min(plan.cost)
}

fn width(plan: &Plan) -> usize {
    plan.columns.iter().map(|c| cost::width_of(c.ty.oid)).sum()
}

impl Reader<'_> {
    fn range_text(
        &self,
        range: &KeyRange,
        columns: &[String],
        input: &Names,
        outer: &[Names],
    ) -> Option<String> {
        let mut parts = Vec::new();
        let name = |i: usize| columns.get(i).map_or("?", String::as_str);
        for (i, key) in range.equal.iter().enumerate() {
            parts.push(match key {
                ScanKey::Value(key) => format!(
                    "({} = {})",
                    name(i),
                    expr_text(key, input, outer, self.types)
                ),
                ScanKey::Null => format!("({} IS NULL)", name(i)),
                ScanKey::Any(any) => format!(
                    "({} = ANY ({}))",
                    name(i),
                    expr_text(any, input, outer, self.types)
                ),
            });
        }
        let next = range.equal.len();
        let sides = [(&range.lower, ">"), (&range.upper, "<")];
        for (bound, op) in sides {
            let Some(bound) = bound else { continue };
            let or_equal = if bound.inclusive { "=" } else { "" };
            let keys: Vec<String> = bound
                .keys
                .iter()
                .map(|key| expr_text(key, input, outer, self.types))
                .collect();
            let names: Vec<&str> = (next..next + keys.len()).map(name).collect();
            parts.push(match (names.as_slice(), keys.as_slice()) {
                ([name], [key]) => format!("({name} {op}{or_equal} {key})"),
                _ => format!(
                    "(ROW({}) {op}{or_equal} ROW({}))",
                    names.join(", "),
                    keys.join(", ")
                ),
            });
        }
        if range.not_null {
            parts.push(format!("({} IS NOT NULL)", name(next)));
        }
        (!parts.is_empty()).then(|| joined(&parts))
    }

    fn sort_key(&self, key: &SortKey, below: &Plan, input: &Names, outer: &[Names]) -> String {
        let mut text = expr_text(&key.expr, input, outer, self.types);
        // As PostgreSQL prints what is computed below.
        if names::is_computed(&key.expr, below) {
            text = format!("({text})");
        }
        if key.desc {
            text.push_str(" DESC");
        }
        if key.nulls_first != key.desc {
            text.push_str(if key.nulls_first {
                " NULLS FIRST"
            } else {
                " NULLS LAST"
            });
        }
        text
    }
}
