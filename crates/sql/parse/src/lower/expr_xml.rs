//! XML.

use super::Lower;
use crate::ast::{RangeTableFunc, XmlExpr, XmlNamedArg, XmlSerialize};
use crate::lowered::{self as library, Expr as L};
use logstead_sql_types::error::Result;

impl Lower<'_> {
    /// What makes XML.
    pub(super) fn xml_expr(&self, node: &XmlExpr) -> Result<L> {
        let named_args = node.named_args.iter().map(|arg| self.xml_named_arg(arg));
        Ok(L::XmlExpr(Box::new(library::XmlExpr {
            op: node.op,
            name: node.name.clone(),
            named_args: named_args.collect::<Result<_>>()?,
            args: self.exprs(&node.args)?,
            xmloption: node.xmloption,
            preserve_whitespace: node.preserve_whitespace,
            standalone: node.standalone,
            location: node.location,
        })))
    }

    fn xml_named_arg(&self, arg: &XmlNamedArg) -> Result<library::XmlNamedArg> {
        Ok(library::XmlNamedArg {
            name: arg.name.clone(),
            value: self.expr(&arg.value)?,
            location: arg.location,
        })
    }

    /// XMLSERIALIZE
    pub(super) fn xml_serialize(&self, node: &XmlSerialize) -> Result<L> {
        Ok(L::XmlSerialize(Box::new(library::XmlSerialize {
            xmloption: node.xmloption,
            expr: self.expr(&node.expr)?,
            type_name: node.type_name.clone(),
            location: node.location,
        })))
    }

    /// XMLTABLE
    pub(super) fn range_table_func(
        &self,
        node: &RangeTableFunc,
    ) -> Result<library::RangeTableFunc> {
        let mut namespaces = Vec::with_capacity(node.namespaces.len());
        for (name, uri) in &node.namespaces {
            namespaces.push((name.clone(), self.expr(uri)?));
        }
        let mut columns = Vec::with_capacity(node.columns.len());
        for column in &node.columns {
            columns.push(library::RangeTableFuncCol {
                colname: column.colname.clone(),
                type_name: column.type_name.clone(),
                is_not_null: column.is_not_null,
                colexpr: self.opt_expr(column.colexpr.as_ref())?,
                coldefexpr: self.opt_expr(column.coldefexpr.as_ref())?,
                location: column.location,
            });
        }
        Ok(library::RangeTableFunc {
            lateral: node.lateral,
            docexpr: self.expr(&node.docexpr)?,
            rowexpr: self.expr(&node.rowexpr)?,
            namespaces,
            columns,
            alias: node.alias.clone(),
            location: node.location,
        })
    }
}
