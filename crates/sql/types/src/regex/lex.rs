//! The words of PostgreSQL's regular expressions, of its three kinds: advanced ones, extended ones and basic ones.
//!
//! What a character means depends on where it stands, so the reader of words knows whether it is in a bracket expression, in bounds or
//! in neither, and looks one word ahead, never more: which of several errors is told follows from that.

use crate::error::SqlError;
use logstead_types::SqlState;

/// What is wrong with an expression, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub &'static str);

pub(crate) const BAD_PATTERN: Fault = Fault("invalid regexp (reg version 0.8)");
pub(crate) const BAD_ELEMENT: Fault = Fault("invalid collating element");
pub(crate) const BAD_CLASS: Fault = Fault("invalid character class");
pub(crate) const BAD_ESCAPE: Fault = Fault("invalid escape \\ sequence");
pub(crate) const BAD_REFERENCE: Fault = Fault("invalid backreference number");
pub(crate) const BRACKETS: Fault = Fault("brackets [] not balanced");
pub(crate) const PARENTHESES: Fault = Fault("parentheses () not balanced");
pub(crate) const BRACES: Fault = Fault("braces {} not balanced");
pub(crate) const BAD_COUNT: Fault = Fault("invalid repetition count(s)");
pub(crate) const BAD_RANGE: Fault = Fault("invalid character range");
pub(crate) const BAD_OPERAND: Fault = Fault("quantifier operand invalid");
pub(crate) const BAD_ARGUMENT: Fault = Fault("invalid argument to regex function");
pub(crate) const BAD_OPTION: Fault = Fault("invalid embedded option");
pub(crate) const TOO_COMPLEX: Fault = Fault("regular expression is too complex");

impl Fault {
    /// The error that tells of it.
    pub(crate) fn error(self) -> SqlError {
        SqlError::new(
            SqlState::INVALID_REGULAR_EXPRESSION,
            format!("invalid regular expression: {}", self.0),
        )
    }
}

/// What an expression's words are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavor {
    #[default]
    /// PostgreSQL's own: `(?` and `\d` have meanings.
    Advanced,
    /// POSIX extended ones.
    Extended,
    /// POSIX basic ones.
    Basic,
}

/// How an expression is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Syntax {
    /// What its words are.
    pub flavor: Flavor,
    /// Upper and lower case are alike.
    pub ignore_case: bool,
    /// `.` and `[^...]` stop at newlines
    pub newline_stops: bool,
    /// `^` and `$` match at lines
    pub newline_anchors: bool,
    /// White space and comments count for nothing.
    pub expanded: bool,
    /// Every character means itself.
    pub literal: bool,
}

/// A set of characters with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

/// Lookaround.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    Ahead,
    NotAhead,
    Behind,
    NotBehind,
}

/// A word. Characters are numbers: an escape may name one that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Nothing has been read yet.
    Nothing,
    End,
    Plain(u32),
    Digit(u32),
    Comma,
    /// `}`, and whether much is preferred to little.
    BoundEnd(bool),
    Bound,
    Star(bool),
    Plus(bool),
    Maybe(bool),
    Or,
    /// `(`, and whether it is a group with a number.
    Open(bool),
    Close,
    Around(Around),
    /// `[`, and whether it is no `[^`.
    Bracket(bool),
    BracketEnd,
    /// `-` between two characters
    Range,
    /// `[.`
    Element,
    /// `[=`
    Equivalence,
    /// `[:`
    ClassName,
    /// `.]`, `=]`, `:]`
    NameEnd,
    Dot,
    Caret,
    Dollar,
    TextStart,
    TextEnd,
    /// `\m`: a word of the text begins.
    Begins,
    /// `\M`: a word of the text ends.
    Ends,
    Boundary,
    NoBoundary,
    Set(Class),
    NotSet(Class),
    Reference(u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Bounds,
    Bracket,
    Element,
    Equivalence,
    ClassName,
}

/// Spaces, as the C library has them: none that do not break.
fn is_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}')
}

/// Reads words.
pub(crate) struct Lexer<'a> {
    c: &'a [char],
    at: usize,
    place: Place,
    syntax: Syntax,
    /// Groups with numbers so far; the parser counts them as it meets them.
    pub groups: u32,
    /// The word that comes next, and the one before it.
    pub next: Word,
    last: Word,
}

