//! What nodes say when they are asked: where they stand, what they consist of, what they are called.

use super::{
    Alias, Expr, FrameBound, FuncArg, FuncCall, FuncFormat, FuncName, JoinExpr, JoinQual,
    LimitCount, Location, MinMaxExpr, Name, ResTarget, SelectBody, SelectCore, SelectLimit,
    SelectStmt, Stmt, SubLink, SubLinkKind, TableRef, Value, WithClause, XmlNamedArg,
};

impl Expr {
    /// Where it is told to be, as PostgreSQL's `exprLocation`: the leftmost of what it consists of, for operators
    /// that of their first operand.
    pub fn location(&self) -> Location {
        let mut expr = self;
        let mut found = Location::UNKNOWN;
        loop {
            let (own, inner) = expr.own_location();
            found = found.leftmost(own);
            match inner {
                Some(inner) => expr = inner,
                None => return found,
            }
        }
    }

    /// Its own location, and what may begin further left.
    fn own_location(&self) -> (Location, Option<&Expr>) {
        match self {
            Expr::ColumnRef(node) => (node.location, None),
            Expr::ParamRef(node) => (node.location, None),
            Expr::Const(node) => (node.location, None),
            // `::` stands behind what it casts.
            Expr::TypeCast(node) => (
                node.location.leftmost(node.type_name.location),
                Some(&node.arg),
            ),
            Expr::CollateClause(node) => (node.location, Some(&node.arg)),
            Expr::AExpr(node) => (node.location, node.lexpr.as_ref()),
            Expr::Like(node) => (node.location, Some(&node.expr)),
            Expr::In(node) => (node.location, Some(&node.expr)),
            Expr::Between(node) => (node.location, Some(&node.expr)),
            Expr::BoolExpr(node) => (node.location, node.args.first()),
            Expr::NullTest(node) => (node.location, Some(&node.arg)),
            Expr::BooleanTest(node) => (node.location, Some(&node.arg)),
            Expr::FuncCall(node) => (node.location, node.args.first().map(|arg| &arg.value)),
            Expr::Indirection(node) => (Location::UNKNOWN, Some(&node.arg)),
            Expr::ArrayExpr(node) => (node.location, None),
            Expr::RowExpr(node) => (node.location, None),
            Expr::CaseExpr(node) => (node.location, None),
            Expr::CoalesceExpr(node) => (node.location, None),
            Expr::MinMaxExpr(node) => (node.location, None),
            Expr::SqlValueFunction(node) => (node.location, None),
            Expr::XmlExpr(node) => (node.location, node.args.first()),
            Expr::XmlSerialize(node) => (node.location, None),
            Expr::GroupingFunc(node) => (node.location, None),
            Expr::SubLink(node) => (node.location, node.kind.test()),
            Expr::CurrentOf(node) => (node.location, None),
            Expr::SetToDefault(location) => (*location, None),
        }
    }

    /// The query whose one value it is.
    pub fn scalar_query(&self) -> Option<&SubLink> {
        match self {
            Expr::SubLink(node) if node.kind == SubLinkKind::Expr => Some(node),
            _ => None,
        }
    }

    /// The names of a column.
    pub fn column_names(&self) -> Option<&[Name]> {
        match self {
            Expr::ColumnRef(column) if !column.star => Some(&column.fields),
            _ => None,
        }
    }

    /// The name of a column that nothing qualifies.
    pub fn bare_name(&self) -> Option<&Name> {
        match self.column_names()? {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The constant that it is.
    pub fn constant(&self) -> Option<&Value> {
        match self {
            Expr::Const(node) => Some(&node.value),
            _ => None,
        }
    }

    /// Is it NULL?
    pub fn is_null(&self) -> bool {
        self.constant() == Some(&Value::Null)
    }

    /// The text of a literal.
    pub fn literal(&self) -> Option<&str> {
        match self.constant()? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl SubLinkKind {
    /// What is compared with the subquery's rows.
    pub fn test(&self) -> Option<&Expr> {
        match self {
            SubLinkKind::All { test, .. }
            | SubLinkKind::Any { test, .. }
            | SubLinkKind::NotIn { test } => Some(test),
            SubLinkKind::Exists | SubLinkKind::Expr | SubLinkKind::Array => None,
        }
    }
}

impl MinMaxExpr {
    /// As it is written.
    pub fn word(&self) -> &'static str {
        if self.is_least { "LEAST" } else { "GREATEST" }
    }
}

impl FrameBound {
    /// Its offset.
    pub fn offset_mut(&mut self) -> Option<&mut Expr> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            _ => None,
        }
    }
}

impl XmlNamedArg {
    /// What it is called; a column is called by its name.
    pub fn name(&self) -> Option<&Name> {
        let own = || match &self.value {
            Expr::ColumnRef(column) => column.fields.last(),
            _ => None,
        };
        self.name.as_ref().or_else(own)
    }
}

impl FuncArg {
    /// Where it is told to be.
    pub fn location(&self) -> Location {
        match &self.name {
            Some((_, location)) => *location,
            None => self.value.location(),
        }
    }
}

impl FuncCall {
    /// The function that SQL's own words call.
    pub fn sql_syntax(&self) -> Option<&str> {
        match self.funcformat {
            FuncFormat::SqlSyntax => self.funcname.called().map(|name| &**name),
            FuncFormat::ExplicitCall => None,
        }
    }

