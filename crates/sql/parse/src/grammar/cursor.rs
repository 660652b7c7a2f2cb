//! Cursors and prepared statements: DECLARE, FETCH, CLOSE, PREPARE, EXECUTE, DEALLOCATE.

use super::Parser;
use crate::ast::{
    DeclareCursorStmt, ExecuteStmt, FETCH_ALL, FetchDirection, FetchStmt, Name, PrepareStmt, Stmt,
    TypeName,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// A rule, and where what it reads begins and ends.
    pub(super) fn with_range<R>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<(R, (usize, usize))> {
        let start = self.token().start as usize;
        let read = rule(self)?;
        Ok((read, (start, self.last_end())))
    }

    /// `DeclareCursorStmt`
    pub(super) fn declare_cursor_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Declare)?;
        let portalname = self.col_id()?;
        let (mut binary, mut insensitive, mut asensitive, mut scroll, mut no_scroll) =
            (false, false, false, false, false);
        loop {
            match self.kind() {
                T::Keyword(K::No) => {
                    self.pass();
                    self.expect(K::Scroll)?;
                    no_scroll = true;
                    continue;
                }
                T::Keyword(K::Scroll) => scroll = true,
                T::Keyword(K::Binary) => binary = true,
                T::Keyword(K::Asensitive) => asensitive = true,
                T::Keyword(K::Insensitive) => insensitive = true,
                _ => break,
            }
            self.pass();
        }
        self.expect(K::Cursor)?;
        let hold = self.is(K::With);
        if hold || self.is(K::Without) {
            self.pass();
            self.expect(K::Hold)?;
        }
        self.expect(K::For)?;
        let (query, query_range) = self.with_range(|parser| parser.select_stmt())?;
        Ok(Stmt::DeclareCursor(Box::new(DeclareCursorStmt {
            portalname,
            binary,
            insensitive,
            asensitive,
            scroll,
            no_scroll,
            hold,
            query: Box::new(query),
            query_range,
        })))
    }

    /// `FetchStmt`
    pub(super) fn fetch_stmt(&mut self) -> Result<Stmt> {
        let ismove = self.pass().kind == T::Keyword(K::Move);
        let direction = self.fetch_direction()?;
        if self.is_any(&[K::From, K::In]) {
            self.pass();
        }
        let portalname = self.col_id()?;
        Ok(Stmt::Fetch(Box::new(FetchStmt {
            direction,
            portalname,
            ismove,
        })))
    }

    /// `fetch_args` up to the cursor's name.
    fn fetch_direction(&mut self) -> Result<FetchDirection> {
        let T::Keyword(word) = self.kind() else {
            return match self.at_number() {
                true => Ok(FetchDirection::Forward(i64::from(self.signed_iconst()?))),
                false => Ok(FetchDirection::Forward(1)),
            };
        };
        // These words are names of cursors as well, if nothing follows them.
        let next = self.kind_at(1);
        let is_direction =
            matches!(next, T::Keyword(K::From | K::In)) || super::names::is_col_id(next);
        let is_counted = matches!(next, T::IConst | T::Plus | T::Minus);
        let direction = match word {
            K::Next if is_direction => FetchDirection::Forward(1),
            K::Prior if is_direction => FetchDirection::Backward(1),
            K::First if is_direction => FetchDirection::Absolute(1),
            K::Last if is_direction => FetchDirection::Absolute(-1),
            K::All => FetchDirection::Forward(FETCH_ALL),
            K::Absolute if is_counted => {
                self.pass();
                return Ok(FetchDirection::Absolute(i64::from(self.signed_iconst()?)));
            }
            K::Relative if is_counted => {
                self.pass();
                return Ok(FetchDirection::Relative(i64::from(self.signed_iconst()?)));
            }
            K::Forward | K::Backward
                if is_direction || is_counted || next == T::Keyword(K::All) =>
            {
                self.pass();
                let count = if self.take(K::All) {
                    FETCH_ALL
                } else if is_counted {
                    i64::from(self.signed_iconst()?)
                } else {
                    1
                };
                return Ok(match word {
                    K::Forward => FetchDirection::Forward(count),
                    _ => FetchDirection::Backward(count),
                });
            }
            _ => return Ok(FetchDirection::Forward(1)),
        };
        self.pass();
        Ok(direction)
    }

    /// `ClosePortalStmt`
    pub(super) fn close_portal_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Close)?;
        Ok(Stmt::ClosePortal(self.name_or_all()?))
    }

    /// A name, or ALL.
    fn name_or_all(&mut self) -> Result<Option<Name>> {
        match self.take(K::All) {
            true => Ok(None),
            false => Ok(Some(self.col_id()?)),
        }
    }

    /// `PrepareStmt`
    pub(super) fn prepare_stmt(&mut self) -> Result<Stmt> {
        let name = self.col_id()?;
        let argtypes = match self.at(T::LParen) {
            true => self.parens(Self::type_list)?,
            false => Vec::new(),
        };
        self.expect(K::As)?;
        let (query, query_range) = self.with_range(Self::preparable_stmt)?;
        Ok(Stmt::Prepare(Box::new(PrepareStmt {
            name,
            argtypes,
            query,
            query_range,
        })))
    }

    /// `type_list`
    pub(super) fn type_list(&mut self) -> Result<Vec<TypeName>> {
        self.list(Self::type_name)
    }

    /// `EXECUTE name execute_param_clause`
    pub(super) fn execute_stmt(&mut self) -> Result<ExecuteStmt> {
        self.expect(K::Execute)?;
        let name = self.col_id()?;
        let params = match self.at(T::LParen) {
            true => self.parens(Self::expr_list)?,
            false => Vec::new(),
        };
        Ok(ExecuteStmt { name, params })
    }

    /// `DeallocateStmt`
    pub(super) fn deallocate_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Deallocate)?;
        // PREPARE may be the name.
        let is_word = self.is_at(1, K::All) || super::names::is_col_id(self.kind_at(1));
        if self.is(K::Prepare) && is_word {
            self.pass();
        }
        Ok(Stmt::Deallocate(self.name_or_all()?))
    }
}
