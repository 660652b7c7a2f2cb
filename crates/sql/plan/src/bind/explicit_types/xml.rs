//! XML with the types of what it is made of written out.

use super::{Typed, Typer};
use logstead_sql_parse::ast::{Expr, NodeBox, XmlExpr, XmlExprOp as Op, XmlSerialize};
use logstead_sql_types::value::{SqlType, oid};

const TEXT: SqlType = SqlType::of(oid::TEXT);
const XML: SqlType = SqlType::of(oid::XML);

impl Typer<'_> {
    pub(super) fn xml_expr(&self, node: &XmlExpr) -> Typed {
        let mut typed = node.clone();
        for arg in &mut typed.named_args {
            arg.name = arg.name().cloned();
            arg.value = self.expr(&arg.value).0;
        }
        for (at, arg) in typed.args.iter_mut().enumerate() {
            let value = self.expr(arg);
            *arg = match (node.op, at) {
                (Op::XmlConcat | Op::IsDocument, _) | (Op::XmlRoot, 0) => self.to(value, XML),
                (Op::XmlParse | Op::XmlPi | Op::XmlRoot, _) => self.to(value, TEXT),
                (Op::XmlElement | Op::XmlForest, _) => value.0,
            };
        }
        let ty = match node.op {
            Op::IsDocument => SqlType::of(oid::BOOL),
            _ => XML,
        };
        (Expr::XmlExpr(NodeBox::new(typed)), Some(ty))
    }

    pub(super) fn xml_serialize(&self, node: &XmlSerialize) -> Typed {
        let typed = XmlSerialize {
            expr: self.to(self.expr(&node.expr), XML),
            type_name: node.type_name.clone(),
            ..*node
        };
        let ty = logstead_sql_catalog::type_name::sql_type(&node.type_name, self.lookup).ok();
        (Expr::XmlSerialize(NodeBox::new(typed)), ty)
    }
}
