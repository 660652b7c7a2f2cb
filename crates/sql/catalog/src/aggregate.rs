//! Aggregates that users have made: what `pg_aggregate` knows of one. Name, arguments, result and privileges are its
//! [`Routine`](super::routine::Routine)'s.

use logstead_sql_types::value::Oid;
use logstead_sql_types::{FunctionId, TypeId};

/// What kind of call an aggregate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// Its rows have no order of their own.
    Normal,
    /// It has WITHIN GROUP.
    OrderedSet,
}

impl AggregateKind {
    /// As `pg_aggregate.aggkind` has it.
    pub fn letter(self) -> char {
        match self {
            AggregateKind::Normal => 'n',
            AggregateKind::OrderedSet => 'o',
        }
    }
}

/// What a final function may do to a state that others use, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PostgreSQL's own words")]
pub enum FinalModify {
    ReadOnly,
    Shareable,
    ReadWrite,
}

impl FinalModify {
    /// As `pg_aggregate.aggfinalmodify` has it.
    pub fn letter(self) -> char {
        match self {
            FinalModify::ReadOnly => 'r',
            FinalModify::Shareable => 's',
            FinalModify::ReadWrite => 'w',
        }
    }

    /// The one with this letter.
    pub fn of_letter(letter: u8) -> Option<FinalModify> {
        let all = [
            FinalModify::ReadOnly,
            FinalModify::Shareable,
            FinalModify::ReadWrite,
        ];
        { all.into_iter() }.find(|modify| modify.letter() == char::from(letter))
    }
}

/// How an aggregate is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateComputation {
    /// SFUNC.
    pub transition: Option<FunctionId>,
    /// MINVFUNC.
    pub inverse: Option<FunctionId>,
    /// FINALFUNC.
    pub finish: Option<FunctionId>,
    /// FINALFUNC_EXTRA.
    pub finish_extra: bool,
    /// FINALFUNC_MODIFY.
    pub finish_modify: FinalModify,
    /// STYPE; none if it is not computed so.
    pub state: Option<TypeId>,
    /// SSPACE.
    pub state_bytes: i32,
    /// INITCOND.
    pub initial: Option<String>,
}

/// An aggregate's own part of a routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// How it is called.
    pub kind: AggregateKind,
    /// How many of its arguments are direct ones.
    pub direct: u16,
    /// How it is computed.
    pub plain: AggregateComputation,
    /// How it is computed over frames that move.
    pub moving: AggregateComputation,
    /// COMBINEFUNC. Nothing here combines states: it is kept.
    pub combine: Option<FunctionId>,
    /// SORTOP.
    pub sort_operator: Oid,
}

impl Aggregate {
    /// The functions that it needs.
    pub fn functions(&self) -> impl Iterator<Item = FunctionId> {
        let of = |c: &AggregateComputation| [c.transition, c.inverse, c.finish];
        let all = { of(&self.plain).into_iter() }.chain(of(&self.moving));
        all.chain([self.combine]).flatten()
    }

    /// Types of its states.
    pub fn states(&self) -> impl Iterator<Item = TypeId> {
        [self.plain.state, self.moving.state]
            .into_iter()
            .flatten()
            .filter(|ty| *ty != INTERNAL)
    }
}

/// `pg_type.oid` of internal: a state that only functions of the server know. Nobody can have one here.
pub const INTERNAL: TypeId = TypeId::new(2281);
