//! Variables of a procedural language, as data: what the SQL in a body sees beside the database. How names find them is
//! `bind::variables`.

use logstead_sql_parse::plpgsql::tree::VariableConflict;
use logstead_sql_types::value::SqlType;
use std::sync::Arc;

/// Variables in sight of a statement.
#[derive(Clone, Debug)]
pub struct Variables {
    /// Types of the parameters.
    pub types: Vec<SqlType>,
    /// Names, each with the number of its parameter.
    pub names: Vec<(Arc<str>, usize)>,
    /// What names with a dot mean.
    pub groups: Vec<Group>,
    /// Tables that only the body sees: names of tables, each with the number of the parameter that has the rows.
    pub tables: Vec<(Arc<str>, usize)>,
    /// What to do with a name that is a column's, too.
    pub conflict: VariableConflict,
}

/// A record with its fields, or a block with its variables.
#[derive(Clone, Debug)]
pub struct Group {
    /// The block that the record is in, if it is asked for by that.
    pub block: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
    /// What is in it, each with the number of its parameter.
    pub members: Vec<(Arc<str>, usize)>,
    /// It is a record.
    pub record: bool,
    /// It is a record that has no value yet, and no fields.
    pub unassigned: bool,
}
