//! Calls over windows: OVER and WINDOW.
//!
//! A call is bound where it stands; its window when everything else of the block is, as in PostgreSQL: the block's
//! windows are then known, and equal ones become one.

use super::aggregate::same;
use super::names::FunctionName;
use super::order_by::{groupable, sortable};
use super::scope::NsColumnSource;
use super::user_aggregate::Named;
use super::{Binder, Clause, ColId};
use crate::query::expr::Expr;
use crate::query::{BoundWindow, Grouping};
use crate::{
    FrameBound, FrameExclusion, FrameUnits, SortKey, WindowCall, WindowFrame, WindowFunction, walk,
};
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{
    self, Expr as Ast, FrameExclusion as Exclusion, FrameMode, FuncCall,
};
use logstead_sql_parse::sort_direction;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// A call whose window is not bound yet.
pub(crate) struct UnboundWindowCall {
    id: ColId,
    call: WindowCall,
    over: ast::WindowDef,
    at: Option<usize>,
}

/// A window as it is written.
struct Written<'w> {
    /// The window it continues.
    base: Option<String>,
    spec: &'w ast::WindowDef,
    exclude: FrameExclusion,
    at: Option<usize>,
}

/// A definition bound; `name` if it is WINDOW's.
struct Definition {
    name: Option<String>,
    window: BoundWindow,
}

/// The names that a WINDOW clause defines.
pub(crate) fn window_names(windows: &[ast::WindowDef]) -> Vec<String> {
    { windows.iter().filter_map(|w| w.name.as_ref()) }
        .map(ToString::to_string)
        .collect()
}

/// What EXCLUDE of a window says.
fn exclusion(spec: &ast::WindowDef) -> FrameExclusion {
    let said = spec.frame.as_ref().map(|frame| frame.exclusion);
    match said.unwrap_or_default() {
        Exclusion::NoOthers => FrameExclusion::NoOthers,
        Exclusion::CurrentRow => FrameExclusion::CurrentRow,
        Exclusion::Group => FrameExclusion::Group,
        Exclusion::Ties => FrameExclusion::Ties,
    }
}

fn windowing(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WINDOWING_ERROR, message)
}

fn refused(message: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn not_there(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("window \"{name}\" does not exist"),
    )
}

