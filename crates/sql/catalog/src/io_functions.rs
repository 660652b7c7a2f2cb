//! The functions that read and print types (`pg_type.typinput` ...): they are named in `pg_type` and `pg_proc`.
//! Those between text and a type can be called (`func::table_io`).

use logstead_sql_types::value::{Oid, oid};
use std::collections::HashMap;
use std::sync::OnceLock;

/// (OID, name, result type), by OID.
#[rustfmt::skip]
pub static IO_FUNCTIONS: &[(u32, &str, u32)] = &[
    (31, "byteaout", 2275), (33, "charout", 2275), (34, "namein", 19), (35, "nameout", 2275), (38, "int2in", 21),
    (39, "int2out", 2275), (40, "int2vectorin", 22), (41, "int2vectorout", 2275), (42, "int4in", 23),
    (43, "int4out", 2275), (44, "regprocin", 24), (45, "regprocout", 2275), (46, "textin", 25), (47, "textout", 2275),
    (48, "tidin", 27), (49, "tidout", 2275), (50, "xidin", 28), (51, "xidout", 2275), (52, "cidin", 29),
    (53, "cidout", 2275), (54, "oidvectorin", 30), (55, "oidvectorout", 2275), (109, "unknownin", 705),
    (110, "unknownout", 2275), (117, "point_in", 600), (118, "point_out", 2275), (119, "lseg_in", 601),
    (120, "lseg_out", 2275), (121, "path_in", 602), (122, "path_out", 2275), (123, "box_in", 603),
    (124, "box_out", 2275), (195, "pg_node_tree_in", 194), (196, "pg_node_tree_out", 2275),
    (197, "pg_node_tree_recv", 194), (198, "pg_node_tree_send", 17), (200, "float4in", 700), (201, "float4out", 2275),
    (214, "float8in", 701), (215, "float8out", 2275), (321, "json_in", 114), (322, "json_out", 2275),
    (323, "json_recv", 114), (324, "json_send", 17), (347, "poly_in", 604), (348, "poly_out", 2275),
    (436, "macaddr_in", 829), (437, "macaddr_out", 2275), (460, "int8in", 20), (461, "int8out", 2275),
    (750, "array_in", 2277), (751, "array_out", 2275), (886, "cash_in", 790), (887, "cash_out", 2275),
    (910, "inet_in", 869), (911, "inet_out", 2275), (1031, "aclitemin", 1033), (1032, "aclitemout", 2275),
    (1044, "bpcharin", 1042), (1045, "bpcharout", 2275), (1046, "varcharin", 1043), (1047, "varcharout", 2275),
    (1084, "date_in", 1082), (1085, "date_out", 2275), (1143, "time_in", 1083), (1144, "time_out", 2275),
    (1150, "timestamptz_in", 1184), (1151, "timestamptz_out", 2275), (1160, "interval_in", 1186),
    (1161, "interval_out", 2275), (1242, "boolin", 16), (1243, "boolout", 2275), (1244, "byteain", 17),
    (1245, "charin", 18), (1267, "cidr_in", 650), (1312, "timestamp_in", 1114), (1313, "timestamp_out", 2275),
    (1350, "timetz_in", 1266), (1351, "timetz_out", 2275), (1427, "cidr_out", 2275), (1450, "circle_in", 718),
    (1451, "circle_out", 2275), (1490, "line_in", 628), (1491, "line_out", 2275), (1564, "bit_in", 1560),
    (1565, "bit_out", 2275), (1579, "varbit_in", 1562), (1580, "varbit_out", 2275), (1701, "numeric_in", 1700),
    (1702, "numeric_out", 2275), (1798, "oidin", 26), (1799, "oidout", 2275), (2212, "regprocedurein", 2202),
    (2213, "regprocedureout", 2275), (2214, "regoperin", 2203), (2215, "regoperout", 2275),
    (2216, "regoperatorin", 2204), (2217, "regoperatorout", 2275), (2218, "regclassin", 2205),
    (2219, "regclassout", 2275), (2220, "regtypein", 2206), (2221, "regtypeout", 2275), (2290, "record_in", 2249),
    (2291, "record_out", 2275), (2292, "cstring_in", 2275), (2293, "cstring_out", 2275), (2294, "any_in", 2276),
    (2295, "any_out", 2275), (2296, "anyarray_in", 2277), (2297, "anyarray_out", 2275), (2298, "void_in", 2278),
    (2299, "void_out", 2275), (2300, "trigger_in", 2279), (2301, "trigger_out", 2275),
    (2302, "language_handler_in", 2280), (2303, "language_handler_out", 2275), (2304, "internal_in", 2281),
    (2305, "internal_out", 2275), (2312, "anyelement_in", 2283), (2313, "anyelement_out", 2275),
    (2400, "array_recv", 2277), (2401, "array_send", 17), (2402, "record_recv", 2249), (2403, "record_send", 17),
    (2404, "int2recv", 21), (2405, "int2send", 17), (2406, "int4recv", 23), (2407, "int4send", 17),
    (2408, "int8recv", 20), (2409, "int8send", 17), (2410, "int2vectorrecv", 22), (2411, "int2vectorsend", 17),
    (2412, "bytearecv", 17), (2413, "byteasend", 17), (2414, "textrecv", 25), (2415, "textsend", 17),
    (2416, "unknownrecv", 705), (2417, "unknownsend", 17), (2418, "oidrecv", 26), (2419, "oidsend", 17),
    (2420, "oidvectorrecv", 30), (2421, "oidvectorsend", 17), (2422, "namerecv", 19), (2423, "namesend", 17),
    (2424, "float4recv", 700), (2425, "float4send", 17), (2426, "float8recv", 701), (2427, "float8send", 17),
    (2428, "point_recv", 600), (2429, "point_send", 17), (2430, "bpcharrecv", 1042), (2431, "bpcharsend", 17),
    (2432, "varcharrecv", 1043), (2433, "varcharsend", 17), (2434, "charrecv", 18), (2435, "charsend", 17),
    (2436, "boolrecv", 16), (2437, "boolsend", 17), (2438, "tidrecv", 27), (2439, "tidsend", 17), (2440, "xidrecv", 28),
    (2441, "xidsend", 17), (2442, "cidrecv", 29), (2443, "cidsend", 17), (2444, "regprocrecv", 24),
    (2445, "regprocsend", 17), (2446, "regprocedurerecv", 2202), (2447, "regproceduresend", 17),
    (2448, "regoperrecv", 2203), (2449, "regopersend", 17), (2450, "regoperatorrecv", 2204),
    (2451, "regoperatorsend", 17), (2452, "regclassrecv", 2205), (2453, "regclasssend", 17),
    (2454, "regtyperecv", 2206), (2455, "regtypesend", 17), (2456, "bit_recv", 1560), (2457, "bit_send", 17),
    (2458, "varbit_recv", 1562), (2459, "varbit_send", 17), (2460, "numeric_recv", 1700), (2461, "numeric_send", 17),
    (2468, "date_recv", 1082), (2469, "date_send", 17), (2470, "time_recv", 1083), (2471, "time_send", 17),
    (2472, "timetz_recv", 1266), (2473, "timetz_send", 17), (2474, "timestamp_recv", 1114),
    (2475, "timestamp_send", 17), (2476, "timestamptz_recv", 1184), (2477, "timestamptz_send", 17),
    (2478, "interval_recv", 1186), (2479, "interval_send", 17), (2480, "lseg_recv", 601), (2481, "lseg_send", 17),
    (2482, "path_recv", 602), (2483, "path_send", 17), (2484, "box_recv", 603), (2485, "box_send", 17),
    (2486, "poly_recv", 604), (2487, "poly_send", 17), (2488, "line_recv", 628), (2489, "line_send", 17),
    (2490, "circle_recv", 718), (2491, "circle_send", 17), (2492, "cash_recv", 790), (2493, "cash_send", 17),
    (2494, "macaddr_recv", 829), (2495, "macaddr_send", 17), (2496, "inet_recv", 869), (2497, "inet_send", 17),
    (2498, "cidr_recv", 650), (2499, "cidr_send", 17), (2500, "cstring_recv", 2275), (2501, "cstring_send", 17),
    (2502, "anyarray_recv", 2277), (2503, "anyarray_send", 17), (2597, "domain_in", 2276), (2598, "domain_recv", 2276),
    (2777, "anynonarray_in", 2776), (2778, "anynonarray_out", 2275), (2893, "xml_in", 142), (2894, "xml_out", 2275),
    (2898, "xml_recv", 142), (2899, "xml_send", 17), (2902, "varbittypmodin", 23),
    (2903, "intervaltypmodin", 23), (2904, "intervaltypmodout", 2275), (2905, "timestamptypmodin", 23),
    (2906, "timestamptypmodout", 2275), (2907, "timestamptztypmodin", 23), (2908, "timestamptztypmodout", 2275),
    (2909, "timetypmodin", 23), (2910, "timetypmodout", 2275), (2911, "timetztypmodin", 23),
    (2912, "timetztypmodout", 2275), (2913, "bpchartypmodin", 23), (2914, "bpchartypmodout", 2275),
    (2915, "varchartypmodin", 23), (2916, "varchartypmodout", 2275), (2917, "numerictypmodin", 23),
    (2918, "numerictypmodout", 2275), (2919, "bittypmodin", 23), (2920, "bittypmodout", 2275),
    (2921, "varbittypmodout", 2275), (2939, "txid_snapshot_in", 2970), (2940, "txid_snapshot_out", 2275),
    (2941, "txid_snapshot_recv", 2970), (2942, "txid_snapshot_send", 17), (2952, "uuid_in", 2950),
    (2953, "uuid_out", 2275), (2961, "uuid_recv", 2950), (2962, "uuid_send", 17), (3120, "void_recv", 2278),
    (3121, "void_send", 17), (3229, "pg_lsn_in", 3220), (3230, "pg_lsn_out", 2275), (3238, "pg_lsn_recv", 3220),
    (3239, "pg_lsn_send", 17), (3446, "macaddr8_recv", 774), (3447, "macaddr8_send", 17), (3504, "anyenum_in", 3500),
    (3505, "anyenum_out", 2275), (3506, "enum_in", 3500), (3507, "enum_out", 2275), (3532, "enum_recv", 3500),
    (3533, "enum_send", 17), (3610, "tsvectorin", 3614), (3611, "tsvectorout", 2275), (3612, "tsqueryin", 3615),
    (3613, "tsqueryout", 2275), (3638, "tsvectorsend", 17), (3639, "tsvectorrecv", 3614), (3640, "tsquerysend", 17),
    (3641, "tsqueryrecv", 3615), (3717, "prsd_start", 2281), (3718, "prsd_nexttoken", 2281), (3719, "prsd_end", 2278),
    (3720, "prsd_headline", 2281), (3721, "prsd_lextype", 2281), (3725, "dsimple_init", 2281),
    (3726, "dsimple_lexize", 2281), (3736, "regconfigin", 3734), (3737, "regconfigout", 2275),
    (3738, "regconfigrecv", 3734), (3739, "regconfigsend", 17), (3771, "regdictionaryin", 3769),
    (3772, "regdictionaryout", 2275), (3773, "regdictionaryrecv", 3769), (3774, "regdictionarysend", 17),
    (3803, "jsonb_send", 17), (3804, "jsonb_out", 2275), (3805, "jsonb_recv", 3802), (3806, "jsonb_in", 3802),
    (3832, "anyrange_in", 3831), (3833, "anyrange_out", 2275), (3834, "range_in", 3831), (3835, "range_out", 2275),
    (3836, "range_recv", 3831), (3837, "range_send", 17), (4001, "jsonpath_in", 4072), (4002, "jsonpath_recv", 4072),
    (4003, "jsonpath_out", 2275), (4004, "jsonpath_send", 17), (4084, "regnamespacein", 4089),
    (4085, "regnamespaceout", 2275), (4087, "regnamespacerecv", 4089), (4088, "regnamespacesend", 17),
    (4092, "regroleout", 2275), (4094, "regrolerecv", 4096), (4095, "regrolesend", 17), (4098, "regrolein", 4096),
    (4110, "macaddr8_in", 774), (4111, "macaddr8_out", 2275), (4193, "regcollationin", 4191),
    (4194, "regcollationout", 2275), (4196, "regcollationrecv", 4191), (4197, "regcollationsend", 17),
    (4229, "anymultirange_in", 4537), (4230, "anymultirange_out", 2275), (4231, "multirange_in", 4537),
    (4232, "multirange_out", 2275), (4233, "multirange_recv", 4537), (4234, "multirange_send", 17),
    (5055, "pg_snapshot_in", 5038), (5056, "pg_snapshot_out", 2275), (5057, "pg_snapshot_recv", 5038),
    (5058, "pg_snapshot_send", 17), (5070, "xid8in", 5069), (5081, "xid8out", 2275), (5082, "xid8recv", 5069),
    (5083, "xid8send", 17), (5086, "anycompatible_in", 5077), (5087, "anycompatible_out", 2275),
    (5088, "anycompatiblearray_in", 5078), (5089, "anycompatiblearray_out", 2275),
    (5090, "anycompatiblearray_recv", 5078), (5091, "anycompatiblearray_send", 17),
    (5092, "anycompatiblenonarray_in", 5079), (5093, "anycompatiblenonarray_out", 2275),
    (13148, "dsnowball_init", 2281), (13149, "dsnowball_lexize", 2281), (16080, "citextin", 16006),
    (16081, "citextout", 2275), (16082, "citextrecv", 16006), (16083, "citextsend", 17), (16160, "hstore_in", 16014),
    (16161, "hstore_out", 2275), (16162, "hstore_recv", 16014), (16163, "hstore_send", 17),
];

