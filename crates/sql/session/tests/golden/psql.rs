//! psql with the options `-X -a -q`, as `tests/e2e/golden.py` runs it, over a session of this process: `MainLoop` and
//! `ExecQueryAndProcessResults`.
//!
//! Of its own commands it knows `\set`, `\unset`, `\pset null` and `\gset`. At another one it stops.

use super::message::{ShowContext, Verbosity, Wording};
use super::replies::{Replies, Reply, Script};
use super::scan::{Scanner, Stop, Variables};
use super::table::Table;
use logstead_sql_session::Session;
use std::rc::Rc;

/// What was printed.
pub(crate) struct Transcript {
    pub(crate) text: String,
    /// Statements that were run.
    pub(crate) statements: usize,
    /// The command that it stopped at, if it did.
    pub(crate) stopped_at: Option<String>,
}

/// A result that is complete, and printed when the next one is known.
enum Outcome {
    Nothing,
    Command(String),
    Rows(Table, String),
}

pub(crate) struct Psql<'s> {
    session: &'s mut Session,
    script: Rc<Script>,
    client: Replies,
    variables: Variables,
    wording: Wording,
    is_quiet: bool,
    null: String,
    transcript: Transcript,
}

impl<'s> Psql<'s> {
    /// `positions`: errors are printed with the two lines about their position.
    pub(crate) fn new(session: &'s mut Session, script: String, positions: bool) -> Psql<'s> {
        let script = Rc::new(Script::new(script));
        let client = Replies::new(Rc::clone(&script), session.context());
        Psql {
            session,
            script,
            client,
            variables: Variables::new(),
            wording: Wording {
                verbosity: Verbosity::Default,
                context: ShowContext::Errors,
                positions,
            },
            is_quiet: true,
            null: String::new(),
            transcript: Transcript {
                text: String::new(),
                statements: 0,
                stopped_at: None,
            },
        }
    }

    /// Runs the script; `before_each` is called before each statement.
    pub(crate) async fn run(mut self, before_each: impl Fn()) -> Transcript {
        let script = Rc::clone(&self.script);
        let mut scanner = Scanner::new();
        while let Some(line) = script.next_line() {
            if line.is_empty() && !scanner.is_in_quotes() {
                continue;
            }
            let before = self.transcript.text.len();
            self.transcript.text.push_str(line);
            self.transcript.text.push('\n');
            scanner.begin_line();
            let mut rest = line;
            loop {
                let conforming = self.conforming();
                let (length, stop) = scanner.scan(rest, conforming, &self.variables);
                rest = &rest[length..];
                match stop {
                    Stop::EndOfLine => break,
                    Stop::Semicolon => {
                        before_each();
                        let outcome = self.send(&scanner.take()).await;
                        self.print(outcome);
                    }
                    Stop::Backslash => {
                        let words: Vec<&str> = rest.split_whitespace().collect();
                        let is_known = match words[..] {
                            ["gset"] => {
                                before_each();
                                let outcome = self.send(scanner.take().trim_end()).await;
                                self.store(outcome)
                            }
                            ref words => self.command(words),
                        };
                        if !is_known {
                            self.transcript.text.truncate(before);
                            self.transcript.stopped_at = Some(format!("\\{rest}"));
                            return self.transcript;
                        }
                        break;
                    }
                }
            }
        }
        let last = scanner.take();
        if !last.trim().is_empty() {
            let outcome = self.send(&last).await;
            self.print(outcome);
        }
        self.transcript
    }

    /// How the server, and so psql, reads plain literals.
    fn conforming(&self) -> bool {
        let reported = self.session.reported();
        let setting = reported
            .iter()
            .find(|(name, _)| *name == "standard_conforming_strings");
        setting.is_none_or(|(_, value)| value == "on")
    }

    /// Sends a statement and prints all that comes before its last result is complete; that result.
    async fn send(&mut self, query: &str) -> Outcome {
        self.transcript.statements += 1;
        self.session.begin_request();
        let done = self.session.simple_query(query, &mut self.client).await;
        self.session.end_request();
        if let Err(error) = done {
            panic!("the session ended: {error:?}");
        }
        let _reported = self.session.take_changed_settings();
        if let Err(error) = self.session.settle().await {
            panic!("the replies were not committed: {error:?}");
        }
        let (mut complete, mut table, mut copies) = (Outcome::Nothing, None, false);
        for reply in self.client.take() {
            match reply {
                Reply::Columns(columns) => {
                    table = Some(Table {
                        columns,
                        rows: Vec::new(),
                    });
                }
                Reply::Row(row) => {
                    let table = table.as_mut().expect("rows come behind their columns");
                    table.rows.push(row);
                }
                Reply::Complete(tag) => {
                    let outcome = match table.take() {
                        Some(table) => Outcome::Rows(table, tag),
                        // Its tag would come among what was copied.
                        None if copies => Outcome::Nothing,
                        None => Outcome::Command(tag),
                    };
                    copies = false;
                    self.print(std::mem::replace(&mut complete, outcome));
                }
                Reply::Empty => self.print(std::mem::replace(&mut complete, Outcome::Nothing)),
                Reply::Notice(severity, fields) => {
                    let text = &mut self.transcript.text;
                    self.wording.print(severity, &fields, query, text);
                }
                Reply::Error(error) => {
                    self.print(std::mem::replace(&mut complete, Outcome::Nothing));
                    table = None;
                    let text = &mut self.transcript.text;
                    self.wording.print("ERROR", error.fields(), query, text);
                }
                Reply::CopyOutBegins => {
                    self.print(std::mem::replace(&mut complete, Outcome::Nothing));
                    copies = true;
                }
                Reply::CopyData(line) => self.transcript.text.push_str(&line),
            }
        }
        complete
    }

    fn print(&mut self, outcome: Outcome) {
        let text = &mut self.transcript.text;
        let tag = match outcome {
            Outcome::Nothing => return,
            Outcome::Command(tag) => tag,
            Outcome::Rows(table, tag) => {
                table.print(&self.null, text);
                let is_told = ["INSERT", "UPDATE", "DELETE"]
                    .iter()
                    .any(|t| tag.starts_with(t));
                if !is_told {
                    return;
                }
                tag
            }
        };
        if !self.is_quiet {
            text.push_str(&tag);
            text.push('\n');
        }
    }

    /// `\gset`: the columns of the only row become variables.
    fn store(&mut self, outcome: Outcome) -> bool {
        let Outcome::Rows(mut table, _) = outcome else {
            return true;
        };
        if table.rows.len() != 1 {
            return false;
        }
        let row = table.rows.remove(0);
        for (column, value) in table.columns.into_iter().zip(row) {
            match value {
                Some(value) => self.variables.insert(column.name, value),
                None => self.variables.remove(&column.name),
            };
        }
        true
    }

    /// A command and its arguments; false of one that is not known.
    fn command(&mut self, words: &[&str]) -> bool {
        match words {
            ["set", "VERBOSITY", value] => {
                self.wording.verbosity = match *value {
                    "sqlstate" => Verbosity::Sqlstate,
                    "terse" => Verbosity::Terse,
                    "default" => Verbosity::Default,
                    "verbose" => Verbosity::Verbose,
                    _ => return false,
                };
            }
            ["set", "SHOW_CONTEXT", value] => {
                self.wording.context = match *value {
                    "never" => ShowContext::Never,
                    "errors" => ShowContext::Errors,
                    "always" => ShowContext::Always,
                    _ => return false,
                };
            }
            ["set", "QUIET", value] => self.is_quiet = *value == "on",
            ["unset", "QUIET"] => self.is_quiet = false,
            ["pset", "null", value] => self.null = value.trim_matches('\'').to_owned(),
            // Names in capitals are psql's own.
            ["set", name, value] if !name.starts_with(|c: char| c.is_ascii_uppercase()) => {
                let value = match value.strip_prefix(':') {
                    Some(other) => match self.variables.get(other) {
                        Some(value) => value.clone(),
                        None => return false,
                    },
                    None => (*value).to_owned(),
                };
                self.variables.insert((*name).to_owned(), value);
            }
            _ => return false,
        }
        true
    }
}
