//! The reference tables in `docs/reference` are what the code says: settings from their table, `logstead_*` views from
//! the catalog. The meaning of the views' columns is in `reference/views.txt`, which has to name all of them.
//!
//! `LOGSTEAD_UPDATE_REFERENCE=1 cargo test --workspace --locked --test reference` writes the files anew.

#![allow(
    clippy::disallowed_methods,
    reason = "the test looks at the repository's files"
)]

use logstead_sql_catalog::VirtualTable;
use logstead_sql_catalog::settings::{self, Setting, SettingContext, SettingType, Unit};
use logstead_sql_ddl::pg_catalog;
use logstead_sql_types::RelationId;
use logstead_sql_types::value::SqlType;
use logstead_sql_types::value::info::format_built_in;
use std::fs;
use std::path::Path;

const UPDATE: &str = "LOGSTEAD_UPDATE_REFERENCE";

/// OIDs from here on are views; below are tables that stand behind `pg_largeobject`.
const FIRST_VIEW: RelationId = RelationId::new(10_000);

/// Compares a file of docs/reference with its text, or writes it.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs/reference")
        .join(name);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = text
        .lines()
        .zip(found.lines().chain(std::iter::repeat("")))
        .find(|(now, found)| now != found);
    assert!(
        found == text,
        "docs/reference/{name} is out of date, first in:\n{}\n{UPDATE}=1 cargo test --workspace --locked --test reference \
         writes it anew",
        differs.map_or("(it is longer)", |(now, _)| now)
    );
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn scope(setting: &Setting) -> &'static str {
    match setting.scope {
        SettingContext::Internal => "nobody",
        SettingContext::Server => "start",
        SettingContext::Superuser => "superuser",
        SettingContext::Session => "session",
    }
}

/// What values it takes, in words.
fn values(setting: &Setting) -> String {
    let bounds = |min: String, max: String| format!("{min} to {max}");
    match setting.kind {
        SettingType::Bool => "`on`, `off`".to_owned(),
        SettingType::Enum(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        SettingType::Int { min, max, unit } => {
            let unit = match unit {
                Unit::None => String::new(),
                unit => format!(" {}", unit.name().unwrap_or_default()),
            };
            bounds(min.to_string(), max.to_string()) + &unit
        }
        SettingType::Real { min, max } if max == f64::MAX => format!("{min} and more"),
        SettingType::Real { min, max } => bounds(min.to_string(), max.to_string()),
        SettingType::Octal => "permissions, octal".to_owned(),
        SettingType::Text | SettingType::Checked(_) => "text".to_owned(),
    }
}

#[test]
fn settings_are_documented() {
    let mut text = "# Settings\n\n\
        Generated from `crates/sql/catalog/src/settings` by `crates/sql/session/tests/reference.rs`: not edited by hand. How settings are\n\
        given: [operations](../operations.md#settings).\n\n\
        *Set by*: `start` is the command line, the environment or the settings file; `superuser` and `session` are such\n\
        sessions for themselves, with the server's configuration as default; `nobody` tells a fact. A number without a unit\n\
        counts in the unit of its values. An empty or zero default often means that the server chooses: SHOW tells.\n\n\
        | setting | values | default | set by | |\n|---|---|---|---|---|\n"
        .to_owned();
    let mut own: Vec<&Setting> = settings::own().collect();
    own.sort_by_key(|setting| setting.name.to_ascii_lowercase());
    for setting in &own {
        let default = match setting.show(setting.default) {
            empty if empty.is_empty() => String::new(),
            default => format!("`{}`", cell(&default)),
        };
        text += &format!(
            "| `{}` | {} | {default} | {} | {} |\n",
            setting.name,
            cell(&values(setting)),
            scope(setting),
            cell(setting.doc)
        );
    }
    text += "\n## PostgreSQL's other settings\n\n\
        SHOW answers these settings of PostgreSQL 15. `array_nulls`, `lo_compat_privileges`, `transform_null_equals` and\n\
        `xmlbinary` do what they do there. The others tell a fact or are accepted and change nothing; where another value\n\
        would promise what is not done, only the default is taken.\n\n";
    let others: Vec<String> = settings::by_name()
        .into_iter()
        .filter(|setting| !own.iter().any(|own| std::ptr::eq(*own, *setting)))
        .map(|setting| format!("`{}`", setting.name))
        .collect();
    assert!(others.len() > 100, "{} others", others.len());
    text += &wrapped(&others.join(", "));
    check("settings.md", &text);
}

/// In lines of at most 120 columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        if width > 0 && width + 1 + word.len() > 120 {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += word.len();
    }
    out + "\n"
}

/// A view's name and text, and those of its columns, as `views.txt` has them.
struct Described {
    name: &'static str,
    text: &'static str,
    columns: Vec<(&'static str, &'static str)>,
}

fn described() -> Vec<Described> {
    let mut views: Vec<Described> = Vec::new();
    for line in include_str!("reference/views.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, text) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        match (line.starts_with(' '), views.last_mut()) {
            (true, Some(view)) => view.columns.push((name.trim(), text)),
            (true, None) => panic!("a column before any view: {line}"),
            (false, _) => views.push(Described {
                name,
                text,
                columns: Vec::new(),
            }),
        }
    }
    views
}

#[test]
fn views_are_documented() {
    let is_own =
        |table: &&VirtualTable| table.name.starts_with("logstead_") && table.oid >= FIRST_VIEW;
    let own = || pg_catalog::tables().filter(is_own);
    let described = described();
    let missing: Vec<&str> = own()
        .map(|table| table.name)
        .filter(|name| !described.iter().any(|view| view.name == *name))
        .collect();
    assert!(missing.is_empty(), "views.txt does not tell of {missing:?}");

    let mut text = "# Views\n\n\
        Generated from the catalog and `crates/sql/session/tests/reference/views.txt` by `crates/sql/session/tests/reference.rs`: not edited\n\
        by hand. These views are in `pg_catalog`, beside PostgreSQL's own. When to look at which:\n\
        [watching](../operations/watching.md), [commit](../operations/commit.md),\n\
        [checkpoints](../operations/checkpoints.md), [object stores](../operations/buckets.md).\n"
        .to_owned();
    for view in &described {
        let table: &VirtualTable = own()
            .find(|table| table.name == view.name)
            .unwrap_or_else(|| panic!("there is no view {}", view.name));
        let type_of = |name: &str| {
            let mut columns = table.columns.iter();
            columns
                .find(|(column, _)| *column == name)
                .map(|(_, ty)| *ty)
        };
        for (column, _) in table.columns {
            let told = view.columns.iter().filter(|(name, _)| name == column);
            assert_eq!(told.count(), 1, "views.txt: {}.{column}", view.name);
        }
        text += &format!(
            "\n## {}\n\n{}\n| column | type | |\n|---|---|---|\n",
            view.name,
            wrapped(view.text)
        );
        for (column, meaning) in &view.columns {
            let ty =
                type_of(column).unwrap_or_else(|| panic!("{} has no column {column}", view.name));
            text += &format!(
                "| `{column}` | {} | {} |\n",
                format_built_in(SqlType::of(ty), false),
                cell(meaning)
            );
        }
    }
    check("views.md", &text);
}
