//! The words of PostgreSQL's regular expressions, of its three kinds: advanced ones, extended ones and basic ones.
//!
//! What a character means depends on where it stands, so the reader of words knows whether it is in a bracket
//! expression, in bounds or in neither, and looks one word ahead, never more: which of several errors is told follows
//! from that.

use crate::error::SqlError;
use logstead_types::SqlState;

/// What is wrong with an expression, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegexError(pub &'static str);

pub(crate) const BAD_PATTERN: RegexError = RegexError("invalid regexp (reg version 0.8)");
pub(crate) const BAD_ELEMENT: RegexError = RegexError("invalid collating element");
pub(crate) const BAD_CLASS: RegexError = RegexError("invalid character class");
pub(crate) const BAD_ESCAPE: RegexError = RegexError("invalid escape \\ sequence");
pub(crate) const BAD_REFERENCE: RegexError = RegexError("invalid backreference number");
pub(crate) const BRACKETS: RegexError = RegexError("brackets [] not balanced");
pub(crate) const PARENTHESES: RegexError = RegexError("parentheses () not balanced");
pub(crate) const BRACES: RegexError = RegexError("braces {} not balanced");
pub(crate) const BAD_COUNT: RegexError = RegexError("invalid repetition count(s)");
pub(crate) const BAD_RANGE: RegexError = RegexError("invalid character range");
pub(crate) const BAD_OPERAND: RegexError = RegexError("quantifier operand invalid");
pub(crate) const BAD_ARGUMENT: RegexError = RegexError("invalid argument to regex function");
pub(crate) const BAD_OPTION: RegexError = RegexError("invalid embedded option");
pub(crate) const TOO_COMPLEX: RegexError = RegexError("regular expression is too complex");

