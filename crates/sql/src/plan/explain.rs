//! EXPLAIN: a plan as text, in PostgreSQL's layout.

use super::explain_expr::{Names, expr_text, qualified};
use super::{
    AggregateCall, JoinKind, KeyRange, Node, Plan, Probe, SetOpKind, SortKey, WindowCall,
    WindowFunction,
};
use crate::catalog::IndexKey;
use crate::exec::{NodeStats, children};
use crate::expr::{Expr, Subquery};
use std::fmt::Write as _;
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
}

impl Default for ExplainOptions<'_> {
    fn default() -> Self {
        ExplainOptions {
            costs: true,
            verbose: false,
            stats: None,
            timing: true,
        }
    }
}

/// The lines of EXPLAIN.
pub fn explain(plan: &Plan, options: &ExplainOptions<'_>) -> Vec<String> {
    let mut explainer = Explainer {
        options,
        lines: Vec::new(),
        next: 0,
        qualify: tables(plan) > 1,
        subplan_count: 0,
    };
    explainer.node(plan, 0, "", &[]);
    explainer.lines
}

/// Number of relations in a plan: with more than one, columns are shown with their table.
fn tables(plan: &Plan) -> usize {
    let own = usize::from(matches!(
        plan.node,
        Node::SeqScan(_)
            | Node::IndexScan { .. }
            | Node::VirtualScan { .. }
            | Node::FunctionScan { .. }
            | Node::CteScan { .. }
    ));
    own + children(plan).into_iter().map(tables).sum::<usize>()
}

struct Explainer<'o> {
    options: &'o ExplainOptions<'o>,
    lines: Vec<String>,
    /// Place of the next node in `stats`.
    next: usize,
    qualify: bool,
    subplan_count: usize,
}