impl Binder<'_> {
    /// A call with OVER, or of a function that has to have one.
    pub(crate) fn window_function(
        &mut self,
        written: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<Expr> {
        let frame = self.frame()?;
        let nested = std::mem::replace(&mut frame.in_window, true);
        let sets_before = frame.sets.len();
        let bound = self.window_call(written, function, at);
        let frame = self.frame()?;
        frame.in_window = nested;
        let sets_added = frame.sets.len() != sets_before;
        let (clause, in_aggregate) = (frame.clause, frame.in_aggregate);
        let (call, over) = bound?;
        if sets_added {
            return Err(refused(
                "window function calls cannot contain set-returning function calls",
            )
            .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
            .at(at));
        }
        if in_aggregate && clause != Clause::Filter {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot contain window function calls",
            )
            .at(at));
        }
        if nested {
            return Err(windowing("window function calls cannot be nested").at(at));
        }
        if clause.is_of_window() {
            return Err(windowing("window functions are not allowed in window definitions").at(at));
        }
        if !clause.allows_windows() {
            let words = clause.words();
            return Err(windowing(format!("window functions are not allowed in {words}")).at(at));
        }
        if let Some(wanted) = &over.name
            && !self
                .frame()?
                .window_names
                .iter()
                .any(|name| **name == **wanted)
        {
            return Err(not_there(wanted).at(self.at(over.location)));
        }
        let ty = call.ty;
        // The same call over the same window is one: DISTINCT ON and ORDER BY repeat what the select list says.
        let pending = &self.frame()?.windows;
        if let Some(known) = pending
            .iter()
            .find(|w| w.over == over && same_call(&w.call, &call))
        {
            return Ok(Expr::Column(known.id, ty));
        }
        let id = self.computed(function.name, ty);
        self.frame()?
            .windows
            .push(UnboundWindowCall { id, call, over, at });
        Ok(Expr::Column(id, ty))
    }

    fn window_call(
        &mut self,
        written: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<(WindowCall, ast::WindowDef)> {
        let FunctionName { schema, name, .. } = function;
        let wrong = |message: String| SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at);
        let star = written.agg_star;
        let args = match star {
            true => Vec::new(),
            false => self.plain_args(written, name, at)?,
        };
        let filter = match &written.agg_filter {
            Some(filter) => {
                Some(self.in_clause(Clause::Filter, |b| b.condition_of(filter, "FILTER"))?)
            }
            None => None,
        };
        let named = Named {
            function,
            variadic: false,
            direct: None,
            over: true,
            location: written.location,
            at,
        };
        let mut user = None;
        let args = match self.user_aggregate(&named, args)? {
            Ok(call) => {
                user = Some((call.aggregate, call.result));
                call.args
            }
            Err(args) => args,
        };
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        let system = function.may_be_built_in();
        let (target, wanted, declared, result) = if let Some((_, result)) = &user {
            if args.is_empty() && !star {
                return Err(wrong(format!(
                    "{name}(*) must be used to call a parameterless aggregate function"
                )));
            }
            let all = &func::USER_AGGREGATE;
            (
                WindowFunction::Aggregate(all),
                types.clone(),
                all.args,
                *result,
            )
        } else if system && func::is_window_function(name) {
            let (own, args, result) =
                func::resolve_window_function(name, &types, self.types()).map_err(|e| e.at(at))?;
            (WindowFunction::Own(own), args, own.args, result)
        } else if system && func::is_aggregate(name) {
            if args.is_empty() && !star {
                return Err(wrong(format!(
                    "{name}(*) must be used to call a parameterless aggregate function"
                )));
            }
            let resolved =
                func::resolve_aggregate(name, &types, self.types()).map_err(|e| e.at(at))?;
            let aggregate = resolved.aggregate;
            (
                WindowFunction::Aggregate(aggregate),
                resolved.args,
                aggregate.args,
                resolved.result,
            )
        } else {
            func::resolve_function(schema, name, &types, self.types()).map_err(|e| e.at(at))?;
            return Err(wrong(format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            )));
        };
        let Some(over) = &written.over else {
            return Err(wrong(format!(
                "window function {name} requires an OVER clause"
            )));
        };
        if written.agg_distinct {
            return Err(refused("DISTINCT is not implemented for window functions").at(at));
        }
        if !written.agg_order.is_empty() {
            let message = "aggregate ORDER BY is not implemented for window functions";
            return Err(refused(message).at(at));
        }
        if filter.is_some() && matches!(target, WindowFunction::Own(_)) {
            return Err(
                refused("FILTER is not implemented for non-aggregate window functions").at(at),
            );
        }
        let mut coerced = Vec::with_capacity(args.len());
        for (i, arg) in args.into_iter().enumerate() {
            let target = wanted.get(i).copied().unwrap_or(arg.ty());
            let any = declared.get(i) == Some(&oid::ANY);
            coerced.push(self.argument(arg, target, any, at)?);
        }
        let call = WindowCall {
            function: target,
            user: user.map(|(aggregate, _)| aggregate),
            args: coerced,
            filter,
            ty: match result.oid {
                oid::UNKNOWN => SqlType::of(oid::TEXT),
                _ => result,
            },
        };
        Ok((call, (**over).clone()))
    }

    /// Refuses a call over a window of this block inside `expr`: in GROUP BY, by position or by name.
    pub(crate) fn refuse_own_windows(&mut self, expr: &Expr, at: Option<usize>) -> Result<()> {
        let ids: Vec<ColId> = self.frame()?.windows.iter().map(|w| w.id).collect();
        let own = |e: &Expr| matches!(e, Expr::Column(id, _) if ids.contains(id));
        match walk::any(expr, &own) {
            true => Err(windowing("window functions are not allowed in GROUP BY").at(at)),
            false => Ok(()),
        }
    }

    /// Binds the block's windows, those too that nothing is computed over.
    pub(crate) fn windows(&mut self, named: &[ast::WindowDef]) -> Result<Vec<BoundWindow>> {
        let pending = std::mem::take(&mut self.frame()?.windows);
        let mut known: Vec<Definition> = Vec::new();
        for spec in named {
            let name = spec
                .name
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let at = self.at(spec.location);
            if known.iter().any(|d| d.name.as_ref() == Some(&name)) {
                return Err(windowing(format!("window \"{name}\" is already defined")).at(at));
            }
            let window = self.window(&written(spec, at), true, &known)?;
            known.push(Definition {
                name: Some(name),
                window,
            });
        }
        for UnboundWindowCall { id, call, over, at } in pending {
            let found = match &over.name {
                Some(name) => {
                    let is_it = |d: &Definition| d.name.as_deref() == Some(&**name);
                    let found = known.iter().position(is_it);
                    found.ok_or_else(|| not_there(name).at(self.at(over.location)))?
                }
                None => {
                    let at = self.at(over.location).or(at);
                    let window = self.window(&written(&over, at), false, &known)?;
                    known.push(Definition { name: None, window });
                    known.len() - 1
                }
            };
            known[found].window.calls.push((id, call));
        }
        let mut windows: Vec<BoundWindow> = Vec::new();
        for Definition { window, .. } in known {
            match windows.iter_mut().find(|other| same_window(other, &window)) {
                Some(other) => other.calls.extend(window.calls),
                None => windows.push(window),
            }
        }
        Ok(windows)
    }

    fn window(
        &mut self,
        written: &Written<'_>,
        is_named: bool,
        known: &[Definition],
    ) -> Result<BoundWindow> {
        let Written {
            base,
            spec,
            exclude,
            at,
        } = written;
        let at = *at;
        let base = match base {
            Some(name) => {
                let found = known.iter().find(|d| d.name.as_ref() == Some(name));
                let found = found.ok_or_else(|| not_there(name).at(at))?;
                Some((name, &found.window))
            }
            None => None,
        };
        let mut order: Vec<SortKey> = Vec::new();
        self.in_clause(Clause::WindowOrder, |b| {
            for item in &spec.order_clause {
                let (desc, nulls_first) = sort_direction(&item.dir, item.nulls)?;
                let expr = b.window_key(&item.node, sortable)?;
                if !order.iter().any(|key| same(&key.expr, &expr)) {
                    order.push(SortKey {
                        expr,
                        desc,
                        nulls_first,
                    });
                }
            }
            Ok(())
        })?;
        let mut partition: Vec<Expr> = Vec::new();
        self.in_clause(Clause::WindowPartition, |b| {
            for item in &spec.partition_clause {
                let expr = b.window_key(item, groupable)?;
                if !partition.iter().any(|key| same(key, &expr)) {
                    partition.push(expr);
                }
            }
            Ok(())
        })?;
        let frame = self.written_frame(spec.frame.as_ref(), *exclude, at)?;
        if let Some((name, base)) = base {
            let refuse = |what: &str| {
                Err(windowing(format!(
                    "cannot override {what} clause of window \"{name}\""
                ))
                .at(at))
            };
            if !partition.is_empty() {
                return refuse("PARTITION BY");
            }
            if !order.is_empty() && !base.order.is_empty() {
                return refuse("ORDER BY");
            }
            partition.clone_from(&base.partition);
            let ordered_here = !order.is_empty();
            if !ordered_here {
                order.clone_from(&base.order);
            }
            if !base.frame.is_default() {
                let error = windowing(format!(
                    "cannot copy window \"{name}\" because it has a frame clause"
                ));
                let says_more = is_named || ordered_here || !frame.is_default();
                return Err(match says_more {
                    true => error,
                    false => error.hint("Omit the parentheses in this OVER clause."),
                }
                .at(at));
            }
        }
        let frame = self.frame_offsets(frame, &order, at)?;
        Ok(BoundWindow {
            partition,
            order,
            frame,
            calls: Vec::new(),
        })
    }

    /// A key of a window: always an expression over the row, never an output's name or position.
    fn window_key(
        &mut self,
        item: &Ast,
        check: fn(SqlType, Option<usize>, TypeLookup<'_>) -> Result<()>,
    ) -> Result<Expr> {
        let at = self.at(item.location());
        let expr = self.expr(item)?;
        let expr = self.settle(expr)?;
        check(expr.ty(), at, self.types())?;
        Ok(expr)
    }

    /// A frame as it is written: offsets as they are bound, of any type.
    fn written_frame(
        &mut self,
        frame: Option<&ast::WindowFrame>,
        exclude: FrameExclusion,
        at: Option<usize>,
    ) -> Result<WindowFrame> {
        let Some(frame) = frame else {
            return Ok(WindowFrame::default());
        };
        use ast::FrameBound as Bound;
        let current = Bound::CurrentRow;
        let (start, end) = (&frame.start, frame.end.as_ref().unwrap_or(&current));
        let wrong = match (start, end) {
            (Bound::UnboundedFollowing, _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, Bound::UnboundedPreceding) => Some("frame end cannot be UNBOUNDED PRECEDING"),
            (Bound::CurrentRow, Bound::Preceding(_)) => {
                Some("frame starting from current row cannot have preceding rows")
            }
            (Bound::Following(_), Bound::Preceding(_)) => {
                Some("frame starting from following row cannot have preceding rows")
            }
            (Bound::Following(_), Bound::CurrentRow) => {
                // ROWS 1 FOLLOWING ends at the current row without saying so.
                Some(match frame.end {
                    Some(_) => "frame starting from following row cannot have preceding rows",
                    None => "frame starting from following row cannot end with current row",
                })
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(windowing(wrong).at(at));
        }
        let (units, clause) = match frame.mode {
            FrameMode::Rows => (FrameUnits::Rows, Clause::FrameRows),
            FrameMode::Range => (FrameUnits::Range, Clause::FrameRange),
            FrameMode::Groups => (FrameUnits::Groups, Clause::FrameGroups),
        };
        let mut bound = |bound: &Bound| -> Result<FrameBound> {
            Ok(match bound {
                Bound::CurrentRow => FrameBound::CurrentRow,
                Bound::UnboundedPreceding | Bound::UnboundedFollowing => FrameBound::Unbounded,
                Bound::Preceding(offset) => FrameBound::Preceding(self.offset(offset, clause)?),
                Bound::Following(offset) => FrameBound::Following(self.offset(offset, clause)?),
            })
        };
        Ok(WindowFrame {
            units,
            start: bound(start)?,
            end: bound(end)?,
            exclude,
        })
    }

    /// An offset of a frame, which refers to no column of the block.
    fn offset(&mut self, offset: &Ast, clause: Clause) -> Result<Expr> {
        let at = self.at(offset.location());
        let words = clause.words().strip_prefix("window ").unwrap_or_default();
        let expr = self.in_clause(clause, |b| b.expr(offset))?;
        let mut ids = Vec::new();
        walk::column_ids(&expr, &mut ids);
        let items = self.frames.last().map_or(&[][..], |frame| &frame.ns);
        let mut columns = items.iter().flat_map(|item| &item.columns);
        let own =
            columns.any(|c| matches!(&c.what, NsColumnSource::Column(id) if ids.contains(id)));
        if own {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("argument of {words} must not contain variables"),
            )
            .at(at));
        }
        Ok(expr)
    }

    /// Gives the offsets of a frame the types that they must have.
    fn frame_offsets(
        &mut self,
        frame: WindowFrame,
        order: &[SortKey],
        at: Option<usize>,
    ) -> Result<WindowFrame> {
        let WindowFrame {
            units,
            start,
            end,
            exclude,
        } = frame;
        let ty = match order {
            [key] => key.expr.ty(),
            _ => SqlType::of(oid::UNKNOWN),
        };
        let has_offset = start.offset().is_some() || end.offset().is_some();
        if units == FrameUnits::Range && has_offset && order.len() != 1 {
            return Err(windowing(
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            )
            .at(at));
        }
        if units == FrameUnits::Groups && order.is_empty() {
            return Err(windowing("GROUPS mode requires an ORDER BY clause").at(at));
        }
        let mut typed = |bound: FrameBound| -> Result<FrameBound> {
            Ok(match bound {
                FrameBound::Preceding(e) => FrameBound::Preceding(self.typed(e, units, ty, at)?),
                FrameBound::Following(e) => FrameBound::Following(self.typed(e, units, ty, at)?),
                other => other,
            })
        };
        Ok(WindowFrame {
            units,
            start: typed(start)?,
            end: typed(end)?,
            exclude,
        })
    }

    fn typed(
        &mut self,
        offset: Expr,
        units: FrameUnits,
        order: SqlType,
        at: Option<usize>,
    ) -> Result<Expr> {
        let given = offset.ty();
        let (words, wanted) = match units {
            FrameUnits::Rows => ("ROWS", SqlType::of(oid::INT8)),
            FrameUnits::Groups => ("GROUPS", SqlType::of(oid::INT8)),
            FrameUnits::Range => {
                let ty = range_offset(order, given, self.types()).map_err(|e| e.at(at))?;
                ("RANGE", SqlType::of(ty))
            }
        };
        // As LIMIT's: what may be assigned.
        self.try_coerce(offset, wanted, CastContext::Assignment, at)?
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "argument of {words} must be type {}, not type {}",
                        self.types().format_type(wanted),
                        self.types().format_type(given)
                    ),
                )
                .at(at)
            })
    }

    /// [`Binder::regroup`] of everything in a window.
    pub(crate) fn regroup_window(
        &mut self,
        window: &mut BoundWindow,
        grouping: &mut Grouping,
        rels: &[usize],
    ) -> Result<()> {
        let calls = window.calls.iter_mut();
        let calls = calls.flat_map(|(_, call)| call.args.iter_mut().chain(&mut call.filter));
        let order = window.order.iter_mut().map(|key| &mut key.expr);
        for expr in window.partition.iter_mut().chain(order).chain(calls) {
            self.regroup(expr, grouping, rels)?;
        }
        Ok(())
    }
}

