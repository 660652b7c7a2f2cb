//! The rows of COPY table FROM STDIN: records become values of the columns that are copied.

use super::copy_binary::{BinaryRows, Next};
use super::copy_format::{CopyFormat, RecordFields, Records, invalid_at, shorten};
use crate::copy_options::copied_columns;
use logstead_sql_catalog::Relation;
use logstead_sql_exec as exec;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::CancelChecker;
use logstead_sql_types::memory::STRIDE_BYTES;
use logstead_sql_types::value::{self, Datum, SqlType};
use logstead_types::SqlState;

/// What a row costs beside its bytes, where nothing is known of its defaults and checks: interrupts are looked for
/// once for four rows at least.
const ROW_STEPS: usize = STRIDE_BYTES / 4;

/// One COPY FROM in progress: what turns a record into a row.
pub(super) struct Reader {
    pub(super) table: String,
    pub(super) format: CopyFormat,
    /// Name and type of each field.
    columns: Vec<(String, SqlType)>,
    /// What the domains of fields ask of their values, over a row of the value alone.
    domains: Vec<Option<Expr>>,
    force: Vec<(bool, bool)>,
    records: Records,
    /// Input in the binary format.
    pub(super) binary: Option<BinaryRows>,
    /// Where the present record is in `records`.
    record: std::ops::Range<usize>,
    fields: RecordFields,
    pub(super) line: u64,
    pub(super) row: Vec<Datum>,
    pace: CancelChecker,
}

impl Reader {
    /// The next row into `self.row`; false when more input is needed (or, at the `end`, none is left).
    pub(super) fn next(&mut self, end: bool, session: &super::SessionContext) -> Result<bool> {
        if self.binary.is_some() {
            return self.next_binary(end, session);
        }
        loop {
            self.record = match self.records.next(&self.format, end) {
                Ok(Some(record)) => record,
                Ok(None) => {
                    if end && self.line == 0 && self.format.header {
                        self.match_no_header()?;
                    }
                    return Ok(false);
                }
                Err(error) => {
                    self.record = self.records.rest();
                    self.count_lines()?;
                    return Err(error.context(self.row_context()));
                }
            };
            self.count_lines()?;
            if self.format.header && self.line == 1 {
                self.match_header()?;
                continue;
            }
            let bytes = self.records.bytes(self.record.clone());
            self.pace.spent(ROW_STEPS)?;
            if let Some(at) = invalid_at(bytes)? {
                let wrong = bytes.get(at).copied().unwrap_or(0);
                return Err(SqlError::new(
                    SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                    format!("invalid byte sequence for encoding \"UTF8\": 0x{wrong:02x}"),
                )
                .context(format!("COPY {}, line {}", self.table, self.line)));
            }
            let (fields, force) = (&mut self.fields, &self.force);
            fields.split(bytes, &self.format, |i| {
                force.get(i).copied().unwrap_or_default()
            })?;
            let wanted = self.columns.len();
            if self.fields.len() > wanted {
                return Err(
                    bad_format("extra data after last expected column").context(self.row_context())
                );
            }
            self.row.clear();
            for (i, (name, ty)) in self.columns.iter().enumerate() {
                if i >= self.fields.len() {
                    return Err(bad_format(format!("missing data for column \"{name}\""))
                        .context(self.row_context()));
                }
                let field = self.fields.get(i);
                self.pace.spent(field.map_or(0, <[u8]>::len))?;
                let read = match field {
                    None => Ok(Datum::Null),
                    Some(field) => read_field(field, *ty, session),
                };
                let read = match (read, self.domains.get(i)) {
                    (Ok(value), Some(Some(rules))) => of_domain(value, rules, session),
                    (read, _) => read,
                };
                self.row.push(read.map_err(|error| {
                    let field = match field {
                        Some(field) => format!("\"{}\"", shorten(field)),
                        None => "null input".to_owned(),
                    };
                    error.context(format!(
                        "COPY {}, line {}, column {name}: {field}",
                        self.table, self.line
                    ))
                })?);
            }
            return Ok(true);
        }
    }

