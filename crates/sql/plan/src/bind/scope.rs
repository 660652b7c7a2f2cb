//! Name resolution: columns and FROM items, and what to say when a name means nothing.

use super::names::distance;
use super::{Binder, ColId};
use crate::query::expr::Expr;
use logstead_sql_parse::ast::{ColumnRef, Name};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// A FROM item (or the unnamed result of a join) as names see it.
#[derive(Clone)]
pub(crate) struct NsItem {
    /// The name it goes by; empty for a join without an alias.
    pub alias: Arc<str>,
    /// Schema, when the name is the table's own.
    pub schema: Option<Arc<str>>,
    /// The real name, when an alias hides it.
    pub(crate) hidden_name: Option<Arc<str>>,
    pub columns: Vec<NsColumn>,
    /// `alias.column` finds it.
    pub(crate) rel_visible: bool,
    /// `column` finds it.
    pub(crate) columns_visible: bool,
    /// The table for `tableoid`, if it has one.
    pub table: Option<RelationId>,
    /// The FROM item that it is, of a relation.
    pub(crate) rel: Option<usize>,
    /// The table or view whose row type a whole row has; none if it is a record.
    pub row: Option<RelationId>,
    /// The composite type of a function's rows, if they are of one.
    pub composite: Option<TypeId>,
    /// An outer join may give NULLs for all of its columns.
    pub nullable: bool,
    /// A function of one result column: its name means that column's value, not a row.
    pub scalar: bool,
    /// It stands where LATERAL sees it, and may not read it.
    pub(crate) barred: Option<InvalidReference>,
}

/// Why an item in sight may not be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidReference {
    /// The item that reads it is joined to it by RIGHT or FULL JOIN.
    ByJoin,
    /// It is what UPDATE or DELETE changes.
    Target,
}

impl NsItem {
    /// Is it a relation, by its own name or an alias?
    pub(crate) fn is_relation(&self) -> bool {
        self.hidden_name.is_some() || self.schema.is_some()
    }
}

/// A column as names see it.
#[derive(Clone)]
pub(crate) struct NsColumn {
    pub name: Arc<str>,
    pub what: NsColumnSource,
    /// What it is in a whole row if no name finds it: it has come to its relation after the view that reads that.
    pub(crate) in_row: Option<NsColumnSource>,
}

impl NsColumn {
    /// What it is as a part of the whole row.
    pub(crate) fn part_of_row(&self) -> Option<&NsColumnSource> {
        match &self.what {
            NsColumnSource::Gone { .. } => self.in_row.as_ref(),
            what => Some(what),
        }
    }
}

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum NsColumnSource {
    Column(ColId),
    /// A column merged by FULL JOIN ... USING, or one that a view computes, with its number.
    Merged(Expr, Option<usize>),
    /// A dropped or otherwise unreachable column. It `counts` where names are given to columns one after the other, if
    /// it was there when the names were given: in a view.
    Gone {
        counts: bool,
    },
}