impl RegexError {
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
pub(crate) enum Lookaround {
    Ahead,
    NotAhead,
    Behind,
    NotBehind,
}

/// A word. Characters are numbers: an escape may name one that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegexToken {
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
    Around(Lookaround),
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
enum LexContext {
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
    place: LexContext,
    syntax: Syntax,
    /// Groups with numbers so far; the parser counts them as it meets them.
    pub groups: u32,
    /// The word that comes next, and the one before it.
    pub next: RegexToken,
    last: RegexToken,
}

impl<'a> Lexer<'a> {
    /// Begins: with the first word at hand.
    pub(crate) fn new(c: &'a [char], syntax: Syntax) -> Result<Lexer<'a>, RegexError> {
        let mut lexer = Lexer {
            c,
            at: 0,
            place: LexContext::Outside,
            syntax,
            groups: 0,
            next: RegexToken::Nothing,
            last: RegexToken::Nothing,
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
    pub(crate) fn name(&mut self, out: &mut Vec<char>) -> Result<(), RegexError> {
        self.advance()?;
        while let RegexToken::Plain(c) = self.next {
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
    pub(crate) fn advance(&mut self) -> Result<(), RegexError> {
        self.last = self.next;
        self.next = self.word()?;
        Ok(())
    }

    fn word(&mut self) -> Result<RegexToken, RegexError> {
        loop {
            // A comment is no word: what stood before it still stands before the next one.
            match self.word_or_comment()? {
                RegexToken::Nothing => {}
                word => return Ok(word),
            }
        }
    }

    fn word_or_comment(&mut self) -> Result<RegexToken, RegexError> {
        if self.syntax.expanded && matches!(self.place, LexContext::Outside | LexContext::Bounds) {
            self.skip();
        }
        let Some(c) = self.peek() else {
            return match self.place {
                LexContext::Outside => Ok(RegexToken::End),
                LexContext::Bounds => Err(BRACES),
                _ => Err(BRACKETS),
            };
        };
        self.at += 1;
        let plain = RegexToken::Plain(u32::from(c));
        match self.place {
            LexContext::Outside if self.syntax.flavor == Flavor::Basic => self.basic(c),
            LexContext::Outside => self.outside(c),
            LexContext::Bounds => self.bounds(c),
            LexContext::Bracket => self.bracket(c),
            LexContext::Element => Ok(self.name_end(c, '.').unwrap_or(plain)),
            LexContext::Equivalence => Ok(self.name_end(c, '=').unwrap_or(plain)),
            LexContext::ClassName => Ok(self.name_end(c, ':').unwrap_or(plain)),
        }
    }

    fn name_end(&mut self, c: char, end: char) -> Option<RegexToken> {
        if c != end || !self.eat(']') {
            return None;
        }
        self.place = LexContext::Bracket;
        Some(RegexToken::NameEnd)
    }

    fn bounds(&mut self, c: char) -> Result<RegexToken, RegexError> {
        match c {
            '0'..='9' => Ok(RegexToken::Digit(u32::from(c) - u32::from('0'))),
            ',' => Ok(RegexToken::Comma),
            '}' if self.syntax.flavor != Flavor::Basic => {
                self.place = LexContext::Outside;
                let little = self.advanced() && self.eat('?');
                Ok(RegexToken::BoundEnd(!little))
            }
            '\\' if self.syntax.flavor == Flavor::Basic && self.eat('}') => {
                self.place = LexContext::Outside;
                Ok(RegexToken::BoundEnd(true))
            }
            _ => Err(BAD_COUNT),
        }
    }

    fn bracket(&mut self, c: char) -> Result<RegexToken, RegexError> {
        let plain = Ok(RegexToken::Plain(u32::from(c)));
        let first = matches!(self.last, RegexToken::Bracket(_));
        match c {
            '\\' if self.advanced() => {
                if self.peek().is_none() {
                    return Err(BAD_ESCAPE);
                }
                match self.escape()? {
                    word @ (RegexToken::Plain(_) | RegexToken::Set(_) | RegexToken::NotSet(_)) => {
                        Ok(word)
                    }
                    _ => Err(BAD_ESCAPE),
                }
            }
            '-' if first || self.peek_is(']') => plain,
            '-' => Ok(RegexToken::Range),
            '[' => {
                let (place, word) = match self.peek() {
                    None => return Err(BRACKETS),
                    Some('.') => (LexContext::Element, RegexToken::Element),
                    Some('=') => (LexContext::Equivalence, RegexToken::Equivalence),
                    Some(':') => (LexContext::ClassName, RegexToken::ClassName),
                    Some(_) => return plain,
                };
                self.at += 1;
                self.place = place;
                Ok(word)
            }
            ']' if !first => {
                self.place = LexContext::Outside;
                Ok(RegexToken::BracketEnd)
            }
            _ => plain,
        }
    }

    /// `[`, which may begin one of the two brackets that are words' ends.
    fn open_bracket(&mut self) -> RegexToken {
        match self.c.get(self.at..self.at + 6) {
            Some(['[', ':', '<', ':', ']', ']']) => {
                self.at += 6;
                return RegexToken::Begins;
            }
            Some(['[', ':', '>', ':', ']', ']']) => {
                self.at += 6;
                return RegexToken::Ends;
            }
            _ => {}
        }
        self.place = LexContext::Bracket;
        RegexToken::Bracket(!self.eat('^'))
    }

    fn outside(&mut self, c: char) -> Result<RegexToken, RegexError> {
        let much = |lexer: &mut Lexer<'_>| !(lexer.advanced() && lexer.eat('?'));
        Ok(match c {
            '|' => RegexToken::Or,
            '*' => RegexToken::Star(much(self)),
            '+' => RegexToken::Plus(much(self)),
            '?' => RegexToken::Maybe(much(self)),
            '{' => {
                if self.syntax.expanded {
                    self.skip();
                }
                if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    return Ok(RegexToken::Plain(u32::from(c)));
                }
                self.place = LexContext::Bounds;
                RegexToken::Bound
            }
            '(' if self.advanced() && self.eat('?') => {
                let kind = self.peek().ok_or(BAD_OPERAND)?;
                self.at += 1;
                match kind {
                    ':' => RegexToken::Open(false),
                    '#' => {
                        while self.peek().is_some_and(|c| c != ')') {
                            self.at += 1;
                        }
                        self.eat(')');
                        RegexToken::Nothing
                    }
                    '=' => RegexToken::Around(Lookaround::Ahead),
                    '!' => RegexToken::Around(Lookaround::NotAhead),
                    '<' if self.eat('=') => RegexToken::Around(Lookaround::Behind),
                    '<' if self.eat('!') => RegexToken::Around(Lookaround::NotBehind),
                    _ => return Err(BAD_OPERAND),
                }
            }
            '(' => RegexToken::Open(true),
            ')' => RegexToken::Close,
            '[' => self.open_bracket(),
            '.' => RegexToken::Dot,
            '^' => RegexToken::Caret,
            '$' => RegexToken::Dollar,
            '\\' => {
                let escaped = self.peek().ok_or(BAD_ESCAPE)?;
                if self.advanced() {
                    return self.escape();
                }
                self.at += 1;
                RegexToken::Plain(u32::from(escaped))
            }
            _ => RegexToken::Plain(u32::from(c)),
        })
    }

    fn basic(&mut self, c: char) -> Result<RegexToken, RegexError> {
        let plain = Ok(RegexToken::Plain(u32::from(c)));
        match c {
            '*' if matches!(
                self.last,
                RegexToken::Nothing | RegexToken::Open(_) | RegexToken::Or
            ) =>
            {
                return plain;
            }
            '*' => return Ok(RegexToken::Star(true)),
            '[' => return Ok(self.open_bracket()),
            '.' => return Ok(RegexToken::Dot),
            '^' if matches!(self.last, RegexToken::Nothing | RegexToken::Open(_)) => {
                return Ok(RegexToken::Caret);
            }
            '$' => {
                if self.syntax.expanded {
                    self.skip();
                }
                let ends = matches!(self.c.get(self.at..), Some([] | ['\\', ')', ..]));
                return if ends { Ok(RegexToken::Dollar) } else { plain };
            }
            '\\' => {}
            _ => return plain,
        }
        let escaped = self.peek().ok_or(BAD_ESCAPE)?;
        self.at += 1;
        Ok(match escaped {
            '{' => {
                self.place = LexContext::Bounds;
                RegexToken::Bound
            }
            '(' => RegexToken::Open(true),
            ')' => RegexToken::Close,
            '<' => RegexToken::Begins,
            '>' => RegexToken::Ends,
            '1'..='9' => RegexToken::Reference(u32::from(escaped) - u32::from('0')),
            _ => RegexToken::Plain(u32::from(escaped)),
        })
    }

    /// Behind a backslash of an advanced expression.
    fn escape(&mut self) -> Result<RegexToken, RegexError> {
        let c = self.peek().ok_or(BAD_ESCAPE)?;
        self.at += 1;
        if !c.is_ascii_alphanumeric() {
            return Ok(RegexToken::Plain(u32::from(c)));
        }
        let plain = |c: char| RegexToken::Plain(u32::from(c));
        Ok(match c {
            'a' => plain('\u{7}'),
            'A' => RegexToken::TextStart,
            'b' => plain('\u{8}'),
            'B' => plain('\\'),
            'c' => {
                let control = self.peek().ok_or(BAD_ESCAPE)?;
                self.at += 1;
                RegexToken::Plain(u32::from(control) & 0o37)
            }
            'd' => RegexToken::Set(Class::Digit),
            'D' => RegexToken::NotSet(Class::Digit),
            'e' => plain('\u{1b}'),
            'f' => plain('\u{c}'),
            'm' => RegexToken::Begins,
            'M' => RegexToken::Ends,
            'n' => plain('\n'),
            'r' => plain('\r'),
            's' => RegexToken::Set(Class::Space),
            'S' => RegexToken::NotSet(Class::Space),
            't' => plain('\t'),
            'u' => RegexToken::Plain(self.digits(16, 4, 4)?),
            'U' => RegexToken::Plain(self.digits(16, 8, 8)?),
            'v' => plain('\u{b}'),
            'w' => RegexToken::Set(Class::Word),
            'W' => RegexToken::NotSet(Class::Word),
            'x' => RegexToken::Plain(self.digits(16, 1, 255)?),
            'y' => RegexToken::Boundary,
            'Y' => RegexToken::NoBoundary,
            'Z' => RegexToken::TextEnd,
            '0'..='9' => {
                let behind = self.at;
                self.at -= 1;
                if c != '0' {
                    let number = self.digits(10, 1, 255)?;
                    if self.at == behind || (1..=self.groups).contains(&number) {
                        return Ok(RegexToken::Reference(number));
                    }
                    self.at = behind - 1;
                }
                let mut number = self.digits(8, 1, 3)?;
                if number > 0xff {
                    self.at -= 1;
                    number >>= 3;
                }
                RegexToken::Plain(number)
            }
            _ => return Err(BAD_ESCAPE),
        })
    }

    /// A number of so many digits.
    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32, RegexError> {
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
