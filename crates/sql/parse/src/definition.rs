//! Words of definitions that say what something is: modes of arguments, when triggers and constraints act, how stable
//! a function is, what a policy is about.

/// What an argument is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ArgMode {
    In,
    Out,
    InOut,
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
}

impl ArgMode {
    /// As `pg_proc.proargmodes` has it.
    pub fn letter(self) -> char {
        match self {
            ArgMode::In => 'i',
            ArgMode::Out => 'o',
            ArgMode::InOut => 'b',
            ArgMode::Variadic => 'v',
            ArgMode::Table => 't',
        }
    }

    /// The mode that this letter of `pg_proc.proargmodes` stands for.
    pub fn of_letter(letter: u8) -> Option<ArgMode> {
        let all = [
            ArgMode::In,
            ArgMode::Out,
            ArgMode::InOut,
            ArgMode::Variadic,
            ArgMode::Table,
        ];
        all.into_iter()
            .find(|mode| mode.letter() == char::from(letter))
    }

    /// Is it given by who calls?
    pub fn is_input(self) -> bool {
        matches!(self, ArgMode::In | ArgMode::InOut | ArgMode::Variadic)
    }

    /// Is it a part of the result?
    pub fn is_output(self) -> bool {
        matches!(self, ArgMode::Out | ArgMode::InOut | ArgMode::Table)
    }
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TriggerTime {
    Before,
    After,
    InsteadOf,
}

impl TriggerTime {
    /// As `TG_WHEN` and `action_timing` have it.
    pub fn word(self) -> &'static str {
        match self {
            TriggerTime::Before => "BEFORE",
            TriggerTime::After => "AFTER",
            TriggerTime::InsteadOf => "INSTEAD OF",
        }
    }
}

/// What makes a trigger fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TriggerEvent {
    Insert,
    Delete,
    Update,
    Truncate,
}

impl TriggerEvent {
    /// All of them, in the order in which definitions name them.
    pub const ALL: [TriggerEvent; 4] = [
        TriggerEvent::Insert,
        TriggerEvent::Delete,
        TriggerEvent::Update,
        TriggerEvent::Truncate,
    ];

    /// As `TG_OP` has it.
    pub fn word(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }

    /// Its bit in `pg_trigger.tgtype`.
    pub fn bit(self) -> u8 {
        match self {
            TriggerEvent::Insert => 1 << 2,
            TriggerEvent::Delete => 1 << 3,
            TriggerEvent::Update => 1 << 4,
            TriggerEvent::Truncate => 1 << 5,
        }
    }
}

/// When a constraint is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// NOT DEFERRABLE: a unique key at every row, the others at the end of the statement.
    #[default]
    Immediate,
    /// DEFERRABLE INITIALLY IMMEDIATE: at the end of the statement, unless SET CONSTRAINTS says otherwise.
    Deferrable,
    /// DEFERRABLE INITIALLY DEFERRED: at COMMIT, unless SET CONSTRAINTS says otherwise.
    Deferred,
}

impl Timing {
    /// May SET CONSTRAINTS put it off?
    pub fn is_deferrable(self) -> bool {
        self != Timing::Immediate
    }

    /// Is it put off when the transaction begins?
    pub fn is_deferred(self) -> bool {
        self == Timing::Deferred
    }
}

/// When a function's result may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Never: constants are folded.
    Immutable,
    /// Not within a statement.
    Stable,
    /// On every call.
    Volatile,
}

/// What a policy is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

impl PolicyCommand {
    /// `pg_policy.polcmd`.
    pub fn code(self) -> char {
        match self {
            PolicyCommand::All => '*',
            PolicyCommand::Select => 'r',
            PolicyCommand::Insert => 'a',
            PolicyCommand::Update => 'w',
            PolicyCommand::Delete => 'd',
        }
    }

    /// The command of a code.
    pub fn of_code(code: u8) -> Option<PolicyCommand> {
        Some(match code {
            b'*' => PolicyCommand::All,
            b'r' => PolicyCommand::Select,
            b'a' => PolicyCommand::Insert,
            b'w' => PolicyCommand::Update,
            b'd' => PolicyCommand::Delete,
            _ => return None,
        })
    }

    /// As `pg_policies` shows it.
    pub fn word(self) -> &'static str {
        match self {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }
}
