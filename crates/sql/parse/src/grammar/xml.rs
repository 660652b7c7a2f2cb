//! Functions that make XML, and XMLTABLE.

use super::Parser;
use super::expr::Rule;
use super::operators::system_expr;
use super::primary::constant;
use crate::ast::{
    Expr, Location, Name, NodeBox, RangeTableFunc, RangeTableFuncCol, Value, XmlExpr, XmlExprOp,
    XmlNamedArg, XmlOption, XmlSerialize, XmlStandalone,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// A node without arguments (`makeXmlExpr`).
pub(super) fn xml_expr(op: XmlExprOp, location: Location) -> XmlExpr {
    XmlExpr {
        op,
        name: None,
        named_args: Vec::new(),
        args: Vec::new(),
        xmloption: None,
        preserve_whitespace: false,
        standalone: None,
        location,
    }
}

impl Parser<'_> {
    /// XML's functions, behind their first word.
    pub(super) fn xml_function(&mut self, word: K, location: Location) -> Result<Expr> {
        let made = |node: XmlExpr| Ok(Expr::XmlExpr(NodeBox::new(node)));
        match word {
            K::Xmlconcat => {
                let args = self.parens(Self::expr_list)?;
                made(XmlExpr {
                    args,
                    ..xml_expr(XmlExprOp::XmlConcat, location)
                })
            }
            K::Xmlelement => made(self.parens(|parser| parser.xml_element(location))?),
            K::Xmlforest => {
                let named_args = self.parens(Self::xml_attribute_list)?;
                made(XmlExpr {
                    named_args,
                    ..xml_expr(XmlExprOp::XmlForest, location)
                })
            }
            K::Xmlexists => {
                let args = self.parens(|parser| {
                    let path = parser.c_expr(Rule::B)?;
                    Ok(vec![path, parser.xmlexists_argument()?])
                })?;
                Ok(system_expr("xmlexists", args, location))
            }
            K::Xmlparse => made(self.parens(|parser| {
                let xmloption = Some(parser.document_or_content()?);
                let args = vec![parser.a_expr()?];
                let preserve_whitespace = parser.xml_whitespace_option()?;
                Ok(XmlExpr {
                    args,
                    xmloption,
                    preserve_whitespace,
                    ..xml_expr(XmlExprOp::XmlParse, location)
                })
            })?),
            K::Xmlpi => made(self.parens(|parser| {
                parser.expect(K::Name)?;
                let name = Some(parser.col_label()?);
                let args = match parser.take_token(T::Comma) {
                    true => vec![parser.a_expr()?],
                    false => Vec::new(),
                };
                Ok(XmlExpr {
                    name,
                    args,
                    ..xml_expr(XmlExprOp::XmlPi, location)
                })
            })?),
            K::Xmlroot => made(self.parens(|parser| parser.xml_root(location))?),
            K::Xmlserialize => {
                let node = self.parens(|parser| {
                    let xmloption = parser.document_or_content()?;
                    let expr = parser.a_expr()?;
                    parser.expect(K::As)?;
                    let type_name = parser.simple_type_name()?;
                    Ok(XmlSerialize {
                        xmloption,
                        expr,
                        type_name,
                        location,
                    })
                })?;
                Ok(Expr::XmlSerialize(NodeBox::new(node)))
            }
            _ => self.unexpected(),
        }
    }

    fn xml_element(&mut self, location: Location) -> Result<XmlExpr> {
        self.expect(K::Name)?;
        let mut node = XmlExpr {
            name: Some(self.col_label()?),
            ..xml_expr(XmlExprOp::XmlElement, location)
        };
        if !self.take_token(T::Comma) {
            return Ok(node);
        }
        // A word that may be the name of a column, but no function's.
        if self.is(K::Xmlattributes) && self.kind_at(1) == T::LParen {
            self.pass();
            node.named_args = self.parens(Self::xml_attribute_list)?;
            if !self.take_token(T::Comma) {
                return Ok(node);
            }
        }
        node.args = self.expr_list()?;
        Ok(node)
    }

    /// `xml_attribute_list`
    fn xml_attribute_list(&mut self) -> Result<Vec<XmlNamedArg>> {
        self.list(|parser| {
            let location = parser.here();
            let value = parser.a_expr()?;
            let name = match parser.take(K::As) {
                true => Some(parser.col_label()?),
                false => None,
            };
            Ok(XmlNamedArg {
                name,
                value,
                location,
            })
        })
    }

    fn xml_root(&mut self, location: Location) -> Result<XmlExpr> {
        let value = self.a_expr()?;
        self.expect_token(T::Comma)?;
        self.expect(K::Version)?;
        let version = match self.is(K::No) && self.is_at(1, K::Value) {
            true => {
                self.pass_all(2);
                constant(Value::Null, Location::UNKNOWN)
            }
            false => self.a_expr()?,
        };
        let standalone = match self.take_token(T::Comma) {
            true => {
                self.expect(K::Standalone)?;
                if self.take(K::Yes) {
                    XmlStandalone::Yes
                } else {
                    self.expect(K::No)?;
                    match self.take(K::Value) {
                        true => XmlStandalone::NoValue,
                        false => XmlStandalone::No,
                    }
                }
            }
            false => XmlStandalone::Omitted,
        };
        Ok(XmlExpr {
            args: vec![value, version],
            standalone: Some(standalone),
            ..xml_expr(XmlExprOp::XmlRoot, location)
        })
    }

    /// `document_or_content`
    pub(super) fn document_or_content(&mut self) -> Result<XmlOption> {
        if self.take(K::Document) {
            return Ok(XmlOption::Document);
        }
        self.expect(K::Content)?;
        Ok(XmlOption::Content)
    }

    /// `xml_whitespace_option`: is it kept?
    fn xml_whitespace_option(&mut self) -> Result<bool> {
        let keeps = self.take(K::Preserve);
        if keeps || self.take(K::Strip) {
            self.expect(K::Whitespace)?;
        }
        Ok(keeps)
    }

    /// `xmlexists_argument`
    fn xmlexists_argument(&mut self) -> Result<Expr> {
        self.expect(K::Passing)?;
        self.xml_passing_mech()?;
        let document = self.c_expr(Rule::B)?;
        if self.take(K::By) && !self.take(K::Ref) {
            self.expect(K::Value)?;
        }
        Ok(document)
    }

    /// `xml_passing_mech`, which means nothing.
    fn xml_passing_mech(&mut self) -> Result<()> {
        // BY may be the name of a column as well.
        if self.is(K::By) && (self.is_at(1, K::Ref) || self.is_at(1, K::Value)) {
            self.pass_all(2);
        }
        Ok(())
    }

    /// `xmltable`
    pub(super) fn xmltable(&mut self, lateral: bool) -> Result<RangeTableFunc> {
        let location = self.here();
        self.expect(K::Xmltable)?;
        self.expect_token(T::LParen)?;
        let mut namespaces = Vec::new();
        if self.is(K::Xmlnamespaces) && self.kind_at(1) == T::LParen {
            self.pass();
            namespaces = self.parens(|parser| parser.list(Self::xml_namespace_el))?;
            self.expect_token(T::Comma)?;
        }
        let rowexpr = self.c_expr(Rule::B)?;
        let docexpr = self.xmlexists_argument()?;
        self.expect(K::Columns)?;
        let columns = self.list(Self::xmltable_column_el)?;
        self.expect_token(T::RParen)?;
        Ok(RangeTableFunc {
            lateral,
            docexpr,
            rowexpr,
            namespaces,
            columns,
            alias: None,
            location,
        })
    }

    /// `xml_namespace_el`
    fn xml_namespace_el(&mut self) -> Result<(Option<Name>, Expr)> {
        if self.take(K::Default) {
            return Ok((None, self.b_expr()?));
        }
        let value = self.b_expr()?;
        self.expect(K::As)?;
        Ok((Some(self.col_label()?), value))
    }

    /// `xmltable_column_el`
    fn xmltable_column_el(&mut self) -> Result<RangeTableFuncCol> {
        let location = self.here();
        let mut column = RangeTableFuncCol {
            colname: self.col_id()?,
            type_name: None,
            is_not_null: false,
            colexpr: None,
            coldefexpr: None,
            location,
        };
        if self.take(K::For) {
            self.expect(K::Ordinality)?;
            return Ok(column);
        }
        column.type_name = Some(self.type_name()?);
        // All are read before one of them is refused.
        let mut options = Vec::new();
        loop {
            let at = self.here();
            match self.kind() {
                T::Ident | T::QuotedIdent => {
                    let token = self.pass();
                    let name = self.name_of(token);
                    let value = self.b_expr()?;
                    if &*name == "__pg__is_not_null" {
                        let message = format!("option name \"{name}\" cannot be used in XMLTABLE");
                        return Err(self.syntax_error(message, at));
                    }
                    options.push((ColumnOption::Named(name, value), at));
                }
                T::Keyword(K::Default) => {
                    self.pass();
                    options.push((ColumnOption::Default(self.b_expr()?), at));
                }
                T::Keyword(K::Not) => {
                    self.pass();
                    self.expect(K::Null)?;
                    options.push((ColumnOption::Null(false), at));
                }
                T::Keyword(K::Null) => {
                    self.pass();
                    options.push((ColumnOption::Null(true), at));
                }
                _ => break,
            }
        }
        let mut nullability_is_said = false;
        for (option, at) in options {
            match option {
                ColumnOption::Default(value) if column.coldefexpr.is_none() => {
                    column.coldefexpr = Some(value)
                }
                ColumnOption::Default(_) => {
                    return Err(self.syntax_error("only one DEFAULT value is allowed", at));
                }
                ColumnOption::Named(name, value) if &*name == "path" => {
                    if column.colexpr.is_some() {
                        return Err(
                            self.syntax_error("only one PATH value per column is allowed", at)
                        );
                    }
                    column.colexpr = Some(value);
                }
                ColumnOption::Named(name, _) => {
                    return Err(
                        self.syntax_error(format!("unrecognized column option \"{name}\""), at)
                    );
                }
                ColumnOption::Null(_) if nullability_is_said => {
                    let name = &column.colname;
                    let message = format!(
                        "conflicting or redundant NULL / NOT NULL declarations for column \"{name}\""
                    );
                    return Err(self.syntax_error(message, at));
                }
                ColumnOption::Null(may_be_null) => {
                    nullability_is_said = true;
                    column.is_not_null = !may_be_null;
                }
            }
        }
        Ok(column)
    }
}

/// `xmltable_column_option_el`
enum ColumnOption {
    Named(Name, Expr),
    Default(Expr),
    Null(bool),
}
