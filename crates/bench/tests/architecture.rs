//! The shape of the repository: what no compiler checks, read from its files.
//!
//! - Crates depend downwards only: on crates that stand before them in [`CRATES`]. What the tests of a crate use
//!   counts as well.
//! - A crate whose examples in documentation are not run (`doctest = false`) has none: rustdoc would look for them in
//!   all of its text each time.
//! - No source file is longer than [`LINES_MAX`] lines, tests included: one that grows past it wants to be two.
//! - No public type has one of [`MEANINGLESS`] for its whole name.
//! - The top-level modules of a crate do not depend on one another in a circle.

#![allow(clippy::disallowed_methods, reason = "the test looks at real files")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace, from what depends on nothing up to the server.
const CRATES: [&str; 23] = [
    "types",
    "env",
    "fiber",
    "devbucket",
    "link",
    "home",
    "storage",
    "wal",
    "commit",
    "checkpoint",
    "engine",
    "sql-types",
    "sql-parse",
    "sql-func",
    "sql-catalog",
    "sql-plan",
    "sql-exec",
    "sql-ddl",
    "sql-session",
    "wire",
    "sim",
    "bench",
    "logstead",
];

/// The most lines that a file of Rust or Python has.
const LINES_MAX: usize = 800;
/// Most columns of a line of comments.
const COLUMNS_MAX: usize = 120;

/// Words that say nothing where they stand alone.
const MEANINGLESS: [&str; 53] = [
    "Again",
    "Amount",
    "Asked",
    "Body",
    "Buffers",
    "Call",
    "Called",
    "Change",
    "Contents",
    "Core",
    "Deep",
    "Deps",
    "Dropped",
    "Figure",
    "Fire",
    "Fixed",
    "Found",
    "Guarded",
    "Held",
    "Issue",
    "Judge",
    "Kept",
    "Kind",
    "Known",
    "Limits",
    "Missed",
    "Moment",
    "Named",
    "Nobody",
    "Noted",
    "Opened",
    "Others",
    "Owed",
    "Part",
    "Parts",
    "Pieces",
    "Place",
    "Promoted",
    "Promoting",
    "Refused",
    "Refusing",
    "Running",
    "Shared",
    "Stamp",
    "State",
    "Things",
    "Unserved",
    "Waiting",
    "Way",
    "What",
    "Wish",
    "Writer",
    "Written",
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
        // `crates/sql` is a folder of crates, and none itself.
        let is_crate = path.join("Cargo.toml").is_file();
        if !(is_crate || prefix.is_empty() && path.is_dir()) {
            continue;
        }
        let name = path.file_name().expect("a directory has a name");
        let name = name.to_str().expect("crates are named in ASCII");
        let name = format!("{prefix}{name}");
        if is_crate {
            found.insert(name.clone(), read(&path.join("Cargo.toml")));
        }
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

/// The lines at which code begins in documentation that rustdoc would compile and run.
fn examples(text: &str) -> Vec<usize> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let documentation = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(fence) = documentation.and_then(|text| text.trim_start().strip_prefix("```"))
        else {
            continue;
        };
        is_inside = !is_inside;
        if is_inside && !["text", "sql", "sh", "toml"].contains(&fence.trim()) {
            found.push(number + 1);
        }
    }
    found
}

#[test]
fn no_example_is_left_out() {
    let mut sources = Vec::new();
    let crates = repository().join("crates");
    for (name, manifest) in manifests() {
        let below = name.replacen("sql-", "sql/", 1);
        let is_run = !manifest.contains("doctest = false");
        assert_eq!(
            is_run,
            name == "engine" || !crates.join(&below).join("src/lib.rs").is_file(),
            "{name}"
        );
        if !is_run {
            let root = crates.join(&below).join("src");
            collect_sources(&root, &format!("{below}/src/"), &mut sources);
        }
    }
    assert!(
        sources.len() > 500,
        "only {} files were found",
        sources.len()
    );
    for (file, _) in sources {
        let found = examples(&read(&crates.join(&file)));
        assert!(
            found.is_empty(),
            "{file} has examples that nobody runs, at lines {found:?}"
        );
    }
    assert_eq!(
        examples("/// ```\n/// f();\n/// ```\n//! ```text\n//! f\n//! ```"),
        [1]
    );
}

