//! Statements that read and change rows.

use super::query::mark;
use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{
    DeleteStmt, Expr, IndexElem, IndexKey, Indirection, InferClause, InsertSource, InsertStmt,
    Location, MergeAction, MergeStmt, MergeWhenClause, OnConflictClause, Overriding, RangeVar,
    ResTarget, SelectStmt, SetClause, SortByDir, SortByNulls, Stmt, TableRef, UpdateStmt,
};
use crate::conflict_target::EXPRESSION_MARK;
use crate::merge::{DEFAULT_VALUES, OVERRIDING_SYSTEM, OVERRIDING_USER};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast as library;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;

/// Takes INTO out of a query: out of the first SELECT of a set operation.
fn take_into(query: &mut library::Query) -> Option<library::SelectInto> {
    let mut body = query.body.as_mut();
    loop {
        match body {
            library::SetExpr::Select(select) => return select.into.take(),
            library::SetExpr::SetOperation { left, .. } => body = left.as_mut(),
            _ => return None,
        }
    }
}

/// Is an element of ON CONFLICT nothing but a column?
fn plain_column(element: &IndexElem) -> Option<&str> {
    match &element.key {
        IndexKey::Column(name)
            if element.collation.is_none()
                && element.opclass.is_none()
                && element.ordering == SortByDir::Default
                && element.nulls_ordering == SortByNulls::Default =>
        {
            Some(name)
        }
        _ => None,
    }
}

