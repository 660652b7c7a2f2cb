//! Who goes through a tree: all expressions, queries and relations' names of it, those of inner queries included.
//!
//! Invariant: whoever goes through a deep tree stays on the stack that he came with
//! ([`on_enough_stack`](crate::on_enough_stack)): what binds a part of it meanwhile asks how much is left of that one.

use super::{Expr, RangeVar};
use std::ops::ControlFlow;

pub use changed::{VisitMut, VisitorMut};
pub use read::{Visit, Visitor};

/// Writes the traits of walks, and how each node is gone through, once for trees that are read and once for those that
/// are changed.
macro_rules! walks {
    ($visitor:ident, $visit:ident, $($mutable:ident)?) => {
        use crate::ast::{
            CommonTableExpr, NodeBox, DeleteStmt, Distinct, Expr, FrameBound, FuncArg, FuncCall, GroupingItem, IndexKey,
            Indirection, InferClause, InsertSource, InsertStmt, JoinQual, LimitCount, MergeAction, MergeStmt,
            RangeTableFunc, RangeVar, ResTarget, SelectBody, SelectCore, SelectLimit, SelectStmt, SetClause, SortBy, Stmt,
            SubLinkKind, TableRef, UpdateStmt, WindowDef, WithClause,
        };
        use std::ops::ControlFlow::{self, Continue};

        #[doc = "What is done with the nodes of a tree that is gone through."]
        pub trait $visitor {
            /// What it ends with before its time.
            type Break;

            /// Before what a query consists of.
            fn pre_visit_query(&mut self, _: &$($mutable)? SelectStmt) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// Behind what a query consists of.
            fn post_visit_query(&mut self, _: &$($mutable)? SelectStmt) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// Before the queries of WITH, and what it stands in front of.
            fn pre_visit_with(&mut self, _: &$($mutable)? WithClause) -> ControlFlow<Self::Break> {
                Continue(())
            }

            /// Behind what WITH stands in front of.
            fn post_visit_with(&mut self, _: &$($mutable)? WithClause) -> ControlFlow<Self::Break> {
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

        impl<N: $visit> $visit for NodeBox<N> {
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

        impl $visit for SelectStmt {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_query(self)?;
                self.with_clause.visit(visitor)?;
                self.body.visit(visitor)?;
                self.sort_clause.visit(visitor)?;
                self.limit.visit(visitor)?;
                match &$($mutable)? self.with_clause {
                    Some(with) => visitor.post_visit_with(with)?,
                    None => {}
                }
                visitor.post_visit_query(self)
            }
        }

        impl $visit for WithClause {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                visitor.pre_visit_with(self)?;
                self.ctes.visit(visitor)
            }
        }

        impl $visit for CommonTableExpr {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.ctequery.visit(visitor)
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

        impl $visit for SelectBody {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    SelectBody::Select(core) => core.visit(visitor),
                    SelectBody::Values(rows) => rows.visit(visitor),
                    SelectBody::SetOp(operation) => {
                        operation.larg.visit(visitor)?;
                        operation.rarg.visit(visitor)
                    }
                }
            }
        }

        impl $visit for SelectCore {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match &$($mutable)? self.distinct {
                    Distinct::On(keys) => keys.visit(visitor)?,
                    Distinct::All | Distinct::No => {}
                }
                self.target_list.visit(visitor)?;
                self.from_clause.visit(visitor)?;
                self.where_clause.visit(visitor)?;
                self.group_clause.visit(visitor)?;
                self.having_clause.visit(visitor)?;
                self.window_clause.visit(visitor)
            }
        }

        impl $visit for GroupingItem {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    GroupingItem::Expr(expr) => expr.visit(visitor),
                    GroupingItem::Empty(_) => Continue(()),
                    GroupingItem::Rollup(exprs, _) | GroupingItem::Cube(exprs, _) => {
                        exprs.visit(visitor)
                    }
                    GroupingItem::Sets(items, _) => items.visit(visitor),
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

        impl $visit for TableRef {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    TableRef::RangeVar(node) => visitor.pre_visit_relation(node),
                    TableRef::Subselect(node) => node.subquery.visit(visitor),
                    TableRef::Function(node) => {
                        // A call there is no expression: what it is given is.
                        for (function, _) in &$($mutable)? node.functions {
                            match function {
                                Expr::FuncCall(call) => call.visit(visitor)?,
                                other => other.visit(visitor)?,
                            }
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

        impl $visit for Stmt {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    Stmt::Select(query) => query.visit(visitor),
                    Stmt::Insert(insert) => insert.visit(visitor),
                    Stmt::Update(update) => update.visit(visitor),
                    Stmt::Delete(delete) => delete.visit(visitor),
                    Stmt::Merge(merge) => merge.visit(visitor),
                    // No other is planned.
                    _ => Continue(()),
                }
            }
        }

        impl $visit for InsertStmt {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.with_clause.visit(visitor)?;
                visitor.pre_visit_relation(&$($mutable)? self.relation)?;
                self.cols.visit(visitor)?;
                match &$($mutable)? self.source {
                    InsertSource::Select(query) => query.visit(visitor)?,
                    InsertSource::DefaultValues => {}
                }
                if let Some(on) = &$($mutable)? self.on_conflict_clause {
                    if let Some(InferClause::Index(elems, predicate, _)) = &$($mutable)? on.infer {
                        for elem in elems {
                            match &$($mutable)? elem.key {
                                IndexKey::Expr(key, _) => key.visit(visitor)?,
                                IndexKey::Column(_) => {}
                            }
                        }
                        predicate.visit(visitor)?;
                    }
                    if let Some((target_list, where_clause)) = &$($mutable)? on.update {
                        target_list.visit(visitor)?;
                        where_clause.visit(visitor)?;
                    }
                }
                self.returning_list.visit(visitor)?;
                match &$($mutable)? self.with_clause {
                    Some(with) => visitor.post_visit_with(with),
                    None => Continue(()),
                }
            }
        }

        impl $visit for ResTarget {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.indirection.visit(visitor)?;
                self.val.visit(visitor)
            }
        }

        impl $visit for SetClause {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                match self {
                    SetClause::Single(target) => target.visit(visitor),
                    SetClause::Multiple(targets, value) => {
                        targets.visit(visitor)?;
                        value.visit(visitor)
                    }
                }
            }
        }

        impl $visit for UpdateStmt {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.with_clause.visit(visitor)?;
                visitor.pre_visit_relation(&$($mutable)? self.relation)?;
                self.target_list.visit(visitor)?;
                self.from_clause.visit(visitor)?;
                self.where_clause.visit(visitor)?;
                self.returning_list.visit(visitor)?;
                match &$($mutable)? self.with_clause {
                    Some(with) => visitor.post_visit_with(with),
                    None => Continue(()),
                }
            }
        }

        impl $visit for DeleteStmt {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.with_clause.visit(visitor)?;
                visitor.pre_visit_relation(&$($mutable)? self.relation)?;
                self.using_clause.visit(visitor)?;
                self.where_clause.visit(visitor)?;
                self.returning_list.visit(visitor)?;
                match &$($mutable)? self.with_clause {
                    Some(with) => visitor.post_visit_with(with),
                    None => Continue(()),
                }
            }
        }

        impl $visit for MergeStmt {
            fn visit<V: $visitor>(&$($mutable)? self, visitor: &mut V) -> ControlFlow<V::Break> {
                self.with_clause.visit(visitor)?;
                visitor.pre_visit_relation(&$($mutable)? self.relation)?;
                self.source_relation.visit(visitor)?;
                self.join_condition.visit(visitor)?;
                for clause in &$($mutable)? self.merge_when_clauses {
                    clause.condition.visit(visitor)?;
                    match &$($mutable)? clause.action {
                        MergeAction::Update(target_list) => target_list.visit(visitor)?,
                        MergeAction::Insert { cols, values, .. } => {
                            cols.visit(visitor)?;
                            values.visit(visitor)?;
                        }
                        MergeAction::Nothing | MergeAction::Delete => {}
                    }
                }
                match &$($mutable)? self.with_clause {
                    Some(with) => visitor.post_visit_with(with),
                    None => Continue(()),
                }
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
