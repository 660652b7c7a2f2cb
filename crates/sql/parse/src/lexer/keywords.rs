//! The keywords of PostgreSQL 15, each with its category and whether it is a label without AS
//! (`src/include/parser/kwlist.h`).

/// Where a keyword may stand as a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Anywhere.
    Unreserved,
    /// As the name of a column, a table and the like, not as that of a function or a type.
    ColName,
    /// As the name of a function or a type, not as that of a column.
    TypeFuncName,
    /// Only behind AS, behind a point and in lists of options.
    Reserved,
}

use super::keyword_table::KEYWORDS;

/// A keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "SQL's own words")]
#[repr(u16)]
pub enum Keyword {
    Abort,
    Absolute,
    Access,
    Action,
    Add,
    Admin,
    After,
    Aggregate,
    All,
    Also,
    Alter,
    Always,
    Analyse,
    Analyze,
    And,
    Any,
    Array,
    As,
    Asc,
    Asensitive,
    Assertion,
    Assignment,
    Asymmetric,
    At,
    Atomic,
    Attach,
    Attribute,
    Authorization,
    Backward,
    Before,
    Begin,
    Between,
    Bigint,
    Binary,
    Bit,
    Boolean,
    Both,
    Breadth,
    By,
    Cache,
    Call,
    Called,
    Cascade,
    Cascaded,
    Case,
    Cast,
    Catalog,
    Chain,
    Char,
    Character,
    Characteristics,
    Check,
    Checkpoint,
    Class,
    Close,
    Cluster,
    Coalesce,
    Collate,
    Collation,
    Column,
    Columns,
    Comment,
    Comments,
    Commit,
    Committed,
    Compression,
    Concurrently,
    Configuration,
    Conflict,
    Connection,
    Constraint,
    Constraints,
    Content,
    Continue,
    Conversion,
    Copy,
    Cost,
    Create,
    Cross,
    Csv,
    Cube,
    Current,
    CurrentCatalog,
    CurrentDate,
    CurrentRole,
    CurrentSchema,
    CurrentTime,
    CurrentTimestamp,
    CurrentUser,
    Cursor,
    Cycle,
    Data,
    Database,
    Day,
    Deallocate,
    Dec,
    Decimal,
    Declare,
    Default,
    Defaults,
    Deferrable,
    Deferred,
    Definer,
    Delete,
    Delimiter,
    Delimiters,
    Depends,
    Depth,
    Desc,
    Detach,
    Dictionary,
    Disable,
    Discard,
    Distinct,
    Do,
    Document,
    Domain,
    Double,
    Drop,
    Each,
    Else,
    Enable,
    Encoding,
    Encrypted,
    End,
    Enum,
    Escape,
    Event,
    Except,
    Exclude,
    Excluding,
    Exclusive,
    Execute,
    Exists,
    Explain,
    Expression,
    Extension,
    External,
    Extract,
    False,
    Family,
    Fetch,
    Filter,
    Finalize,
    First,
    Float,
    Following,
    For,
    Force,
    Foreign,
    Forward,
    Freeze,
    From,
    Full,
    Function,
    Functions,
    Generated,
    Global,
    Grant,
    Granted,
    Greatest,
    Group,
    Grouping,
    Groups,
    Handler,
    Having,
    Header,
    Hold,
    Hour,
    Identity,
    If,
    Ilike,
    Immediate,
    Immutable,
    Implicit,
    Import,
    In,
    Include,
    Including,
    Increment,
    Index,
    Indexes,
    Inherit,
    Inherits,
    Initially,
    Inline,
    Inner,
    Inout,
    Input,
    Insensitive,
    Insert,
    Instead,
    Int,
    Integer,
    Intersect,
    Interval,
    Into,
    Invoker,
    Is,
    Isnull,
    Isolation,
    Join,
    Key,
    Label,
    Language,
    Large,
    Last,
    Lateral,
    Leading,
    Leakproof,
    Least,
    Left,
    Level,
    Like,
    Limit,
    Listen,
    Load,
    Local,
    Localtime,
    Localtimestamp,
    Location,
    Lock,
    Locked,
    Logged,
    Mapping,
    Match,
    Matched,
    Materialized,
    Maxvalue,
    Merge,
    Method,
    Minute,
    Minvalue,
    Mode,
    Month,
    Move,
    Name,
    Names,
    National,
    Natural,
    Nchar,
    New,
    Next,
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    No,
    None,
    Normalize,
    Normalized,
    Not,
    Nothing,
    Notify,
    Notnull,
    Nowait,
    Null,
    Nullif,
    Nulls,
    Numeric,
    Object,
    Of,
    Off,
    Offset,
    Oids,
    Old,
    On,
    Only,
    Operator,
    Option,
    Options,
    Or,
    Order,
    Ordinality,
    Others,
    Out,
    Outer,
    Over,
    Overlaps,
    Overlay,
    Overriding,
    Owned,
    Owner,
    Parallel,
    Parameter,
    Parser,
    Partial,
    Partition,
    Passing,
    Password,
    Placing,
    Plans,
    Policy,
    Position,
    Preceding,
    Precision,
    Prepare,
    Prepared,
    Preserve,
    Primary,
    Prior,
    Privileges,
    Procedural,
    Procedure,
    Procedures,
    Program,
    Publication,
    Quote,
    Range,
    Read,
    Real,
    Reassign,
    Recheck,
    Recursive,
    Ref,
    References,
    Referencing,
    Refresh,
    Reindex,
    Relative,
    Release,
    Rename,
    Repeatable,
    Replace,
    Replica,
    Reset,
    Restart,
    Restrict,
    Return,
    Returning,
    Returns,
    Revoke,
    Right,
    Role,
    Rollback,
    Rollup,
    Routine,
    Routines,
    Row,
    Rows,
    Rule,
    Savepoint,
    Schema,
    Schemas,
    Scroll,
    Search,
    Second,
    Security,
    Select,
    Sequence,
    Sequences,
    Serializable,
    Server,
    Session,
    SessionUser,
    Set,
    Setof,
    Sets,
    Share,
    Show,
    Similar,
    Simple,
    Skip,
    Smallint,
    Snapshot,
    Some,
    Sql,
    Stable,
    Standalone,
    Start,
    Statement,
    Statistics,
    Stdin,
    Stdout,
    Storage,
    Stored,
    Strict,
    Strip,
    Subscription,
    Substring,
    Support,
    Symmetric,
    Sysid,
    System,
    Table,
    Tables,
    Tablesample,
    Tablespace,
    Temp,
    Template,
    Temporary,
    Text,
    Then,
    Ties,
    Time,
    Timestamp,
    To,
    Trailing,
    Transaction,
    Transform,
    Treat,
    Trigger,
    Trim,
    True,
    Truncate,
    Trusted,
    Type,
    Types,
    Uescape,
    Unbounded,
    Uncommitted,
    Unencrypted,
    Union,
    Unique,
    Unknown,
    Unlisten,
    Unlogged,
    Until,
    Update,
    User,
    Using,
    Vacuum,
    Valid,
    Validate,
    Validator,
    Value,
    Values,
    Varchar,
    Variadic,
    Varying,
    Verbose,
    Version,
    View,
    Views,
    Volatile,
    When,
    Where,
    Whitespace,
    Window,
    With,
    Within,
    Without,
    Work,
    Wrapper,
    Write,
    Xml,
    Xmlattributes,
    Xmlconcat,
    Xmlelement,
    Xmlexists,
    Xmlforest,
    Xmlnamespaces,
    Xmlparse,
    Xmlpi,
    Xmlroot,
    Xmlserialize,
    Xmltable,
    Year,
    Yes,
    Zone,
}