impl Explainer<'_> {
    /// Prints a node. `outer` are the names of enclosing rows, innermost first.
    fn node(&mut self, plan: &Plan, depth: usize, prefix: &str, outer: &[Names]) {
        let stats = self
            .options
            .stats
            .map(|all| all.get(self.next).copied().unwrap_or_default());
        self.next += 1;
        // Projections and WITH are not nodes of their own in PostgreSQL's eyes.
        match &plan.node {
            Node::Project { input, exprs } if !self.options.verbose => {
                self.node(input, depth, prefix, outer);
                let mut subplans = Vec::new();
                exprs
                    .iter()
                    .for_each(|e| collect_subplans(e, &mut subplans));
                let own = self.names(input);
                return self.subplans(subplans, own, depth, outer);
            }
            _ => {}
        }
        let indent = if depth == 0 {
            String::new()
        } else {
            format!("{}->  ", " ".repeat(depth * 6 - 4))
        };
        let mut line = format!("{indent}{prefix}{}", title(plan));
        if self.options.costs {
            let width = plan
                .columns
                .iter()
                .map(|c| width_of(c.ty.oid))
                .sum::<usize>();
            let _ = write!(
                line,
                "  (cost={:.2}..{:.2} rows={:.0} width={width})",
                startup(plan),
                plan.cost,
                plan.rows.max(1.0)
            );
        }
        if let Some(stats) = stats {
            if stats.loops == 0 {
                line.push_str(" (never executed)");
            } else if self.options.timing {
                let per_loop = stats.time_us as f64 / 1000.0 / stats.loops as f64;
                let _ = write!(
                    line,
                    " (actual time={:.3}..{per_loop:.3} rows={} loops={})",
                    0.0,
                    stats.rows / stats.loops,
                    stats.loops
                );
            } else {
                let _ = write!(
                    line,
                    " (actual rows={} loops={})",
                    stats.rows / stats.loops,
                    stats.loops
                );
            }
        }
        self.lines.push(line);
        let detail = " ".repeat(if depth == 0 { 2 } else { depth * 6 + 2 });
        let mut subplans: Vec<Arc<Subquery>> = Vec::new();
        self.details(plan, &detail, outer, &mut subplans);
        self.inputs(plan, depth, outer);
        let own = self.input_names(plan);
        self.subplans(subplans, own, depth, outer);
    }

    /// The plans of subqueries in a node's expressions, which see a row of `own` names.
    fn subplans(
        &mut self,
        subplans: Vec<Arc<Subquery>>,
        own: Names,
        depth: usize,
        outer: &[Names],
    ) {
        let detail = " ".repeat(if depth == 0 { 2 } else { depth * 6 + 2 });
        for subquery in subplans {
            self.subplan_count += 1;
            self.lines
                .push(format!("{detail}SubPlan {}", self.subplan_count));
            let mut inner = vec![own.clone()];
            inner.extend(outer.iter().cloned());
            // Subqueries of expressions are not measured.
            let options = ExplainOptions {
                stats: None,
                ..*self.options
            };
            let mut explainer = Explainer {
                options: &options,
                lines: Vec::new(),
                next: 0,
                qualify: self.qualify,
                subplan_count: self.subplan_count,
            };
            explainer.node(&subquery.plan, depth + 1, "", &inner);
            self.subplan_count = explainer.subplan_count;
            self.lines.append(&mut explainer.lines);
        }
    }

    fn inputs(&mut self, plan: &Plan, depth: usize, outer: &[Names]) {
        match &plan.node {
            Node::NestedLoop {
                left,
                right,
                lateral,
                ..
            } => {
                self.node(left, depth + 1, "", outer);
                if *lateral {
                    let mut inner = vec![self.names(left)];
                    inner.extend(outer.iter().cloned());
                    self.node(right, depth + 1, "", &inner);
                } else {
                    self.node(right, depth + 1, "", outer);
                }
            }
            Node::With {
                slot,
                definition,
                recursive,
                body,
            } => {
                self.node(definition, depth + 1, &format!("CTE {slot}: "), outer);
                if let Some((term, _)) = recursive {
                    self.node(
                        term,
                        depth + 1,
                        &format!("CTE {slot} (recursive term): "),
                        outer,
                    );
                }
                self.node(body, depth + 1, "", outer);
            }
            _ => {
                for child in children(plan) {
                    self.node(child, depth + 1, "", outer);
                }
            }
        }
    }

    fn line(&mut self, indent: &str, label: &str, text: &str) {
        self.lines.push(format!("{indent}{label}: {text}"));
    }

    fn details(
        &mut self,
        plan: &Plan,
        indent: &str,
        outer: &[Names],
        subplans: &mut Vec<Arc<Subquery>>,
    ) {
        let input = self.input_names(plan);
        let print = |expr: &Expr, subplans: &mut Vec<Arc<Subquery>>| {
            collect_subplans(expr, subplans);
            expr_text(expr, &input, outer)
        };
        if self.options.verbose {
            let names = self.names(plan).join(", ");
            if !names.is_empty() {
                self.line(indent, "Output", &names);
            }
        }
        match &plan.node {
            Node::SeqScan(scan) => {
                if let Some(filter) = &scan.filter {
                    let text = print(filter, subplans);
                    self.line(indent, "Filter", &text);
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
                if let Some(text) = range_text(range, &columns, &input, outer) {
                    self.line(indent, "Index Cond", &text);
                }
                if let Some(filter) = &scan.filter {
                    let text = print(filter, subplans);
                    self.line(indent, "Filter", &text);
                }
            }
            Node::VirtualScan {
                filter: Some(filter),
                ..
            } => {
                let text = print(filter, subplans);
                self.line(indent, "Filter", &text);
            }
            Node::Filter { condition, .. } => {
                let text = print(condition, subplans);
                self.line(indent, "Filter", &text);
            }
            Node::NestedLoop {
                condition: Some(condition),
                ..
            } => {
                let text = print(condition, subplans);
                self.line(indent, "Join Filter", &text);
            }
            Node::HashJoin {
                left,
                right,
                left_keys,
                right_keys,
                condition,
                ..
            } => {
                let (l, r) = (self.names(left), self.names(right));
                let pairs: Vec<String> = left_keys
                    .iter()
                    .zip(right_keys)
                    .map(|(a, b)| {
                        format!(
                            "({} = {})",
                            expr_text(a, &l, outer),
                            expr_text(b, &r, outer)
                        )
                    })
                    .collect();
                let text = if pairs.len() == 1 {
                    pairs.join("")
                } else {
                    format!("({})", pairs.join(" AND "))
                };
                self.line(indent, "Hash Cond", &text);
                if let Some(condition) = condition {
                    let text = print(condition, subplans);
                    self.line(indent, "Join Filter", &text);
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
                if let Some(sets) = sets {
                    let text: Vec<String> = keys.iter().map(|k| print(k, subplans)).collect();
                    // The largest first, as PostgreSQL has them; a set without keys needs no hash.
                    for set in sets.sets.iter().rev() {
                        let keys: Vec<&str> = set
                            .iter()
                            .filter_map(|key| text.get(*key))
                            .map(String::as_str)
                            .collect();
                        match keys.is_empty() {
                            true => self.line(indent, "Group Key", "()"),
                            false => self.line(indent, "Hash Key", &keys.join(", ")),
                        }
                    }
                } else if !keys.is_empty() {
                    let text: Vec<String> = keys.iter().map(|k| print(k, subplans)).collect();
                    self.line(indent, "Group Key", &text.join(", "));
                }
            }
            Node::Sort { keys, input: below } => {
                let text: Vec<String> = keys
                    .iter()
                    .map(|k| sort_key(k, below, &input, outer))
                    .collect();
                self.line(indent, "Sort Key", &text.join(", "));
            }
            Node::DistinctOn { keys, .. } => {
                let text: Vec<String> = keys.iter().map(|k| print(k, subplans)).collect();
                self.line(indent, "Distinct Key", &text.join(", "));
            }
            Node::Window { window, .. } => window.exprs(&mut |e| collect_subplans(e, subplans)),
            Node::ProjectSet { exprs, .. } | Node::Project { exprs, .. } => {
                exprs.iter().for_each(|e| collect_subplans(e, subplans));
            }
            Node::Insert(insert) => {
                if let Some(conflict) = &insert.conflict {
                    let action = if conflict.update.is_some() {
                        "UPDATE"
                    } else {
                        "NOTHING"
                    };
                    self.line(indent, "Conflict Resolution", action);
                    if !conflict.indexes.is_empty() {
                        let names: Vec<&str> =
                            conflict.indexes.iter().map(|i| i.name.as_str()).collect();
                        self.line(indent, "Conflict Arbiter Indexes", &names.join(", "));
                    }
                }
            }
            _ => {}
        }
    }

    /// Names of the row a node's expressions see.
    fn input_names(&self, plan: &Plan) -> Names {
        match &plan.node {
            Node::SeqScan(_) | Node::IndexScan { .. } | Node::VirtualScan { .. } => {
                self.names(plan)
            }
            Node::NestedLoop { left, right, .. } | Node::HashJoin { left, right, .. } => {
                let mut names = self.names(left);
                names.extend(self.names(right));
                names
            }
            Node::With { body, .. } => self.names(body),
            _ => children(plan)
                .first()
                .map(|c| self.names(c))
                .unwrap_or_default(),
        }
    }

    /// Names of a node's output columns.
    fn names(&self, plan: &Plan) -> Names {
        match &plan.node {
            Node::SeqScan(scan) | Node::IndexScan { scan, .. } => {
                let mut names: Names = scan
                    .columns
                    .iter()
                    .filter_map(|&p| scan.table.columns.get(p))
                    .map(|c| qualified(&scan.alias, &c.name, self.qualify))
                    .collect();
                if scan.row_id {
                    names.extend(["ctid".to_owned(), "xmin".to_owned()]);
                }
                names
            }
            Node::VirtualScan {
                table,
                columns,
                alias,
                ..
            } => columns
                .iter()
                .filter_map(|&p| table.columns.get(p))
                .map(|(name, _)| qualified(alias, name, self.qualify))
                .collect(),
            Node::Project { input, exprs } | Node::ProjectSet { input, exprs } => {
                let names = self.names(input);
                exprs.iter().map(|e| expr_text(e, &names, &[])).collect()
            }
            Node::Aggregate {
                input,
                keys,
                aggregates,
                sets,
            } => {
                let names = self.names(input);
                let keys: Names = keys.iter().map(|k| expr_text(k, &names, &[])).collect();
                let calls = sets.iter().flat_map(|sets| &sets.calls).map(|asked| {
                    let asked = asked.iter().filter_map(|key| keys.get(*key));
                    let asked: Vec<&str> = asked.map(String::as_str).collect();
                    format!("GROUPING({})", asked.join(", "))
                });
                let calls: Names = calls.collect();
                let aggregates = aggregates.iter().map(|a| aggregate_text(a, &names));
                keys.iter()
                    .cloned()
                    .chain(aggregates)
                    .chain(calls)
                    .collect()
            }
            Node::Window { input, window } => {
                let mut names = self.names(input);
                let calls = window.calls.iter().map(|call| window_text(call, &names));
                let calls: Names = calls.collect();
                names.extend(calls);
                names
            }
            Node::NestedLoop {
                left, right, kind, ..
            }
            | Node::HashJoin {
                left, right, kind, ..
            } => {
                let mut names = self.names(left);
                if !super::build::is_half(*kind) {
                    names.extend(self.names(right));
                }
                names
            }
            Node::Filter { input, .. }
            | Node::Sort { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct(input)
            | Node::DistinctOn { input, .. }
            | Node::LockRows { input, .. } => self.names(input),
            Node::With { body, .. } => self.names(body),
            Node::FunctionScan { alias, .. } => plan
                .columns
                .iter()
                .map(|c| qualified(alias, &c.name, self.qualify))
                .collect(),
            _ => plan.columns.iter().map(|c| c.name.clone()).collect(),
        }
    }
}

fn collect_subplans(expr: &Expr, out: &mut Vec<Arc<Subquery>>) {
    if let Expr::Subquery(subquery) = expr {
        out.push(subquery.clone());
    }
    super::walk::children(expr, &mut |e| collect_subplans(e, out));
}

fn title(plan: &Plan) -> String {
    let on = |name: &str, alias: &str| {
        if name == alias {
            format!(" on {name}")
        } else {
            format!(" on {name} {alias}")
        }
    };
    match &plan.node {
        Node::OneRow => "Result".to_owned(),
        Node::Values(_) => "Values Scan".to_owned(),
        Node::SeqScan(scan) => format!("Seq Scan{}", on(&scan.table.name, &scan.alias)),
        Node::IndexScan {
            scan,
            index,
            reverse,
            ..
        } => format!(
            "Index Scan{} using {}{}",
            if *reverse { " Backward" } else { "" },
            index.name,
            on(&scan.table.name, &scan.alias)
        ),
        Node::VirtualScan { table, alias, .. } => format!("Seq Scan{}", on(table.name, alias)),
        Node::FunctionScan {
            function, alias, ..
        } => format!("Function Scan{}", on(function.name, alias)),
        Node::ProjectSet { .. } => "ProjectSet".to_owned(),
        Node::Filter { .. } | Node::Project { .. } => "Result".to_owned(),
        Node::NestedLoop { kind, .. } => format!("Nested Loop{}", join_words(*kind, false)),
        Node::HashJoin { kind, .. } => format!("Hash{}", join_words(*kind, true)),
        Node::Aggregate {
            sets: Some(sets), ..
        } => match sets.sets.iter().filter(|set| set.is_empty()).count() {
            0 => "HashAggregate".to_owned(),
            empty if empty == sets.sets.len() => "Aggregate".to_owned(),
            _ => "MixedAggregate".to_owned(),
        },
        Node::Aggregate { keys, .. } => {
            if keys.is_empty() {
                "Aggregate".to_owned()
            } else {
                "HashAggregate".to_owned()
            }
        }
        Node::Sort { .. } => "Sort".to_owned(),
        Node::Window { .. } => "WindowAgg".to_owned(),
        Node::Limit { .. } => "Limit".to_owned(),
        Node::Distinct(_) => "HashAggregate".to_owned(),
        Node::DistinctOn { .. } => "Unique".to_owned(),
        Node::SetOp { kind, all, .. } => match (kind, all) {
            (SetOpKind::Union, _) => "Append".to_owned(),
            (SetOpKind::Intersect, false) => "HashSetOp Intersect".to_owned(),
            (SetOpKind::Intersect, true) => "HashSetOp Intersect All".to_owned(),
            (SetOpKind::Except, false) => "HashSetOp Except".to_owned(),
            (SetOpKind::Except, true) => "HashSetOp Except All".to_owned(),
        },
        Node::With { recursive, .. } => {
            if recursive.is_some() {
                "With Recursive".to_owned()
            } else {
                "With".to_owned()
            }
        }
        Node::CteScan { slot } => format!("CTE Scan on CTE {slot}"),
        Node::LockRows { .. } => "LockRows".to_owned(),
        Node::Insert(insert) => format!("Insert on {}", insert.table.name),
        Node::Update(update) => format!("Update on {}", update.table.name),
        Node::Delete(delete) => format!("Delete on {}", delete.table.name),
        Node::Merge(merge) => format!("Merge on {}", merge.table.name),
    }
}

fn join_words(kind: JoinKind, hash: bool) -> &'static str {
    match (kind, hash) {
        (JoinKind::Inner, true) => " Join",
        (JoinKind::Inner, false) => "",
        (JoinKind::Left, _) => " Left Join",
        (JoinKind::Right, _) => " Right Join",
        (JoinKind::Full, _) => " Full Join",
        (JoinKind::Semi, _) => " Semi Join",
        (JoinKind::Anti, _) => " Anti Join",
    }
}

/// Cost before the first row: everything below a node that must see all its input.
fn startup(plan: &Plan) -> f64 {
    match &plan.node {
        Node::Sort { input, .. } | Node::Aggregate { input, .. } => input.cost,
        Node::Distinct(input) => input.cost,
        Node::HashJoin { right, .. } => right.cost,
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Window { input, .. }
        | Node::Limit { input, .. } => startup(input),
        _ => 0.0,
    }
}

fn width_of(ty: u32) -> usize {
    match crate::value::info::by_oid(ty) {
        Some(info) if info.len > 0 => usize::try_from(info.len).unwrap_or(32),
        _ => 32,
    }
}

fn range_text(
    range: &KeyRange,
    columns: &[String],
    input: &Names,
    outer: &[Names],
) -> Option<String> {
    let mut parts = Vec::new();
    let name = |i: usize| columns.get(i).map_or("?", String::as_str);
    for (i, probe) in range.equal.iter().enumerate() {
        parts.push(match probe {
            Probe::Value(key) => format!("({} = {})", name(i), expr_text(key, input, outer)),
            Probe::Null => format!("({} IS NULL)", name(i)),
            Probe::Any(any) => format!("({} = ANY ({}))", name(i), expr_text(any, input, outer)),
        });
    }
    let next = range.equal.len();
    let sides = [(&range.lower, ">"), (&range.upper, "<")];
    for (edge, op) in sides {
        let Some(edge) = edge else { continue };
        let or_equal = if edge.inclusive { "=" } else { "" };
        let keys: Vec<String> = edge
            .keys
            .iter()
            .map(|key| expr_text(key, input, outer))
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
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(format!("({})", parts.join(" AND "))),
    }
}

fn sort_key(key: &SortKey, below: &Plan, input: &Names, outer: &[Names]) -> String {
    let mut text = expr_text(&key.expr, input, outer);
    // As PostgreSQL prints what is computed below.
    if is_computed(&key.expr, below) {
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

/// Whether an expression over a node's row is more than a column of a relation.
fn is_computed(expr: &Expr, below: &Plan) -> bool {
    let &Expr::Column(index, _) = expr else {
        return !matches!(expr, Expr::Outer { .. });
    };
    let column = |index| Expr::Column(index, expr.ty());
    match &below.node {
        Node::Project { input, exprs } | Node::ProjectSet { input, exprs } => {
            exprs.get(index).is_some_and(|e| is_computed(e, input))
        }
        Node::Aggregate { input, keys, .. } => {
            keys.get(index).is_none_or(|key| is_computed(key, input))
        }
        Node::Window { input, .. } => {
            index >= crate::exec::width(input) || is_computed(expr, input)
        }
        Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } => {
            is_computed(expr, input)
        }
        Node::NestedLoop { left, right, .. } | Node::HashJoin { left, right, .. } => {
            let width = crate::exec::width(left);
            match index.checked_sub(width) {
                None => is_computed(expr, left),
                Some(index) => is_computed(&column(index), right),
            }
        }
        _ => false,
    }
}

fn aggregate_text(call: &AggregateCall, input: &Names) -> String {
    let args: Vec<String> = call.args.iter().map(|a| expr_text(a, input, &[])).collect();
    let args = if args.is_empty() {
        "*".to_owned()
    } else {
        args.join(", ")
    };
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    format!("{}({distinct}{args})", call.aggregate.name)
}

fn window_text(call: &WindowCall, input: &Names) -> String {
    let args: Vec<String> = call.args.iter().map(|a| expr_text(a, input, &[])).collect();
    let args = match call.function {
        WindowFunction::Aggregate(_) if args.is_empty() => "*".to_owned(),
        _ => args.join(", "),
    };
    let filter = call.filter.as_ref().map_or_else(String::new, |filter| {
        format!(" FILTER (WHERE {})", expr_text(filter, input, &[]))
    });
    format!("{}({args}){filter} OVER (?)", call.function.name())
}