/// Lines of comments that are too long: but for rows of tables, blocks of code, and what has no blank to end it at.
fn long_comments(text: &str) -> Vec<usize> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_inside = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        is_inside ^= comment.starts_with("```");
        let is_prose = !is_inside && !comment.starts_with('|') && comment.contains(' ');
        if is_prose && line.chars().count() > COLUMNS_MAX {
            found.push(number + 1);
        }
    }
    found
}

#[test]
fn comments_end_in_time() {
    let mut sources = Vec::new();
    collect_sources(&repository().join("crates"), "crates/", &mut sources);
    sources.retain(|(path, _)| path.ends_with(".rs"));
    assert!(sources.len() > 500, "only {} were found", sources.len());
    let mut told = Vec::new();
    for (file, _) in sources {
        let found = long_comments(&read(&repository().join(&file)));
        told.extend(found.iter().map(|line| format!("{file}:{line}")));
    }
    assert!(
        told.is_empty(),
        "comments of more than {COLUMNS_MAX} columns:\n{}",
        told.join("\n")
    );
    let long = "x ".repeat(60);
    let text = format!(
        "/// {long}\nlet a = 1; // {long}\n//! ```text\n//! {long}\n//! ```\n// | {long}\n    // {long}"
    );
    assert_eq!(long_comments(&text), [1, 7]);
}

#[test]
fn no_source_file_is_too_long() {
    let mut sources = Vec::new();
    collect_sources(&repository(), "", &mut sources);
    // What is not found is not checked.
    for known in [
        file!(),
        "crates/sql/session/src/lib.rs",
        "tests/e2e/golden.py",
    ] {
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

/// A crate's source, for questions about its top-level modules.
struct CrateModules {
    /// By top-level module: the paths, from the crate's root on, that its code names.
    paths: BTreeMap<String, BTreeSet<String>>,
    /// What the crate's root calls by a name of its own, and the module it comes from.
    exports: BTreeMap<String, String>,
}

/// Code without comments and modules of tests.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut tests_end: Option<String> = None;
    let mut is_test_next = false;
    for line in text.lines() {
        if let Some(end) = &tests_end {
            if line == end {
                tests_end = None;
            }
            continue;
        }
        let trimmed = line.trim_start();
        if trimmed.starts_with("#[cfg(") && trimmed.contains("test") {
            is_test_next = true;
            continue;
        }
        if is_test_next && trimmed.starts_with("#[") {
            continue;
        }
        let opens_module = trimmed
            .trim_start_matches("pub(crate) ")
            .starts_with("mod ");
        if is_test_next && opens_module {
            if trimmed.ends_with('{') {
                let indent = &line[..line.len() - trimmed.len()];
                tests_end = Some(format!("{indent}}}"));
            }
            is_test_next = false;
            continue;
        }
        is_test_next = false;
        code.push_str(line.split("//").next().unwrap_or(""));
        code.push('\n');
    }
    code
}

/// Is it the first line of a `use`? Then what follows that word.
fn use_tree(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(rest, |parts| parts.1),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    line.strip_prefix("use ")
}

/// The trees of all `use` in code, and the lines that are none.
fn uses_and_rest(code: &str) -> (Vec<String>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some(tree) = use_tree(line) else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';')
            && let Some(more) = lines.next()
        {
            tree.push_str(more);
        }
        uses.push(tree.split(';').next().unwrap_or("").to_owned());
    }
    (uses, rest)
}

/// Modules that a file declares for tests only.
fn test_modules(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter_map(|pair| {
        let is_test = pair[0].starts_with("#[cfg(") && pair[0].contains("test");
        let name = pair[1]
            .trim_start_matches("pub(crate) ")
            .strip_prefix("mod ")?;
        is_test.then(|| name.trim_end_matches([';', '{', ' ']).to_owned())
    });
    declared.collect()
}

