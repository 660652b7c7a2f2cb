//! Functions of large objects: the session runs them (`session::large_objects`), for they read and write rows.

use super::Volatility::Volatile;
use super::{Function, FunctionImpl};
use crate::catalog_function::{LargeObjectFunction as Lo, RoutineFunction};
use crate::function as f;
use logstead_sql_types::value::oid::*;

const fn run(function: Lo) -> FunctionImpl {
    FunctionImpl::Run(RoutineFunction::LargeObject(function))
}

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(715, "lo_create", &[OID], None, OID, true, Volatile, run(Lo::Create)),
    f(764, "lo_import", &[TEXT], None, OID, true, Volatile, run(Lo::Import)),
    f(765, "lo_export", &[OID, TEXT], None, INT4, true, Volatile, run(Lo::Export)),
    f(767, "lo_import", &[TEXT, OID], None, OID, true, Volatile, run(Lo::Import)),
    f(952, "lo_open", &[OID, INT4], None, INT4, true, Volatile, run(Lo::Open)),
    f(953, "lo_close", &[INT4], None, INT4, true, Volatile, run(Lo::Close)),
    f(954, "loread", &[INT4, INT4], None, BYTEA, true, Volatile, run(Lo::Read)),
    f(955, "lowrite", &[INT4, BYTEA], None, INT4, true, Volatile, run(Lo::Write)),
    f(956, "lo_lseek", &[INT4, INT4, INT4], None, INT4, true, Volatile, run(Lo::Lseek)),
    f(957, "lo_creat", &[INT4], None, OID, true, Volatile, run(Lo::Creat)),
    f(958, "lo_tell", &[INT4], None, INT4, true, Volatile, run(Lo::Tell)),
    f(964, "lo_unlink", &[OID], None, INT4, true, Volatile, run(Lo::Unlink)),
    f(1004, "lo_truncate", &[INT4, INT4], None, INT4, true, Volatile, run(Lo::Truncate)),
    f(3170, "lo_lseek64", &[INT4, INT8, INT4], None, INT8, true, Volatile, run(Lo::Lseek64)),
    f(3171, "lo_tell64", &[INT4], None, INT8, true, Volatile, run(Lo::Tell64)),
    f(3172, "lo_truncate64", &[INT4, INT8], None, INT4, true, Volatile, run(Lo::Truncate)),
    f(3457, "lo_from_bytea", &[OID, BYTEA], None, OID, true, Volatile, run(Lo::FromBytea)),
    f(3458, "lo_get", &[OID], None, BYTEA, true, Volatile, run(Lo::Get)),
    f(3459, "lo_get", &[OID, INT8, INT4], None, BYTEA, true, Volatile, run(Lo::Get)),
    f(3460, "lo_put", &[OID, INT8, BYTEA], None, VOID, true, Volatile, run(Lo::Put)),
];
