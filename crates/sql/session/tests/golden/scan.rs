//! Where psql cuts a script into statements, as `psqlscan.l` does: at semicolons outside of quotes, comments,
//! parentheses and SQL bodies of functions, and at backslashes.
//!
//! It is not the server's lexer: who cuts wrongly in both would not notice.

use std::collections::BTreeMap;

/// psql's variables.
pub(crate) type Variables = BTreeMap<String, String>;

/// Why a line is not scanned further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    EndOfLine,
    /// A statement is complete.
    Semicolon,
    /// A command of psql's follows: its name is next.
    Backslash,
}

/// What the scanner is inside of.
enum Inside {
    Nothing,
    Quotes {
        /// The quotes: ' or ".
        quote: char,
        /// Backslashes escape.
        escapes: bool,
    },
    /// `$tag$`, with both dollars.
    Dollars(String),
    /// Comments, nested so deep.
    Comment(usize),
}

/// The statement that is being collected.
pub(crate) struct Scanner {
    query: String,
    inside: Inside,
    parentheses: usize,
    /// Open BEGIN and CASE of a function's SQL body.
    blocks: usize,
    /// First letters of the first words, if they are words of CREATE [OR REPLACE] {FUNCTION | PROCEDURE}.
    first_words: [u8; 4],
    words: usize,
}

impl Scanner {
    pub(crate) fn new() -> Scanner {
        Scanner {
            query: String::new(),
            inside: Inside::Nothing,
            parentheses: 0,
            blocks: 0,
            first_words: [0; 4],
            words: 0,
        }
    }

    /// The statement collected so far; the next one begins.
    pub(crate) fn take(&mut self) -> String {
        std::mem::replace(self, Scanner::new()).query
    }

    /// A line begins.
    pub(crate) fn begin_line(&mut self) {
        if !self.query.is_empty() {
            self.query.push('\n');
        }
    }

    /// An empty line is a part of what it stands in.
    pub(crate) fn is_in_quotes(&self) -> bool {
        !matches!(self.inside, Inside::Nothing)
    }

    /// Takes text up to the end of the line or of the statement; how many bytes, and which it was. `conforming`:
    /// backslashes are ordinary in plain literals.
    pub(crate) fn scan(
        &mut self,
        line: &str,
        conforming: bool,
        variables: &Variables,
    ) -> (usize, Stop) {
        let mut at = 0;
        while let Some(c) = line[at..].chars().next() {
            let rest = &line[at..];
            at += match &self.inside {
                Inside::Nothing => match c {
                    ';' if self.parentheses == 0 && self.blocks == 0 => {
                        self.query.push(';');
                        return (at + 1, Stop::Semicolon);
                    }
                    '\\' if rest[1..].starts_with([';', ':']) => {
                        self.query.push_str(&rest[1..2]);
                        2
                    }
                    '\\' => return (at + 1, Stop::Backslash),
                    _ => self.outside(rest, c, conforming, variables),
                },
                Inside::Quotes { quote, escapes } => self.in_quotes(rest, c, *quote, *escapes),
                Inside::Dollars(tag) => match rest.starts_with(tag.as_str()) {
                    true => {
                        let length = tag.len();
                        self.inside = Inside::Nothing;
                        self.push(rest, length)
                    }
                    false => self.push(rest, c.len_utf8()),
                },
                Inside::Comment(depth) => self.in_comment(rest, c, *depth),
            };
        }
        (at, Stop::EndOfLine)
    }

    fn push(&mut self, rest: &str, length: usize) -> usize {
        self.query.push_str(&rest[..length]);
        length
    }

    /// Something before the statement's first word, which is not sent unless that has come.
    fn push_blank(&mut self, rest: &str, length: usize) -> usize {
        if !self.query.is_empty() {
            self.push(rest, length);
        }
        length
    }