    /// The header of an input that has no line is an empty one.
    fn match_no_header(&mut self) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        self.record = self.records.rest();
        self.line = 1;
        self.match_header()
    }

    /// 22P04 if the header is to name the columns and does not.
    fn match_header(&mut self) -> Result<()> {
        if !self.format.header_matches {
            return Ok(());
        }
        let bytes = self.records.bytes(self.record.clone());
        self.fields.split(bytes, &self.format, |_| (false, false))?;
        let (found, wanted) = (self.fields.len(), self.columns.len());
        let mut wrong = None;
        if found != wanted {
            wrong = Some(format!(
                "wrong number of fields in header line: got {found}, expected {wanted}"
            ));
        }
        for (i, (name, _)) in self.columns.iter().enumerate() {
            let number = i + 1;
            let said = match self.fields.get(i) {
                Some(field) if field == name.as_bytes() => continue,
                Some(field) => format!("\"{}\"", String::from_utf8_lossy(field)),
                None => format!("null value (\"{}\")", self.format.null),
            };
            let mismatch = format!(
                "column name mismatch in header line field {number}: got {said}, expected \"{name}\""
            );
            wrong.get_or_insert(mismatch);
        }
        match wrong {
            Some(message) => Err(bad_format(message).context(self.row_context())),
            None => Ok(()),
        }
    }

    /// The same in the binary format.
    fn next_binary(&mut self, end: bool, session: &super::SessionContext) -> Result<bool> {
        let Some(input) = &mut self.binary else {
            return Ok(false);
        };
        if !input.begin(end)? {
            return Ok(false);
        }
        self.pace.spent(ROW_STEPS)?;
        let line = self.line + 1;
        match input.next(self.columns.len(), end) {
            Ok(Next::Row) => self.line = line,
            Ok(Next::Nothing) => return Ok(false),
            Err(error) => {
                let field = input.failed_field().and_then(|i| self.columns.get(i));
                let column = field.map_or_else(String::new, |(name, _)| format!(", column {name}"));
                return Err(error.context(format!("COPY {}, line {line}{column}", self.table)));
            }
        }
        self.row.clear();
        for (i, (name, ty)) in self.columns.iter().enumerate() {
            let read = input.read(i, *ty, self.format.encoding);
            let read = match (read, self.domains.get(i)) {
                (Ok(value), Some(Some(rules))) => of_domain(value, rules, session),
                (read, _) => read,
            };
            self.row.push(read.map_err(|error| {
                error.context(format!("COPY {}, line {line}, column {name}", self.table))
            })?);
        }
        Ok(true)
    }

    /// Where the next piece of input goes.
    pub(super) fn room(&mut self) -> Result<&mut Vec<u8>> {
        match &mut self.binary {
            Some(input) => input.room(),
            None => self.records.room(),
        }
    }

    /// Counts the lines of the present record. In CSV it may span several: then the last one is named, except in the
    /// very
    /// first record, where PostgreSQL does not know yet how lines end.
    fn count_lines(&mut self) -> Result<()> {
        if self.format.csv && self.line > 0 {
            for part in self.records.bytes(self.record.clone()).chunks(STRIDE_BYTES) {
                self.line += memchr::memchr_iter(b'\n', part).count() as u64;
                self.pace.spent(part.len())?;
            }
        }
        self.line += 1;
        Ok(())
    }

    pub(super) fn row_context(&self) -> String {
        if self.binary.is_some() {
            return format!("COPY {}, line {}", self.table, self.line);
        }
        let bytes = self.records.bytes(self.record.clone());
        format!(
            "COPY {}, line {}: \"{}\"",
            self.table,
            self.line,
            shorten(bytes)
        )
    }
}

fn read_field(field: &[u8], ty: SqlType, session: &super::SessionContext) -> Result<Datum> {
    // Escapes can make invalid text out of a valid line.
    let invalid = |at: usize| {
        let wrong = field.get(at).copied().unwrap_or(0);
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": 0x{wrong:02x}"),
        )
    };
    let text = std::str::from_utf8(field).map_err(|error| invalid(error.valid_up_to()))?;
    if let Some(at) = memchr::memchr(0, field) {
        return Err(invalid(at));
    }
    value::text_io::input(ty, text, Some(session))
}

fn of_domain(value: Datum, rules: &Expr, session: &super::SessionContext) -> Result<Datum> {
    let eval = exec::EvalContext {
        params: &[],
        session,
    };
    exec::eval(rules, std::slice::from_ref(&value), &eval)
}

fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// What reads the rows of a COPY into these columns.
pub(super) fn reader(
    relation: &Relation,
    positions: &[usize],
    domains: Vec<Option<Expr>>,
    format: CopyFormat,
) -> Result<Reader> {
    let columns: Vec<(String, SqlType)> = positions
        .iter()
        .map(|p| (relation.columns[*p].name.clone(), relation.columns[*p].ty))
        .collect();
    let forced = [
        ("FORCE_NOT_NULL", &format.force_not_null),
        ("FORCE_NULL", &format.force_null),
    ];
    for (option, names) in forced {
        for name in names {
            // Such a column there must be, and it must be one of those that are copied.
            if !columns.iter().any(|(column, _)| column == name) {
                copied_columns(relation, &[name.as_str().into()])?;
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("{option} column \"{name}\" not referenced by COPY"),
                ));
            }
        }
    }
    let force = columns
        .iter()
        .map(|(c, _)| {
            (
                format.force_not_null.contains(c),
                format.force_null.contains(c),
            )
        })
        .collect();
    Ok(Reader {
        table: relation.name.clone(),
        binary: format.binary.then(BinaryRows::default),
        format,
        columns,
        domains,
        force,
        records: Records::default(),
        record: 0..0,
        fields: RecordFields::default(),
        line: 0,
        row: Vec::new(),
        pace: CancelChecker::default(),
    })
}
