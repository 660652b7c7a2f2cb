//! `DefineStmt` and its options: aggregates, operators, types, collations.

use super::Parser;
use super::create_table::{number, option};
use crate::ast::{
    AnyName, ColumnDefinition, CompositeTypeStmt, CreateEnumStmt, CreateRangeStmt, DefArg, DefElem,
    DefineStmt, Names, ObjectType, Stmt,
};
use crate::lexer::{Category, Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// A definition without options.
pub(super) fn define(kind: ObjectType, defnames: AnyName) -> DefineStmt {
    DefineStmt {
        kind,
        defnames,
        operator: None,
        aggregate: None,
        definition: Vec::new(),
        from: None,
        if_not_exists: false,
        replace: false,
        is_shell: false,
    }
}

impl Parser<'_> {
    /// `definition`
    pub(super) fn definition(&mut self) -> Result<Vec<DefElem>> {
        self.parens(|parser| parser.list(Self::def_elem))
    }

    /// `opt_definition`
    pub(super) fn opt_definition(&mut self) -> Result<Vec<DefElem>> {
        match self.take(K::With) {
            true => self.definition(),
            false => Ok(Vec::new()),
        }
    }

    /// `def_elem`
    fn def_elem(&mut self) -> Result<DefElem> {
        let location = self.here();
        let name = self.col_label()?;
        let arg = match self.take_token(T::Equals) {
            true => Some(self.def_arg()?),
            false => None,
        };
        Ok(option(&name, arg, location))
    }

    /// `def_arg`
    pub(super) fn def_arg(&mut self) -> Result<DefArg> {
        let is_signed = matches!(self.kind(), T::Plus | T::Minus)
            && matches!(self.kind_at(1), T::IConst | T::FConst);
        match self.kind() {
            T::SConst => Ok(DefArg::String(self.sconst()?)),
            T::IConst | T::FConst => Ok(number(self.numeric_only()?)),
            _ if is_signed => Ok(number(self.numeric_only()?)),
            _ if self.at_all_op() => Ok(DefArg::Operator(self.plain_operator()?)),
            T::Keyword(K::Operator) if self.kind_at(1) == T::LParen => {
                Ok(DefArg::Operator(self.qual_all_op()?))
            }
            T::Keyword(K::None) => {
                self.pass();
                Ok(DefArg::None)
            }
            T::Keyword(word) if word.category() == Category::Reserved => {
                self.pass();
                Ok(DefArg::String(word.word().into()))
            }
            _ => Ok(DefArg::Type(Box::new(self.func_type()?))),
        }
    }

    /// `operator_def_list`
    pub(super) fn operator_def_list(&mut self) -> Result<Vec<DefElem>> {
        self.parens(|parser| {
            parser.list(|parser| {
                let location = parser.here();
                let name = parser.col_label()?;
                parser.expect_token(T::Equals)?;
                let arg = match parser.def_arg()? {
                    DefArg::None => None,
                    arg => Some(arg),
                };
                Ok(option(&name, arg, location))
            })
        })
    }

    /// `reloptions`
    pub(super) fn reloptions(&mut self) -> Result<Vec<DefElem>> {
        self.parens(|parser| {
            parser.list(|parser| {
                let location = parser.here();
                let mut name = parser.col_label()?;
                let mut namespace = None;
                if parser.take_token(T::Dot) {
                    namespace = Some(std::mem::replace(&mut name, parser.col_label()?));
                }
                let arg = match parser.take_token(T::Equals) {
                    true => Some(parser.def_arg()?),
                    false => None,
                };
                Ok(DefElem {
                    namespace,
                    ..option(&name, arg, location)
                })
            })
        })
    }

    /// CREATE AGGREGATE, from that word on.
    pub(super) fn create_aggregate(&mut self, replace: bool) -> Result<Stmt> {
        self.pass();
        let name = self.func_name()?;
        let mut stmt = DefineStmt {
            replace,
            ..define(ObjectType::Aggregate, name.clone())
        };
        let is_old =
            matches!(self.kind_at(1), T::Ident | T::QuotedIdent) && self.kind_at(2) == T::Equals;
        if self.at(T::LParen) && is_old {
            stmt.definition = self.parens(|parser| parser.list(Self::old_aggr_elem))?;
        } else {
            stmt.aggregate = Some(self.aggr_args(name)?);
            stmt.definition = self.definition()?;
        }
        Ok(Stmt::Define(Box::new(stmt)))
    }

    /// `old_aggr_elem`
    fn old_aggr_elem(&mut self) -> Result<DefElem> {
        let location = self.here();
        if !matches!(self.kind(), T::Ident | T::QuotedIdent) {
            return self.unexpected();
        }
        let name = self.col_id()?;
        self.expect_token(T::Equals)?;
        let arg = Some(self.def_arg()?);
        Ok(option(&name, arg, location))
    }

    /// CREATE OPERATOR, behind the word; also of classes and families.
    pub(super) fn create_operator(&mut self) -> Result<Stmt> {
        // CLASS and FAMILY may be schemas of operators.
        let is_schema = self.kind_at(1) == T::Dot;
        if self.is(K::Class) && !is_schema {
            return self.create_op_class_stmt();
        }
        if self.is(K::Family) && !is_schema {
            return self.create_op_family_stmt();
        }
        let location = self.here();
        let operator = self.any_operator()?;
        let mut stmt = define(
            ObjectType::Operator,
            AnyName {
                names: Names::new(),
                location,
            },
        );
        stmt.operator = Some(operator);
        stmt.definition = self.definition()?;
        Ok(Stmt::Define(Box::new(stmt)))
    }

    /// CREATE COLLATION, behind the word.
    pub(super) fn create_collation(&mut self) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let name = self.any_name()?;
        let mut stmt = DefineStmt {
            if_not_exists,
            ..define(ObjectType::Collation, name)
        };
        match self.take(K::From) {
            true => stmt.from = Some(self.any_name()?),
            false => stmt.definition = self.definition()?,
        }
        Ok(Stmt::Define(Box::new(stmt)))
    }

    /// CREATE TYPE, behind the word.
    pub(super) fn create_type(&mut self) -> Result<Stmt> {
        let type_name = self.any_name()?;
        if self.at(T::LParen) {
            let definition = self.definition()?;
            return Ok(Stmt::Define(Box::new(DefineStmt {
                definition,
                ..define(ObjectType::Type, type_name)
            })));
        }
        if !self.take(K::As) {
            return Ok(Stmt::Define(Box::new(DefineStmt {
                is_shell: true,
                ..define(ObjectType::Type, type_name)
            })));
        }
        if self.take(K::Enum) {
            let vals = self.parens(|parser| match parser.at(T::RParen) {
                true => Ok(Vec::new()),
                false => parser.list(Self::sconst),
            })?;
            return Ok(Stmt::CreateEnum(Box::new(CreateEnumStmt {
                type_name,
                vals,
            })));
        }
        if self.take(K::Range) {
            let params = self.definition()?;
            return Ok(Stmt::CreateRange(Box::new(CreateRangeStmt {
                type_name,
                params,
            })));
        }
        let coldeflist = self.parens(|parser| match parser.at(T::RParen) {
            true => Ok(Vec::<ColumnDefinition>::new()),
            false => parser.table_func_element_list(),
        })?;
        // The name is made a relation's when all has been read.
        let typevar = match self.at(T::Error) {
            true => return self.unexpected(),
            false => self.range_var(type_name.names, type_name.location)?,
        };
        Ok(Stmt::CompositeType(Box::new(CompositeTypeStmt {
            typevar,
            coldeflist,
        })))
    }
}
