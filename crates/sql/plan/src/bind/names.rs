//! Identifiers, and the names of result columns.

use logstead_sql_parse::ast::{self, AExprKind, Expr as Ast, FuncName, TypeName, TypeRef};
use logstead_sql_parse::schema_and_name;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::{FunctionId, TypeId};

/// The name of a function that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionName<'n> {
    /// The schema, if one is named.
    pub(crate) schema: Option<&'n str>,
    /// The name.
    pub(crate) name: &'n str,
    /// Its OID: a stored text names no other.
    pub(crate) oid: Option<FunctionId>,
}

impl<'n> FunctionName<'n> {
    /// The function that a call names; a third name in front must be this database.
    pub(crate) fn of(name: &'n FuncName, database: &str) -> Result<FunctionName<'n>> {
        let (schema, name) = match name {
            FuncName::Stored { oid, called } => {
                return Ok(FunctionName {
                    schema: None,
                    name: called,
                    oid: Some(FunctionId::new(*oid)),
                });
            }
            FuncName::Named(names) => match names.as_slice() {
                [.., schema, name] => {
                    schema_and_name(names, database)?;
                    (Some(&**schema), &**name)
                }
                [name] => (None, &**name),
                [] => return Err(SqlError::internal("a function without a name")),
            },
        };
        let oid = None;
        Ok(FunctionName { schema, name, oid })
    }

    /// May it be one of PostgreSQL's own?
    pub(crate) fn may_be_built_in(&self) -> bool {
        self.oid.is_none() && self.schema.is_none_or(|schema| schema == "pg_catalog")
    }
}

/// The name PostgreSQL gives to a result column without an alias.
pub(crate) fn output_name(expr: &Ast, types: &UserTypes) -> String {
    figure(expr, types).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// The name PostgreSQL gives to an index's column on an expression.
pub fn index_column_name(expr: &Ast, types: &UserTypes) -> String {
    figure(expr, types).map_or_else(|| "expr".to_owned(), |(name, _)| name)
}

/// The name and its strength (2: a real name, 1: only the name of a type or construct).
fn figure(expr: &Ast, types: &UserTypes) -> Option<(String, u8)> {
    let strong = |name: &str| Some((name.to_owned(), 2));
    match expr {
        Ast::ColumnRef(column) => column.fields.last().and_then(|name| strong(name)),
        Ast::SetToDefault(_) => strong("default"),
        Ast::SqlValueFunction(node) => strong(node.op.word()),
        Ast::Indirection(node) => {
            let field = node.indirection.iter().rev().find_map(|part| match part {
                ast::Indirection::Field(name) => strong(name),
                _ => None,
            });
            field.or_else(|| figure(&node.arg, types))
        }
        Ast::FuncCall(node) => node.funcname.called().and_then(|name| strong(name)),
        Ast::TypeCast(node) => match figure(&node.arg, types) {
            Some((name, 2)) => Some((name, 2)),
            _ => Some((type_word(&node.type_name, types), 1)),
        },
        Ast::CaseExpr(node) => match node.defresult.as_ref().and_then(|e| figure(e, types)) {
            Some((name, 2)) => Some((name, 2)),
            _ => Some(("case".to_owned(), 1)),
        },
        Ast::CollateClause(node) => figure(&node.arg, types),
        Ast::ArrayExpr(_) => strong("array"),
        Ast::RowExpr(_) => strong("row"),
        Ast::CoalesceExpr(_) => strong("coalesce"),
        Ast::MinMaxExpr(node) if node.is_least => strong("least"),
        Ast::MinMaxExpr(_) => strong("greatest"),
        Ast::XmlExpr(node) => node.op.column_name().and_then(strong),
        Ast::XmlSerialize(_) => strong("xmlserialize"),
        Ast::GroupingFunc(_) => strong("grouping"),
        Ast::AExpr(node) if node.kind == AExprKind::NullIf => strong("nullif"),
        Ast::SubLink(node) => match &node.kind {
            ast::SubLinkKind::Exists => strong("exists"),
            ast::SubLinkKind::Expr => subquery_name(&node.subselect, types),
            ast::SubLinkKind::Array => strong("array"),
            _ => None,
        },
        _ => None,
    }
}

fn subquery_name(query: &ast::SelectStmt, types: &UserTypes) -> Option<(String, u8)> {
    let mut first = query;
    while let ast::SelectBody::SetOp(operation) = &first.body {
        first = &operation.larg;
    }
    let ast::SelectBody::Select(core) = &first.body else {
        return Some(("column1".to_owned(), 2));
    };
    let target = core.target_list.first()?;
    match (&target.name, target.val.as_ref()?) {
        (Some(name), _) => Some((name.to_string(), 2)),
        (None, Ast::ColumnRef(column)) if column.star => None,
        (None, expr) => Some((output_name(expr, types), 2)),
    }
}

/// The last word of a type's internal name, as FigureColname uses it.
fn type_word(name: &TypeName, types: &UserTypes) -> String {
    match &name.name {
        TypeRef::Named(names) => names.last().map_or_else(String::new, ToString::to_string),
        TypeRef::Stored(oid) => types.type_name(TypeId::new(*oid)).into_owned(),
    }
}

/// Levenshtein distance, giving up beyond `max`.
pub(crate) fn distance(a: &str, b: &str, max: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row.last().copied().filter(|&d| d <= max)
}
