//! Where a node stands: what covers all of it that has a place.
//!
//! Words, signs and parentheses have none but where a node says so. So who asks for the operator behind an operand
//! looks for it behind the operand's end.

use super::{
    AccessExpr, Array, Assignment, AssignmentTarget, ConflictKey, ConflictTarget, Cte, Delete,
    Expr, Fetch, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, Insert, Join, JoinConstraint,
    JoinOperator, LimitClause, Merge, MergeAction, MergeClause, MergeInsertExpr, ObjectName,
    OnConflict, OnConflictAction, OrderBy, OrderByExpr, PlacedExpr, Query, Select, SelectItem,
    SetExpr, Span, Statement, Subscript, TableAlias, TableFactor, TableWithJoins, Target,
    TargetStep, TokenSpan, Update, ValueWithSpan, Values, With,
};

/// What has a place in the text.
pub trait Spanned {
    /// What covers all of it; the empty span if none of it has a place.
    fn span(&self) -> Span;
}

/// What covers all of these.
fn all<'n, N: Spanned + 'n>(nodes: impl IntoIterator<Item = &'n N>) -> Span {
    { nodes.into_iter() }.fold(Span::empty(), |all, node| all.union(node.span()))
}

/// What covers all of these spans.
fn union(spans: impl IntoIterator<Item = Span>) -> Span {
    { spans.into_iter() }.fold(Span::empty(), Span::union)
}

impl Spanned for TokenSpan {
    fn span(&self) -> Span {
        self.0
    }
}

impl<N: Spanned> Spanned for Option<N> {
    fn span(&self) -> Span {
        self.as_ref().map_or_else(Span::empty, Spanned::span)
    }
}

impl<N: Spanned> Spanned for Box<N> {
    fn span(&self) -> Span {
        (**self).span()
    }
}

impl<N: Spanned> Spanned for Vec<N> {
    fn span(&self) -> Span {
        all(self)
    }
}

impl Spanned for Ident {
    fn span(&self) -> Span {
        self.span
    }
}

impl Spanned for ObjectName {
    fn span(&self) -> Span {
        self.0.span()
    }
}

impl Spanned for ValueWithSpan {
    fn span(&self) -> Span {
        self.span
    }
}

