//! WITH CHECK OPTION of views, as the catalog keeps it.

/// WITH CHECK OPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum CheckOption {
    Local,
    Cascaded,
}

impl CheckOption {
    /// As in `check_option=`.
    pub fn word(self) -> &'static str {
        match self {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        }
    }
}
