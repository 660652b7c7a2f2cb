//! What stands for the aggregates that users have made: their calls tell what is computed.

use super::{Aggregate, AggregateState};
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::ANY;

/// Stands for every aggregate that a user has made.
pub static USER_AGGREGATE: Aggregate = Aggregate {
    oid: FunctionId::new(0),
    name: "",
    args: &[],
    result: ANY,
    start: |_| Box::new(NoState),
    strict: false,
};

/// The state of what has its state elsewhere.
struct NoState;

impl AggregateState for NoState {
    fn add(&mut self, _: &[Datum]) -> Result<()> {
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        Ok(Datum::Null)
    }
}
