//! XPath's functions: `xpath`, `xpath_exists`, `xmlexists`.

use super::Volatility::Immutable;
use super::arithmetic::bad_args;
use super::xml::append_constant;
use super::{Function, FunctionImpl};
use crate::function as f;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::{Builder, ItemsBuilder};
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::xml::no_document;
use logstead_sql_types::value::{Array, Datum};
use logstead_sql_types::xml::xpath::{Namespaces, Value, XPath};
use logstead_sql_types::xml::{Tree, escaped, node_text};
use logstead_types::SqlState;

/// Prefixes and URIs out of an array of pairs.
fn namespaces(pairs: &Array) -> Result<Namespaces<'_>> {
    let mut found = Namespaces::default();
    if pairs.items.is_empty() {
        return Ok(found);
    }
    let lengths: Vec<usize> = pairs.dims().iter().map(|dim| dim.len as usize).collect();
    if !matches!(lengths.as_slice(), [_, 2]) {
        return Err(SqlError::new(
            SqlState::DATA_EXCEPTION,
            "invalid array for XML namespace mapping",
        )
        .detail("The array must be two-dimensional with length of the second axis equal to 2."));
    }
    for pair in pairs.items.chunks(2) {
        let [prefix, uri] = pair else { continue };
        if prefix.is_null() || uri.is_null() {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "neither namespace name nor URI may be null",
            ));
        }
        found.add(prefix.as_str()?, uri.as_str()?)?;
    }
    Ok(found)
}

/// The value of an expression for a document, and the document.
fn evaluated<T>(
    path: &str,
    document: &str,
    namespaces: &Namespaces<'_>,
    then: impl FnOnce(&Tree<'_>, Value) -> Result<T>,
) -> Result<T> {
    if path.is_empty() {
        return Err(SqlError::new(
            SqlState::DATA_EXCEPTION,
            "empty XPath expression",
        ));
    }
    let tree = Tree::of(document).map_err(no_document)?;
    let path = XPath::parse(path, namespaces)?;
    let value = path.value(&tree, 0)?;
    then(&tree, value)
}

fn arguments(a: &[Datum]) -> Result<(&str, &str, Namespaces<'_>)> {
    Ok(match a {
        [path, document] => (path.as_str()?, document.as_str()?, Namespaces::default()),
        [path, document, pairs] => (
            path.as_str()?,
            document.as_str()?,
            namespaces(pairs.as_array()?)?,
        ),
        _ => return Err(bad_args(a)),
    })
}

/// What an expression that is no path comes to as a value of type xml.
pub(crate) fn append_scalar(value: &Value, out: &mut Builder) -> Result<()> {
    match value {
        Value::Nodes(_) => Ok(()),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => append_constant(&Datum::Float8(*number), FLOAT8, out),
        Value::Text(text) => escaped(text, out),
    }
}

/// `xpath(text, xml, text[])`
fn xpath(a: &[Datum]) -> Result<Datum> {
    let (path, document, namespaces) = arguments(a)?;
    evaluated(path, document, &namespaces, |tree, value| {
        let mut items: ItemsBuilder<Datum> = ItemsBuilder::new();
        match value {
            Value::Nodes(nodes) => {
                for node in nodes.iter() {
                    let mut out = Builder::default();
                    node_text(tree, *node, &mut out)?;
                    items.hold(out.len())?;
                    items.push(out.finish_text()?)?;
                }
            }
            scalar => {
                let mut out = Builder::default();
                append_scalar(&scalar, &mut out)?;
                items.push(out.finish_text()?)?;
            }
        }
        Ok(Datum::array(XML, items.finish()))
    })
}

/// `xpath_exists(text, xml, text[])`, `xmlexists(text, xml)`: whether there are any values, of which one that is no
/// set of nodes is one.
fn exists(a: &[Datum]) -> Result<Datum> {
    let (path, document, namespaces) = arguments(a)?;
    evaluated(path, document, &namespaces, |_, value| {
        Ok(Datum::Bool(
            !matches!(value, Value::Nodes(nodes) if nodes.is_empty()),
        ))
    })
}

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(2614, "xmlexists", &[TEXT, XML], None, BOOL, true, Immutable, FunctionImpl::Pure(exists)),
    f(2931, "xpath", &[TEXT, XML, TEXT_ARRAY], None, XML_ARRAY, true, Immutable, FunctionImpl::Pure(xpath)),
    f(2932, "xpath", &[TEXT, XML], None, XML_ARRAY, true, Immutable, FunctionImpl::Pure(xpath)),
    f(3049, "xpath_exists", &[TEXT, XML, TEXT_ARRAY], None, BOOL, true, Immutable, FunctionImpl::Pure(exists)),
    f(3050, "xpath_exists", &[TEXT, XML], None, BOOL, true, Immutable, FunctionImpl::Pure(exists)),
];
