//! What share of rows a condition lets through.
//!
//! With statistics as PostgreSQL reckons from most common values and a histogram, without them by the constants of
//! `cost`. A share is a guess: nothing but the choice of a plan depends on it. Equality with a value and ranges, by
//! most common values and histogram, are in `variable`.

mod variable;

use crate::planner::Planner;
use crate::query::expr::Expr;
use crate::query::plain_column;
use crate::query::{COLUMN_BASE, ColId, RelSource};
use crate::{Node, Plan, cost, walk};
use logstead_sql_catalog::{ColumnStatistics, Relation};
use logstead_sql_func as func;
use logstead_sql_func::Comparison;
use logstead_sql_types::value::{Datum, oid};
pub(super) use variable::Variable;

/// What a range on a column has, of two comparisons.
#[derive(Default)]
struct Range {
    column: ColId,
    low: Option<(f64, bool)>,
    high: Option<(f64, bool)>,
    null: f64,
}

impl Planner<'_> {
    /// Rows of a stored table.
    pub(crate) fn table_rows(&self, table: &Relation) -> f64 {
        // It is asked again and again for each condition.
        if let Some((oid, rows)) = self.range.rows_known.get()
            && oid == table.oid
        {
            return rows;
        }
        let rows = (self.cx.rows_of)(table);
        let rows = match self.cx.catalog.statistics.contains_key(&table.oid) {
            true => rows.max(1.0),
            false => cost::rows_unknown(table, rows),
        };
        self.range.rows_known.set(Some((table.oid, rows)));
        rows
    }

    /// A column behind casts that change nothing.
    pub(super) fn variable(&self, expr: &Expr) -> Option<Variable<'_>> {
        let id = plain_column(expr)?;
        let rel = self.info(id).rel;
        let item = self.range.rels.get(rel)?;
        let position = id.checked_sub(item.first)?;
        let unknown = |rows: f64, unique: bool| Variable {
            known: None,
            rows,
            unique,
            not_null: false,
            ty: expr.ty().oid,
            guarded: false,
            rel,
        };
        Some(match &item.source {
            RelSource::Table(table) => {
                let column = table.columns.get(position)?;
                let unique = table.indexes.iter().any(|index| {
                    index.unique
                        && index.predicate.is_none()
                        && matches!(index.columns.as_slice(), [c] if c.position() == Some(position))
                });
                let found = self.cx.catalog.statistics.get(&table.oid);
                Variable {
                    known: found.and_then(|f| f.column(position, column.ty.oid)),
                    rows: self.table_rows(table),
                    unique,
                    not_null: column.not_null,
                    ty: column.ty.oid,
                    guarded: !item.guard.is_empty(),
                    rel,
                }
            }
            RelSource::Virtual(relation, table) => {
                // Numbers of objects are unique, in the system's own relations.
                let unique = table
                    .columns
                    .get(position)
                    .is_some_and(|(n, _)| *n == "oid");
                unknown(cost::virtual_rows((self.cx.rows_of)(relation)), unique)
            }
            RelSource::Plan(Some(plan)) => unknown(plan.rows, is_unique(plan, position)),
            RelSource::Cte { slot } => unknown(self.range.cte_rows(*slot), false),
            RelSource::Plan(None) | RelSource::Query(_) | RelSource::Function { .. } => {
                unknown(100.0, false)
            }
        })
    }

    /// Share of rows that all conditions let through.
    pub(crate) fn share<'e>(&self, conditions: impl Iterator<Item = &'e Expr>, rows: f64) -> f64 {
        let mut share = 1.0;
        let mut ranges: Vec<Range> = Vec::new();
        for condition in conditions {
            let Some((column, op, value)) = self.comparison_of(condition) else {
                share *= self.selectivity(condition, rows);
                continue;
            };
            let upper = match op {
                Comparison::Lt | Comparison::Le => true,
                Comparison::Gt | Comparison::Ge => false,
                Comparison::Eq | Comparison::Ne => {
                    share *= self.selectivity(condition, rows);
                    continue;
                }
            };
            let Some(id) = plain_column(column) else {
                share *= cost::RANGE;
                continue;
            };
            let variable = self.variable(column);
            let constant = self.compared_with(value, column);
            let known = variable
                .as_ref()
                .zip(constant.as_ref())
                .and_then(|(v, constant)| v.side(op, constant));
            let side = Some((known.unwrap_or(cost::RANGE), known.is_some()));
            let at = ranges.iter().position(|r| r.column == id);
            let at = at.unwrap_or_else(|| {
                ranges.push(Range {
                    column: id,
                    null: variable.map_or(0.0, |v| v.null_frac()),
                    ..Range::default()
                });
                ranges.len() - 1
            });
            let range = &mut ranges[at];
            let slot = if upper {
                &mut range.high
            } else {
                &mut range.low
            };
            match slot {
                // The narrower of two counts.
                Some(old) if old.0 <= side.map_or(1.0, |s| s.0) => {}
                _ => *slot = side,
            }
        }
        for range in ranges {
            share *= match (range.low, range.high) {
                (Some((low, true)), Some((high, true))) => {
                    let both = low + high - 1.0 + range.null;
                    if both < -0.01 {
                        cost::BETWEEN
                    } else {
                        both.max(1e-10)
                    }
                }
                (Some(_), Some(_)) => cost::BETWEEN,
                (Some((one, _)), None) | (None, Some((one, _))) => one,
                (None, None) => 1.0,
            };
        }
        share
    }

    /// `column op value`, turned round if it has to be.
    fn comparison_of<'e>(&self, condition: &'e Expr) -> Option<(&'e Expr, Comparison, &'e Expr)> {
        let Expr::Call { function, args, .. } = condition else {
            return None;
        };
        let op = match func::operator_class(function.oid) {
            Some((op, _, _)) => op,
            None => compared_days(function.name)?,
        };
        let [a, b] = args.as_slice() else {
            return None;
        };
        if plain_column(a).is_some() {
            return Some((a, op, b));
        }
        let turned = match op {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        };
        plain_column(b).map(|_| (b, turned, a))
    }

    /// The value that a column is compared with, if it has one already, as one of the column's type.
    fn compared_with(&self, value: &Expr, column: &Expr) -> Option<Datum> {
        const DAY_US: i64 = 86_400_000_000;
        Some(match self.constant(value)? {
            Datum::Timestamp(us) if column.ty().oid == oid::DATE => {
                Datum::Date(i32::try_from(us.div_euclid(DAY_US)).ok()?)
            }
            value => value,
        })
    }

    /// The value of an expression that has one already.
    fn constant(&self, expr: &Expr) -> Option<Datum> {
        if let Expr::Const(value, _) = expr {
            return Some(value.clone());
        }
        let varies = walk::any(expr, &|e| {
            matches!(
                e,
                Expr::Column(..)
                    | Expr::Outer { .. }
                    | Expr::Param(..)
                    | Expr::Subquery(_)
                    | Expr::SubLink(_)
            )
        });
        if varies || walk::is_volatile(expr) {
            return None;
        }
        (self.cx.evaluate)(expr, self.cx.session).ok()
    }

    /// Share of `rows` rows for which a condition holds.
    pub(crate) fn selectivity(&self, condition: &Expr, rows: f64) -> f64 {
        let share = match condition {
            Expr::Const(Datum::Bool(true), _) => 1.0,
            Expr::Const(..) => 0.0,
            Expr::Call { function, args, .. } => {
                if func::operator_class(function.oid).is_some() {
                    return self.compared(condition, rows);
                }
                self.called(condition, function.name, args)
            }
            Expr::InList {
                left,
                list,
                negated,
                ..
            } => {
                let variable = self.variable(left);
                let share: f64 = list
                    .iter()
                    .map(|item| match &variable {
                        Some(v) => v.equal(self.constant(item).as_ref()),
                        None => cost::EQUAL,
                    })
                    .sum();
                complement(
                    share.min(1.0),
                    *negated,
                    variable.map_or(0.0, |v| v.null_frac()),
                )
            }
            Expr::ArrayCompare {
                left,
                array,
                op,
                all: false,
            } if matches!(func::operator_class(op.oid), Some((Comparison::Eq, _, _))) => {
                let variable = self.variable(left);
                let each = |value: Option<&Datum>| match &variable {
                    Some(v) => v.equal(value),
                    None => cost::EQUAL,
                };
                let share = match (self.constant(array), &**array) {
                    (Some(Datum::Array(array)), _) => {
                        array.items.iter().map(|v| each(Some(v))).sum()
                    }
                    (_, Expr::Array(items, _)) => items.len() as f64 * each(None),
                    // Nobody knows how long it is.
                    _ => 10.0 * each(None),
                };
                f64::min(share, 1.0)
            }
            Expr::ArrayCompare { .. } => 0.05,
            Expr::And(all) => self.share(all.iter(), rows),
            Expr::Or(all) => all.iter().fold(0.0, |sum, c| {
                let one = self.selectivity(c, rows);
                sum + one - sum * one
            }),
            Expr::Not(inner) => 1.0 - self.selectivity(inner, rows),
            Expr::IsNull(arg, negated) => {
                let null = match self.variable(arg) {
                    Some(v) if v.not_null => 0.0,
                    Some(v) if v.known.is_some() => v.null_frac(),
                    _ => cost::NULL,
                };
                if *negated { 1.0 - null } else { null }
            }
            Expr::IsBool {
                arg,
                value: Some(true),
                negated: false,
            } => self.selectivity(arg, rows),
            Expr::Column(id, ty) if *id >= COLUMN_BASE && ty.oid == oid::BOOL => {
                let variable = self.variable(condition).filter(|v| v.known.is_some());
                variable.map_or(0.5, |v| v.equal(Some(&Datum::Bool(true))))
            }
            Expr::Subquery(_) | Expr::SubLink(_) => 0.5,
            _ => 0.5,
        };
        share.clamp(0.0, 1.0)
    }

    /// The same of a comparison by an operator.
    fn compared(&self, condition: &Expr, _rows: f64) -> f64 {
        let Expr::Call { function, args, .. } = condition else {
            return 0.5;
        };
        let op = func::operator_class(function.oid).map(|(op, _, _)| op);
        let Some((column, op, value)) = self.comparison_of(condition) else {
            return match op {
                Some(Comparison::Eq) => cost::EQUAL,
                Some(Comparison::Ne) => 1.0 - cost::EQUAL,
                _ => cost::RANGE,
            };
        };
        let Some(variable) = self.variable(column) else {
            return match op {
                Comparison::Eq => cost::EQUAL,
                Comparison::Ne => 1.0 - cost::EQUAL,
                _ => cost::RANGE,
            };
        };
        // Two columns of different items: a join's share.
        if let (Some(a), Some(b)) = (
            args.first().and_then(|e| self.variable(e)),
            args.get(1).and_then(|e| self.variable(e)),
        ) && a.rel != b.rel
        {
            let equal =
                (1.0 - a.null_frac()) * (1.0 - b.null_frac()) / a.distinct().max(b.distinct());
            return match op {
                Comparison::Eq => equal,
                Comparison::Ne => 1.0 - equal,
                _ => cost::RANGE,
            };
        }
        let constant = self.compared_with(value, column);
        match op {
            Comparison::Eq => variable.equal(constant.as_ref()),
            Comparison::Ne => {
                (1.0 - variable.equal(constant.as_ref()) - variable.null_frac()).max(0.0)
            }
            _ => constant
                .and_then(|value| variable.side(op, &value))
                .unwrap_or(cost::RANGE),
        }
    }

    /// The same of a call that is no comparison.
    fn called(&self, condition: &Expr, name: &str, args: &[Expr]) -> f64 {
        let negated = name.contains("nlike") || name.ends_with("ne");
        match name {
            "textlike" | "textnlike" | "namelike" | "namenlike" | "bpcharlike" | "bpcharnlike"
            | "texticlike" | "texticnlike" | "textregexeq" | "textregexne" | "texticregexeq"
            | "texticregexne" | "bpchariclike" | "bpcharicnlike" => {}
            "jsonb_contains" | "jsonb_contained" | "jsonb_exists" | "arraycontains"
            | "arraycontained" | "arrayoverlap" => return 0.01,
            _ => return cost::FUNCTION,
        }
        let [left, pattern] = args else {
            return cost::MATCH;
        };
        let Some(Datum::Text(text)) = self.constant(pattern) else {
            return complement(cost::MATCH, negated, 0.0);
        };
        let like = !name.contains("regex");
        let variable = self.variable(left).map(Variable::matched);
        let guess = if like {
            self.pattern_share(&text, variable.as_ref())
        } else {
            cost::MATCH
        };
        let Some(known) = variable.as_ref().and_then(|v| v.known) else {
            return complement(guess, negated, 0.0);
        };
        match self.tried(condition, known) {
            Some((share, weight)) => {
                let null = f64::from(known.null_frac);
                let common: f64 = known.common.iter().map(|(_, f)| f64::from(*f)).sum();
                let rest = (1.0 - null - common).max(0.0);
                let guess = complement(guess, negated, 0.0);
                let hits = share.0 + rest * (share.1 * weight + guess * (1.0 - weight));
                hits.clamp(0.0001, 0.9999)
            }
            None => complement(guess, negated, f64::from(known.null_frac)),
        }
    }

    /// LIKE by the look of its pattern, as PostgreSQL guesses.
    fn pattern_share(&self, pattern: &str, variable: Option<&Variable<'_>>) -> f64 {
        let wild = |c: char| matches!(c, '%' | '_' | '\\');
        if !pattern.contains(wild) {
            return variable.map_or(cost::EQUAL, |v| v.equal(Some(&Datum::text(pattern))));
        }
        let end = pattern.find(wild).unwrap_or(pattern.len());
        let (prefix, rest) = pattern.split_at(end);
        let prefix_share = if prefix.is_empty() {
            1.0
        } else {
            let upto = format!("{prefix}\u{10ffff}");
            let sides = variable.and_then(|v| {
                let low = v.side(Comparison::Ge, &Datum::text(prefix))?;
                let high = v.side(Comparison::Lt, &Datum::text(upto.as_str()))?;
                Some((low + high - 1.0 + v.null_frac()).max(1e-4))
            });
            sides.unwrap_or(cost::MATCH)
        };
        let mut share: f64 = 1.0;
        for c in rest.trim_start_matches('%').chars() {
            share *= match c {
                '%' => 5.0,
                '_' => 0.9,
                '\\' => 1.0,
                _ => 0.2,
            };
        }
        prefix_share * share.min(1.0)
    }

    /// Tries a condition over one column on what is known of it: the share of all rows among common values, the share
    /// of the histogram's bounds, and how far the latter is to be trusted.
    fn tried(&self, condition: &Expr, known: &ColumnStatistics) -> Option<((f64, f64), f64)> {
        let Expr::Call { function, args, ty } = condition else {
            return None;
        };
        let holds = |value: &Datum| {
            let mut args = args.clone();
            let first = args.first_mut()?;
            *first = Expr::Const(value.clone(), first.ty());
            let call = Expr::Call {
                function,
                args,
                ty: *ty,
            };
            Some(matches!(
                (self.cx.evaluate)(&call, self.cx.session).ok()?,
                Datum::Bool(true)
            ))
        };
        let mut common = 0.0;
        for (value, share) in &known.common {
            if holds(value)? {
                common += f64::from(*share);
            }
        }
        // Fewer bounds say nothing; the first and the last are no values like others.
        const LEAST: usize = 10;
        let bounds = known.bounds.get(1..known.bounds.len().saturating_sub(1));
        let bounds = bounds.unwrap_or_default();
        if bounds.len() < LEAST {
            return Some(((common, 0.0), 0.0));
        }
        let mut hits = 0.0;
        for value in bounds {
            hits += f64::from(u8::from(holds(value)?));
        }
        let weight = (bounds.len() as f64 / 100.0).min(1.0);
        Some(((common, hits / bounds.len() as f64), weight))
    }

    /// How many groups so many rows make.
    pub(crate) fn groups<'e>(&self, keys: impl Iterator<Item = &'e Expr>, rows: f64) -> f64 {
        // By FROM item: keys of one item do not multiply beyond its rows.
        let mut items: Vec<(usize, f64, f64, f64, usize)> = Vec::new();
        let mut groups = 1.0;
        for key in keys {
            let mut ids = Vec::new();
            walk::column_ids(key, &mut ids);
            if ids.is_empty() {
                continue;
            }
            if ids.len() == 1 || plain_column(key).is_some() {
                let ty = key.ty();
                let column = Expr::Column(ids[0], self.info(ids[0]).ty);
                if let Some(v) = self.variable(&column) {
                    let mut distinct = v.distinct() + f64::from(u8::from(v.null_frac() > 0.0));
                    if ty.oid == oid::BOOL {
                        distinct = distinct.min(2.0);
                    }
                    match items.iter_mut().find(|i| i.0 == v.rel) {
                        Some(item) => {
                            item.1 *= distinct;
                            item.3 = item.3.max(distinct);
                            item.4 += 1;
                        }
                        None => items.push((v.rel, distinct, v.rows, distinct, 1)),
                    }
                    continue;
                }
            }
            groups *= cost::DISTINCT;
        }
        for (_, mut distinct, total, most, count) in items {
            if count > 1 {
                // Columns of one row hang together, more or less.
                distinct = distinct.min((total * 0.1).max(most));
            }
            distinct = distinct.min(total);
            if rows < total && distinct > 0.0 {
                distinct *= 1.0 - ((total - rows) / total).powf(total / distinct);
            }
            groups *= distinct.max(1.0);
        }
        groups.min(rows).max(1.0)
    }
}

/// What compares a date with a timestamp is of no operator class.
fn compared_days(function: &str) -> Option<Comparison> {
    Some(match function {
        "date_lt_timestamp" => Comparison::Lt,
        "date_le_timestamp" => Comparison::Le,
        "date_gt_timestamp" => Comparison::Gt,
        "date_ge_timestamp" => Comparison::Ge,
        _ => return None,
    })
}

/// The share of rows for which a condition, or its opposite, holds.
fn complement(share: f64, negated: bool, null: f64) -> f64 {
    if negated {
        (1.0 - share - null).max(0.0)
    } else {
        share
    }
}

/// Whether no two rows of a plan have the same value in a column: it is what they are grouped by.
fn is_unique(plan: &Plan, column: usize) -> bool {
    match &plan.node {
        Node::Project { input, exprs } => match exprs.get(column) {
            Some(Expr::Column(at, _)) => is_unique(input, *at),
            _ => false,
        },
        Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } => {
            is_unique(input, column)
        }
        Node::Aggregate {
            keys, sets: None, ..
        } => keys.len() == 1 && column == 0,
        Node::Distinct(input) => input.columns.len() == 1,
        _ => false,
    }
}
