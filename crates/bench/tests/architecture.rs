//! The shape of the repository: what no compiler checks, read from its files.
//!
//! - Crates depend downwards only: on crates that stand before them in [`CRATES`]. What the tests of a crate use
//!   counts as well.
//! - No source file is longer than [`LINES_MAX`] lines, tests included: one that grows past it wants to be two.
//! - No public type has one of [`MEANINGLESS`] for its whole name.

#![allow(clippy::disallowed_methods, reason = "the test looks at real files")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace, from what depends on nothing up to the server.
const CRATES: [&str; 17] = [
    "types",
    "env",
    "fiber",
    "devbucket",
    "home",
    "wal",
    "commit",
    "checkpoint",
    "engine",
    "sql-types",
    "sql-parse",
    "sql-func",
    "sql",
    "wire",
    "sim",
    "bench",
    "logstead",
];

/// The most lines that a file of Rust or Python has.
const LINES_MAX: usize = 800;

/// Words that say nothing where they stand alone.
const MEANINGLESS: [&str; 9] = [
    "Asked", "Found", "Held", "Kept", "Kind", "Part", "Place", "Shared", "State",
];

/// Directories that hold what is made or fetched, not source; so do those whose names begin with a dot.
const NOT_SOURCE: [&str; 3] = ["target", "node_modules", "__pycache__"];

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(
        root.join("Cargo.lock").is_file(),
        "{root:?} is not the workspace"
    );
    root
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates of the workspace that a manifest names as dependencies, of whatever kind.
fn internal_dependencies(manifest: &str) -> Vec<String> {
    let mut is_dependencies = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            is_dependencies = section.ends_with("dependencies");
            // [dependencies.logstead-NAME]
            if let Some((kind, name)) = section.rsplit_once('.')
                && kind.ends_with("dependencies")
            {
                found.extend(name.strip_prefix("logstead-").map(str::to_owned));
            }
        } else if is_dependencies && let Some(rest) = line.strip_prefix("logstead-") {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            found.push(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    found
}

/// The manifests of all crates, by the crate's directory.
fn manifests() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect_manifests(&repository().join("crates"), "", &mut found);
    found
}

/// Those below a directory: the crate in `crates/sql/types` is named `sql-types`.
fn collect_manifests(directory: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{directory:?}: {error}"));
    for entry in entries {
        let path = entry.expect("crates/ can be listed").path();
        if !path.join("Cargo.toml").is_file() {
            continue;
        }
        let name = path.file_name().expect("a directory has a name");
        let name = name.to_str().expect("crates are named in ASCII");
        let name = format!("{prefix}{name}");
        found.insert(name.clone(), read(&path.join("Cargo.toml")));
        collect_manifests(&path, &format!("{name}-"), found);
    }
}

#[test]
fn every_crate_has_its_place() {
    let manifests = manifests();
    for name in manifests.keys() {
        assert!(
            CRATES.contains(&name.as_str()),
            "crates/{name} has no place in CRATES of {}: put it behind the last crate that it depends on",
            file!()
        );
    }
    for name in CRATES {
        let manifest = manifests.get(name);
        let manifest =
            manifest.unwrap_or_else(|| panic!("crates/{name} is in CRATES, and is no crate"));
        let package = match name {
            "logstead" => "name = \"logstead\"".to_owned(),
            _ => format!("name = \"logstead-{name}\""),
        };
        assert!(
            manifest.lines().any(|line| line == package),
            "crates/{name}/Cargo.toml does not say {package}"
        );
    }
}

#[test]
fn crates_depend_downwards_only() {
    let manifests = manifests();
    let mut known = 0;
    for (place, name) in CRATES.iter().enumerate() {
        // One that is no crate is told by the test above.
        let manifest = manifests.get(*name).map_or("", String::as_str);
        for used in internal_dependencies(manifest) {
            assert!(
                CRATES[..place].contains(&used.as_str()),
                "crates/{name} depends on {used}, which does not stand before it: {}",
                CRATES.join(", ")
            );
            known += 1;
        }
    }
    // What is not read is not checked.
    assert!(known > CRATES.len(), "only {known} dependencies were found");
}

/// Paths and lengths of the files of Rust and Python below a directory.
fn collect_sources(directory: &Path, below: &str, out: &mut Vec<(String, usize)>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{below}: {error}"));
    for entry in entries {
        let entry = entry.expect("a directory of the repository can be listed");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}{name}");
        let kind = entry.file_type().expect("it has a type");
        if kind.is_dir() {
            let is_source = !name.starts_with('.') && !NOT_SOURCE.contains(&&*name);
            if is_source {
                collect_sources(&entry.path(), &format!("{path}/"), out);
            }
        } else if kind.is_file() && (name.ends_with(".rs") || name.ends_with(".py")) {
            out.push((path, read(&entry.path()).lines().count()));
        }
    }
}

#[test]
fn no_source_file_is_too_long() {
    let mut sources = Vec::new();
    collect_sources(&repository(), "", &mut sources);
    // What is not found is not checked.
    for known in [file!(), "crates/sql/src/lib.rs", "tests/e2e/golden.py"] {
        let is_there = sources.iter().any(|(path, _)| path == known);
        assert!(is_there, "{known} was not found");
    }
    sources.retain(|(_, lines)| *lines > LINES_MAX);
    sources.sort();
    let told: Vec<String> = sources
        .iter()
        .map(|(path, lines)| format!("{path}: {lines}"))
        .collect();
    assert!(
        told.is_empty(),
        "files of more than {LINES_MAX} lines; move what belongs together into a file of its own:\n{}",
        told.join("\n")
    );
}

/// The name of the type that a line makes public, if it does.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (keyword, rest) = rest.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    ["struct", "enum", "union", "trait", "type"]
        .contains(&keyword)
        .then_some(name)
}

#[test]
fn public_types_have_names_that_say_something() {
    let root = repository();
    let mut sources = Vec::new();
    collect_sources(&root, "", &mut sources);
    let mut known = 0;
    let mut told = Vec::new();
    for (path, _) in sources.iter().filter(|(path, _)| path.ends_with(".rs")) {
        for (at, line) in read(&root.join(path)).lines().enumerate() {
            let Some(name) = public_type(line) else {
                continue;
            };
            known += 1;
            if MEANINGLESS.contains(&name) {
                told.push(format!("{path}:{}: {name}", at + 1));
            }
        }
    }
    // What is not found is not checked.
    assert!(known > 500, "only {known} public types were found");
    assert!(
        told.is_empty(),
        "types whose names say nothing:\n{}",
        told.join("\n")
    );
}
