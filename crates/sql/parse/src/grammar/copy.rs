//! COPY.

use super::Parser;
use super::create_table::{number, option};
use crate::ast::{CopySource, CopyStmt, CopyTarget, DefArg, DefElem, Location, Name, Stmt};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// Names as the value of an option.
fn names(names: Vec<Name>) -> DefArg {
    DefArg::List(names.into_iter().map(DefArg::String).collect())
}

impl Parser<'_> {
    /// `CopyStmt`
    pub(super) fn copy_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Copy)?;
        if self.at(T::LParen) {
            return self.copy_query();
        }
        let location = self.here();
        let mut options = Vec::new();
        // `opt_binary`
        if self.take(K::Binary) {
            options.push(option(
                "format",
                Some(DefArg::String("binary".into())),
                location,
            ));
        }
        let relation = self.qualified_name()?;
        let attlist = self.opt_column_list()?;
        let is_from = self.take(K::From);
        if !is_from {
            self.expect(K::To)?;
        }
        let is_program = self.take(K::Program);
        let target = self.copy_file_name(is_program)?;
        // `copy_delimiter`
        let mut delimiter_at = Location::UNKNOWN;
        if self.is(K::Using) || self.is(K::Delimiters) {
            delimiter_at = self.here();
            self.take(K::Using);
            self.expect(K::Delimiters)?;
            let delimiter = DefArg::String(self.sconst()?);
            options.push(option("delimiter", Some(delimiter), delimiter_at));
        }
        self.opt_with();
        options.extend(self.copy_options()?);
        let where_at = self.here();
        let where_clause = self.where_clause()?;
        if self.at(T::Error) {
            return self.unexpected();
        }
        if is_program && target == CopyTarget::Client {
            return Err(self.syntax_error("STDIN/STDOUT not allowed with PROGRAM", delimiter_at));
        }
        if !is_from && where_clause.is_some() {
            return Err(self.syntax_error("WHERE clause not allowed with COPY TO", where_at));
        }
        let source = CopySource::Relation { relation, attlist };
        Ok(Stmt::Copy(Box::new(CopyStmt {
            source,
            is_from,
            target,
            options,
            where_clause,
        })))
    }

    /// `COPY '(' PreparableStmt ')' TO ...`, behind COPY.
    fn copy_query(&mut self) -> Result<Stmt> {
        self.as_of.is_copy = true;
        let query = self.parens(Self::preparable_stmt)?;
        let to_at = self.here();
        self.expect(K::To)?;
        let is_program = self.take(K::Program);
        let target = self.copy_file_name(is_program)?;
        self.opt_with();
        let options = self.copy_options()?;
        if self.at(T::Error) {
            return self.unexpected();
        }
        if is_program && target == CopyTarget::Client {
            return Err(self.syntax_error("STDIN/STDOUT not allowed with PROGRAM", to_at));
        }
        let source = CopySource::Query(Box::new(query));
        Ok(Stmt::Copy(Box::new(CopyStmt {
            source,
            is_from: false,
            target,
            options,
            where_clause: None,
        })))
    }

    /// `copy_file_name`
    fn copy_file_name(&mut self, is_program: bool) -> Result<CopyTarget> {
        if self.is_any(&[K::Stdin, K::Stdout]) {
            self.pass();
            return Ok(CopyTarget::Client);
        }
        let name = self.sconst()?;
        Ok(match is_program {
            true => CopyTarget::Program(name),
            false => CopyTarget::File(name),
        })
    }

    /// `copy_options`
    fn copy_options(&mut self) -> Result<Vec<DefElem>> {
        if self.at(T::LParen) {
            return self.parens(|parser| parser.list(Self::copy_generic_opt_elem));
        }
        let mut options = Vec::new();
        while let Some(item) = self.copy_opt_item()? {
            options.push(item);
        }
        Ok(options)
    }

    /// `copy_generic_opt_elem`
    fn copy_generic_opt_elem(&mut self) -> Result<DefElem> {
        let location = self.here();
        let name = self.col_label()?;
        let arg = if self.take_token(T::Star) {
            Some(DefArg::Star)
        } else if self.at(T::LParen) {
            let items = |parser: &mut Self| {
                parser.list(|parser| Ok(DefArg::String(parser.opt_boolean_or_string()?)))
            };
            Some(DefArg::List(self.parens(items)?))
        } else {
            self.utility_option_arg()?
        };
        Ok(option(&name, arg, location))
    }

    /// `opt_boolean_or_string`, `NumericOnly`, or nothing.
    pub(super) fn utility_option_arg(&mut self) -> Result<Option<DefArg>> {
        if self.at_number() {
            return Ok(Some(number(self.numeric_only()?)));
        }
        match self.at_boolean_or_string() {
            true => Ok(Some(DefArg::String(self.opt_boolean_or_string()?))),
            false => Ok(None),
        }
    }

    /// `opt_as Sconst`
    fn copy_text(&mut self) -> Result<DefArg> {
        self.take(K::As);
        Ok(DefArg::String(self.sconst()?))
    }

    /// `copy_opt_item`, if one comes next.
    fn copy_opt_item(&mut self) -> Result<Option<DefElem>> {
        let location = self.here();
        let T::Keyword(word) = self.kind() else {
            return Ok(None);
        };
        let is_item = matches!(
            word,
            K::Binary
                | K::Freeze
                | K::Delimiter
                | K::Null
                | K::Csv
                | K::Header
                | K::Quote
                | K::Escape
                | K::Force
                | K::Encoding
        );
        if !is_item {
            return Ok(None);
        }
        self.pass();
        let (name, arg) = match word {
            K::Binary => ("format", DefArg::String("binary".into())),
            K::Csv => ("format", DefArg::String("csv".into())),
            K::Freeze => ("freeze", DefArg::Boolean(true)),
            K::Header => ("header", DefArg::Boolean(true)),
            K::Delimiter => ("delimiter", self.copy_text()?),
            K::Null => ("null", self.copy_text()?),
            K::Quote => ("quote", self.copy_text()?),
            K::Escape => ("escape", self.copy_text()?),
            K::Encoding => ("encoding", DefArg::String(self.sconst()?)),
            _ if self.take(K::Quote) => match self.take_token(T::Star) {
                true => ("force_quote", DefArg::Star),
                false => ("force_quote", names(self.name_list()?)),
            },
            _ if self.take(K::Not) => {
                self.expect(K::Null)?;
                ("force_not_null", names(self.name_list()?))
            }
            _ => {
                self.expect(K::Null)?;
                ("force_null", names(self.name_list()?))
            }
        };
        Ok(Some(option(name, Some(arg), location)))
    }
}
