//! Rows about text search: configurations, dictionaries, the parser, templates.

use super::OWNER;
use super::cells::{Id, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::PG_CATALOG_NAMESPACE;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::search::dictionary::{
    CONFIGS, DICTIONARIES, PARSER, SIMPLE_TEMPLATE, SNOWBALL_TEMPLATE, dictionary_for,
};
use logstead_sql_types::value::search::parser::TokenKind;

type Rows = Result<Vec<Vec<Datum>>>;

/// `pg_ts_config`
pub(super) fn pg_ts_config(_: &VirtualContext<'_>) -> Rows {
    let rows = CONFIGS
        .iter()
        .map(|c| row![Id(c.oid), c.name, PG_CATALOG_NAMESPACE, OWNER, Id(PARSER)]);
    Ok(rows.collect())
}

/// `pg_ts_config_map`
pub(super) fn pg_ts_config_map(_: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for config in &CONFIGS {
        for kind in TokenKind::ALL {
            if let Some(dictionary) = dictionary_for(config, kind) {
                rows.push(row![Id(config.oid), kind as i32, 1_i32, Id(dictionary.oid)]);
            }
        }
    }
    Ok(rows)
}

/// `pg_ts_dict`
pub(super) fn pg_ts_dict(_: &VirtualContext<'_>) -> Rows {
    let rows = DICTIONARIES.iter().map(|d| {
        let template = match d.language {
            Some(_) => SNOWBALL_TEMPLATE,
            None => SIMPLE_TEMPLATE,
        };
        let options = d.options().map_or(Datum::Null, Datum::text);
        row![
            Id(d.oid),
            d.name,
            PG_CATALOG_NAMESPACE,
            OWNER,
            Id(template),
            options
        ]
    });
    Ok(rows.collect())
}

/// `pg_ts_parser`
pub(super) fn pg_ts_parser(_: &VirtualContext<'_>) -> Rows {
    Ok(vec![row![
        Id(PARSER),
        "default",
        PG_CATALOG_NAMESPACE,
        Id(3717),
        Id(3718),
        Id(3719),
        Id(3720),
        Id(3721)
    ]])
}

/// `pg_ts_template`
pub(super) fn pg_ts_template(_: &VirtualContext<'_>) -> Rows {
    Ok(vec![
        row![
            Id(SIMPLE_TEMPLATE),
            "simple",
            PG_CATALOG_NAMESPACE,
            Id(3725),
            Id(3726)
        ],
        row![
            Id(SNOWBALL_TEMPLATE),
            "snowball",
            PG_CATALOG_NAMESPACE,
            Id(13_148),
            Id(13_149)
        ],
    ])
}