    fn outside(&mut self, rest: &str, c: char, conforming: bool, variables: &Variables) -> usize {
        match c {
            c if c.is_ascii_whitespace() => self.push_blank(rest, 1),
            '-' if rest.starts_with("--") => self.push_blank(rest, rest.len()),
            '/' if rest.starts_with("/*") => {
                self.inside = Inside::Comment(1);
                self.push(rest, 2)
            }
            '\'' | '"' => {
                let escapes = c == '\'' && !conforming;
                self.inside = Inside::Quotes { quote: c, escapes };
                self.push(rest, 1)
            }
            '$' => match dollar_tag(rest) {
                Some(tag) => {
                    self.inside = Inside::Dollars(tag.to_owned());
                    self.push(rest, tag.len())
                }
                None => self.push(rest, 1),
            },
            ':' => self.colon(rest, variables),
            '(' => {
                self.parentheses += 1;
                self.push(rest, 1)
            }
            ')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.push(rest, 1)
            }
            c if is_word(c) && !c.is_ascii_digit() => {
                let length = rest.find(|c| !is_word(c) && c != '$').unwrap_or(rest.len());
                let word = &rest[..length];
                self.word(word);
                let quoted = rest[length..].starts_with('\'');
                if quoted && (word.eq_ignore_ascii_case("e")) {
                    self.inside = Inside::Quotes {
                        quote: '\'',
                        escapes: true,
                    };
                    return self.push(rest, length + 1);
                }
                self.push(rest, length)
            }
            c if c.is_ascii_digit() => {
                let length = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                self.push(rest, length)
            }
            c => self.push(rest, c.len_utf8()),
        }
    }

    /// Counts the blocks of a function's SQL body.
    fn word(&mut self, word: &str) {
        let is = |words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w));
        if let Some(first) = self.first_words.get_mut(self.words)
            && is(&["create", "or", "replace", "function", "procedure"])
        {
            *first = word.as_bytes()[0].to_ascii_lowercase();
        }
        self.words += 1;
        let creates = matches!(
            self.first_words,
            [b'c', b'f' | b'p', _, _] | [b'c', b'o', b'r', b'f' | b'p']
        );
        if !creates || self.parentheses > 0 {
            return;
        }
        if is(&["begin"]) || self.blocks > 0 && is(&["case"]) {
            self.blocks += 1;
        } else if is(&["end"]) {
            self.blocks = self.blocks.saturating_sub(1);
        }
    }

    fn in_quotes(&mut self, rest: &str, c: char, quote: char, escapes: bool) -> usize {
        let pair = c.len_utf8()
            + rest[c.len_utf8()..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
        if c == '\\' && escapes || c == quote && rest[1..].starts_with(quote) {
            return self.push(rest, pair);
        }
        if c == quote {
            self.inside = Inside::Nothing;
        }
        self.push(rest, c.len_utf8())
    }

    fn in_comment(&mut self, rest: &str, c: char, depth: usize) -> usize {
        let (depth, length) = match rest {
            rest if rest.starts_with("*/") => (depth - 1, 2),
            rest if rest.starts_with("/*") => (depth + 1, 2),
            _ => (depth, c.len_utf8()),
        };
        self.inside = match depth {
            0 => Inside::Nothing,
            depth => Inside::Comment(depth),
        };
        self.push(rest, length)
    }

    /// A colon, perhaps of a variable; names of none stay as they are.
    fn colon(&mut self, rest: &str, variables: &Variables) -> usize {
        if rest.starts_with("::") {
            return self.push(rest, 2);
        }
        let quote = rest[1..].chars().next().filter(|c| matches!(c, '\'' | '"'));
        let begins = 1 + quote.map_or(0, char::len_utf8);
        let ends = rest[begins..].find(|c| !is_word(c));
        let ends = begins + ends.unwrap_or(rest.len() - begins);
        let is_closed = quote.is_none_or(|quote| rest[ends..].starts_with(quote));
        let value = variables.get(&rest[begins..ends]);
        let Some(value) = value.filter(|_| is_closed) else {
            return self.push(rest, 1);
        };
        match quote {
            None => self.query.push_str(value),
            Some('"') => {
                let doubled = value.replace('"', "\"\"");
                self.query.push_str(&format!("\"{doubled}\""));
            }
            Some(_) => self.query.push_str(&quoted(value)),
        }
        ends + quote.map_or(0, char::len_utf8)
    }
}

/// A literal of this value, as libpq's PQescapeLiteral makes it.
fn quoted(value: &str) -> String {
    let doubled = value.replace('\'', "''");
    match doubled.contains('\\') {
        true => format!(" E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

/// Letters of names of any kind.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// The `$tag$` at the beginning.
fn dollar_tag(rest: &str) -> Option<&str> {
    let ends = 1 + rest[1..].find(|c| !is_word(c))?;
    let is_tag =
        rest[ends..].starts_with('$') && !rest[1..].starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &rest[..=ends])
}
