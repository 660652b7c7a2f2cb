//! Rows as XML: functions that the session runs (`session::routine::xml_maps`), and those of their kin that there are
//! not yet.

use super::Volatility::{Stable, Volatile};
use super::{Function, FunctionImpl};
use crate::catalog_function::{RoutineFunction, XmlMapFunction};
use crate::function as f;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

macro_rules! absent {
    ($name:literal) => {{
        fn refused(_: &[Datum]) -> Result<Datum> {
            Err(SqlError::unsupported(concat!("function ", $name, "()")))
        }
        FunctionImpl::Pure(refused)
    }};
}

const fn run(function: XmlMapFunction) -> FunctionImpl {
    FunctionImpl::Run(RoutineFunction::XmlMap(function))
}

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(2923, "table_to_xml", &[REGCLASS, BOOL, BOOL, TEXT], None, XML, true, Stable, run(XmlMapFunction::Table)),
    f(2924, "query_to_xml", &[TEXT, BOOL, BOOL, TEXT], None, XML, true, Volatile, run(XmlMapFunction::Query)),
    f(2925, "cursor_to_xml", &[REFCURSOR, INT4, BOOL, BOOL, TEXT], None, XML, true, Volatile, absent!("cursor_to_xml")),
    f(2926, "table_to_xmlschema", &[REGCLASS, BOOL, BOOL, TEXT], None, XML, true, Stable, absent!("table_to_xmlschema")),
    f(2927, "query_to_xmlschema", &[TEXT, BOOL, BOOL, TEXT], None, XML, true, Volatile, absent!("query_to_xmlschema")),
    f(2928, "cursor_to_xmlschema", &[REFCURSOR, BOOL, BOOL, TEXT], None, XML, true, Volatile, absent!("cursor_to_xmlschema")),
    f(2929, "table_to_xml_and_xmlschema", &[REGCLASS, BOOL, BOOL, TEXT], None, XML, true, Stable, absent!("table_to_xml_and_xmlschema")),
    f(2930, "query_to_xml_and_xmlschema", &[TEXT, BOOL, BOOL, TEXT], None, XML, true, Volatile, absent!("query_to_xml_and_xmlschema")),
    f(2933, "schema_to_xml", &[NAME, BOOL, BOOL, TEXT], None, XML, true, Stable, run(XmlMapFunction::Schema)),
    f(2934, "schema_to_xmlschema", &[NAME, BOOL, BOOL, TEXT], None, XML, true, Stable, absent!("schema_to_xmlschema")),
    f(2935, "schema_to_xml_and_xmlschema", &[NAME, BOOL, BOOL, TEXT], None, XML, true, Stable, absent!("schema_to_xml_and_xmlschema")),
    f(2936, "database_to_xml", &[BOOL, BOOL, TEXT], None, XML, true, Stable, run(XmlMapFunction::Database)),
    f(2937, "database_to_xmlschema", &[BOOL, BOOL, TEXT], None, XML, true, Stable, absent!("database_to_xmlschema")),
    f(2938, "database_to_xml_and_xmlschema", &[BOOL, BOOL, TEXT], None, XML, true, Stable, absent!("database_to_xml_and_xmlschema")),
];
