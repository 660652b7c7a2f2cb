//! GROUP BY: keys, grouping sets, GROUPING.

use super::aggregate::alike;
use super::order_by::groupable;
use super::{Binder, Clause, ColId, Frame};
use crate::query::Output;
use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_parse::ast::{self, Expr as Ast, GroupingItem};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// Most grouping sets of a query, and most elements of a CUBE.
const SETS_MAX: usize = 4096;
const CUBE_MAX: usize = 12;
/// Most arguments of GROUPING.
const GROUPING_MAX: usize = 31;

/// What GROUP BY says.
#[derive(Default)]
pub(crate) struct GroupBy {
    /// Each with its identity afterwards.
    pub keys: Vec<(ColId, Expr)>,
    /// `None`: the one set is all keys.
    pub sets: Option<Vec<Vec<usize>>>,
    /// Keys that are one output each and nothing else: constants, since equal ones elsewhere are no keys, and
    /// expressions that an output before has and that are keys as that.
    pub outputs: Vec<(usize, usize)>,
    /// The output that each key is, if it is one.
    named: Vec<Option<usize>>,
    /// Keys whose expression is one of another key.
    again: Vec<usize>,
}

/// GROUPING as it is bound: its arguments are looked for among the keys when those are known.
pub(crate) struct GroupingCall {
    id: ColId,
    args: Vec<(Expr, Option<usize>)>,
}

/// An element of GROUP BY: the sets it stands for, each as keys.
type Sets = Vec<Vec<usize>>;

