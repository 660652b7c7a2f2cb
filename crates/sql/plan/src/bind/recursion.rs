//! What a recursive query of WITH may look like: where it may name itself, as PostgreSQL's checks of the syntax tree
//! say.
//!
//! Looks at the tree only. Names that a WITH within defines again are not the query's own.

use super::query::locks;
use logstead_sql_parse::ast::{
    self, JoinType, RangeVar, SelectBody, SelectStmt, SetOp, SetOperation,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::ops::ControlFlow;

/// 42P19.
const INVALID_RECURSION: SqlState = SqlState::new(b"42P19");

/// Where a name stands that must not stand there.
#[derive(Clone, Copy)]
enum Place {
    Allowed,
    OuterJoin,
    Intersect,
    Except,
}

impl Place {
    fn words(self) -> Option<&'static str> {
        match self {
            Place::Allowed => None,
            Place::OuterJoin => Some("an outer join"),
            Place::Intersect => Some("INTERSECT"),
            Place::Except => Some("EXCEPT"),
        }
    }
}

/// Checks a query of WITH RECURSIVE that names itself, and gives the UNION of its two terms.
pub(super) fn terms<'q>(query: &'q SelectStmt, name: &str) -> Result<&'q SetOp> {
    let union = match &query.body {
        SelectBody::SetOp(operation) if operation.op == SetOperation::Union => Some(operation),
        _ => None,
    };
    let Some(union) = union else {
        return Err(SqlError::new(
            INVALID_RECURSION,
            format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            ),
        ));
    };
    if names(&union.larg, name) {
        return Err(wrong(name, "its non-recursive term"));
    }
    let mut check = Check { name, found: false };
    check.query(&union.rarg, Place::Allowed)?;
    if query
        .with_clause
        .as_ref()
        .is_some_and(|with| names(&with.ctes, name))
    {
        return Err(wrong(name, "a subquery"));
    }
    let clause = if !query.sort_clause.is_empty() {
        "ORDER BY"
    } else if has_offset(query) {
        "OFFSET"
    } else if query.limit.is_some() {
        "LIMIT"
    } else if !locks(query).is_empty() {
        "FOR UPDATE/SHARE"
    } else {
        return Ok(union);
    };
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{clause} in a recursive query is not implemented"),
    ))
}

fn has_offset(query: &SelectStmt) -> bool {
    { query.limit.as_ref() }.is_some_and(|limit| limit.offset.is_some())
}

fn wrong(name: &str, place: &str) -> SqlError {
    SqlError::new(
        INVALID_RECURSION,
        format!("recursive reference to query \"{name}\" must not appear within {place}"),
    )
}

/// Whether something names the query in some FROM, where no other query of WITH has that name.
pub(super) fn names<T: ast::Visit>(within: &T, name: &str) -> bool {
    struct Find<'n> {
        name: &'n str,
        hidden: usize,
    }
    impl Find<'_> {
        fn hides(&self, with: &ast::WithClause) -> usize {
            let mut all = with.ctes.iter();
            usize::from(all.any(|cte| *cte.ctename == *self.name))
        }
    }
    impl ast::Visitor for Find<'_> {
        type Break = ();

        fn pre_visit_with(&mut self, with: &ast::WithClause) -> ControlFlow<()> {
            self.hidden += self.hides(with);
            ControlFlow::Continue(())
        }

        fn post_visit_with(&mut self, with: &ast::WithClause) -> ControlFlow<()> {
            self.hidden -= self.hides(with);
            ControlFlow::Continue(())
        }

        fn pre_visit_relation(&mut self, relation: &RangeVar) -> ControlFlow<()> {
            match self.hidden == 0 && is_name(relation, self.name) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    within.visit(&mut Find { name, hidden: 0 }).is_break()
}

fn is_name(relation: &RangeVar, name: &str) -> bool {
    relation.bare_name().is_some_and(|own| **own == *name)
}

struct Check<'n> {
    name: &'n str,
    found: bool,
}

impl Check<'_> {
    fn body(&mut self, body: &SelectBody, place: Place) -> Result<()> {
        match body {
            SelectBody::Select(select) => self.select(select, place),
            SelectBody::SetOp(operation) => {
                let all = operation.all;
                let (left_place, right_place) = match (operation.op, place) {
                    (SetOperation::Intersect, Place::Allowed) if all => {
                        (Place::Intersect, Place::Intersect)
                    }
                    (SetOperation::Except, Place::Allowed) => {
                        (if all { Place::Except } else { place }, Place::Except)
                    }
                    _ => (place, place),
                };
                self.query(&operation.larg, left_place)?;
                self.query(&operation.rarg, right_place)
            }
            SelectBody::Values(rows) => self.within(rows),
        }
    }

    fn query(&mut self, query: &SelectStmt, place: Place) -> Result<()> {
        if let Some(with) = &query.with_clause {
            if with.ctes.iter().any(|cte| *cte.ctename == *self.name) {
                return Ok(());
            }
            for cte in &with.ctes {
                match &*cte.ctequery {
                    ast::Stmt::Select(query) => self.query(query, place)?,
                    change => self.within(change)?,
                }
            }
        }
        self.body(&query.body, place)
    }

    fn select(&mut self, select: &ast::SelectCore, place: Place) -> Result<()> {
        for item in &select.from_clause {
            self.table_ref(item, place)?;
        }
        // All that is left are expressions.
        let mut rest = select.clone();
        rest.from_clause.clear();
        self.within(&rest)
    }

    fn joins(&mut self, item: &ast::TableRef, place: Place) -> Result<()> {
        let (first, joins) = item.join_chain();
        let outer = match place {
            Place::Allowed => Place::OuterJoin,
            place => place,
        };
        // What a join has on its left is all before it.
        let fills =
            |join: &&ast::JoinExpr| matches!(join.jointype, JoinType::Right | JoinType::Full);
        let side = |from: usize| match joins.iter().skip(from).any(fills) {
            true => outer,
            false => place,
        };
        self.table_ref(first, side(0))?;
        for (i, join) in joins.iter().enumerate() {
            let right = match join.jointype {
                JoinType::Left | JoinType::Full => outer,
                _ => side(i + 1),
            };
            self.table_ref(&join.rarg, right)?;
        }
        Ok(())
    }

    fn table_ref(&mut self, item: &ast::TableRef, place: Place) -> Result<()> {
        match item {
            ast::TableRef::RangeVar(item) => {
                if !is_name(item, self.name) {
                    return Ok(());
                }
                if let Some(words) = place.words() {
                    return Err(wrong(self.name, words));
                }
                if std::mem::replace(&mut self.found, true) {
                    return Err(SqlError::new(
                        INVALID_RECURSION,
                        format!(
                            "recursive reference to query \"{}\" must not appear more than once",
                            self.name
                        ),
                    ));
                }
                Ok(())
            }
            ast::TableRef::Subselect(item) => self.query(&item.subquery, place),
            ast::TableRef::Join(_) => self.joins(item, place),
            other => self.within(other),
        }
    }

    /// What is neither FROM nor a set operation: a subquery there must not name the query.
    fn within<T: ast::Visit>(&self, part: &T) -> Result<()> {
        match names(part, self.name) {
            true => Err(wrong(self.name, "a subquery")),
            false => Ok(()),
        }
    }
}