/// The longest keyword.
const LENGTH_MAX: usize = 17;
/// Slots of the table of words: a power of two, more than four for a keyword.
const SLOTS: usize = 2048;
/// A slot that no keyword is in.
const EMPTY: u16 = u16::MAX;

/// Where each word is in [`KEYWORDS`], by its hash; what is in the way of another stands in front of it.
static SLOTS_OF_WORDS: [u16; SLOTS] = slots();

const fn slots() -> [u16; SLOTS] {
    let mut slots = [EMPTY; SLOTS];
    let mut at = 0;
    while at < KEYWORDS.len() {
        let mut slot = hash(KEYWORDS[at].0.as_bytes());
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = at as u16;
        at += 1;
    }
    slots
}

/// Hash of a word, whatever its case.
const fn hash(word: &[u8]) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    let mut at = 0;
    while at < word.len() {
        hash = (hash ^ (word[at] | 0x20) as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ (hash >> 15)) as usize % SLOTS
}

impl Keyword {
    /// The keyword that a word is, whatever its case.
    pub fn of(word: &str) -> Option<Keyword> {
        if word.len() > LENGTH_MAX {
            return None;
        }
        let mut slot = hash(word.as_bytes());
        loop {
            let (name, keyword, ..) = KEYWORDS.get(usize::from(SLOTS_OF_WORDS[slot]))?;
            if name.eq_ignore_ascii_case(word) {
                return Some(*keyword);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Its word, in small letters.
    pub fn word(self) -> &'static str {
        KEYWORDS[self as usize].0
    }

    /// Its category.
    #[inline]
    pub fn category(self) -> Category {
        KEYWORDS[self as usize].2
    }

    /// May it be the name of an output column without AS in front (`bare_label_keyword`)?
    #[inline]
    pub fn is_bare_label(self) -> bool {
        KEYWORDS[self as usize].3
    }

    /// All keywords, in the order of their words.
    pub fn all() -> impl Iterator<Item = Keyword> {
        KEYWORDS.iter().map(|entry| entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_its_keyword() {
        for (at, (word, keyword, ..)) in KEYWORDS.iter().enumerate() {
            assert_eq!(*keyword as usize, at);
            assert_eq!(Keyword::of(word), Some(*keyword));
            assert_eq!(Keyword::of(&word.to_uppercase()), Some(*keyword));
            assert_eq!(keyword.word(), *word);
            assert!(word.len() <= LENGTH_MAX);
        }
        for word in [
            "",
            "x",
            "selec",
            "selects",
            "current_timestamps",
            "tables_",
            "\u{212a}ey",
        ] {
            assert_eq!(Keyword::of(word), None, "{word}");
        }
    }

    #[test]
    fn categories_are_as_in_postgresql() {
        use Category as G;
        let of = |word: &str| {
            let keyword = Keyword::of(word).unwrap_or_else(|| panic!("{word}"));
            (keyword.category(), keyword.is_bare_label())
        };
        assert_eq!(of("select"), (G::Reserved, true));
        assert_eq!(of("as"), (G::Reserved, false));
        assert_eq!(of("over"), (G::Unreserved, false));
        assert_eq!(of("abort"), (G::Unreserved, true));
        assert_eq!(of("between"), (G::ColName, true));
        assert_eq!(of("precision"), (G::ColName, false));
        assert_eq!(of("left"), (G::TypeFuncName, true));
        assert_eq!(of("overlaps"), (G::TypeFuncName, false));
        let mut counts = [0; 4];
        Keyword::all().for_each(|keyword| counts[keyword.category() as usize] += 1);
        assert_eq!(counts.iter().sum::<usize>(), KEYWORDS.len());
    }
}