fn written(spec: &ast::WindowDef, at: Option<usize>) -> Written<'_> {
    Written {
        base: spec.refname.as_ref().map(ToString::to_string),
        spec,
        exclude: exclusion(spec),
        at,
    }
}

/// The type that an offset of RANGE takes over an order of type `order`, from an offset of type `given`.
fn range_offset(order: SqlType, given: SqlType, known: TypeLookup<'_>) -> Result<TypeId> {
    let refuse = |message: String| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    // A varchar is ordered as a text.
    let column = known.format_type(SqlType::of(match order.oid {
        oid::VARCHAR => oid::TEXT,
        other => other,
    }));
    let types = func::range_offsets(order.oid);
    if types.is_empty() {
        return Err(refuse(format!(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {column}"
        )));
    }
    let preferred = match given.oid {
        oid::UNKNOWN => order.oid,
        other => other,
    };
    let mut fitting = types
        .iter()
        .copied()
        .filter(|ty| func::can_coerce(given.oid, *ty, CastContext::Implicit));
    let Some(first) = fitting.next() else {
        let given = known.format_type(SqlType::of(given.oid));
        return Err(refuse(format!(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {column} and offset type {given}"
        ))
        .hint("Cast the offset value to an appropriate type."));
    };
    let rest: Vec<TypeId> = fitting.collect();
    if rest.is_empty() {
        return Ok(first);
    }
    if first == preferred || rest.contains(&preferred) {
        return Ok(preferred);
    }
    let given = known.format_type(SqlType::of(given.oid));
    Err(refuse(format!(
        "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations for column type {column} and offset type {given}"
    ))
    .hint("Cast the offset value to the exact intended type."))
}

