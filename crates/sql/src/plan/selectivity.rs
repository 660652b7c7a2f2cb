//! What share of rows a condition lets through.
//!
//! With statistics as PostgreSQL reckons from most common values and a histogram, without them by the constants of `estimate`. A share is a guess: nothing
//! but the choice of a plan depends on it.

use super::estimate;
use super::scan::plain_column;
use super::walk;
use super::{Node, Plan};
use crate::bind::unplanned::is_leakproof_type;
use crate::bind::{Binder, COLUMN_BASE, ColId, Source};
use crate::catalog::{ColumnStatistics, Relation};
use crate::exec;
use crate::expr::Expr;
use crate::func::{self, Comparison};
use crate::value::{Datum, compare, oid};
use std::cmp::Ordering;

/// A column, with what is known of it.
pub(super) struct Variable<'b> {
    known: Option<&'b ColumnStatistics>,
    /// Rows of its relation.
    rows: f64,
    /// No two rows have the same value.
    unique: bool,
    not_null: bool,
    ty: u32,
    /// Row security hides rows of it. What is known is of all rows, so nothing that could tell of hidden values may be tried on it.
    guarded: bool,
    /// The FROM item.
    pub(super) rel: usize,
}

impl<'b> Variable<'b> {
    /// What comparisons by the column's type's own operators may look at.
    fn compared(&self) -> Option<&'b ColumnStatistics> {
        self.known
            .filter(|_| !self.guarded || is_leakproof_type(self.ty))
    }

    /// The same for what other functions say of values, such as LIKE.
    fn matched(self) -> Variable<'b> {
        let known = self.known.filter(|_| !self.guarded);
        Variable { known, ..self }
    }

    /// Different values.
    pub(super) fn distinct(&self) -> f64 {
        if self.unique {
            return self.rows.max(1.0);
        }
        let known = self.known.and_then(|k| k.distinct_of(self.rows));
        known
            .unwrap_or(if self.ty == oid::BOOL {
                2.0
            } else {
                estimate::DISTINCT.min(self.rows)
            })
            .max(1.0)
    }

    pub(super) fn null_share(&self) -> f64 {
        match self.known {
            _ if self.not_null => 0.0,
            Some(known) => f64::from(known.null_share),
            None => 0.0,
        }
    }

    /// Share of rows that equal a value, or one that nobody knows.
    fn equal(&self, value: Option<&Datum>) -> f64 {
        if value.is_some_and(Datum::is_null) {
            return 0.0;
        }
        if self.unique {
            return 1.0 / self.rows.max(1.0);
        }
        let Some(known) = self.compared() else {
            return 1.0 / self.distinct();
        };
        let common: f64 = known.common.iter().map(|(_, f)| f64::from(*f)).sum();
        let null = f64::from(known.null_share);
        match value {
            Some(value) => {
                let same = |v: &Datum| order(v, value) == Some(Ordering::Equal);
                if let Some((_, share)) = known.common.iter().find(|(v, _)| same(v)) {
                    return f64::from(*share);
                }
                let others = self.distinct() - known.common.len() as f64;
                let each = (1.0 - common - null).max(0.0) / others.max(1.0);
                let least = known.common.last().map_or(1.0, |(_, f)| f64::from(*f));
                each.min(least)
            }
            None => {
                let most = known.common.first().map_or(1.0, |(_, f)| f64::from(*f));
                ((1.0 - null) / self.distinct()).min(most)
            }
        }
    }

    /// Share of rows for which `value op constant` holds; `None` if nothing is known.
    fn side(&self, op: Comparison, value: &Datum) -> Option<f64> {
        let known = self.compared()?;
        let holds = |v: &Datum| {
            let ordering = order(v, value)?;
            Some(match op {
                Comparison::Lt => ordering.is_lt(),
                Comparison::Le => ordering.is_le(),
                Comparison::Gt => ordering.is_gt(),
                Comparison::Ge => ordering.is_ge(),
                Comparison::Eq => ordering.is_eq(),
                Comparison::Ne => ordering.is_ne(),
            })
        };
        let (mut common, mut within) = (0.0, 0.0);
        for (v, share) in &known.common {
            common += f64::from(*share);
            if holds(v)? {
                within += f64::from(*share);
            }
        }
        let rest = (1.0 - common - f64::from(known.null_share)).max(0.0);
        let below = match below(&known.bounds, value) {
            Some(below) => below,
            // Nothing is left, or nothing is known of it.
            None if known.common.is_empty() => return None,
            None => 0.5,
        };
        let share = match op {
            Comparison::Lt | Comparison::Le => below,
            _ => 1.0 - below,
        };
        Some((within + rest * share).clamp(0.0, 1.0))
    }
}