/// Name of a type's input, output, receive, send or modifier function by its OID.
pub fn io_function_name(function: Oid) -> Option<&'static str> {
    match function {
        2246..=2248 | 13_560..=13_562 => {
            return language_function_name(function);
        }
        3 => return Some("heap_tableam_handler"),
        330 => return Some("bthandler"),
        331 => return Some("hashhandler"),
        6179 => return Some("array_subscript_handler"),
        6180 => return Some("raw_array_subscript_handler"),
        6098 => return Some("jsonb_subscript_handler"),
        3914 => return Some("int4range_canonical"),
        3915 => return Some("daterange_canonical"),
        3922 => return Some("int4range_subdiff"),
        3923 => return Some("int8range_subdiff"),
        3924 => return Some("numrange_subdiff"),
        3925 => return Some("daterange_subdiff"),
        3928 => return Some("int8range_canonical"),
        3929 => return Some("tsrange_subdiff"),
        3930 => return Some("tstzrange_subdiff"),
        _ => {}
    }
    let at = IO_FUNCTIONS.binary_search_by_key(&function, |f| f.0).ok()?;
    IO_FUNCTIONS.get(at).map(|f| f.1)
}

/// OID of such a function by name.
pub fn io_function_by_name(name: &str) -> Option<Oid> {
    static NAMES: OnceLock<HashMap<&'static str, Oid>> = OnceLock::new();
    NAMES
        .get_or_init(|| IO_FUNCTIONS.iter().map(|f| (f.1, f.0)).collect())
        .get(name)
        .copied()
}