impl<'a> Lexer<'a> {
    /// Begins: with the first word at hand.
    pub(crate) fn new(c: &'a [char], syntax: Syntax) -> Result<Lexer<'a>, Fault> {
        let mut lexer = Lexer {
            c,
            at: 0,
            place: Place::Outside,
            syntax,
            groups: 0,
            next: Word::Nothing,
            last: Word::Nothing,
        };
        lexer.advance()?;
        Ok(lexer)
    }

    fn advanced(&self) -> bool {
        self.syntax.flavor == Flavor::Advanced
    }

    fn peek(&self) -> Option<char> {
        self.c.get(self.at).copied()
    }

    fn peek_is(&self, c: char) -> bool {
        self.peek() == Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek_is(c);
        self.at += usize::from(found);
        found
    }

    /// The characters of a name in a bracket expression, up to its end.
    pub(crate) fn name(&mut self, out: &mut Vec<char>) -> Result<(), Fault> {
        self.advance()?;
        while let Word::Plain(c) = self.next {
            out.extend(char::from_u32(c));
            self.advance()?;
        }
        self.advance()
    }

    /// White space and comments of the expanded syntax.
    fn skip(&mut self) {
        loop {
            while self.peek().is_some_and(is_space) {
                self.at += 1;
            }
            if !self.peek_is('#') {
                return;
            }
            while self.peek().is_some_and(|c| c != '\n') {
                self.at += 1;
            }
        }
    }

    /// Goes on to the next word.
    pub(crate) fn advance(&mut self) -> Result<(), Fault> {
        self.last = self.next;
        self.next = self.word()?;
        Ok(())
    }

    fn word(&mut self) -> Result<Word, Fault> {
        loop {
            // A comment is no word: what stood before it still stands before the next one.
            match self.word_or_comment()? {
                Word::Nothing => {}
                word => return Ok(word),
            }
        }
    }

    fn word_or_comment(&mut self) -> Result<Word, Fault> {
        if self.syntax.expanded && matches!(self.place, Place::Outside | Place::Bounds) {
            self.skip();
        }
        let Some(c) = self.peek() else {
            return match self.place {
                Place::Outside => Ok(Word::End),
                Place::Bounds => Err(BRACES),
                _ => Err(BRACKETS),
            };
        };
        self.at += 1;
        let plain = Word::Plain(u32::from(c));
        match self.place {
            Place::Outside if self.syntax.flavor == Flavor::Basic => self.basic(c),
            Place::Outside => self.outside(c),
            Place::Bounds => self.bounds(c),
            Place::Bracket => self.bracket(c),
            Place::Element => Ok(self.name_end(c, '.').unwrap_or(plain)),
            Place::Equivalence => Ok(self.name_end(c, '=').unwrap_or(plain)),
            Place::ClassName => Ok(self.name_end(c, ':').unwrap_or(plain)),
        }
    }

    fn name_end(&mut self, c: char, end: char) -> Option<Word> {
        if c != end || !self.eat(']') {
            return None;
        }
        self.place = Place::Bracket;
        Some(Word::NameEnd)
    }

    fn bounds(&mut self, c: char) -> Result<Word, Fault> {
        match c {
            '0'..='9' => Ok(Word::Digit(u32::from(c) - u32::from('0'))),
            ',' => Ok(Word::Comma),
            '}' if self.syntax.flavor != Flavor::Basic => {
                self.place = Place::Outside;
                let little = self.advanced() && self.eat('?');
                Ok(Word::BoundEnd(!little))
            }
            '\\' if self.syntax.flavor == Flavor::Basic && self.eat('}') => {
                self.place = Place::Outside;
                Ok(Word::BoundEnd(true))
            }
            _ => Err(BAD_COUNT),
        }
    }

    fn bracket(&mut self, c: char) -> Result<Word, Fault> {
        let plain = Ok(Word::Plain(u32::from(c)));
        let first = matches!(self.last, Word::Bracket(_));
        match c {
            '\\' if self.advanced() => {
                if self.peek().is_none() {
                    return Err(BAD_ESCAPE);
                }
                match self.escape()? {
                    word @ (Word::Plain(_) | Word::Set(_) | Word::NotSet(_)) => Ok(word),
                    _ => Err(BAD_ESCAPE),
                }
            }
            '-' if first || self.peek_is(']') => plain,
            '-' => Ok(Word::Range),
            '[' => {
                let (place, word) = match self.peek() {
                    None => return Err(BRACKETS),
                    Some('.') => (Place::Element, Word::Element),
                    Some('=') => (Place::Equivalence, Word::Equivalence),
                    Some(':') => (Place::ClassName, Word::ClassName),
                    Some(_) => return plain,
                };
                self.at += 1;
                self.place = place;
                Ok(word)
            }
            ']' if !first => {
                self.place = Place::Outside;
                Ok(Word::BracketEnd)
            }
            _ => plain,
        }
    }

    /// `[`, which may begin one of the two brackets that are words' ends.
    fn open_bracket(&mut self) -> Word {
        match self.c.get(self.at..self.at + 6) {
            Some(['[', ':', '<', ':', ']', ']']) => {
                self.at += 6;
                return Word::Begins;
            }
            Some(['[', ':', '>', ':', ']', ']']) => {
                self.at += 6;
                return Word::Ends;
            }
            _ => {}
        }
        self.place = Place::Bracket;
        Word::Bracket(!self.eat('^'))
    }

    fn outside(&mut self, c: char) -> Result<Word, Fault> {
        let much = |lexer: &mut Lexer<'_>| !(lexer.advanced() && lexer.eat('?'));
        Ok(match c {
            '|' => Word::Or,
            '*' => Word::Star(much(self)),
            '+' => Word::Plus(much(self)),
            '?' => Word::Maybe(much(self)),
            '{' => {
                if self.syntax.expanded {
                    self.skip();
                }
                if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    return Ok(Word::Plain(u32::from(c)));
                }
                self.place = Place::Bounds;
                Word::Bound
            }
            '(' if self.advanced() && self.eat('?') => {
                let kind = self.peek().ok_or(BAD_OPERAND)?;
                self.at += 1;
                match kind {
                    ':' => Word::Open(false),
                    '#' => {
                        while self.peek().is_some_and(|c| c != ')') {
                            self.at += 1;
                        }
                        self.eat(')');
                        Word::Nothing
                    }
                    '=' => Word::Around(Around::Ahead),
                    '!' => Word::Around(Around::NotAhead),
                    '<' if self.eat('=') => Word::Around(Around::Behind),
                    '<' if self.eat('!') => Word::Around(Around::NotBehind),
                    _ => return Err(BAD_OPERAND),
                }
            }
            '(' => Word::Open(true),
            ')' => Word::Close,
            '[' => self.open_bracket(),
            '.' => Word::Dot,
            '^' => Word::Caret,
            '$' => Word::Dollar,
            '\\' => {
                let escaped = self.peek().ok_or(BAD_ESCAPE)?;
                if self.advanced() {
                    return self.escape();
                }
                self.at += 1;
                Word::Plain(u32::from(escaped))
            }
            _ => Word::Plain(u32::from(c)),
        })
    }