impl Spanned for Expr {
    fn span(&self) -> Span {
        match self {
            Expr::Identifier(name) | Expr::CurrentOf(name) => name.span,
            Expr::CompoundIdentifier(names) => names.span(),
            Expr::CompoundFieldAccess { root, access_chain } => {
                root.span().union(access_chain.span())
            }
            Expr::BoolExpr(node) => node.args.span(),
            Expr::AExpr(node) => node.lexpr.span().union(node.rexpr.span()),
            Expr::NullTest(node) => node.arg.span(),
            Expr::BooleanTest(node) => node.arg.span(),
            Expr::Overlaps(node) => all(&node.args),
            Expr::IsNormalized { expr, .. }
            | Expr::IsDocument { expr, .. }
            | Expr::Extract { expr, .. }
            | Expr::Ceil(expr)
            | Expr::Floor(expr)
            | Expr::Nested(expr) => expr.span(),
            Expr::In(node) => node.expr.span().union(node.list.span()),
            Expr::Between(node) => union([node.expr.span(), node.low.span(), node.high.span()]),
            Expr::Like(node) => node.expr.span().union(node.pattern.span()),
            Expr::AtTimeZone {
                timestamp,
                time_zone,
                ..
            } => timestamp.span().union(time_zone.span()),
            Expr::Position { expr, r#in } => expr.span().union(r#in.span()),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => union([expr.span(), substring_from.span(), substring_for.span()]),
            Expr::Trim {
                expr,
                trim_what,
                trim_characters,
                ..
            } => union([expr.span(), trim_what.span(), trim_characters.span()]),
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => union([
                expr.span(),
                overlay_what.span(),
                overlay_from.span(),
                overlay_for.span(),
            ]),
            Expr::TypeCast(node) => node.arg.span(),
            Expr::CollateClause(node) => node.arg.span(),
            Expr::SubLink(node) => {
                let test = node.kind.test().map_or_else(Span::empty, Spanned::span);
                test.union(node.subselect.span())
            }
            Expr::Value(value) => value.span,
            Expr::Interval(interval) => interval.value.span(),
            Expr::Function(function) => function.span(),
            Expr::Case {
                case_token,
                end_token,
                operand,
                conditions,
                else_result,
            } => {
                let arms = conditions.iter();
                let arms = arms.map(|arm| arm.condition.span().union(arm.result.span()));
                union(arms)
                    .union(case_token.0)
                    .union(operand.span())
                    .union(else_result.span())
                    .union(end_token.0)
            }
            Expr::Tuple(items) => items.span(),
            Expr::Array(array) => array.span(),
            Expr::QualifiedWildcard(name) => name.span(),
        }
    }
}

impl Spanned for AccessExpr {
    fn span(&self) -> Span {
        match self {
            AccessExpr::Dot(field) => field.span(),
            AccessExpr::Star => Span::empty(),
            AccessExpr::Subscript(subscript) => subscript.span(),
        }
    }
}

impl Spanned for Subscript {
    fn span(&self) -> Span {
        match self {
            Subscript::Index { index } => index.span(),
            Subscript::Slice {
                lower_bound,
                upper_bound,
            } => lower_bound.span().union(upper_bound.span()),
        }
    }
}

impl Spanned for Array {
    fn span(&self) -> Span {
        self.elem.span()
    }
}

impl Spanned for Function {
    fn span(&self) -> Span {
        union([
            self.name.span(),
            self.args.span(),
            self.filter.span(),
            self.within_group.span(),
        ])
    }
}

impl Spanned for FunctionArguments {
    fn span(&self) -> Span {
        match self {
            FunctionArguments::None => Span::empty(),
            FunctionArguments::List(list) => list.span(),
        }
    }
}

impl Spanned for FunctionArgumentList {
    fn span(&self) -> Span {
        self.args.span().union(self.clauses.span())
    }
}

impl Spanned for FunctionArgumentClause {
    fn span(&self) -> Span {
        let FunctionArgumentClause::OrderBy(keys) = self;
        keys.span()
    }
}

impl Spanned for FunctionArg {
    fn span(&self) -> Span {
        match self {
            FunctionArg::Unnamed(arg) => arg.span(),
            FunctionArg::Named { name, arg } => name.span.union(arg.span()),
            FunctionArg::Variadic(array, token) => token.0.union(array.span()),
        }
    }
}

impl Spanned for FunctionArgExpr {
    fn span(&self) -> Span {
        match self {
            FunctionArgExpr::Expr(expr) => expr.span(),
            FunctionArgExpr::QualifiedWildcard(name) => name.span(),
            FunctionArgExpr::Wildcard => Span::empty(),
        }
    }
}

impl Spanned for OrderByExpr {
    fn span(&self) -> Span {
        self.expr.span()
    }
}

impl Spanned for Query {
    fn span(&self) -> Span {
        union([
            self.with.span(),
            self.body.span(),
            self.order_by.span(),
            self.limit_clause.span(),
            self.fetch.span(),
        ])
    }
}

impl Spanned for With {
    fn span(&self) -> Span {
        self.with_token.0.union(self.cte_tables.span())
    }
}

impl Spanned for Cte {
    fn span(&self) -> Span {
        self.alias.span().union(self.query.span())
    }
}

impl Spanned for OrderBy {
    fn span(&self) -> Span {
        self.0.span()
    }
}

impl Spanned for LimitClause {
    fn span(&self) -> Span {
        self.limit.span().union(self.offset.span())
    }
}

impl Spanned for Fetch {
    fn span(&self) -> Span {
        self.quantity.span()
    }
}

impl Spanned for SetExpr {
    fn span(&self) -> Span {
        match self {
            SetExpr::Select(select) => select.span(),
            SetExpr::Query(query) => query.span(),
            SetExpr::SetOperation { left, right, .. } => left.span().union(right.span()),
            SetExpr::Values(values) => values.span(),
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => statement.span(),
        }
    }
}

impl Spanned for Values {
    fn span(&self) -> Span {
        self.token.0
    }
}

impl Spanned for Select {
    fn span(&self) -> Span {
        let windows = self.named_window.iter().map(|window| window.0.span);
        let into = self.into.map(|into| into.0);
        union([
            self.select_token.0,
            self.projection.span(),
            into.unwrap_or_default(),
            self.from.span(),
            self.selection.span(),
            self.group_by.span(),
            self.having.span(),
            union(windows),
        ])
    }
}

impl Spanned for GroupByExpr {
    fn span(&self) -> Span {
        self.0.span()
    }
}

impl Spanned for SelectItem {
    fn span(&self) -> Span {
        match self {
            SelectItem::UnnamedExpr(expr) => expr.span(),
            SelectItem::ExprWithAlias { expr, alias } => expr.span().union(alias.span),
            SelectItem::QualifiedWildcard(name, token) => name.span().union(token.0),
            SelectItem::Wildcard(token) => token.0,
        }
    }
}

impl Spanned for TableAlias {
    fn span(&self) -> Span {
        let columns = self.columns.iter().map(|column| column.name.span);
        self.name.span.union(union(columns))
    }
}

impl Spanned for TableWithJoins {
    fn span(&self) -> Span {
        self.relation.span().union(self.joins.span())
    }
}

impl Spanned for TableFactor {
    fn span(&self) -> Span {
        match self {
            TableFactor::Table { name, alias, .. } => name.span().union(alias.span()),
            TableFactor::Derived {
                subquery, alias, ..
            } => subquery.span().union(alias.span()),
            TableFactor::Function {
                name, args, alias, ..
            } => union([name.span(), args.span(), alias.span()]),
            TableFactor::Unnest {
                array_exprs, alias, ..
            } => array_exprs.span().union(alias.span()),
            TableFactor::RowsFrom {
                functions, alias, ..
            } => {
                let functions = functions.iter().map(|(function, _)| function.span());
                union(functions).union(alias.span())
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => table_with_joins.span().union(alias.span()),
        }
    }
}

impl Spanned for Join {
    fn span(&self) -> Span {
        self.relation.span().union(self.join_operator.span())
    }
}

impl Spanned for JoinOperator {
    fn span(&self) -> Span {
        match self {
            JoinOperator::Join(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint) => match constraint {
                JoinConstraint::On(condition) => condition.span(),
                JoinConstraint::Using(columns, alias) => columns.span().union(alias.span()),
                JoinConstraint::Natural | JoinConstraint::None => Span::empty(),
            },
        }
    }
}

impl Spanned for Statement {
    /// Of a change; other statements are asked for none.
    fn span(&self) -> Span {
        match self {
            Statement::Query(query) => query.span(),
            Statement::Insert(insert) => insert.span(),
            Statement::Update(update) => update.span(),
            Statement::Delete(delete) => delete.span(),
            Statement::Merge(merge) => merge.span(),
            Statement::Utility => Span::empty(),
        }
    }
}

impl Spanned for Insert {
    fn span(&self) -> Span {
        union([
            self.table.span(),
            self.table_alias.span(),
            self.columns.span(),
            self.source.span(),
            self.on.span(),
            self.returning.span(),
        ])
    }
}

impl Spanned for Target {
    fn span(&self) -> Span {
        let path = self.path.iter().map(|step| match step {
            TargetStep::Field(name) => name.span,
            TargetStep::Subscripts(subscripts) => subscripts.span(),
        });
        self.column.span.union(union(path))
    }
}

impl Spanned for OnConflict {
    fn span(&self) -> Span {
        let update = match &self.action {
            OnConflictAction::DoNothing => Span::empty(),
            OnConflictAction::DoUpdate(update) => {
                update.assignments.span().union(update.selection.span())
            }
        };
        self.conflict_target.span().union(update)
    }
}

impl Spanned for ConflictTarget {
    fn span(&self) -> Span {
        match self {
            ConflictTarget::Keys(keys, predicate) => keys.span().union(predicate.span()),
            ConflictTarget::OnConstraint(name) => name.span(),
        }
    }
}

impl Spanned for ConflictKey {
    fn span(&self) -> Span {
        match self {
            ConflictKey::Column(name) => name.span,
            ConflictKey::Expr(expr) => expr.span(),
        }
    }
}

impl Spanned for PlacedExpr {
    fn span(&self) -> Span {
        self.token.0.union(self.expr.span())
    }
}

impl Spanned for Assignment {
    fn span(&self) -> Span {
        let target = match &self.target {
            AssignmentTarget::One(target) => target.span(),
            AssignmentTarget::Tuple(targets) => targets.span(),
        };
        target.union(self.value.span())
    }
}

impl Spanned for Update {
    fn span(&self) -> Span {
        union([
            self.table.span(),
            self.assignments.span(),
            self.from.span(),
            self.selection.span(),
            self.returning.span(),
        ])
    }
}

impl Spanned for Delete {
    fn span(&self) -> Span {
        union([
            self.table.span(),
            self.using.span(),
            self.selection.span(),
            self.returning.span(),
        ])
    }
}

impl Spanned for Merge {
    fn span(&self) -> Span {
        self.on.span().union(self.clauses.span())
    }
}

impl Spanned for MergeClause {
    fn span(&self) -> Span {
        let action = match &self.action {
            MergeAction::DoNothing | MergeAction::Delete => Span::empty(),
            MergeAction::Update(assignments) => assignments.span(),
            MergeAction::Insert(insert) => insert.span(),
        };
        self.predicate.span().union(action)
    }
}

impl Spanned for MergeInsertExpr {
    fn span(&self) -> Span {
        self.columns.span().union(self.values.span())
    }
}