/// A function that a language is made of: shown, and never called by name.
pub struct LanguageFunction {
    /// `pg_proc.oid`.
    pub oid: Oid,
    /// Name.
    pub name: &'static str,
    /// Argument types.
    pub args: &'static [Oid],
    /// Result type.
    pub result: Oid,
    /// `pg_proc.probin`: in a library, the language's.
    pub binary: Option<&'static str>,
}

const VOID: Oid = 2278;
const LANGUAGE_HANDLER: Oid = 2280;
const INTERNAL: Oid = 2281;

/// The functions that languages are made of.
pub const LANGUAGE_FUNCTIONS: [LanguageFunction; 6] = [
    validator(2246, "fmgr_internal_validator", None),
    validator(2247, "fmgr_c_validator", None),
    validator(2248, "fmgr_sql_validator", None),
    LanguageFunction {
        oid: 13_560,
        name: "plpgsql_call_handler",
        args: &[],
        result: LANGUAGE_HANDLER,
        binary: Some("$libdir/plpgsql"),
    },
    LanguageFunction {
        oid: 13_561,
        name: "plpgsql_inline_handler",
        args: &[INTERNAL],
        result: VOID,
        binary: Some("$libdir/plpgsql"),
    },
    validator(13_562, "plpgsql_validator", Some("$libdir/plpgsql")),
];

const fn validator(oid: Oid, name: &'static str, binary: Option<&'static str>) -> LanguageFunction {
    LanguageFunction {
        oid,
        name,
        args: &[oid::OID],
        result: VOID,
        binary,
    }
}

impl LanguageFunction {
    /// The function of this number.
    pub fn by_oid(oid: Oid) -> Option<&'static LanguageFunction> {
        LANGUAGE_FUNCTIONS.iter().find(|f| f.oid == oid)
    }
}

/// The name of a function that a language is made of.
pub(crate) fn language_function_name(function: Oid) -> Option<&'static str> {
    LanguageFunction::by_oid(function).map(|f| f.name)
}
