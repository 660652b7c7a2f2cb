//! GROUP BY: grouping sets travel as calls of functions that nobody can name, so that they may stand in each other.

/// What the name of such a function begins with.
pub(crate) const MARK: char = '\0';

/// What a call in GROUP BY stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupingWord {
    /// GROUPING SETS.
    Sets,
    /// ROLLUP.
    Rollup,
    /// CUBE.
    Cube,
    /// `()`.
    Empty,
    /// GROUP BY DISTINCT; the first of the list.
    Distinct,
}

impl GroupingWord {
    const ALL: [(GroupingWord, &'static str); 5] = [
        (GroupingWord::Sets, "sets"),
        (GroupingWord::Rollup, "rollup"),
        (GroupingWord::Cube, "cube"),
        (GroupingWord::Empty, "empty"),
        (GroupingWord::Distinct, "distinct"),
    ];

    /// What a function's name stands for, if it is none.
    pub fn of(name: &str) -> Option<GroupingWord> {
        let name = name.strip_prefix(MARK)?;
        let mut all = GroupingWord::ALL.iter();
        all.find(|(_, word)| *word == name).map(|(word, _)| *word)
    }
}
