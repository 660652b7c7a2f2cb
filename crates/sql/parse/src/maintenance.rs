//! VACUUM and ANALYZE: which tables, which columns.

use crate::lowered::ObjectName;

/// VACUUM, ANALYZE.
#[derive(Clone, Debug)]
pub struct Maintain {
    /// VACUUM was said.
    pub vacuum: bool,
    /// Statistics are to be gathered.
    pub analyze: bool,
    /// Tables with the columns that are named; none are all.
    pub targets: Vec<(ObjectName, Vec<String>)>,
}

impl Maintain {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        if self.vacuum { "VACUUM" } else { "ANALYZE" }
    }
}

#[cfg(test)]
mod tests {
    use crate::{StatementKind, parse};

    fn said(text: &str) -> (bool, bool, Vec<(String, Vec<String>)>) {
        let parsed = parse(text).unwrap().remove(0);
        let StatementKind::Maintain(found) = parsed.kind else {
            panic!("{text}");
        };
        let targets = found.targets.iter();
        let targets = targets.map(|(name, columns)| (name.to_string(), columns.clone()));
        (found.vacuum, found.analyze, targets.collect())
    }

    #[test]
    fn what_is_named_and_what_is_asked_for() {
        assert_eq!(said("analyze"), (false, true, vec![]));
        assert_eq!(said("vacuum full freeze verbose"), (true, false, vec![]));
        let t = |columns: &[&str]| {
            let columns = columns.iter().map(|c| (*c).to_owned()).collect();
            ("s.t".to_owned(), columns)
        };
        assert_eq!(
            said("ANALYZE VERBOSE s.t (a, \"B\"), s.t"),
            (false, true, vec![t(&["a", "B"]), t(&[])])
        );
        assert_eq!(
            said("VACUUM (FULL, ANALYZE true, PARALLEL 2) s.t"),
            (true, true, vec![t(&[])])
        );
        assert_eq!(
            said("VACUUM (ANALYZE off) s.t"),
            (true, false, vec![t(&[])])
        );
        for (wrong, code) in [
            ("analyze (full)", "42601"),
            ("vacuum (parallel x, nonsense)", "42601"),
            ("vacuum (verbose maybe)", "42601"),
            ("vacuum t (a)", "0A000"),
            ("analyze t x", "42601"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error.code().as_str(), code, "{wrong}");
        }
    }
}