impl Lower<'_> {
    /// Lowers a query, INSERT, UPDATE, DELETE or MERGE.
    pub(super) fn query_statement(&self, stmt: &Stmt) -> Result<Lowered> {
        match stmt {
            Stmt::Select(query) => self.query_or_into(query),
            Stmt::Return(result) => Ok(Lowered {
                statement: library::Statement::Query(Box::new(self.select_of(&result.returnval)?)),
                kind: StatementKind::Query,
                as_of: None,
            }),
            _ => Ok(Lowered {
                statement: self.preparable(stmt)?,
                kind: StatementKind::Query,
                as_of: None,
            }),
        }
    }

    /// Lowers a query that is a statement. One with INTO is CREATE TABLE AS.
    pub(super) fn query_or_into(&self, query: &SelectStmt) -> Result<Lowered> {
        let as_of = self.as_of(query);
        let mut query = self.query(query)?;
        let Some(into) = take_into(&mut query) else {
            return Ok(Lowered {
                statement: library::Statement::Query(Box::new(query)),
                kind: StatementKind::Query,
                as_of,
            });
        };
        let name: Vec<library::Ident> = match into.targets.into_iter().next() {
            Some(library::Expr::Identifier(name)) => vec![name],
            Some(library::Expr::CompoundIdentifier(names)) => names,
            _ => return Err(SqlError::internal("INTO without a table")),
        };
        let table = CreateTableBuilder::new(library::ObjectName::from(name))
            .temporary(into.temporary)
            .query(Some(Box::new(query)));
        Ok(Lowered {
            statement: library::Statement::CreateTable(table.build()),
            kind: StatementKind::Ddl("SELECT INTO"),
            as_of,
        })
    }

    /// Lowers a statement that may be prepared (`PreparableStmt`); a query keeps its INTO.
    pub(super) fn preparable(&self, stmt: &Stmt) -> Result<library::Statement> {
        let with = match stmt {
            Stmt::Insert(insert) => &insert.with_clause,
            Stmt::Update(update) => &update.with_clause,
            Stmt::Delete(delete) => &delete.with_clause,
            Stmt::Merge(merge) => &merge.with_clause,
            _ => return Ok(library::Statement::Query(Box::new(self.query_of(stmt)?))),
        };
        match with {
            Some(_) => Ok(library::Statement::Query(Box::new(self.query_of(stmt)?))),
            None => Ok(self.change(stmt)?.1),
        }
    }

    /// Lowers INSERT, UPDATE, DELETE or MERGE, apart from its WITH.
    pub(super) fn change(
        &self,
        stmt: &Stmt,
    ) -> Result<(Option<library::With>, library::Statement)> {
        use library::Statement as S;
        let (with, statement) = match stmt {
            Stmt::Insert(insert) => (&insert.with_clause, S::Insert(self.insert(insert)?)),
            Stmt::Update(update) => (&update.with_clause, S::Update(self.update(update)?)),
            Stmt::Delete(delete) => (&delete.with_clause, S::Delete(self.delete(delete)?)),
            Stmt::Merge(merge) => (&merge.with_clause, S::Merge(self.merge(merge)?)),
            _ => return Err(SqlError::internal("a statement that changes nothing")),
        };
        let with = match with {
            Some(with) => Some(self.with(with)?),
            None => None,
        };
        Ok((with, statement))
    }

    fn insert(&self, insert: &InsertStmt) -> Result<library::Insert> {
        let alias = self.table_alias(insert.relation.alias.as_deref());
        let source = match &insert.source {
            InsertSource::Select(query) => Some(Box::new(self.query(query)?)),
            InsertSource::DefaultValues => None,
        };
        Ok(library::Insert {
            insert_token: AttachedToken::empty(),
            optimizer_hints: Vec::new(),
            or: None,
            // The library has no place for OVERRIDING: flags of other dialects carry it.
            ignore: insert.overriding == Some(Overriding::User),
            overwrite: insert.overriding == Some(Overriding::System),
            into: true,
            table: library::TableObject::TableName(self.relation_name(&insert.relation)),
            table_alias: alias.map(|alias| library::TableAliasWithoutColumns {
                explicit: true,
                alias: alias.name,
            }),
            columns: self.targets(&insert.cols)?,
            source,
            assignments: Vec::new(),
            partitioned: None,
            after_columns: Vec::new(),
            has_table_keyword: false,
            on: match &insert.on_conflict_clause {
                Some(on) => Some(library::OnInsert::OnConflict(self.on_conflict(on)?)),
                None => None,
            },
            returning: self.returning(&insert.returning_list)?,
            output: None,
            replace_into: false,
            priority: None,
            insert_alias: None,
            settings: None,
            format_clause: None,
            multi_table_insert_type: None,
            multi_table_into_clauses: Vec::new(),
            multi_table_when_clauses: Vec::new(),
            multi_table_else_clause: None,
        })
    }

    fn returning(&self, items: &[ResTarget]) -> Result<Option<Vec<library::SelectItem>>> {
        match items {
            [] => Ok(None),
            items => Ok(Some(self.select_items(items)?)),
        }
    }

    fn targets(&self, targets: &[ResTarget]) -> Result<Vec<library::ObjectName>> {
        targets.iter().map(|target| self.target(target)).collect()
    }

    /// What is assigned: a column, or a part of it. Subscripts travel as a part of the name, behind a mark.
    fn target(&self, target: &ResTarget) -> Result<library::ObjectName> {
        let name = target.name.as_deref().unwrap_or_default();
        let mut parts = vec![self.ident(name, target.location)];
        let mut subscripts = target.subscript_ranges.iter();
        let mut is_subscript = false;
        for part in &target.indirection {
            let was_subscript = is_subscript;
            is_subscript = false;
            match part {
                Indirection::Field(name) => parts.push(self.ident(name, target.location)),
                Indirection::Star => {
                    let message = "row expansion via \"*\" is not supported here";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                        .at(self.error_position(target.location)));
                }
                Indirection::Index(_) | Indirection::Slice(..) => {
                    is_subscript = true;
                    // Those behind the first one are in its range.
                    if was_subscript {
                        continue;
                    }
                    let (from, to) = subscripts
                        .next()
                        .ok_or_else(|| SqlError::internal("a subscript that is not written"))?;
                    parts.push(self.written_mark(&EXPRESSION_MARK.to_string(), *from, *to));
                }
            }
        }
        Ok(library::ObjectName::from(parts))
    }

    /// A part of the text behind a mark.
    fn written_mark(&self, before: &str, from: usize, to: usize) -> library::Ident {
        let written = self.text().get(from..to).unwrap_or_default();
        let place = self.place(from);
        mark(
            format!("{before}{written}"),
            sqlparser::tokenizer::Span::new(place, place),
        )
    }

    fn on_conflict(&self, on: &OnConflictClause) -> Result<library::OnConflict> {
        let conflict_target = match &on.infer {
            None => None,
            Some(InferClause::Constraint(name, location)) => {
                let name = self.object_name(std::slice::from_ref(name), *location);
                Some(library::ConflictTarget::OnConstraint(name))
            }
            Some(InferClause::Index(elements, _, _)) => {
                let ranges = elements.iter().zip(&on.element_ranges);
                let element =
                    |(element, (from, to)): (&IndexElem, &(usize, usize))| match plain_column(
                        element,
                    ) {
                        Some(name) => self.ident(name, element.location),
                        None => self.written_mark(&EXPRESSION_MARK.to_string(), *from, *to),
                    };
                let mut columns: Vec<library::Ident> = ranges.map(element).collect();
                // The predicate has a mark more.
                let predicate = on.predicate_range.map(|(from, to)| {
                    self.written_mark(&format!("{EXPRESSION_MARK}{EXPRESSION_MARK}"), from, to)
                });
                columns.extend(predicate);
                Some(library::ConflictTarget::Columns(columns))
            }
        };
        let action = match &on.update {
            None => library::OnConflictAction::DoNothing,
            Some((assignments, condition)) => {
                library::OnConflictAction::DoUpdate(library::DoUpdate {
                    assignments: self.assignments(assignments)?,
                    selection: self.opt_expr(condition.as_ref())?,
                })
            }
        };
        Ok(library::OnConflict {
            conflict_target,
            action,
        })
    }

    fn assignments(&self, clauses: &[SetClause]) -> Result<Vec<library::Assignment>> {
        clauses
            .iter()
            .map(|clause| self.assignment(clause))
            .collect()
    }

    fn assignment(&self, clause: &SetClause) -> Result<library::Assignment> {
        let (target, value) = match clause {
            SetClause::Single(target) => {
                let value = target
                    .val
                    .as_ref()
                    .ok_or_else(|| SqlError::internal("an assignment of nothing"))?;
                let name = self.target(target)?;
                (library::AssignmentTarget::ColumnName(name), value)
            }
            SetClause::Multiple(targets, value) => {
                let names = self.targets(targets)?;
                (library::AssignmentTarget::Tuple(names), value)
            }
        };
        Ok(library::Assignment {
            target,
            value: self.expr(value)?,
        })
    }

    /// A table that is changed, as an item of FROM.
    fn changed_table(&self, relation: &RangeVar) -> Result<library::TableWithJoins> {
        self.table_ref(&TableRef::RangeVar(Box::new(relation.clone())))
    }

    fn update(&self, update: &UpdateStmt) -> Result<library::Update> {
        let from = match update.from_clause.as_slice() {
            [] => None,
            items => Some(library::UpdateTableFromKind::AfterSet(
                self.table_refs(items)?,
            )),
        };
        Ok(library::Update {
            update_token: AttachedToken::empty(),
            optimizer_hints: Vec::new(),
            table: self.changed_table(&update.relation)?,
            assignments: self.assignments(&update.target_list)?,
            from,
            selection: self.opt_expr(update.where_clause.as_ref())?,
            returning: self.returning(&update.returning_list)?,
            output: None,
            or: None,
            order_by: Vec::new(),
            limit: None,
        })
    }

    fn delete(&self, delete: &DeleteStmt) -> Result<library::Delete> {
        let table = self.changed_table(&delete.relation)?;
        let using = match delete.using_clause.as_slice() {
            [] => None,
            items => Some(self.table_refs(items)?),
        };
        Ok(library::Delete {
            delete_token: AttachedToken::empty(),
            optimizer_hints: Vec::new(),
            tables: Vec::new(),
            from: library::FromTable::WithFromKeyword(vec![table]),
            using,
            selection: self.opt_expr(delete.where_clause.as_ref())?,
            returning: self.returning(&delete.returning_list)?,
            output: None,
            order_by: Vec::new(),
            limit: None,
        })
    }

    fn merge(&self, merge: &MergeStmt) -> Result<library::Merge> {
        let source = self.table_ref(&merge.source_relation)?;
        let source = match source.joins.is_empty() {
            true => source.relation,
            false => library::TableFactor::NestedJoin {
                table_with_joins: Box::new(source),
                alias: None,
            },
        };
        let clauses = merge.merge_when_clauses.iter();
        let clauses = clauses.map(|clause| self.merge_when(clause));
        Ok(library::Merge {
            merge_token: AttachedToken::empty(),
            optimizer_hints: Vec::new(),
            into: true,
            table: self.changed_table(&merge.relation)?.relation,
            source,
            on: Box::new(self.expr(&merge.join_condition)?),
            clauses: clauses.collect::<Result<_>>()?,
            output: None,
        })
    }

    fn merge_when(&self, clause: &MergeWhenClause) -> Result<library::MergeClause> {
        let token = AttachedToken::empty;
        let action = match &clause.action {
            MergeAction::Nothing => library::MergeAction::DoNothing {
                do_token: token(),
                nothing_token: token(),
            },
            MergeAction::Delete => library::MergeAction::Delete {
                delete_token: token(),
            },
            MergeAction::Update(assignments) => {
                library::MergeAction::Update(library::MergeUpdateExpr {
                    update_token: token(),
                    kind: library::MergeUpdateKind::Set(self.assignments(assignments)?),
                    update_predicate: None,
                    delete_predicate: None,
                })
            }
            MergeAction::Insert {
                cols,
                overriding,
                values,
            } => library::MergeAction::Insert(self.merge_insert(
                cols,
                *overriding,
                values.as_deref(),
            )?),
        };
        Ok(library::MergeClause {
            when_token: token(),
            clause_kind: match clause.matched {
                true => library::MergeClauseKind::Matched,
                false => library::MergeClauseKind::NotMatched,
            },
            predicate: self.opt_expr(clause.condition.as_ref())?,
            action,
        })
    }

    /// INSERT of MERGE. The library has no place for DEFAULT VALUES and OVERRIDING: names among the columns that
    /// nobody can write stand for them.
    fn merge_insert(
        &self,
        cols: &[ResTarget],
        overriding: Option<Overriding>,
        values: Option<&[Expr]>,
    ) -> Result<library::MergeInsertExpr> {
        let marked = |name| {
            let name = mark(name, self.span(Location::UNKNOWN));
            library::ObjectName::from(vec![name])
        };
        let mut columns = self.targets(cols)?;
        columns.extend(overriding.map(|overriding| match overriding {
            Overriding::System => marked(OVERRIDING_SYSTEM),
            Overriding::User => marked(OVERRIDING_USER),
        }));
        let row = match values {
            Some(values) => self.row_items(values)?,
            None => {
                columns.push(marked(DEFAULT_VALUES));
                let null = library::Value::Null.with_empty_span();
                vec![library::Expr::Value(null)]
            }
        };
        let row = library::Parens {
            opening_token: AttachedToken::empty(),
            content: row,
            closing_token: AttachedToken::empty(),
        };
        Ok(library::MergeInsertExpr {
            insert_token: AttachedToken::empty(),
            columns,
            kind_token: AttachedToken::empty(),
            kind: library::MergeInsertKind::Values(library::Values {
                explicit_row: false,
                value_keyword: false,
                rows: vec![row],
            }),
            insert_predicate: None,
        })
    }
}