/// The paths that the tree of a `use` stands for.
fn leaves(prefix: &str, tree: &str, out: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else {
        if !tree.is_empty() {
            out.push(format!("{prefix}{tree}"));
        }
        return;
    };
    let prefix = format!("{prefix}{}", head.trim());
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                leaves(&prefix, &inner[start..at], out);
                start = at + 1;
            }
            _ => {}
        }
    }
    leaves(&prefix, &inner[start..], out);
}

/// The paths that code names from the crate's root on; the file lies `depth` modules below it.
fn paths_from_root(code: &str, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let to_root = "super::".repeat(depth);
    let mut note = |path: &str| {
        let path = path.split(" as ").next().unwrap_or(path).trim();
        let below = match path.strip_prefix("crate::") {
            Some(below) => Some(below),
            None if depth > 0 => path
                .strip_prefix(&to_root)
                .filter(|rest| !rest.starts_with("super")),
            None => None,
        };
        found.extend(below.map(str::to_owned));
    };
    let (uses, rest) = uses_and_rest(code);
    for tree in uses {
        let mut paths = Vec::new();
        leaves("", &tree, &mut paths);
        paths.iter().for_each(|path| note(path));
    }
    let is_of_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    for word in rest.split(|letter: char| !is_of_path(letter)) {
        note(word);
    }
    found
}

impl CrateModules {
    fn read(crate_name: &str) -> CrateModules {
        let root = repository()
            .join("crates")
            .join(crate_name.replace('-', "/"));
        let root = root.join("src");
        let mut sources = Vec::new();
        collect_sources(&root, "", &mut sources);
        let texts: BTreeMap<String, String> = sources
            .into_iter()
            .map(|(path, _)| (path.clone(), read(&root.join(path))))
            .collect();
        let skipped: BTreeSet<(String, String)> = texts
            .iter()
            .flat_map(|(path, text)| {
                let below = path.trim_end_matches(".rs").trim_end_matches("mod");
                let below = below.trim_end_matches('/').to_owned();
                test_modules(text)
                    .into_iter()
                    .map(move |name| (below.clone(), name))
            })
            .collect();
        let is_test = |path: &str| {
            let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let parts: Vec<&str> = path.split('/').collect();
            (0..parts.len()).any(|at| {
                let parent = parts[..at].join("/");
                let of_root = at == 0 && skipped.contains(&("lib".to_owned(), parts[0].to_owned()));
                of_root || skipped.contains(&(parent, parts[at].to_owned()))
            })
        };
        let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut exports = BTreeMap::new();
        for (path, text) in &texts {
            let module = path.split('/').next().unwrap_or(path);
            let module = module.trim_end_matches(".rs");
            if ["lib", "main"].contains(&module) || is_test(path) {
                continue;
            }
            let inside = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let depth = inside.split('/').count();
            let of_file = paths_from_root(&code_of(text), depth);
            paths.entry(module.to_owned()).or_default().extend(of_file);
        }
        for root in ["lib.rs", "main.rs"] {
            let code = texts.get(root).map_or(String::new(), |text| code_of(text));
            for tree in uses_and_rest(&code).0 {
                let mut found = Vec::new();
                leaves("", &tree, &mut found);
                for path in found {
                    let path = path
                        .trim_start_matches("crate::")
                        .trim_start_matches("self::");
                    let module = path.split("::").next().unwrap_or(path);
                    let last = path.rsplit("::").next().unwrap_or(path);
                    let name = last.rsplit(" as ").next().unwrap_or(last).trim();
                    if paths.contains_key(module) {
                        exports.insert(name.to_owned(), module.to_owned());
                    }
                }
            }
        }
        CrateModules { paths, exports }
    }

