//! Who goes through a tree: all expressions, queries and relations' names of it, those of inner queries included.
//!
//! Invariant: whoever goes through a deep tree stays on the stack that he came with
//! ([`on_enough_stack`](crate::on_enough_stack)): what binds a part of it meanwhile asks how much is left of that one.

use super::Expr;
use crate::ast::RangeVar;
use std::ops::ControlFlow;

pub use changed::{VisitMut, VisitorMut};
pub use read::{Visit, Visitor};

/// Writes the traits of walks, and how each node is gone through, once for trees that are read and once for those that
/// are changed.
macro_rules! walks {
    ($visitor:ident, $visit:ident, $($mutable:ident)?) => {
        use crate::ast::RangeVar;
        use crate::lowered::{
            Assignment, AssignmentTarget, ConflictKey, ConflictTarget, Cte, Delete, Distinct, Expr,
            FrameBound, FuncArg, FuncCall, GroupingItem, Indirection, Insert, JoinQual, LimitCount, Merge, MergeAction,
            MergeInsertExpr, OnConflictAction, Query, RangeTableFunc, Select, SelectItem, SelectLimit, SetExpr,
            SortBy, Statement, SubLinkKind, TableRef, Target, TargetStep, Update, WindowDef,
        };
        use std::ops::ControlFlow::{self, Continue};

        #[doc = "What is done with the nodes of a tree that is gone through."]
        pub trait $visitor {
            /// What it ends with before its time.
            type Break;

            /// Before what a query consists of.
            fn pre_visit_query(&mut self, _: &$($mutable)? Query) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// Behind what a query consists of.
            fn post_visit_query(&mut self, _: &$($mutable)? Query) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// A table of FROM, or one that is changed.
            fn pre_visit_relation(&mut self, _: &$($mutable)? RangeVar) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// Before what an expression consists of.
            fn pre_visit_expr(&mut self, _: &$($mutable)? Expr) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// Behind what an expression consists of.
            fn post_visit_expr(&mut self, _: &$($mutable)? Expr) -> ControlFlow<Self::Break> {
                Continue(())
            }
        }

        #[doc = "A node that can be gone through."]
        pub trait $visit {
            /// Goes through it.
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break>;
        }

        impl<N: $visit> $visit for Option<N> {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    Some(node) => node.visit(visitor),
                    None => Continue(()),
                }
            }
        }

        impl<N: $visit> $visit for Box<N> {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                (**self).visit(visitor)
            }
        }

        impl<N: $visit> $visit for Vec<N> {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                for node in self {
                    node.visit(visitor)?;
                }
                Continue(())
            }
        }

        impl $visit for Expr {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_expr(self)?;
                match self {
                    Expr::ColumnRef(_)
                    | Expr::ParamRef(_)
                    | Expr::Const(_)
                    | Expr::SetToDefault(_)
                    | Expr::SqlValueFunction(_)
                    | Expr::CurrentOf(_) => {}
                    Expr::Indirection(node) => {
                        node.arg.visit(visitor)?;
                        node.indirection.visit(visitor)?;
                    }
                    Expr::BoolExpr(node) => node.args.visit(visitor)?,
                    Expr::AExpr(node) => {
                        node.lexpr.visit(visitor)?;
                        node.rexpr.visit(visitor)?;
                    }
                    Expr::NullTest(node) => node.arg.visit(visitor)?,
                    Expr::BooleanTest(node) => node.arg.visit(visitor)?,
                    Expr::In(node) => {
                        node.expr.visit(visitor)?;
                        node.list.visit(visitor)?;
                    }
                    Expr::TypeCast(node) => node.arg.visit(visitor)?,
                    Expr::CollateClause(node) => node.arg.visit(visitor)?,
                    Expr::SubLink(node) => {
                        match &$($mutable)? node.kind {
                            SubLinkKind::All { test, .. }
                            | SubLinkKind::Any { test, .. }
                            | SubLinkKind::NotIn { test } => test.visit(visitor)?,
                            SubLinkKind::Exists | SubLinkKind::Expr | SubLinkKind::Array => {}
                        }
                        node.subselect.visit(visitor)?;
                    }
                    Expr::Between(node) => {
                        node.expr.visit(visitor)?;
                        node.low.visit(visitor)?;
                        node.high.visit(visitor)?;
                    }
                    Expr::Like(node) => {
                        node.expr.visit(visitor)?;
                        node.pattern.visit(visitor)?;
                        node.escape.visit(visitor)?;
                    }
                    Expr::FuncCall(node) => node.visit(visitor)?,
                    Expr::CaseExpr(node) => {
                        node.arg.visit(visitor)?;
                        for when in &$($mutable)? node.args {
                            when.expr.visit(visitor)?;
                            when.result.visit(visitor)?;
                        }
                        node.defresult.visit(visitor)?;
                    }
                    Expr::RowExpr(node) => node.args.visit(visitor)?,
                    Expr::CoalesceExpr(node) => node.args.visit(visitor)?,
                    Expr::MinMaxExpr(node) => node.args.visit(visitor)?,
                    Expr::XmlExpr(node) => {
                        for arg in &$($mutable)? node.named_args {
                            arg.value.visit(visitor)?;
                        }
                        node.args.visit(visitor)?;
                    }
                    Expr::XmlSerialize(node) => node.expr.visit(visitor)?,
                    Expr::GroupingFunc(node) => node.args.visit(visitor)?,
                    Expr::ArrayExpr(node) => node.elements.visit(visitor)?,
                }
                visitor.post_visit_expr(self)
            }
        }

        impl $visit for Indirection {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    Indirection::Field(_) | Indirection::Star => Continue(()),
                    Indirection::Index(index) => index.visit(visitor),
                    Indirection::Slice(lower, upper) => {
                        lower.visit(visitor)?;
                        upper.visit(visitor)
                    }
                }
            }
        }

        impl $visit for FuncCall {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.args.visit(visitor)?;
                self.agg_order.visit(visitor)?;
                self.agg_filter.visit(visitor)?;
                match &$($mutable)? self.over {
                    Some(window) if window.name.is_none() => window.visit(visitor),
                    _ => Continue(()),
                }
            }
        }

        impl $visit for FuncArg {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.value.visit(visitor)
            }
        }

        impl $visit for SortBy {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.node.visit(visitor)
            }
        }

        impl $visit for WindowDef {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.partition_clause.visit(visitor)?;
                self.order_clause.visit(visitor)?;
                match &$($mutable)? self.frame {
                    Some(frame) => {
                        frame.start.visit(visitor)?;
                        frame.end.visit(visitor)
                    }
                    None => Continue(()),
                }
            }
        }

        impl $visit for FrameBound {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    FrameBound::Preceding(offset) | FrameBound::Following(offset) => {
                        offset.visit(visitor)
                    }
                    FrameBound::UnboundedPreceding
                    | FrameBound::CurrentRow
                    | FrameBound::UnboundedFollowing => Continue(()),
                }
            }
        }

        impl $visit for Query {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_query(self)?;
                match &$($mutable)? self.with {
                    Some(with) => with.cte_tables.visit(visitor)?,
                    None => {}
                }
                self.body.visit(visitor)?;
                self.sort_clause.visit(visitor)?;
                self.limit.visit(visitor)?;
                visitor.post_visit_query(self)
            }
        }

        impl $visit for Cte {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.query.visit(visitor)
            }
        }

        impl $visit for SelectLimit {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match &$($mutable)? self.count {
                    Some(LimitCount::Count(count)) => count.visit(visitor)?,
                    Some(LimitCount::All(_)) | None => {}
                }
                self.offset.visit(visitor)
            }
        }

        impl $visit for SetExpr {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    SetExpr::Select(select) => select.visit(visitor),
                    SetExpr::Query(query) => query.visit(visitor),
                    SetExpr::SetOperation { left, right, .. } => {
                        left.visit(visitor)?;
                        right.visit(visitor)
                    }
                    SetExpr::Values(values) => values.rows.visit(visitor),
                    SetExpr::Insert(change)
                    | SetExpr::Update(change)
                    | SetExpr::Delete(change)
                    | SetExpr::Merge(change) => change.visit(visitor),
                }
            }
        }

        impl $visit for Select {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match &$($mutable)? self.distinct {
                    Distinct::On(keys) => keys.visit(visitor)?,
                    Distinct::All | Distinct::No => {}
                }
                self.projection.visit(visitor)?;
                self.from.visit(visitor)?;
                self.selection.visit(visitor)?;
                self.group_by.items.visit(visitor)?;
                self.having.visit(visitor)?;
                self.window_clause.visit(visitor)
            }
        }

        impl $visit for GroupingItem {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    GroupingItem::Expr(expr) => expr.visit(visitor),
                    GroupingItem::Empty => Continue(()),
                    GroupingItem::Rollup(exprs) | GroupingItem::Cube(exprs, _) => {
                        exprs.visit(visitor)
                    }
                    GroupingItem::Sets(items) => items.visit(visitor),
                }
            }
        }

        impl $visit for RangeTableFunc {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.rowexpr.visit(visitor)?;
                self.docexpr.visit(visitor)?;
                for (_, uri) in &$($mutable)? self.namespaces {
                    uri.visit(visitor)?;
                }
                for column in &$($mutable)? self.columns {
                    column.colexpr.visit(visitor)?;
                    column.coldefexpr.visit(visitor)?;
                }
                Continue(())
            }
        }

        impl $visit for SelectItem {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        expr.visit(visitor)
                    }
                    SelectItem::QualifiedWildcard(..) | SelectItem::Wildcard(_) => Continue(()),
                }
            }
        }

        impl $visit for TableRef {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    TableRef::RangeVar(node) => visitor.pre_visit_relation(node),
                    TableRef::Subselect(node) => node.subquery.visit(visitor),
                    TableRef::Function(node) => {
                        for (function, _) in &$($mutable)? node.functions {
                            function.visit(visitor)?;
                        }
                        Continue(())
                    }
                    TableRef::TableFunc(node) => node.visit(visitor),
                    TableRef::TableSample(node) => {
                        visitor.pre_visit_relation(&$($mutable)? node.relation)?;
                        node.args.visit(visitor)?;
                        node.repeatable.visit(visitor)
                    }
                    TableRef::Join(node) => {
                        node.larg.visit(visitor)?;
                        node.rarg.visit(visitor)?;
                        match &$($mutable)? node.quals {
                            JoinQual::On(condition) => condition.visit(visitor),
                            JoinQual::Using(..) | JoinQual::None => Continue(()),
                        }
                    }
                }
            }
        }

        impl $visit for Statement {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    Statement::Query(query) => query.visit(visitor),
                    Statement::Insert(insert) => insert.visit(visitor),
                    Statement::Update(update) => update.visit(visitor),
                    Statement::Delete(delete) => delete.visit(visitor),
                    Statement::Merge(merge) => merge.visit(visitor),
                    Statement::Utility => Continue(()),
                }
            }
        }

        impl $visit for Insert {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_relation(&$($mutable)? self.table)?;
                self.columns.visit(visitor)?;
                self.source.visit(visitor)?;
                match &$($mutable)? self.on {
                    Some(on) => {
                        match &$($mutable)? on.conflict_target {
                            Some(ConflictTarget::Keys(keys, predicate)) => {
                                for key in keys {
                                    match key {
                                        ConflictKey::Expr(key) => key.expr.visit(visitor)?,
                                        ConflictKey::Column(_) => {}
                                    }
                                }
                                match predicate {
                                    Some(predicate) => predicate.expr.visit(visitor)?,
                                    None => {}
                                }
                            }
                            Some(ConflictTarget::OnConstraint(_)) | None => {}
                        }
                        match &$($mutable)? on.action {
                            OnConflictAction::DoUpdate(update) => {
                                update.assignments.visit(visitor)?;
                                update.selection.visit(visitor)?;
                            }
                            OnConflictAction::DoNothing => {}
                        }
                    }
                    None => {}
                }
                self.returning.visit(visitor)
            }
        }

        impl $visit for Target {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                for step in &$($mutable)? self.path {
                    match step {
                        TargetStep::Subscripts(subscripts) => subscripts.visit(visitor)?,
                        TargetStep::Field(_) => {}
                    }
                }
                Continue(())
            }
        }

        impl $visit for Assignment {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match &$($mutable)? self.target {
                    AssignmentTarget::One(target) => target.visit(visitor)?,
                    AssignmentTarget::Tuple(targets) => targets.visit(visitor)?,
                }
                self.value.visit(visitor)
            }
        }

        impl $visit for Update {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_relation(&$($mutable)? self.table)?;
                self.assignments.visit(visitor)?;
                self.from.visit(visitor)?;
                self.selection.visit(visitor)?;
                self.returning.visit(visitor)
            }
        }

        impl $visit for Delete {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_relation(&$($mutable)? self.table)?;
                self.using.visit(visitor)?;
                self.selection.visit(visitor)?;
                self.returning.visit(visitor)
            }
        }

        impl $visit for Merge {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_relation(&$($mutable)? self.table)?;
                self.source.visit(visitor)?;
                self.on.visit(visitor)?;
                for clause in &$($mutable)? self.clauses {
                    clause.predicate.visit(visitor)?;
                    match &$($mutable)? clause.action {
                        MergeAction::Update(assignments) => assignments.visit(visitor)?,
                        MergeAction::Insert(MergeInsertExpr { columns, values, .. }) => {
                            columns.visit(visitor)?;
                            values.visit(visitor)?;
                        }
                        MergeAction::DoNothing | MergeAction::Delete => {}
                    }
                }
                Continue(())
            }
        }
    };
}

/// Of trees that are read.
mod read {
    walks!(Visitor, Visit,);
}

/// Of trees that are changed.
mod changed {
    walks!(VisitorMut, VisitMut, mut);
}

/// Does something with each expression of a node, before what it consists of.
pub fn visit_expressions<N: Visit, B>(
    node: &N,
    each: impl FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }
    node.visit(&mut Each(each))
}

/// Does something to each expression of a node, behind what it consists of.
pub fn visit_expressions_mut<N: VisitMut, B>(
    node: &mut N,
    each: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for Each<F> {
        type Break = B;

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }
    node.visit(&mut Each(each))
}

/// Does something with the name of each relation that a node reads or inserts into.
pub fn visit_relations<N: Visit, B>(
    node: &N,
    each: impl FnMut(&RangeVar) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&RangeVar) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;

        fn pre_visit_relation(&mut self, name: &RangeVar) -> ControlFlow<B> {
            (self.0)(name)
        }
    }
    node.visit(&mut Each(each))
}