fn same_call(a: &WindowCall, b: &WindowCall) -> bool {
    let same_function = match (a.function, b.function) {
        (WindowFunction::Own(a), WindowFunction::Own(b)) => std::ptr::eq(a, b),
        (WindowFunction::Aggregate(a), WindowFunction::Aggregate(b)) => std::ptr::eq(a, b),
        _ => false,
    };
    let same_filter = match (&a.filter, &b.filter) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a, b),
        _ => false,
    };
    same_function
        && super::aggregate::same_user(a.user.as_ref(), b.user.as_ref())
        && same_filter
        && a.args.len() == b.args.len()
        && a.args.iter().zip(&b.args).all(|(a, b)| same(a, b))
}

fn same_window(a: &BoundWindow, b: &BoundWindow) -> bool {
    a.partition.len() == b.partition.len()
        && a.partition
            .iter()
            .zip(&b.partition)
            .all(|(a, b)| same(a, b))
        && a.order.len() == b.order.len()
        && a.order.iter().zip(&b.order).all(|(a, b)| {
            same(&a.expr, &b.expr) && a.desc == b.desc && a.nulls_first == b.nulls_first
        })
        && a.frame.units == b.frame.units
        && a.frame.exclude == b.frame.exclude
        && a.frame.start.same(&b.frame.start)
        && a.frame.end.same(&b.frame.end)
}
