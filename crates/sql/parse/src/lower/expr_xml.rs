//! XML: its constructs are calls of functions of names that nobody can write.

use super::Lower;
use crate::ast::{
    Expr, Location, RangeTableFunc, Value, XmlExpr, XmlExprOp as Op, XmlNamedArg, XmlOption,
    XmlSerialize, XmlStandalone,
};
use crate::lowered::{self as library, Expr as L};
use crate::xml::XML_MARK;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl Lower<'_> {
    /// A construct of XML.
    pub(super) fn xml_expr(&self, node: &XmlExpr) -> Result<L> {
        let location = node.location;
        let name = || self.literal(node.name.as_deref().unwrap_or_default(), location);
        let (construct, args) = match node.op {
            Op::IsDocument => return self.document_test(node, false),
            Op::XmlConcat => ("xmlconcat", self.exprs(&node.args)?),
            Op::XmlElement => {
                let mut args = vec![name()];
                if !node.named_args.is_empty() {
                    let named = self.named_values(&node.named_args, "attribute")?;
                    args.push(self.xml_call("xmlattributes", named, location)?);
                }
                args.extend(self.exprs(&node.args)?);
                ("xmlelement", args)
            }
            Op::XmlForest => ("xmlforest", self.named_values(&node.named_args, "element")?),
            Op::XmlParse => {
                let mut args = vec![self.option(node.xmloption, location)];
                args.extend(self.exprs(&node.args)?);
                if node.preserve_whitespace {
                    args.push(self.literal("PRESERVE", location));
                }
                ("xmlparse", args)
            }
            Op::XmlPi => {
                let mut args = vec![name()];
                args.extend(self.exprs(&node.args)?);
                ("xmlpi", args)
            }
            Op::XmlRoot => {
                let mut args = self.exprs(&node.args)?;
                let standalone = match node.standalone {
                    Some(XmlStandalone::Yes) => Some("YES"),
                    Some(XmlStandalone::No) => Some("NO"),
                    Some(XmlStandalone::NoValue) => Some("NO VALUE"),
                    Some(XmlStandalone::Omitted) | None => None,
                };
                args.extend(standalone.map(|word| self.literal(word, location)));
                ("xmlroot", args)
            }
        };
        self.xml_call(construct, args, location)
    }

    /// A call that stands for a construct.
    pub(super) fn xml_call(&self, construct: &str, args: Vec<L>, location: Location) -> Result<L> {
        let call = self.call_of_mark(&format!("{XML_MARK}{construct}"), location);
        Ok(L::Function(self.call_with(call, args)))
    }

    fn option(&self, option: Option<XmlOption>, location: Location) -> L {
        let word = match option {
            Some(XmlOption::Document) => "DOCUMENT",
            _ => "CONTENT",
        };
        self.literal(word, location)
    }

    /// XMLSERIALIZE, with a NULL of its type.
    pub(super) fn xml_serialize(&self, node: &XmlSerialize) -> Result<L> {
        let args = vec![
            self.option(Some(node.xmloption), node.location),
            self.expr(&node.expr)?,
            self.null_of(Some(&node.type_name))?,
        ];
        self.xml_call("xmlserialize", args, node.location)
    }

    /// NULL, of a type if there is one.
    pub(super) fn null_of(&self, type_name: Option<&crate::ast::TypeName>) -> Result<L> {
        let null = L::value(Value::Null);
        Ok(match type_name {
            Some(type_name) => L::type_cast(null, type_name.clone()),
            None => null,
        })
    }

    /// `IS DOCUMENT`
    pub(super) fn document_test(&self, node: &XmlExpr, negated: bool) -> Result<L> {
        let Some(document) = node.args.first() else {
            return Err(SqlError::internal("IS DOCUMENT of nothing"));
        };
        Ok(L::IsDocument {
            expr: self.operand_of_is(document)?,
            negated,
        })
    }

    /// Of each value its name and itself; a column names itself.
    fn named_values(&self, args: &[XmlNamedArg], what: &str) -> Result<Vec<L>> {
        let mut values = Vec::with_capacity(2 * args.len());
        for arg in args {
            let own = match &arg.value {
                Expr::ColumnRef(column) => column.fields.last(),
                _ => None,
            };
            let Some(name) = arg.name.as_ref().or(own) else {
                let position = self.error_position(arg.location);
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("unnamed XML {what} value must be a column reference"),
                )
                .at(position));
            };
            values.push(self.literal(name, arg.location));
            values.push(self.expr(&arg.value)?);
        }
        Ok(values)
    }

    /// XMLTABLE as the arguments of a call: the path of rows, the document, the namespaces as a call of names and
    /// URIs, and for each column a call of its name, a NULL of its type, its path, its default, and what else is said.
    pub(super) fn xml_table(&self, node: &RangeTableFunc) -> Result<library::Function> {
        let location = node.location;
        let mut args = vec![self.expr(&node.rowexpr)?, self.expr(&node.docexpr)?];
        if !node.namespaces.is_empty() {
            let mut spaces = Vec::with_capacity(2 * node.namespaces.len());
            for (name, uri) in &node.namespaces {
                spaces.push(self.literal(name.as_deref().unwrap_or_default(), location));
                spaces.push(self.expr(uri)?);
            }
            args.push(self.xml_call("xmlnamespaces", spaces, location)?);
        }
        for column in &node.columns {
            let said = match (&column.type_name, column.is_not_null) {
                (None, _) => "ORDINALITY",
                (Some(_), true) => "NOT NULL",
                (Some(_), false) => "",
            };
            let or_null = |expr: &Option<Expr>| match expr {
                Some(expr) => self.expr(expr),
                None => self.null_of(None),
            };
            let column_args = vec![
                self.literal(&column.colname, column.location),
                self.null_of(column.type_name.as_ref())?,
                or_null(&column.colexpr)?,
                or_null(&column.coldefexpr)?,
                self.literal(said, column.location),
            ];
            args.push(self.xml_call("xmlcolumn", column_args, column.location)?);
        }
        let call = self.call_of_mark(&format!("{XML_MARK}xmltable"), location);
        Ok(self.call_with(call, args))
    }
}