    fn basic(&mut self, c: char) -> Result<Word, Fault> {
        let plain = Ok(Word::Plain(u32::from(c)));
        match c {
            '*' if matches!(self.last, Word::Nothing | Word::Open(_) | Word::Or) => return plain,
            '*' => return Ok(Word::Star(true)),
            '[' => return Ok(self.open_bracket()),
            '.' => return Ok(Word::Dot),
            '^' if matches!(self.last, Word::Nothing | Word::Open(_)) => return Ok(Word::Caret),
            '$' => {
                if self.syntax.expanded {
                    self.skip();
                }
                let ends = matches!(self.c.get(self.at..), Some([] | ['\\', ')', ..]));
                return if ends { Ok(Word::Dollar) } else { plain };
            }
            '\\' => {}
            _ => return plain,
        }
        let escaped = self.peek().ok_or(BAD_ESCAPE)?;
        self.at += 1;
        Ok(match escaped {
            '{' => {
                self.place = Place::Bounds;
                Word::Bound
            }
            '(' => Word::Open(true),
            ')' => Word::Close,
            '<' => Word::Begins,
            '>' => Word::Ends,
            '1'..='9' => Word::Reference(u32::from(escaped) - u32::from('0')),
            _ => Word::Plain(u32::from(escaped)),
        })
    }

    /// Behind a backslash of an advanced expression.
    fn escape(&mut self) -> Result<Word, Fault> {
        let c = self.peek().ok_or(BAD_ESCAPE)?;
        self.at += 1;
        if !c.is_ascii_alphanumeric() {
            return Ok(Word::Plain(u32::from(c)));
        }
        let plain = |c: char| Word::Plain(u32::from(c));
        Ok(match c {
            'a' => plain('\u{7}'),
            'A' => Word::TextStart,
            'b' => plain('\u{8}'),
            'B' => plain('\\'),
            'c' => {
                let control = self.peek().ok_or(BAD_ESCAPE)?;
                self.at += 1;
                Word::Plain(u32::from(control) & 0o37)
            }
            'd' => Word::Set(Class::Digit),
            'D' => Word::NotSet(Class::Digit),
            'e' => plain('\u{1b}'),
            'f' => plain('\u{c}'),
            'm' => Word::Begins,
            'M' => Word::Ends,
            'n' => plain('\n'),
            'r' => plain('\r'),
            's' => Word::Set(Class::Space),
            'S' => Word::NotSet(Class::Space),
            't' => plain('\t'),
            'u' => Word::Plain(self.digits(16, 4, 4)?),
            'U' => Word::Plain(self.digits(16, 8, 8)?),
            'v' => plain('\u{b}'),
            'w' => Word::Set(Class::Word),
            'W' => Word::NotSet(Class::Word),
            'x' => Word::Plain(self.digits(16, 1, 255)?),
            'y' => Word::Boundary,
            'Y' => Word::NoBoundary,
            'Z' => Word::TextEnd,
            '0'..='9' => {
                let behind = self.at;
                self.at -= 1;
                if c != '0' {
                    let number = self.digits(10, 1, 255)?;
                    if self.at == behind || (1..=self.groups).contains(&number) {
                        return Ok(Word::Reference(number));
                    }
                    self.at = behind - 1;
                }
                let mut number = self.digits(8, 1, 3)?;
                if number > 0xff {
                    self.at -= 1;
                    number >>= 3;
                }
                Word::Plain(number)
            }
            _ => return Err(BAD_ESCAPE),
        })
    }

    /// A number of so many digits.
    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32, Fault> {
        let mut number = 0_u32;
        let mut read = 0;
        while read < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(base))
        {
            number = number.wrapping_mul(base).wrapping_add(digit);
            self.at += 1;
            read += 1;
        }
        if read < least || number > 0x7fff_fffe {
            return Err(BAD_ESCAPE);
        }
        Ok(number)
    }
}
