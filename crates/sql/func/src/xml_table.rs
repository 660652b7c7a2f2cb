//! XMLTABLE: rows of what XPath expressions find in a document.
//!
//! Its arguments are those of one call: the expression for rows, the document, an array of prefixes and their
//! namespaces, and for each column a NULL of its
//! type, its name, its expression, what stands for a value that is not there, and a word of what else is said of it.

use super::arithmetic::bad_args;
use super::xml_path::append_scalar;
use super::{Function, FunctionImpl, Rows, Volatility};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::{Builder, ItemsBuilder};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::build::ROW_BYTES;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::text_io;
use logstead_sql_types::value::xml::no_document;
use logstead_sql_types::value::{Datum, SqlType, info, size_bytes};
use logstead_sql_types::xml::xpath::{ChargedText, Namespaces, Value, XPath, number_text};
use logstead_sql_types::xml::{NodeId, Tree, escaped, node_text};
use logstead_types::SqlState;

/// Arguments in front of those of the columns, and arguments of a column.
const HEAD: usize = 3;
const OF_COLUMN: usize = 5;

/// What the last argument of a column says.
pub(crate) const ORDINALITY: &str = "ORDINALITY";
/// The same.
pub(crate) const NOT_NULL: &str = "NOT NULL";

/// XMLTABLE
pub static XML_TABLE: Function = super::function(
    0,
    "xmltable",
    &[],
    Some(ANY),
    RECORD,
    false,
    Volatility::Stable,
    FunctionImpl::TypedSet(rows),
);

struct Column<'a> {
    ty: SqlType,
    name: &'a str,
    /// None: the number of the row.
    path: Option<XPath>,
    default: &'a Datum,
    not_null: bool,
}

fn no_null(what: &str) -> SqlError {
    SqlError::new(
        SqlState::NULL_VALUE_NOT_ALLOWED,
        format!("{what} must not be null"),
    )
}

fn no_empty(what: &str) -> SqlError {
    SqlError::new(
        SqlState::DATA_EXCEPTION,
        format!("{what} path filter must not be empty string"),
    )
}

fn namespaces(pairs: &Datum) -> Result<Namespaces<'_>> {
    let mut found = Namespaces::default();
    for pair in pairs.as_array()?.items.chunks(2) {
        let [prefix, uri] = pair else { continue };
        if uri.is_null() {
            return Err(no_null("namespace URI"));
        }
        if prefix.as_str()?.is_empty() {
            return Err(SqlError::unsupported_text(
                "DEFAULT namespace is not supported",
            ));
        }
        found.add(prefix.as_str()?, uri.as_str()?)?;
    }
    Ok(found)
}

fn column<'a>(ty: SqlType, args: &'a [Datum], namespaces: &Namespaces<'_>) -> Result<Column<'a>> {
    let [_, name, path, default, said] = args else {
        return Err(bad_args(args));
    };
    let said = said.as_str()?;
    let path = match path {
        _ if said == ORDINALITY => None,
        Datum::Null => return Err(no_null("column filter expression")),
        path => match path.as_str()? {
            "" => return Err(no_empty("column")),
            path => Some(XPath::parse(path, namespaces)?),
        },
    };
    Ok(Column {
        ty,
        name: name.as_str()?,
        path,
        default,
        not_null: said == NOT_NULL,
    })
}

impl Column<'_> {
    /// The text that a value is read from; none if there is none.
    fn text(&self, tree: &Tree<'_>, value: &Value) -> Result<Option<ChargedText>> {
        Ok(Some(match value {
            Value::Nodes(nodes) if nodes.is_empty() => return Ok(None),
            Value::Nodes(nodes) if self.ty.oid == XML => {
                let mut out = Builder::default();
                for node in nodes.iter() {
                    node_text(tree, *node, &mut out)?;
                }
                ChargedText::built(out)?
            }
            Value::Nodes(nodes) if nodes.len() > 1 => {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one value returned by column XPath expression",
                ));
            }
            Value::Text(text) if self.ty.oid == XML => {
                let mut out = Builder::default();
                escaped(text, &mut out)?;
                ChargedText::built(out)?
            }
            Value::Bool(value) if info::category(self.ty.oid) == 'N' => {
                ChargedText::copied(if *value { "1" } else { "0" })?
            }
            Value::Number(number) => ChargedText::copied(&number_text(*number))?,
            Value::Bool(_) if self.ty.oid == XML => {
                let mut out = Builder::default();
                append_scalar(value, &mut out)?;
                ChargedText::built(out)?
            }
            other => other.text(tree)?,
        }))
    }

    fn value(
        &self,
        cx: &dyn IoContext,
        tree: &Tree<'_>,
        node: NodeId,
        number: usize,
    ) -> Result<Datum> {
        let Some(path) = &self.path else {
            return Ok(Datum::Int4(i32::try_from(number).unwrap_or(i32::MAX)));
        };
        let found = match self.text(tree, &path.value(tree, node)?)? {
            Some(text) => text_io::input(self.ty, &text, Some(cx))?,
            None => self.default.clone(),
        };
        if found.is_null() && self.not_null {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("null is not allowed in column \"{}\"", self.name),
            ));
        }
        Ok(found)
    }
}

fn rows(cx: &dyn IoContext, types: &[SqlType], args: &[Datum]) -> Result<Rows> {
    let ([row, document, pairs, rest @ ..], Some(types)) = (args, types.get(HEAD..)) else {
        return Err(bad_args(args));
    };
    if document.is_null() {
        return Ok(Vec::new());
    }
    let tree = Tree::of(document.as_str()?).map_err(no_document)?;
    let namespaces = namespaces(pairs)?;
    if row.is_null() {
        return Err(no_null("row filter expression"));
    }
    if row.as_str()?.is_empty() {
        return Err(no_empty("row"));
    }
    let row = XPath::parse(row.as_str()?, &namespaces)?;
    let columns = rest.chunks(OF_COLUMN).zip(types.chunks(OF_COLUMN));
    let columns = columns.map(|(args, types)| column(types[0], args, &namespaces));
    let columns = columns.collect::<Result<Vec<Column<'_>>>>()?;
    let Value::Nodes(nodes) = row.value(&tree, 0)? else {
        return Ok(Vec::new());
    };
    let mut found: ItemsBuilder<Vec<Datum>> = ItemsBuilder::new();
    for (at, node) in nodes.iter().copied().enumerate() {
        check_for_interrupts()?;
        let mut made = Vec::with_capacity(columns.len());
        for column in &columns {
            made.push(column.value(cx, &tree, node, at + 1)?);
        }
        found.hold(ROW_BYTES + made.iter().map(size_bytes).sum::<usize>())?;
        found.push(made)?;
    }
    Ok(found.finish())
}