/// The order of two values that can be compared.
fn order(a: &Datum, b: &Datum) -> Option<Ordering> {
    use Datum as D;
    // A guess may take all texts for char(n), whose blanks at the end do not count.
    if let (D::Text(a), D::Text(b)) = (a, b) {
        return Some(a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')));
    }
    let integer = |d: &Datum| matches!(d, D::Int2(_) | D::Int4(_) | D::Int8(_));
    let float = |d: &Datum| matches!(d, D::Float4(_) | D::Float8(_));
    let alike = std::mem::discriminant(a) == std::mem::discriminant(b)
        || (integer(a) && integer(b))
        || (float(a) && float(b));
    alike.then(|| compare::compare(a, b))
}

/// Share of a histogram's rows below a value.
fn below(bounds: &[Datum], value: &Datum) -> Option<f64> {
    let (first, last) = (bounds.first()?, bounds.last()?);
    if order(first, value)? != Ordering::Less {
        return Some(0.0);
    }
    if order(last, value)? == Ordering::Less {
        return Some(1.0);
    }
    let at = bounds.partition_point(|b| order(b, value) == Some(Ordering::Less));
    let (low, high) = (bounds.get(at.checked_sub(1)?)?, bounds.get(at)?);
    let within = within(low, high, value).unwrap_or(0.5);
    Some(((at - 1) as f64 + within.clamp(0.0, 1.0)) / (bounds.len() - 1) as f64)
}

/// How far a value stands from one bound to the next.
fn within(low: &Datum, high: &Datum, value: &Datum) -> Option<f64> {
    let (low, high, value) = match (low, high, value) {
        (Datum::Text(l), Datum::Text(h), Datum::Text(v)) => {
            let same = l.bytes().zip(h.bytes()).take_while(|(a, b)| a == b).count();
            (digits(l, same), digits(h, same), digits(v, same))
        }
        _ => (number(low)?, number(high)?, number(value)?),
    };
    (high > low).then(|| (value - low) / (high - low))
}

/// A text behind what its bounds have in common, as a fraction.
fn digits(text: &str, skip: usize) -> f64 {
    let mut share = 1.0;
    let bytes = text.bytes().skip(skip).take(8);
    bytes.fold(0.0, |sum, byte| {
        share /= 256.0;
        sum + f64::from(byte) * share
    })
}

fn number(datum: &Datum) -> Option<f64> {
    Some(match datum {
        Datum::Int2(v) => f64::from(*v),
        Datum::Int4(v) | Datum::Date(v) => f64::from(*v),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => *v as f64,
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Oid(v) => f64::from(*v),
        Datum::Numeric(v) => v.to_f64(),
        Datum::Interval(v) => v.span() as f64,
        _ => return None,
    })
}

/// What a range on a column has, of two comparisons.
#[derive(Default)]
struct Range {
    column: ColId,
    low: Option<(f64, bool)>,
    high: Option<(f64, bool)>,
    null: f64,
}

impl Binder<'_> {
    /// Rows of a stored table.
    pub(crate) fn table_rows(&self, table: &Relation) -> f64 {
        // It is asked again and again for each condition.
        if let Some((oid, rows)) = self.rows_known.get()
            && oid == table.oid
        {
            return rows;
        }
        let rows = (self.cx.rows_of)(table);
        let rows = match self.cx.catalog.statistics.contains_key(&table.oid) {
            true => rows.max(1.0),
            false => estimate::rows_unknown(table, rows),
        };
        self.rows_known.set(Some((table.oid, rows)));
        rows
    }

    /// A column behind casts that change nothing.
    pub(super) fn variable(&self, expr: &Expr) -> Option<Variable<'_>> {
        let id = plain_column(expr)?;
        let rel = self.info(id).rel;
        let item = self.rels.get(rel)?;
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
            Source::Table(table) => {
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
            Source::Virtual(relation, table) => {
                // Numbers of objects are unique, in the system's own relations.
                let unique = table
                    .columns
                    .get(position)
                    .is_some_and(|(n, _)| *n == "oid");
                unknown(estimate::virtual_rows((self.cx.rows_of)(relation)), unique)
            }
            Source::Plan(Some(plan)) => unknown(plan.rows, is_unique(plan, position)),
            Source::Cte { rows, .. } => unknown(*rows, false),
            Source::Plan(None) | Source::Query(_) | Source::Function { .. } => {
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
                share *= estimate::RANGE;
                continue;
            };
            let variable = self.variable(column);
            let constant = self.compared_with(value, column);
            let known = variable
                .as_ref()
                .zip(constant.as_ref())
                .and_then(|(v, constant)| v.side(op, constant));
            let side = Some((known.unwrap_or(estimate::RANGE), known.is_some()));
            let at = ranges.iter().position(|r| r.column == id);
            let at = at.unwrap_or_else(|| {
                ranges.push(Range {
                    column: id,
                    null: variable.map_or(0.0, |v| v.null_share()),
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
                        estimate::BETWEEN
                    } else {
                        both.max(1e-10)
                    }
                }
                (Some(_), Some(_)) => estimate::BETWEEN,
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
                Expr::Column(..) | Expr::Outer { .. } | Expr::Param(..) | Expr::Subquery(_)
            )
        });
        if varies || walk::is_volatile(expr) {
            return None;
        }
        let cx = exec::EvalContext {
            params: &[],
            session: self.cx.session,
        };
        exec::eval(expr, &[], &cx).ok()
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
                        None => estimate::EQUAL,
                    })
                    .sum();
                complement(
                    share.min(1.0),
                    *negated,
                    variable.map_or(0.0, |v| v.null_share()),
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
                    None => estimate::EQUAL,
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
                    Some(v) if v.known.is_some() => v.null_share(),
                    _ => estimate::NULL,
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
            Expr::Subquery(_) => 0.5,
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
                Some(Comparison::Eq) => estimate::EQUAL,
                Some(Comparison::Ne) => 1.0 - estimate::EQUAL,
                _ => estimate::RANGE,
            };
        };
        let Some(variable) = self.variable(column) else {
            return match op {
                Comparison::Eq => estimate::EQUAL,
                Comparison::Ne => 1.0 - estimate::EQUAL,
                _ => estimate::RANGE,
            };
        };
        // Two columns of different items: a join's share.
        if let (Some(a), Some(b)) = (
            args.first().and_then(|e| self.variable(e)),
            args.get(1).and_then(|e| self.variable(e)),
        ) && a.rel != b.rel
        {
            let equal =
                (1.0 - a.null_share()) * (1.0 - b.null_share()) / a.distinct().max(b.distinct());
            return match op {
                Comparison::Eq => equal,
                Comparison::Ne => 1.0 - equal,
                _ => estimate::RANGE,
            };
        }
        let constant = self.compared_with(value, column);
        match op {
            Comparison::Eq => variable.equal(constant.as_ref()),
            Comparison::Ne => {
                (1.0 - variable.equal(constant.as_ref()) - variable.null_share()).max(0.0)
            }
            _ => constant
                .and_then(|value| variable.side(op, &value))
                .unwrap_or(estimate::RANGE),
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
            _ => return estimate::FUNCTION,
        }
        let [left, pattern] = args else {
            return estimate::MATCH;
        };
        let Some(Datum::Text(text)) = self.constant(pattern) else {
            return complement(estimate::MATCH, negated, 0.0);
        };
        let like = !name.contains("regex");
        let variable = self.variable(left).map(Variable::matched);
        let guess = if like {
            self.pattern_share(&text, variable.as_ref())
        } else {
            estimate::MATCH
        };
        let Some(known) = variable.as_ref().and_then(|v| v.known) else {
            return complement(guess, negated, 0.0);
        };
        match self.tried(condition, known) {
            Some((share, weight)) => {
                let null = f64::from(known.null_share);
                let common: f64 = known.common.iter().map(|(_, f)| f64::from(*f)).sum();
                let rest = (1.0 - null - common).max(0.0);
                let guess = complement(guess, negated, 0.0);
                let hits = share.0 + rest * (share.1 * weight + guess * (1.0 - weight));
                hits.clamp(0.0001, 0.9999)
            }
            None => complement(guess, negated, f64::from(known.null_share)),
        }
    }

    /// LIKE by the look of its pattern, as PostgreSQL guesses.
    fn pattern_share(&self, pattern: &str, variable: Option<&Variable<'_>>) -> f64 {
        let wild = |c: char| matches!(c, '%' | '_' | '\\');
        if !pattern.contains(wild) {
            return variable.map_or(estimate::EQUAL, |v| v.equal(Some(&Datum::text(pattern))));
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
                Some((low + high - 1.0 + v.null_share()).max(1e-4))
            });
            sides.unwrap_or(estimate::MATCH)
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

    /// Tries a condition over one column on what is known of it: the share of all rows among common values, the share of the histogram's bounds,
    /// and how far the latter is to be trusted.
    fn tried(&self, condition: &Expr, known: &ColumnStatistics) -> Option<((f64, f64), f64)> {
        let Expr::Call { function, args, ty } = condition else {
            return None;
        };
        let cx = exec::EvalContext {
            params: &[],
            session: self.cx.session,
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
                exec::eval(&call, &[], &cx).ok()?,
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
                    let mut distinct = v.distinct() + f64::from(u8::from(v.null_share() > 0.0));
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
            groups *= estimate::DISTINCT;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(known: &ColumnStatistics) -> Variable<'_> {
        Variable {
            known: Some(known),
            rows: 1_000.0,
            unique: false,
            not_null: false,
            ty: oid::INT4,
            guarded: false,
            rel: 0,
        }
    }

    fn known() -> ColumnStatistics {
        ColumnStatistics {
            position: 0,
            ty: oid::INT4,
            null_share: 0.1,
            width: 4,
            distinct: 41.0,
            common: vec![(Datum::Int4(7), 0.5)],
            bounds: (0..=4).map(|i| Datum::Int4(i * 10)).collect(),
            correlation: None,
        }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    #[test]
    fn a_value_is_common_or_one_of_the_rest() {
        let known = known();
        let v = variable(&known);
        near(v.equal(Some(&Datum::Int4(7))), 0.5);
        near(v.equal(Some(&Datum::Int8(7))), 0.5);
        near(v.equal(Some(&Datum::Int4(8))), 0.4 / 40.0);
        near(v.equal(Some(&Datum::Null)), 0.0);
        near(v.equal(None), 0.9 / 41.0);
    }

    #[test]
    fn a_side_is_what_the_histogram_has_of_it() {
        let known = known();
        let v = variable(&known);
        let side = |op, value| v.side(op, &Datum::Int4(value)).unwrap();
        // Half of the rest, and the common value.
        near(side(Comparison::Lt, 20), 0.5 + 0.4 * 0.5);
        near(side(Comparison::Ge, 20), 0.4 * 0.5);
        // A quarter of a part.
        near(side(Comparison::Gt, 25), 0.4 * (1.0 - 2.5 / 4.0));
        near(side(Comparison::Lt, -1), 0.0);
        near(side(Comparison::Gt, 50), 0.0);
        assert_eq!(v.side(Comparison::Lt, &Datum::text("x")), None);
    }

    #[test]
    fn blanks_at_the_end_do_not_count() {
        let padded = Datum::text("BUILDING  ");
        assert_eq!(
            order(&padded, &Datum::text("BUILDING")),
            Some(Ordering::Equal)
        );
        assert_eq!(order(&padded, &Datum::text("CAR")), Some(Ordering::Less));
    }

    #[test]
    fn texts_stand_between_bounds_by_their_bytes() {
        let bounds = [Datum::text("aaa"), Datum::text("aaz")];
        let at = |text: &str| below(&bounds, &Datum::text(text)).unwrap();
        assert!(at("aab") < at("aam") && at("aam") < at("aay"));
        near(at("a"), 0.0);
        near(at("ab"), 1.0);
    }
}
