//! What documents say of the repository is there: links, anchors, paths, tests.
//!
//! - A link in a document leads to a file, and its anchor to a heading.
//! - A path in backticks exists, whole or as the end of a file's path; so does a document that a comment names.
//! - `docs/invariants.md` has all of T1 to T15; the places it names are below `crates/`, the tests are functions of the
//!   sources.
//! - The documents that are read first stay short.

#![allow(clippy::disallowed_methods, reason = "the test looks at real files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold what is made or fetched; so do those whose names begin with a dot.
const NOT_SOURCE: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Directories of the repository whose paths are checked where a document names one.
const ROOTS: [&str; 7] = [
    "crates/", "docs/", "tests/", "bench/", "fuzz/", "scripts/", ".ci/",
];

/// Rules that the code cites by number.
const RULES: usize = 15;

/// Documents that are read first, and the most bytes that they have.
const SHORT: [(&str, usize); 2] = [("ARCHITECTURE.md", 15 << 10), ("CHANGELOG.md", 5 << 10)];

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

/// Files of these endings below a directory, by their paths in the repository.
fn collect(directory: &Path, below: &str, endings: &[&str], out: &mut Vec<String>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{below}: {error}"));
    for entry in entries {
        let entry = entry.expect("a directory of the repository can be listed");
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("it has a type");
        if kind.is_dir() {
            if !name.starts_with('.') && !NOT_SOURCE.contains(&&*name) {
                collect(&entry.path(), &format!("{below}{name}/"), endings, out);
            }
        } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
            out.push(format!("{below}{name}"));
        }
    }
}

fn files(endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    collect(&repository(), "", endings, &mut found);
    found.sort();
    found
}

fn documents() -> Vec<String> {
    let found = files(&[".md"]);
    // What is not found is not checked.
    for known in [
        "README.md",
        "docs/invariants.md",
        "docs/decisions/README.md",
    ] {
        assert!(found.iter().any(|path| path == known), "{known}");
    }
    found
}

/// The text without blocks of code, line by line.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let fence = line.starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// What stands between two marks, wherever they stand in a line.
fn between<'t>(line: &'t str, from: &str, to: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(begin) = rest.find(from) {
        let tail = &rest[begin + from.len()..];
        let Some(end) = tail.find(to) else { break };
        found.push(&tail[..end]);
        rest = &tail[end + to.len()..];
    }
    found
}

/// The anchors of a document's headings, as they are made of their texts.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let root = repository();
    let (mut known, mut wrong) = (0, Vec::new());
    for document in documents() {
        let text = read(&root.join(&document));
        let directory = root.join(&document);
        let directory = directory.parent().expect("a file is in a directory");
        for target in prose(&text).flat_map(|line| between(line, "](", ")")) {
            if target.contains("://") {
                continue;
            }
            known += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match path {
                "" => root.join(&document),
                path => directory.join(path),
            };
            let leads =
                file.exists() && (anchor.is_empty() || anchors(&read(&file)).contains(anchor));
            if !leads {
                wrong.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(known > 200, "only {known} links were found");
    assert!(wrong.is_empty(), "dead links:\n{}", wrong.join("\n"));
}

/// Whether a span in backticks is the name of a file or directory, and not a pattern or somebody else's.
fn is_path(span: &str) -> bool {
    let is_plain = !span.contains(|c: char| " *<>{}:~$".contains(c) || c.is_ascii_uppercase());
    let is_ours = ROOTS.iter().any(|root| span.starts_with(root));
    let is_source = [".rs", ".py", ".golden", ".spec"]
        .iter()
        .any(|ending| span.ends_with(ending));
    is_plain && (is_ours || is_source)
}

#[test]
fn paths_exist() {
    let root = repository();
    let all = files(&[""]);
    let (mut known, mut wrong) = (0, Vec::new());
    for document in documents() {
        // What has been measured names what was there then.
        if document == "docs/benchmarks.md" {
            continue;
        }
        let text = read(&root.join(&document));
        for span in prose(&text).flat_map(|line| between(line, "`", "`")) {
            if !is_path(span) {
                continue;
            }
            known += 1;
            // Documents name files of the crate at hand by the end of their paths.
            let ending = format!("/{span}");
            let is_there = root.join(span).exists()
                || root.join("crates").join(span).exists()
                || all.iter().any(|path| path.ends_with(&ending));
            if !is_there {
                wrong.push(format!("{document}: {span}"));
            }
        }
    }
    assert!(known > 400, "only {known} paths were found");
    assert!(
        wrong.is_empty(),
        "there is no such path:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn comments_name_documents_that_exist() {
    let root = repository();
    let (mut known, mut wrong) = (0, Vec::new());
    for source in files(&[".rs", ".py", ".toml"]) {
        if source == file!() {
            continue;
        }
        for line in read(&root.join(&source)).lines() {
            for part in line.split("docs/").skip(1) {
                let is_name = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
                let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
                let Some(end) = part[..end].rfind(".md") else {
                    continue;
                };
                known += 1;
                let path = format!("docs/{}.md", &part[..end]);
                if !root.join(&path).is_file() {
                    wrong.push(format!("{source}: {path}"));
                }
            }
        }
    }
    assert!(known > 5, "only {known} documents are named");
    assert!(
        wrong.is_empty(),
        "there is no such document:\n{}",
        wrong.join("\n")
    );
}

/// Whether a source has a function of this name.
fn has_function(sources: &[String], name: &str) -> bool {
    let (call, generic) = (format!("fn {name}("), format!("fn {name}<"));
    sources
        .iter()
        .any(|source| source.contains(&call) || source.contains(&generic))
}

#[test]
fn invariants_name_places_and_tests_that_exist() {
    let root = repository();
    let text = read(&root.join("docs/invariants.md"));
    let rules: Vec<String> = (1..=RULES).map(|rule| format!("### T{rule}")).collect();
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("### "))
        .collect();
    assert_eq!(found, rules, "rules of docs/invariants.md");

    let sources: Vec<String> = files(&[".rs"])
        .iter()
        .map(|path| read(&root.join(path)))
        .collect();
    let (mut tests, mut places, mut wrong) = (0, 0, Vec::new());
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [.., kept, told] = cells.as_slice() else {
            panic!("{line}")
        };
        for span in between(kept, "`", "`")
            .into_iter()
            .filter(|span| span.contains('/'))
        {
            places += 1;
            if !root.join("crates").join(span).exists() {
                wrong.push(format!("crates/{span}"));
            }
        }
        for span in between(told, "`", "`") {
            let is_there = match span {
                "bench/growth.py" => root.join(span).is_file(),
                file if file.contains('/') => root.join("crates").join(file).is_file(),
                test => has_function(&sources, test),
            };
            tests += 1;
            if !is_there {
                wrong.push(span.to_owned());
            }
        }
    }
    assert!(tests > 60 && places > 40, "{tests} tests, {places} places");
    assert!(wrong.is_empty(), "not there:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_read_first_is_short() {
    for (document, bytes_max) in SHORT {
        let bytes = read(&repository().join(document)).len();
        assert!(bytes <= bytes_max, "{document} has {bytes} bytes");
    }
}