impl Binder<'_> {
    /// The keys and sets of GROUP BY; `None` without.
    pub(crate) fn group_by(
        &mut self,
        select: &ast::SelectCore,
        outputs: &[Output],
    ) -> Result<Option<GroupBy>> {
        if select.group_clause.is_empty() {
            return Ok(None);
        }
        let mut by = GroupBy::default();
        let mut sets: Sets = vec![Vec::new()];
        let has_sets =
            |item: &GroupingItem| !matches!(item, GroupingItem::Expr(_) | GroupingItem::Empty(_));
        let has_sets = select.group_clause.iter().any(has_sets);
        self.in_clause(Clause::GroupBy, |b| {
            for item in &select.group_clause {
                let own = b.element(item, outputs, &mut by)?;
                if sets.len().saturating_mul(own.len()) > SETS_MAX {
                    return Err(too_many_sets());
                }
                // Every set so far with every set of this element.
                sets = sets
                    .iter()
                    .flat_map(|set| {
                        own.iter().map(move |more| {
                            let mut both = set.clone();
                            both.extend(more.iter().filter(|key| !set.contains(key)));
                            both
                        })
                    })
                    .collect();
            }
            Ok(())
        })?;
        if !has_sets {
            // Where all keys are in the one set, a constant is what it is, and two equal keys are one.
            by.outputs.clear();
            for key in by.again.drain(..).rev() {
                by.keys.remove(key);
            }
            return Ok(Some(by));
        }
        if select.group_distinct {
            let mut seen: Sets = Vec::new();
            sets.retain(|set| {
                let mut sorted = set.clone();
                sorted.sort_unstable();
                let new = !seen.contains(&sorted);
                if new {
                    seen.push(sorted);
                }
                new
            });
        }
        sets.sort_by_key(Vec::len);
        by.sets = Some(sets);
        Ok(Some(by))
    }

    /// The sets that one element of the list stands for.
    fn element(
        &mut self,
        item: &GroupingItem,
        outputs: &[Output],
        by: &mut GroupBy,
    ) -> Result<Sets> {
        Ok(match item {
            GroupingItem::Expr(expr) => vec![self.keys_of(expr, outputs, by)?],
            GroupingItem::Empty(_) => vec![Vec::new()],
            GroupingItem::Rollup(exprs, _) => {
                let parts = self.parts_of(exprs, outputs, by)?;
                let lengths = (0..=parts.len()).rev();
                lengths
                    .map(|length| union(parts.iter().take(length)))
                    .collect()
            }
            GroupingItem::Cube(exprs, location) => {
                let parts = self.parts_of(exprs, outputs, by)?;
                if parts.len() > CUBE_MAX {
                    return Err(SqlError::new(
                        SqlState::TOO_MANY_COLUMNS,
                        format!("CUBE is limited to {CUBE_MAX} elements"),
                    )
                    .at(self.at(*location)));
                }
                let of = |chosen: usize| {
                    let all = parts.iter().enumerate();
                    union(
                        all.filter(|(i, _)| chosen & (1 << i) != 0)
                            .map(|(_, part)| part),
                    )
                };
                (0..1_usize << parts.len()).map(of).collect()
            }
            // What stands in GROUPING SETS stands for itself.
            GroupingItem::Sets(items, _) => {
                let mut sets = Sets::new();
                for item in items {
                    sets.extend(self.element(item, outputs, by)?);
                    refuse_too_many(&sets)?;
                }
                sets
            }
        })
    }

    /// The keys of each element of ROLLUP or CUBE.
    fn parts_of(&mut self, exprs: &[Ast], outputs: &[Output], by: &mut GroupBy) -> Result<Sets> {
        let mut parts = Sets::new();
        for expr in exprs {
            parts.push(self.keys_of(expr, outputs, by)?);
            refuse_too_many(&parts)?;
        }
        Ok(parts)
    }

    /// The keys of an expression or of several in parentheses, added to the keys where they are new.
    fn keys_of(&mut self, item: &Ast, outputs: &[Output], by: &mut GroupBy) -> Result<Vec<usize>> {
        let exprs: Vec<&Ast> = match item {
            Ast::RowExpr(node) if !node.is_explicit => node.args.iter().collect(),
            other => vec![other],
        };
        let mut set: Vec<usize> = Vec::new();
        for expr in exprs {
            let at = self.at(expr.location());
            let (bound, output) = self.group_expr(expr, outputs)?;
            let bound = self.settle(bound)?;
            let constant = output.filter(|_| is_constant(&bound));
            self.refuse_own_windows(&bound, at)?;
            if self.has_own_aggregate(&bound) {
                return Err(SqlError::new(
                    SqlState::GROUPING_ERROR,
                    "aggregate functions are not allowed in GROUP BY",
                )
                .at(at));
            }
            groupable(bound.ty(), at, self.types())?;
            let of_output = |key: usize| by.named.get(key).copied().flatten() == output;
            let mut alike_keys = (0..)
                .zip(&by.keys)
                .filter(|(_, (_, key))| alike(key, &bound))
                .map(|(at, _)| at);
            let again = constant.is_none() && alike_keys.clone().next().is_some();
            let known = match constant {
                Some(_) => (0..by.keys.len())
                    .find(|key| of_output(*key) && by.outputs.iter().any(|(of, _)| of == key)),
                None => alike_keys.find(|key| of_output(*key)),
            };
            let key = match known {
                Some(key) => key,
                None => {
                    let id = match &bound {
                        Expr::Column(id, _) if !again => *id,
                        other => self.computed("", other.ty()),
                    };
                    let key = by.keys.len();
                    by.outputs.extend(
                        output
                            .filter(|_| again || constant.is_some())
                            .map(|o| (key, o)),
                    );
                    by.again.extend(again.then_some(key));
                    by.named.push(output);
                    by.keys.push((id, bound));
                    key
                }
            };
            if !set.contains(&key) {
                set.push(key);
            }
        }
        Ok(set)
    }

    /// An element of GROUP BY, and the output that it is, if it is one.
    fn group_expr(&mut self, item: &Ast, outputs: &[Output]) -> Result<(Expr, Option<usize>)> {
        if let Some(output) = self.output_by_position(item, outputs, "GROUP BY")? {
            let at = outputs.iter().position(|o| o.id == output.id);
            return Ok((output.expr.clone(), at));
        }
        if let Some(name) = item.bare_name() {
            let place = self.at(item.location());
            // A column of FROM comes before an output of the same name; of this query only, not of enclosing ones.
            let top = self.frames.len().saturating_sub(1);
            let outer: Vec<Frame> = self.frames.drain(..top).collect();
            let column = self.find_column(name, place);
            self.frames.splice(0..0, outer);
            if let Some(column) = column? {
                let at = outputs.iter().position(|o| alike(&o.expr, &column));
                return Ok((column, at));
            }
            let named = |(_, o): &(usize, &Output)| *o.column.name == **name;
            let mut hits = outputs.iter().enumerate().filter(named);
            if let Some((at, first)) = hits.next() {
                if hits.any(|(_, other)| !alike(&other.expr, &first.expr)) {
                    return Err(SqlError::new(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("GROUP BY \"{name}\" is ambiguous"),
                    )
                    .at(place));
                }
                return Ok((first.expr.clone(), Some(at)));
            }
        }
        let expr = self.expr(item)?;
        let expr = self.settle(expr)?;
        let at = outputs.iter().position(|o| alike(&o.expr, &expr));
        Ok((expr, at))
    }

    fn has_own_aggregate(&mut self, expr: &Expr) -> bool {
        let Ok(frame) = self.frame() else {
            return false;
        };
        let aggregates = frame.aggregates.iter().map(|(id, _)| *id);
        let ids: Vec<ColId> = aggregates
            .chain(frame.groupings.iter().map(|call| call.id))
            .collect();
        walk::any(
            expr,
            &|e| matches!(e, Expr::Column(id, _) if ids.contains(id)),
        )
    }

    /// GROUPING(...): a bit for each argument, set where the row's grouping set lacks it.
    pub(crate) fn grouping_call(&mut self, node: &ast::GroupingFunc) -> Result<Expr> {
        let at = self.at(node.location);
        if node.args.len() > GROUPING_MAX {
            return Err(SqlError::new(
                SqlState::TOO_MANY_ARGUMENTS,
                "GROUPING must have fewer than 32 arguments",
            )
            .at(at));
        }
        let references: Vec<usize> = self.frames.iter().map(|f| f.references.len()).collect();
        let mut args = self.exprs_at(&node.args)?;
        for (arg, _) in &mut args {
            *arg = self.settle(arg.clone())?;
        }
        for (frame, known) in self.frames.iter_mut().zip(references) {
            frame.references.truncate(known);
        }
        // It belongs to the query that its arguments' columns are of.
        let mut ids = Vec::new();
        args.iter()
            .for_each(|(arg, _)| walk::column_ids(arg, &mut ids));
        let top = self.frames.len().saturating_sub(1);
        let level = self.level_of(&ids).unwrap_or(top);
        let frame = &mut self.frames[level];
        if !frame.clause.allows_aggregates() {
            let words = frame.clause.words();
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                format!("grouping operations are not allowed in {words}"),
            )
            .at(at));
        }
        if frame.in_aggregate {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot be nested",
            )
            .at(at));
        }
        let ty = SqlType::of(oid::INT4);
        let id = self.computed("grouping", ty);
        self.frames[level].groupings.push(GroupingCall { id, args });
        Ok(Expr::Column(id, ty))
    }

    /// The keys that each GROUPING asks about.
    pub(crate) fn grouping_calls(
        &self,
        calls: Vec<GroupingCall>,
        keys: &[(ColId, Expr)],
    ) -> Result<Vec<(ColId, Vec<usize>)>> {
        let place = |(arg, at): (Expr, Option<usize>)| {
            keys.iter().position(|(_, key)| alike(key, &arg)).ok_or_else(|| {
                SqlError::new(
                    SqlState::GROUPING_ERROR,
                    "arguments to GROUPING must be grouping expressions of the associated query level",
                )
                .at(at)
            })
        };
        let asked = |call: GroupingCall| -> Result<(ColId, Vec<usize>)> {
            let keys = call.args.into_iter().map(place).collect::<Result<_>>()?;
            Ok((call.id, keys))
        };
        calls.into_iter().map(asked).collect()
    }
}

fn refuse_too_many(sets: &Sets) -> Result<()> {
    match sets.len() > SETS_MAX {
        true => Err(too_many_sets()),
        false => Ok(()),
    }
}

fn too_many_sets() -> SqlError {
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        format!("too many grouping sets present (maximum {SETS_MAX})"),
    )
}

/// Does it come to a constant before any row is read? Such a key is its output alone; one that a row has is its value
/// wherever that is named.
pub(super) fn is_constant(expr: &Expr) -> bool {
    let varies = |e: &Expr| {
        matches!(
            e,
            Expr::Column(..)
                | Expr::Outer { .. }
                | Expr::Param(..)
                | Expr::Subquery(_)
                | Expr::SubLink(_)
        )
    };
    !walk::any(expr, &varies) && crate::immutable::is_immutable(expr)
}

/// Keys, each once.
fn union<'k>(parts: impl Iterator<Item = &'k Vec<usize>>) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for key in parts.flatten() {
        if !all.contains(key) {
            all.push(*key);
        }
    }
    all
}