    /// The arguments in front of one that is VARIADIC, and its array.
    pub fn variadic(&self) -> Option<(&[FuncArg], &Expr)> {
        let (array, rest) = self.args.split_last().filter(|_| self.func_variadic)?;
        Some((rest, &array.value))
    }

    /// Its arguments, if they are values without names, `*` and VARIADIC.
    pub fn values(&self) -> Option<Vec<&Expr>> {
        let is_plain = !self.agg_star && !self.func_variadic;
        let args = self.args.iter().filter(|_| is_plain);
        let values: Option<Vec<&Expr>> = args
            .map(|arg| arg.name.is_none().then_some(&arg.value))
            .collect();
        values.filter(|_| is_plain)
    }

    /// The arrays of UNNEST, if they are several: these are unnested side by side.
    pub fn unnested(&self) -> Option<Vec<&Expr>> {
        let is_unnest = match &self.funcname {
            FuncName::Named(names) => matches!(names.as_slice(), [name] if **name == *"unnest"),
            FuncName::Stored { .. } => false,
        };
        self.values().filter(|values| is_unnest && values.len() > 1)
    }
}

impl Stmt {
    /// Is it planned? The others are PostgreSQL's utility statements.
    pub fn is_planned(&self) -> bool {
        matches!(
            self,
            Stmt::Select(_) | Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_) | Stmt::Merge(_)
        )
    }

    /// The WITH in front of it.
    pub fn with_clause(&self) -> Option<&WithClause> {
        match self {
            Stmt::Select(query) => query.with_clause.as_deref(),
            Stmt::Insert(insert) => insert.with_clause.as_deref(),
            Stmt::Update(update) => update.with_clause.as_deref(),
            Stmt::Delete(delete) => delete.with_clause.as_deref(),
            Stmt::Merge(merge) => merge.with_clause.as_deref(),
            _ => None,
        }
    }
}

impl SelectStmt {
    /// Has it no clauses beyond its body?
    pub fn is_bare(&self) -> bool {
        self.with_clause.is_none()
            && self.sort_clause.is_empty()
            && self.limit.is_none()
            && self.locking_clause.is_empty()
    }

    /// The SELECT that it is.
    pub fn core(&self) -> Option<&SelectCore> {
        match &self.body {
            SelectBody::Select(core) => Some(core),
            SelectBody::Values(_) | SelectBody::SetOp(_) => None,
        }
    }
}

impl ResTarget {
    /// The column that is assigned.
    pub fn column(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Where its value is told to be.
    pub fn val_location(&self) -> Location {
        self.val.as_ref().map_or(self.location, Expr::location)
    }
}

impl SelectLimit {
    /// How many rows.
    pub fn count(&self) -> Option<&Expr> {
        match &self.count {
            Some(LimitCount::Count(count)) => Some(count),
            Some(LimitCount::All(_)) | None => None,
        }
    }
}

impl TableRef {
    /// Its first item and what is joined to that one after the other: joins without a name lean to the left.
    pub fn join_chain(&self) -> (&TableRef, Vec<&JoinExpr>) {
        let (mut first, mut joins) = (self, Vec::new());
        while let TableRef::Join(join) = first
            && (join.alias.is_none() || joins.is_empty())
        {
            joins.push(&**join);
            first = &join.larg;
        }
        joins.reverse();
        (first, joins)
    }

    /// What it is called.
    pub fn alias(&self) -> Option<&Alias> {
        match self {
            TableRef::RangeVar(node) => node.alias.as_deref(),
            TableRef::Subselect(node) => node.alias.as_deref(),
            TableRef::Function(node) => node.alias.as_deref(),
            TableRef::TableFunc(node) => node.alias.as_deref(),
            TableRef::TableSample(node) => node.relation.alias.as_deref(),
            TableRef::Join(node) => node.alias.as_deref(),
        }
    }
}

impl JoinExpr {
    /// Does it merge columns of one name?
    pub fn merges(&self) -> bool {
        self.is_natural || matches!(self.quals, JoinQual::Using(..))
    }
}