    /// By module: those that it depends on, and by what.
    fn dependencies(&self) -> BTreeMap<&str, BTreeMap<&str, &str>> {
        let of_module = |(module, paths): (&String, &BTreeSet<String>)| {
            let mut used = BTreeMap::new();
            for path in paths {
                let first = path.split("::").next().unwrap_or(path);
                let known = self.paths.get_key_value(first).map(|(known, _)| known);
                if let Some(other) = known.or_else(|| self.exports.get(first))
                    && other != module
                {
                    used.insert(other.clone(), path.clone());
                }
            }
            (module.clone(), used)
        };
        // Borrowed from the crate, not from the loop.
        let owned: BTreeMap<String, BTreeMap<String, String>> =
            self.paths.iter().map(of_module).collect();
        let find = |name: &str| {
            let known = self.paths.get_key_value(name);
            known.map(|(known, _)| known.as_str()).unwrap_or_default()
        };
        let mut all = BTreeMap::new();
        for (module, used) in owned {
            let used = used.iter().map(|(other, path)| {
                let paths = &self.paths[&module];
                let path = paths.get(path).map(String::as_str).unwrap_or_default();
                (find(other), path)
            });
            all.insert(find(&module), used.collect());
        }
        all
    }
}

/// What a module reaches.
fn reached<'m>(
    from: &'m str,
    dependencies: &BTreeMap<&'m str, BTreeMap<&'m str, &'m str>>,
) -> BTreeSet<&'m str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for other in dependencies
            .get(module)
            .into_iter()
            .flat_map(BTreeMap::keys)
        {
            if reached.insert(*other) {
                open.push(other);
            }
        }
    }
    reached
}

/// The circles among modules, the largest first.
fn circles<'m>(
    dependencies: &BTreeMap<&'m str, BTreeMap<&'m str, &'m str>>,
) -> Vec<BTreeSet<&'m str>> {
    let all: BTreeMap<&str, BTreeSet<&str>> = dependencies
        .keys()
        .map(|module| (*module, reached(module, dependencies)))
        .collect();
    let circle_of = |module: &'m str| -> BTreeSet<&'m str> {
        let others = all[module].iter().copied();
        others.filter(|other| all[other].contains(module)).collect()
    };
    let found: BTreeSet<BTreeSet<&str>> = all.keys().map(|module| circle_of(module)).collect();
    let mut found: Vec<_> = found
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

#[test]
fn top_level_modules_have_no_circles() {
    let mut known = 0;
    let mut told = Vec::new();
    for name in CRATES {
        let modules = CrateModules::read(name);
        let dependencies = modules.dependencies();
        known += dependencies.values().map(BTreeMap::len).sum::<usize>();
        let circles = circles(&dependencies);
        for circle in circles {
            told.push(format!(
                "crates/{name} has a circle of {} modules:",
                circle.len()
            ));
            for module in &circle {
                let within = dependencies[module]
                    .iter()
                    .filter(|(other, _)| circle.contains(*other));
                told.extend(within.map(|(other, path)| format!("  {module} -> {other}: {path}")));
            }
        }
    }
    // What is not read is not checked.
    assert!(
        known > 500,
        "only {known} dependencies between modules were found"
    );
    assert!(
        told.is_empty(),
        "top-level modules depend on one another in circles; move what two of them need from one another to where it \
         belongs:\n{}",
        told.join("\n")
    );
}

#[test]
fn the_paths_of_code_are_read() {
    let text = "use crate::{a::{B, c::D},\n    e::F as G};\npub(crate) use super::h::I; // crate::comment::J\n\
                let x = crate::k::l(1);\n#[cfg(test)]\nmod tests {\n    use crate::n::O;\n}\n";
    let paths: Vec<String> = paths_from_root(&code_of(text), 1).into_iter().collect();
    assert_eq!(paths, ["a::B", "a::c::D", "e::F", "h::I", "k::l"]);
    let two_below = paths_from_root("use super::super::a::B;\nuse super::c::D;\n", 2);
    assert_eq!(two_below.into_iter().collect::<Vec<_>>(), ["a::B"]);
}

#[test]
fn circles_are_found() {
    let edges = [
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "d"),
        ("d", "e"),
        ("e", "d"),
        ("f", "a"),
    ];
    let mut dependencies: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (from, to) in edges {
        dependencies.entry(from).or_default().insert(to, "");
    }
    let found: Vec<Vec<&str>> = circles(&dependencies)
        .iter()
        .map(|circle| circle.iter().copied().collect())
        .collect();
    assert_eq!(found, [vec!["a", "b", "c"], vec!["d", "e"]]);
}