impl Binder<'_> {
    /// An expression for a column in sight.
    pub(crate) fn ns_expr(&mut self, what: &NsColumnSource) -> Result<Expr> {
        match what {
            NsColumnSource::Column(id) => Ok(self.use_column(*id)),
            NsColumnSource::Merged(expr, computed) => {
                if let Some(number) = computed {
                    self.name_computed(*number);
                }
                if let Expr::Param(number, _) = expr
                    && let Some(used) = self.params_used.get_mut(*number)
                {
                    *used = true;
                }
                Ok(expr.clone())
            }
            NsColumnSource::Gone { .. } => Err(SqlError::internal("a dropped column was named")),
        }
    }

    pub(crate) fn found(
        &mut self,
        level: usize,
        what: NsColumnSource,
        at: Option<usize>,
    ) -> Result<Expr> {
        let expr = self.ns_expr(&what)?;
        let frame = &mut self.frames[level];
        if !frame.in_aggregate
            && let NsColumnSource::Column(id) = what
        {
            frame.references.push((id, at));
        }
        Ok(expr)
    }

    /// A column by its name.
    pub(crate) fn column_ref(&mut self, node: &ColumnRef) -> Result<Expr> {
        let at = self.at(node.location);
        if node.star {
            return self.whole_row_of(&node.fields, at);
        }
        match node.fields.as_slice() {
            [name] => self.resolve_column(name, at),
            names => self.resolve_qualified(names, at),
        }
    }

    /// `name`.
    fn resolve_column(&mut self, name: &str, at: Option<usize>) -> Result<Expr> {
        if let Some(whole) = self.row_beside_variable(name, at)? {
            return self.whole_row(whole, at);
        }
        if let Some(expr) = self.find_column(name, at)? {
            return Ok(expr);
        }
        if let Some(expr) = self.system_column(None, name, at)? {
            return Ok(expr);
        }
        if let Some(found) = self.find_item(None, name).map_err(|e| e.at(at))? {
            return self.whole_row(found, at);
        }
        if let Some(arg) = self.routine_argument(name) {
            return Ok(arg);
        }
        let error = SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" does not exist"),
        )
        .at(at);
        Err(match self.suggest(None, name) {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// `name`, if some FROM item in sight has it.
    pub(crate) fn find_column(&mut self, name: &str, at: Option<usize>) -> Result<Option<Expr>> {
        for level in (0..self.frames.len()).rev() {
            let mut hit: Option<NsColumnSource> = None;
            for item in self.frames[level].ns.iter().filter(|i| i.columns_visible) {
                for column in item.columns.iter().filter(|c| *c.name == *name) {
                    if matches!(column.what, NsColumnSource::Gone { .. }) {
                        continue;
                    }
                    if hit.is_some() {
                        return Err(ambiguous(name).at(at));
                    }
                    if let Some(error) = barred(item) {
                        return Err(error.at(at));
                    }
                    hit = Some(column.what.clone());
                }
            }
            if let Some(what) = hit {
                if level > 0 && self.prefers_variable(name, at)? {
                    continue;
                }
                return self.found(level, what, at).map(Some);
            }
        }
        Ok(None)
    }

    /// `item.name` or `schema.item.name`.
    pub(super) fn resolve_qualified(&mut self, names: &[Name], at: Option<usize>) -> Result<Expr> {
        let (schema, rel, column) = match names {
            [rel, column] => (None, rel, column),
            [schema, rel, column] => (Some(&**schema), rel, column),
            [database, schema, rel, column] if **database == *self.cx.catalog.database_name => {
                (Some(&**schema), rel, column)
            }
            [_, _, _, _] => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "cross-database references are not implemented: {}",
                        names.join(".")
                    ),
                )
                .at(at));
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "improper qualified name (too many dotted names): {}",
                        names.join(".")
                    ),
                )
                .at(at));
            }
        };
        let Some((mut level, mut index)) = self.find_item(schema, rel).map_err(|e| e.at(at))?
        else {
            if schema.is_none() {
                if let Some(arg) = self.qualified_argument(rel, column) {
                    return Ok(arg);
                }
                if let Some(arg) = self.routine_argument(rel) {
                    return super::expr::field_of(arg, column, self.types()).map_err(|e| e.at(at));
                }
            }
            return Err(self.missing_item(schema, rel).at(at));
        };
        let has = |item: &NsItem| item.columns.iter().any(|c| *c.name == **column);
        if level > 0
            && schema.is_none()
            && has(&self.frames[level].ns[index])
            && self.prefers_field(rel, column, at)?
        {
            let variables = self.frames[0].ns.iter();
            let found = { variables }.position(|item| item.rel_visible && *item.alias == **rel);
            (level, index) = (0, found.unwrap_or(0));
        }
        let item = &self.frames[level].ns[index];
        let mut hit: Option<NsColumnSource> = None;
        for c in item
            .columns
            .iter()
            .filter(|c| *c.name == **column && !matches!(c.what, NsColumnSource::Gone { .. }))
        {
            if hit.is_some() {
                return Err(ambiguous(column).at(at));
            }
            hit = Some(c.what.clone());
        }
        if let Some(what) = hit {
            return self.found(level, what, at);
        }
        if let Some(expr) = self.system_column(Some((level, index)), column, at)? {
            return Ok(expr);
        }
        if level == 0
            && self.variables().is_some()
            && let Some(error) = self.no_field(index, column)
        {
            return Err(error);
        }
        let error = SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column {rel}.{column} does not exist"),
        )
        .at(at);
        Err(match self.suggest(Some(rel), column) {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// The FROM item a qualifier means: (frame, index).
    pub(crate) fn find_item(
        &self,
        schema: Option<&str>,
        rel: &str,
    ) -> Result<Option<(usize, usize)>> {
        for level in (0..self.frames.len()).rev() {
            let mut hit = None;
            for (index, item) in self.frames[level].ns.iter().enumerate() {
                let named = item.rel_visible
                    && *item.alias == *rel
                    && schema.is_none_or(|s| item.schema.as_deref() == Some(s));
                if named {
                    if hit.is_some() {
                        return Err(SqlError::new(
                            SqlState::AMBIGUOUS_ALIAS,
                            format!("table reference \"{rel}\" is ambiguous"),
                        ));
                    }
                    if let Some(error) = barred(item) {
                        return Err(error);
                    }
                    hit = Some((level, index));
                }
            }
            if hit.is_some() {
                return Ok(hit);
            }
        }
        Ok(None)
    }

    pub(crate) fn missing_item(&self, schema: Option<&str>, rel: &str) -> SqlError {
        let hidden =
            self.frames.iter().flat_map(|f| &f.ns).find(|i| {
                i.hidden_name.as_deref() == Some(rel) && i.rel_visible && schema.is_none()
            });
        if let Some(item) = hidden {
            return SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("invalid reference to FROM-clause entry for table \"{rel}\""),
            )
            .hint(format!(
                "Perhaps you meant to reference the table alias \"{}\".",
                item.alias
            ));
        }
        let out_of_reach = self
            .frames
            .iter()
            .flat_map(|f| &f.ns)
            .any(|i| *i.alias == *rel && !i.rel_visible && !rel.is_empty() && schema.is_none());
        let unseen = || schema.is_none() && self.unseen.iter().any(|name| **name == *rel);
        if out_of_reach || unseen() {
            return SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("invalid reference to FROM-clause entry for table \"{rel}\""),
            )
            .hint(format!("There is an entry for table \"{rel}\", but it cannot be referenced from this part of the query."));
        }
        SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("missing FROM-clause entry for table \"{rel}\""),
        )
    }

    /// "Perhaps you meant ...": the closest column names in sight.
    fn suggest(&self, rel: Option<&str>, name: &str) -> Option<String> {
        let mut best = 4;
        let mut hits: Vec<String> = Vec::new();
        let frames = self.frames.iter().rev();
        for frame in frames.filter(|frame| !frame.is_of_variables) {
            for item in frame
                .ns
                .iter()
                .filter(|i| i.rel_visible && !i.alias.is_empty())
            {
                let penalty = match rel {
                    Some(rel) if rel != &*item.alias => match distance(rel, &item.alias, 3) {
                        Some(d) => d,
                        None => continue,
                    },
                    _ => 0,
                };
                for column in item
                    .columns
                    .iter()
                    .filter(|c| !matches!(c.what, NsColumnSource::Gone { .. }))
                {
                    let Some(d) = distance(name, &column.name, 3) else {
                        continue;
                    };
                    let total = d + penalty;
                    if d > name.chars().count() / 2 || total > best || total > 3 {
                        continue;
                    }
                    if total < best {
                        hits.clear();
                        best = total;
                    }
                    hits.push(format!("\"{}.{}\"", item.alias, column.name));
                }
            }
            if best == 0 {
                break;
            }
        }
        match hits.as_slice() {
            [one] => Some(format!("Perhaps you meant to reference the column {one}.")),
            [one, two] => Some(format!(
                "Perhaps you meant to reference the column {one} or the column {two}."
            )),
            _ => None,
        }
    }
}

/// What naming an item comes to that may not be read.
fn barred(item: &NsItem) -> Option<SqlError> {
    let error = SqlError::new(
        SqlState::INVALID_COLUMN_REFERENCE,
        format!(
            "invalid reference to FROM-clause entry for table \"{}\"",
            item.alias
        ),
    );
    Some(match item.barred? {
        InvalidReference::ByJoin => {
            error.detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
        }
        InvalidReference::Target => error.hint(format!(
            "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
            item.alias
        )),
    })
}

pub(super) fn ambiguous(name: &str) -> SqlError {
    SqlError::new(
        SqlState::AMBIGUOUS_COLUMN,
        format!("column reference \"{name}\" is ambiguous"),
    )
}
