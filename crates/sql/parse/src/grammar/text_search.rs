//! Text search: parsers, dictionaries, templates, configurations.

use super::Parser;
use super::define::define;
use crate::ast::{
    AlterTsConfigurationStmt, AnyName, DefineStmt, Name, ObjectType, Stmt, TsConfigChange,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// SEARCH with the kind of an object, behind TEXT.
    pub(super) fn text_search_kind(&mut self) -> Result<ObjectType> {
        self.expect(K::Search)?;
        let kind = match self.kind() {
            T::Keyword(K::Parser) => ObjectType::TsParser,
            T::Keyword(K::Dictionary) => ObjectType::TsDictionary,
            T::Keyword(K::Template) => ObjectType::TsTemplate,
            T::Keyword(K::Configuration) => ObjectType::TsConfiguration,
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(kind)
    }

    /// CREATE TEXT SEARCH, behind TEXT.
    pub(super) fn create_text_search(&mut self) -> Result<Stmt> {
        let kind = self.text_search_kind()?;
        let name = self.any_name()?;
        let definition = self.definition()?;
        Ok(Stmt::Define(Box::new(DefineStmt {
            definition,
            ..define(kind, name)
        })))
    }

    /// ADD, ALTER and DROP MAPPING of a configuration, from that word on.
    pub(super) fn alter_ts_configuration(&mut self, cfgname: AnyName) -> Result<Stmt> {
        let T::Keyword(word) = self.pass().kind else {
            return self.unexpected();
        };
        self.expect(K::Mapping)?;
        let change = match word {
            K::Drop => {
                let missing_ok = self.opt_if_exists()?;
                self.expect(K::For)?;
                TsConfigChange::DropMapping {
                    tokentype: self.name_list()?,
                    missing_ok,
                }
            }
            K::Alter if self.is(K::Replace) => self.replace_dict(Vec::new())?,
            _ => {
                self.expect(K::For)?;
                let tokentype = self.name_list()?;
                if word == K::Alter && self.is(K::Replace) {
                    self.replace_dict(tokentype)?
                } else {
                    self.any_with()?;
                    let dicts = self.list(Self::any_name)?;
                    match word {
                        K::Add => TsConfigChange::AddMapping { tokentype, dicts },
                        _ => TsConfigChange::AlterMapping { tokentype, dicts },
                    }
                }
            }
        };
        Ok(Stmt::AlterTsConfiguration(Box::new(
            AlterTsConfigurationStmt { cfgname, change },
        )))
    }

    fn replace_dict(&mut self, tokentype: Vec<Name>) -> Result<TsConfigChange> {
        self.expect(K::Replace)?;
        let old = self.any_name()?;
        self.any_with()?;
        let new = self.any_name()?;
        Ok(TsConfigChange::ReplaceDict {
            tokentype,
            old,
            new,
        })
    }
}
