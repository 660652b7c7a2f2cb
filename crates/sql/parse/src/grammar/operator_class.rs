//! Operator classes and families.

use super::Parser;
use super::names::is_all_op;
use crate::ast::{
    AlterOpFamilyStmt, AnyName, CreateOpClassStmt, CreateOpFamilyStmt, Name, ObjectWithArgs,
    OpClassItem, OpFamilyChange, Stmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// `any_name USING name`
    pub(super) fn name_of_method(&mut self) -> Result<(AnyName, Name)> {
        let name = self.any_name()?;
        self.expect(K::Using)?;
        Ok((name, self.col_id()?))
    }

    /// `CreateOpClassStmt`, from CLASS on.
    pub(super) fn create_op_class_stmt(&mut self) -> Result<Stmt> {
        self.pass();
        let opclassname = self.any_name()?;
        let is_default = self.take(K::Default);
        self.expect_all(&[K::For, K::Type])?;
        let datatype = self.type_name()?;
        self.expect(K::Using)?;
        let amname = self.col_id()?;
        let opfamilyname = match self.take(K::Family) {
            true => Some(self.any_name()?),
            false => None,
        };
        self.expect(K::As)?;
        let items = self.list(Self::opclass_item)?;
        Ok(Stmt::CreateOpClass(Box::new(CreateOpClassStmt {
            opclassname,
            opfamilyname,
            amname,
            datatype,
            items,
            is_default,
        })))
    }

    /// `opclass_item`
    fn opclass_item(&mut self) -> Result<OpClassItem> {
        match self.kind() {
            T::Keyword(K::Operator) => {
                self.pass();
                let number = self.iconst()?;
                let name = self.opclass_operator()?;
                // `opclass_purpose`
                let mut order_family = None;
                if self.take(K::For) && !self.take(K::Search) {
                    self.expect_all(&[K::Order, K::By])?;
                    order_family = Some(self.any_name()?);
                }
                self.take(K::Recheck);
                Ok(OpClassItem::Operator {
                    number,
                    name,
                    order_family,
                })
            }
            T::Keyword(K::Function) => {
                self.pass();
                let number = self.iconst()?;
                let class_args = match self.at(T::LParen) {
                    true => self.parens(Self::type_list)?,
                    false => Vec::new(),
                };
                let name = self.function_with_argtypes()?;
                Ok(OpClassItem::Function {
                    number,
                    class_args,
                    name,
                })
            }
            T::Keyword(K::Storage) => {
                self.pass();
                Ok(OpClassItem::Storage(self.type_name()?))
            }
            _ => self.unexpected(),
        }
    }

    /// `any_operator`, or `operator_with_argtypes`.
    fn opclass_operator(&mut self) -> Result<ObjectWithArgs> {
        let location = self.here();
        let mut ahead = 0;
        while !is_all_op(self.kind_at(ahead)) && self.kind_at(ahead + 1) == T::Dot {
            ahead += 2;
        }
        if self.kind_at(ahead + 1) == T::LParen {
            return self.operator_with_argtypes();
        }
        let operator = Some(self.any_operator()?);
        Ok(ObjectWithArgs {
            objname: AnyName {
                names: Default::default(),
                location,
            },
            objargs: None,
            objfuncargs: Vec::new(),
            direct_args: None,
            operator,
        })
    }

    /// `CreateOpFamilyStmt`, from FAMILY on.
    pub(super) fn create_op_family_stmt(&mut self) -> Result<Stmt> {
        self.pass();
        let (opfamilyname, amname) = self.name_of_method()?;
        Ok(Stmt::CreateOpFamily(Box::new(CreateOpFamilyStmt {
            opfamilyname,
            amname,
        })))
    }

    /// `AlterOpFamilyStmt`, behind the family.
    pub(super) fn alter_op_family(&mut self, opfamilyname: AnyName, amname: Name) -> Result<Stmt> {
        let change = match self.take(K::Add) {
            true => OpFamilyChange::Add(self.list(Self::opclass_item)?),
            false => {
                self.expect(K::Drop)?;
                OpFamilyChange::Drop(self.list(|parser| {
                    let is_operator = parser.take(K::Operator);
                    if !is_operator {
                        parser.expect(K::Function)?;
                    }
                    let number = parser.iconst()?;
                    Ok((is_operator, number, parser.parens(Self::type_list)?))
                })?)
            }
        };
        Ok(Stmt::AlterOpFamily(Box::new(AlterOpFamilyStmt {
            opfamilyname,
            amname,
            change,
        })))
    }
}
