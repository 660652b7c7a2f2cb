//! Windows: WINDOW and OVER.

use super::Parser;
use super::expr::{Continuation, begins_expr};
use super::names::is_col_id;
use crate::ast::{FrameBound, FrameExclusion, FrameMode, Location, WindowDef, WindowFrame};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use logstead_types::SqlState;

impl Parser<'_> {
    /// `window_clause`
    pub(super) fn window_clause(&mut self) -> Result<Vec<WindowDef>> {
        match self.take(K::Window) {
            true => self.list(|parser| {
                let name = parser.col_id()?;
                parser.expect(K::As)?;
                let window = parser.window_specification()?;
                Ok(WindowDef {
                    name: Some(name),
                    ..window
                })
            }),
            false => Ok(Vec::new()),
        }
    }

    /// What stands behind OVER.
    pub(super) fn over_window(&mut self) -> Result<WindowDef> {
        if self.at(T::LParen) {
            return self.window_specification();
        }
        let location = self.here();
        Ok(WindowDef {
            name: Some(self.col_id()?),
            location,
            ..WindowDef::default()
        })
    }

    /// `window_specification`
    fn window_specification(&mut self) -> Result<WindowDef> {
        let location = self.here();
        self.parens(|parser| {
            let mut window = WindowDef {
                location,
                ..WindowDef::default()
            };
            // These words are no names of windows here.
            let is_clause = parser.is_any(&[K::Partition, K::Range, K::Rows, K::Groups]);
            if is_col_id(parser.kind()) && !is_clause {
                window.refname = Some(parser.col_id()?);
            }
            if parser.take(K::Partition) {
                parser.expect(K::By)?;
                window.partition_clause = parser.expr_list()?;
            }
            window.order_clause = parser.opt_sort_clause()?;
            window.frame = parser.opt_frame_clause()?;
            Ok(window)
        })
    }

    /// `opt_frame_clause`
    fn opt_frame_clause(&mut self) -> Result<Option<WindowFrame>> {
        let mode = match self.kind() {
            T::Keyword(K::Range) => FrameMode::Range,
            T::Keyword(K::Rows) => FrameMode::Rows,
            T::Keyword(K::Groups) => FrameMode::Groups,
            _ => return Ok(None),
        };
        self.pass();
        let (start, end) = self.frame_extent()?;
        let exclusion = self.opt_window_exclusion_clause()?;
        Ok(Some(WindowFrame {
            mode,
            start,
            end,
            exclusion,
        }))
    }

    /// `frame_extent`
    fn frame_extent(&mut self) -> Result<(FrameBound, Option<FrameBound>)> {
        let wrong = |parser: &Self, message, at: Location| {
            Err(parser.error(SqlState::WINDOWING_ERROR, message, at))
        };
        if !self.is_between()? {
            let at = self.here();
            let start = self.frame_bound()?;
            return match start {
                FrameBound::UnboundedFollowing => {
                    wrong(self, "frame start cannot be UNBOUNDED FOLLOWING", at)
                }
                FrameBound::Following(_) => wrong(
                    self,
                    "frame starting from following row cannot end with current row",
                    at,
                ),
                start => Ok((start, None)),
            };
        }
        let start_at = self.here();
        let start = self.frame_bound()?;
        self.expect(K::And)?;
        let end_at = self.here();
        let end = self.frame_bound()?;
        match (&start, &end) {
            (FrameBound::UnboundedFollowing, _) => {
                wrong(self, "frame start cannot be UNBOUNDED FOLLOWING", start_at)
            }
            (_, FrameBound::UnboundedPreceding) => {
                wrong(self, "frame end cannot be UNBOUNDED PRECEDING", end_at)
            }
            (FrameBound::CurrentRow, FrameBound::Preceding(_)) => wrong(
                self,
                "frame starting from current row cannot have preceding rows",
                end_at,
            ),
            (FrameBound::Following(_), FrameBound::Preceding(_) | FrameBound::CurrentRow) => wrong(
                self,
                "frame starting from following row cannot have preceding rows",
                end_at,
            ),
            _ => Ok((start, Some(end))),
        }
    }

    /// BETWEEN, which is passed; or a column of that name, by PostgreSQL's precedence of what follows.
    fn is_between(&mut self) -> Result<bool> {
        let next = self.kind_at(1);
        let is_between = self.is(K::Between)
            && begins_expr(next)
            && !matches!(next, T::Keyword(K::Is | K::Isnull | K::Notnull));
        if is_between {
            self.pass();
            if self.is_any(&[K::Between, K::Like, K::Ilike, K::Similar]) || self.at(T::NotLa) {
                return self.unexpected();
            }
        }
        Ok(is_between)
    }

    /// `frame_bound`
    fn frame_bound(&mut self) -> Result<FrameBound> {
        let next_is = |word| self.is_at(1, word);
        if self.is(K::Unbounded) && (next_is(K::Preceding) || next_is(K::Following)) {
            self.pass();
            return Ok(match self.pass().kind {
                T::Keyword(K::Preceding) => FrameBound::UnboundedPreceding,
                _ => FrameBound::UnboundedFollowing,
            });
        }
        if self.is(K::Current) && self.is_at(1, K::Row) {
            self.pass_all(2);
            return Ok(FrameBound::CurrentRow);
        }
        let offset = self.a_expr_before(Continuation::Nothing)?;
        if self.take(K::Preceding) {
            return Ok(FrameBound::Preceding(offset));
        }
        self.expect(K::Following)?;
        Ok(FrameBound::Following(offset))
    }

    /// `opt_window_exclusion_clause`
    fn opt_window_exclusion_clause(&mut self) -> Result<FrameExclusion> {
        if !self.take(K::Exclude) {
            return Ok(FrameExclusion::NoOthers);
        }
        let exclusion = match self.kind() {
            T::Keyword(K::Current) => {
                self.pass();
                self.expect(K::Row)?;
                return Ok(FrameExclusion::CurrentRow);
            }
            T::Keyword(K::No) => {
                self.pass();
                self.expect(K::Others)?;
                return Ok(FrameExclusion::NoOthers);
            }
            T::Keyword(K::Group) => FrameExclusion::Group,
            T::Keyword(K::Ties) => FrameExclusion::Ties,
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(exclusion)
    }
}
