//! The default text search parser: what a text is made of.
//!
//! Owns: [`Parser`], which gives one [`Token`] after the other, and the numbers, names and descriptions of their kinds
//! ([`KINDS`]). The rules are those of PostgreSQL's default parser, found by asking it: at each place the readings are
//! tried in a fixed order (a host before a file, a file before a word ...), and the first that holds is taken, not the
//! longest. A compound with hyphens is given whole and then in parts, a URL whole and then as host and path. Readings
//! are loops that remember the last place at which they could end; only an address in an address recurses, boundedly.

use std::collections::VecDeque;

/// A kind of token; its number is PostgreSQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in PostgreSQL's manual, 12.5")]
pub enum TokenKind {
    AsciiWord = 1,
    Word = 2,
    NumWord = 3,
    Email = 4,
    Url = 5,
    Host = 6,
    SFloat = 7,
    Version = 8,
    HwordNumPart = 9,
    HwordPart = 10,
    HwordAsciiPart = 11,
    Blank = 12,
    Tag = 13,
    Protocol = 14,
    NumHword = 15,
    AsciiHword = 16,
    Hword = 17,
    UrlPath = 18,
    File = 19,
    Float = 20,
    Int = 21,
    UInt = 22,
    Entity = 23,
}

impl TokenKind {
    /// All kinds, by number.
    pub const ALL: [TokenKind; 23] = [
        TokenKind::AsciiWord,
        TokenKind::Word,
        TokenKind::NumWord,
        TokenKind::Email,
        TokenKind::Url,
        TokenKind::Host,
        TokenKind::SFloat,
        TokenKind::Version,
        TokenKind::HwordNumPart,
        TokenKind::HwordPart,
        TokenKind::HwordAsciiPart,
        TokenKind::Blank,
        TokenKind::Tag,
        TokenKind::Protocol,
        TokenKind::NumHword,
        TokenKind::AsciiHword,
        TokenKind::Hword,
        TokenKind::UrlPath,
        TokenKind::File,
        TokenKind::Float,
        TokenKind::Int,
        TokenKind::UInt,
        TokenKind::Entity,
    ];
}

/// Alias and description of each kind, from 1 on.
pub const KINDS: &[(&str, &str)] = &[
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

/// Addresses inside of what might be an address: deeper ones are none.
const ADDRESSES_MAX: u32 = 32;

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// As it stands in the text.
    pub text: &'a str,
}

/// A reading that holds: what it is and where it ends.
type Reading = (TokenKind, usize);

/// Cuts a text into tokens.
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Tokens that have been read already.
    ready: VecDeque<Token<'a>>,
    /// The parts of a compound are being read.
    in_compound: bool,
    /// Inside of a script or style sheet: nothing but tags counts.
    ignoring: bool,
    /// Where an address was looked for last, and what came of it.
    address: Option<(usize, Option<usize>)>,
}

fn is_letter(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphabetic())
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

fn is_letter_or_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

fn is_alpha(c: Option<char>) -> bool {
    c.is_some_and(|c| (c.is_alphabetic() && !is_mark(c)) || is_foreign_digit(c))
}

fn is_alnum(c: Option<char>) -> bool {
    is_digit(c) || is_alpha(c)
}

/// Marks that go on top of or around a letter: they end no word.
fn is_special(c: Option<char>) -> bool {
    c.is_some_and(is_mark)
}

/// Digits of other scripts, which count as letters.
fn is_foreign_digit(c: char) -> bool {
    static DIGIT: std::sync::LazyLock<Option<regex::Regex>> =
        std::sync::LazyLock::new(|| regex::Regex::new(r"\d").ok());
    let mut bytes = [0; 4];
    !c.is_ascii()
        && c.is_numeric()
        && (DIGIT.as_ref()).is_some_and(|digit| digit.is_match(c.encode_utf8(&mut bytes)))
}

fn is_mark(c: char) -> bool {
    c >= '\u{300}' && unicode_normalization::char::is_combining_mark(c)
}

/// Characters of the path of a URL.
fn is_path_character(c: Option<char>) -> bool {
    c.is_some_and(|c| {
        c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
    })
}

/// How far a host has been read.
#[derive(Clone, Copy)]
enum Host {
    /// A name behind a dot begins.
    Label,
    /// It has one letter.
    OneLetter,
    /// It has letters only, two at least: a host may end here.
    Domain,
    /// Behind a hyphen or underscore.
    Joined,
    /// A name that no host ends with.
    Name,
}

/// How far a file's name has been read.
#[derive(Clone, Copy)]
enum File {
    /// Behind a slash.
    First,
    /// Behind `/.`
    Dot,
    /// Behind `..`
    Dots,
    /// Behind `~`
    Home,
    /// In a name: a file may end here.
    Name,
}

/// How far a compound has been read.
#[derive(Clone, Copy, PartialEq)]
enum Compound {
    Ascii,
    Word,
    Num,
}

impl Compound {
    fn kind(self) -> TokenKind {
        match self {
            Compound::Ascii => TokenKind::AsciiHword,
            Compound::Word => TokenKind::Hword,
            Compound::Num => TokenKind::NumHword,
        }
    }
}

impl<'a> Parser<'a> {
    /// Reads a text from its beginning.
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser {
            text,
            at: 0,
            ready: VecDeque::new(),
            in_compound: false,
            ignoring: false,
            address: None,
        }
    }

    fn c(&self, at: usize) -> Option<char> {
        let byte = *self.text.as_bytes().get(at)?;
        if byte < 0x80 {
            return Some(byte as char);
        }
        self.text.get(at..)?.chars().next()
    }

    fn is(&self, at: usize, c: char) -> bool {
        self.c(at) == Some(c)
    }

    /// The place behind the character at `at`.
    fn next_at(&self, at: usize) -> usize {
        at + self.c(at).map_or(0, char::len_utf8)
    }

    fn part(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn give(&mut self, kind: TokenKind, end: usize) -> Token<'a> {
        let token = Token {
            kind,
            text: self.part(self.at, end),
        };
        self.at = end;
        token
    }

    /// The next token.
    pub fn token(&mut self) -> Option<Token<'a>> {
        if let Some(token) = self.ready.pop_front() {
            return Some(token);
        }
        if self.in_compound {
            if let Some((kind, end)) = self.compound_part() {
                return Some(self.give(kind, end));
            }
            self.in_compound = false;
        }
        self.c(self.at)?;
        let from = self.at;
        let (kind, end) = self.reading(from, 0);
        match kind {
            TokenKind::Url => {
                let host = self.host_of_url(from, end);
                self.ready.push_back(Token {
                    kind: TokenKind::Host,
                    text: self.part(from, host),
                });
                self.ready.push_back(Token {
                    kind: TokenKind::UrlPath,
                    text: self.part(host, end),
                });
            }
            TokenKind::AsciiHword | TokenKind::Hword | TokenKind::NumHword => {
                self.in_compound = true;
                // The parts are read from its beginning.
                let token = self.give(kind, end);
                self.at = from;
                return Some(token);
            }
            _ => {}
        }
        Some(self.give(kind, end))
    }

    /// Where the host in front of a URL's path ends: at its first slash.
    fn host_of_url(&self, from: usize, end: usize) -> usize {
        let slash = self.part(from, end).find('/');
        slash.map_or(end, |at| from + at)
    }

    /// What begins at `from`; at least one character.
    fn reading(&mut self, from: usize, depth: u32) -> Reading {
        let c = self.c(from);
        if c == Some('<')
            && let Some((end, ignoring)) = self.tag(from + 1)
        {
            if depth == 0 {
                self.ignoring = ignoring;
            }
            return (TokenKind::Tag, end);
        }
        if self.ignoring {
            return self.blank(from);
        }
        if is_letter(c) {
            return self.ascii_word(from, depth);
        }
        if is_digit(c) {
            return self.number(from, depth);
        }
        if is_alpha(c) {
            return self.word(from);
        }
        let other = match c {
            Some('-' | '+') => self.signed(from + 1),
            Some('&') => self.entity(from + 1),
            Some('~') => self.file(from + 1, File::Home),
            Some('/') => self.file(from + 1, File::First),
            Some('.') if self.is(from + 1, '.') => self.file(from + 2, File::Dots),
            Some('.') if self.is(from + 1, '/') => self.file(from + 2, File::First),
            _ => None,
        };
        other.unwrap_or_else(|| self.blank(from))
    }

    fn blank(&self, from: usize) -> Reading {
        let mut at = self.next_at(from);
        while let Some(c) = self.c(at) {
            let stops = match c {
                '<' => true,
                _ if self.ignoring => false,
                '-' | '+' | '&' | '/' => true,
                _ => is_alnum(Some(c)),
            };
            if stops {
                break;
            }
            at = self.next_at(at);
        }
        (TokenKind::Blank, at)
    }

    fn ascii_word(&mut self, from: usize, depth: u32) -> Reading {
        let mut at = from;
        loop {
            let c = self.c(at);
            let other = match c {
                Some(c) if c.is_ascii_alphabetic() => {
                    at += 1;
                    continue;
                }
                Some('.') => self
                    .host(at + 1, Host::Label, depth)
                    .or_else(|| self.file_behind_dot(at + 1)),
                Some('-') => self
                    .host(at + 1, Host::Joined, depth)
                    .or_else(|| self.compound(at + 1, Compound::Ascii)),
                Some('_') => self.host(at + 1, Host::Joined, depth),
                Some('@') => self.email(at + 1, depth),
                Some(':') if self.is(at + 1, '/') && self.is(at + 2, '/') => {
                    Some((TokenKind::Protocol, at + 3))
                }
                Some('/') => self.file(at + 1, File::First),
                Some(c) if c.is_ascii_digit() => Some(
                    self.host(at + 1, Host::Name, depth)
                        .unwrap_or_else(|| self.num_word(at + 1, depth)),
                ),
                _ if is_alpha(c) || is_special(c) => Some(self.word(self.next_at(at))),
                _ => None,
            };
            return other.unwrap_or((TokenKind::AsciiWord, at));
        }
    }

    fn word(&mut self, from: usize) -> Reading {
        let mut at = from;
        loop {
            let c = self.c(at);
            if is_alpha(c) || is_special(c) {
                at = self.next_at(at);
            } else if is_digit(c) || is_alnum(c) {
                return self.num_word(self.next_at(at), 0);
            } else if c == Some('-')
                && let Some(reading) = self.compound(at + 1, Compound::Word)
            {
                return reading;
            } else {
                return (TokenKind::Word, at);
            }
        }
    }

    fn num_word(&mut self, from: usize, depth: u32) -> Reading {
        let mut at = from;
        loop {
            let c = self.c(at);
            if is_alnum(c) || is_special(c) {
                at = self.next_at(at);
                continue;
            }
            let other = match c {
                Some('@') => self.email(at + 1, depth),
                Some('/') => self.file(at + 1, File::First),
                Some('.') => self.file_behind_dot(at + 1),
                Some('-') => self.compound(at + 1, Compound::Num),
                _ => None,
            };
            return other.unwrap_or((TokenKind::NumWord, at));
        }
    }

    fn digits(&self, from: usize) -> usize {
        let mut at = from;
        while is_digit(self.c(at)) {
            at += 1;
        }
        at
    }

    fn number(&mut self, from: usize, depth: u32) -> Reading {
        let at = self.digits(from);
        let c = self.c(at);
        let other = match c {
            Some('.') => self
                .host(at + 1, Host::Label, depth)
                .or_else(|| self.decimals(at + 1, true)),
            Some('-' | '_') => self.host(at + 1, Host::Joined, depth),
            Some('@') => self.email(at + 1, depth),
            Some('/') => self.file(at + 1, File::First),
            Some(c) if c.is_ascii_alphabetic() => {
                let float = match c {
                    'e' | 'E' => self.exponent(at + 1),
                    _ => None,
                };
                Some(
                    float
                        .or_else(|| self.host(at + 1, Host::Name, depth))
                        .unwrap_or_else(|| self.num_word(at + 1, depth)),
                )
            }
            _ if is_alpha(c) || is_special(c) => Some(self.num_word(self.next_at(at), depth)),
            _ => None,
        };
        other.unwrap_or((TokenKind::UInt, at))
    }

    /// A number behind its sign.
    fn signed(&self, from: usize) -> Option<Reading> {
        if !is_digit(self.c(from)) {
            return None;
        }
        let at = self.digits(from);
        let other = match self.c(at) {
            // A version has no sign: the sign stands alone.
            Some('.') if is_digit(self.c(at + 1)) => return self.decimals(at + 1, false),
            Some('e' | 'E') => self.exponent(at + 1),
            _ => None,
        };
        Some(other.unwrap_or((TokenKind::Int, at)))
    }

    /// What follows the point of a number; of one without a sign another point makes a version.
    fn decimals(&self, from: usize, version: bool) -> Option<Reading> {
        if !is_digit(self.c(from)) {
            return None;
        }
        let mut at = self.digits(from);
        let another = self.is(at, '.') && is_digit(self.c(at + 1));
        if another {
            if !version {
                return None;
            }
            while self.is(at, '.') && is_digit(self.c(at + 1)) {
                at = self.digits(at + 1);
            }
            return Some((TokenKind::Version, at));
        }
        let float = match self.c(at) {
            Some('e' | 'E') => self.exponent(at + 1),
            _ => None,
        };
        Some(float.unwrap_or((TokenKind::Float, at)))
    }

    fn exponent(&self, from: usize) -> Option<Reading> {
        let digits = match self.c(from) {
            Some('+' | '-') => from + 1,
            _ => from,
        };
        is_digit(self.c(digits)).then(|| (TokenKind::SFloat, self.digits(digits)))
    }

    /// A host, a URL or an address whose beginning has been read.
    fn host(&mut self, from: usize, state: Host, depth: u32) -> Option<Reading> {
        let (mut at, mut state) = (from, state);
        let mut last = None;
        loop {
            let c = self.c(at);
            state = match state {
                Host::Label if is_letter(c) => Host::OneLetter,
                Host::Label | Host::Joined if is_letter_or_digit(c) => Host::Name,
                Host::Label | Host::Joined => return last,
                Host::OneLetter | Host::Domain if is_letter(c) => Host::Domain,
                Host::Name if is_letter(c) => Host::Name,
                _ if is_digit(c) => Host::Name,
                Host::Domain => {
                    last = Some((TokenKind::Host, at));
                    match c {
                        Some('.') => Host::Label,
                        Some('-' | '_') => Host::Joined,
                        // Behind an address's @ a host is all that is looked for.
                        Some('@') if depth == 0 => return self.email(at + 1, depth).or(last),
                        Some('/') if depth == 0 => return self.url(at + 1).or(last),
                        Some(':') if is_digit(self.c(at + 1)) => {
                            let end = self.digits(at + 1);
                            if depth == 0 && self.is(end, '/') {
                                return Some(self.url(end + 1).unwrap_or((TokenKind::Host, end)));
                            }
                            return Some((TokenKind::Host, end));
                        }
                        _ => return last,
                    }
                }
                Host::OneLetter | Host::Name => match c {
                    Some('.') => Host::Label,
                    Some('-' | '_') => Host::Joined,
                    Some('@') => return self.email(at + 1, depth).or(last),
                    _ => return last,
                },
            };
            at += 1;
        }
    }

    /// A URL behind the slash that ends its host.
    fn url(&self, from: usize) -> Option<Reading> {
        is_path_character(self.c(from)).then(|| (TokenKind::Url, self.path(from)))
    }

    fn path(&self, from: usize) -> usize {
        let mut at = from;
        while is_path_character(self.c(at)) {
            at += 1;
        }
        at
    }

    /// An address behind its @: a host must follow.
    fn email(&mut self, from: usize, depth: u32) -> Option<Reading> {
        if depth >= ADDRESSES_MAX || self.c(from).is_none() {
            return None;
        }
        if let Some((at, end)) = self.address
            && at == from
        {
            return end.map(|end| (TokenKind::Email, end));
        }
        let end = match self.reading(from, depth + 1) {
            (TokenKind::Host, end) => Some(end),
            _ => None,
        };
        self.address = Some((from, end));
        end.map(|end| (TokenKind::Email, end))
    }

    fn file_behind_dot(&self, from: usize) -> Option<Reading> {
        match self.c(from) {
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => self.file(from, File::Name),
            _ => None,
        }
    }

    /// A file's name of which the beginning has been read.
    fn file(&self, from: usize, state: File) -> Option<Reading> {
        let (mut at, mut state) = (from, state);
        let mut last = None;
        let named = |c: Option<char>| is_letter_or_digit(c) || c == Some('_');
        loop {
            let c = self.c(at);
            state = match (state, c) {
                (File::Name, Some('-')) => File::Name,
                (File::Name, Some('.')) if named(self.c(at + 1)) => File::Name,
                (File::First | File::Dot | File::Home | File::Name, _) if named(c) => File::Name,
                (File::Name, Some('/')) => {
                    last = Some((TokenKind::File, at));
                    File::First
                }
                (File::Name, _) => return Some((TokenKind::File, at)),
                (File::First, Some('.')) => File::Dot,
                (File::First, Some('~')) => File::Home,
                (File::Dot, Some('.')) => File::Dots,
                (File::Dot | File::Home, Some('/')) => File::First,
                (File::Dots, Some('/')) => {
                    last = Some((TokenKind::File, at));
                    File::First
                }
                (File::Dots, None) => return Some((TokenKind::File, at)),
                (File::Dots, Some(c)) if c.is_whitespace() => return Some((TokenKind::File, at)),
                _ => return last,
            };
            at += 1;
        }
    }

    /// A compound behind its first hyphen.
    fn compound(&self, from: usize, state: Compound) -> Option<Reading> {
        let (mut at, mut state) = (from, state);
        let mut last = None;
        loop {
            // Behind a hyphen.
            let c = self.c(at);
            if is_digit(c) {
                at = self.digits(at);
                let c = self.c(at);
                if !is_alpha(c) && !is_special(c) {
                    return last;
                }
                state = Compound::Num;
            } else if state == Compound::Ascii && is_letter(c) {
            } else if is_alpha(c) {
                if state == Compound::Ascii {
                    state = Compound::Word;
                }
            } else {
                return last;
            }
            // In a part.
            loop {
                let c = self.c(at);
                match state {
                    _ if is_digit(c) => state = Compound::Num,
                    Compound::Ascii if is_letter(c) => {}
                    Compound::Ascii if is_alpha(c) || is_special(c) => state = Compound::Word,
                    Compound::Word if is_alpha(c) || is_special(c) => {}
                    Compound::Num if is_alnum(c) || is_special(c) => {}
                    _ => break,
                }
                at = self.next_at(at);
            }
            last = Some((state.kind(), at));
            if !self.is(at, '-') {
                return last;
            }
            at += 1;
        }
    }

    /// The next part of a compound, or the hyphen in front of it.
    fn compound_part(&self) -> Option<Reading> {
        let c = self.c(self.at);
        if c == Some('-') {
            let behind = self.c(self.at + 1);
            let goes_on = is_alnum(behind) || is_special(behind);
            return goes_on.then_some((TokenKind::Blank, self.at + 1));
        }
        let mut kind = if is_letter(c) {
            TokenKind::HwordAsciiPart
        } else if is_alpha(c) {
            TokenKind::HwordPart
        } else if is_digit(c) {
            let behind = self.c(self.digits(self.at));
            if !is_alpha(behind) && !is_special(behind) {
                return None;
            }
            TokenKind::HwordNumPart
        } else {
            return None;
        };
        let mut at = self.next_at(self.at);
        loop {
            let c = self.c(at);
            match kind {
                _ if is_digit(c) => kind = TokenKind::HwordNumPart,
                TokenKind::HwordAsciiPart if is_letter(c) => {}
                TokenKind::HwordNumPart if is_alnum(c) || is_special(c) => {}
                TokenKind::HwordAsciiPart if is_alpha(c) || is_special(c) => {
                    kind = TokenKind::HwordPart
                }
                TokenKind::HwordPart if is_alpha(c) || is_special(c) => {}
                _ => return Some((kind, at)),
            }
            at = self.next_at(at);
        }
    }

    /// An entity behind its ampersand.
    fn entity(&self, from: usize) -> Option<Reading> {
        let mut at = from;
        match self.c(at)? {
            '#' => {
                at += 1;
                let hex = matches!(self.c(at), Some('x' | 'X'));
                if hex {
                    at += 1;
                }
                let first = at;
                while self
                    .c(at)
                    .is_some_and(|c| c.is_ascii_digit() || (hex && c.is_ascii_hexdigit()))
                {
                    at += 1;
                }
                if at == first {
                    return None;
                }
            }
            c if c.is_ascii_alphabetic() || matches!(c, ':' | '_') => {
                at += 1;
                while self
                    .c(at)
                    .is_some_and(|c| is_alnum(Some(c)) || matches!(c, ':' | '_' | '.' | '-'))
                {
                    at = self.next_at(at);
                }
            }
            _ => return None,
        }
        self.is(at, ';').then_some((TokenKind::Entity, at + 1))
    }

    /// A tag or comment behind its `<`: where it ends, and whether what follows is to be ignored.
    fn tag(&self, from: usize) -> Option<(usize, bool)> {
        let mut at = from;
        let mut ignoring = self.ignoring;
        match self.c(at)? {
            '!' if self.is(at + 1, '-') && self.is(at + 2, '-') => {
                let end = self.text.get(at + 3..)?.find("-->")?;
                return Some((at + 3 + end + 3, ignoring));
            }
            '!' if matches!(self.c(at + 1), Some('D' | 'd')) => at += 2,
            '?' if self.is(at + 1, 'x') => at += 2,
            '/' if is_letter(self.c(at + 1)) => at = self.tag_name(at + 2, &mut ignoring)?,
            c if c.is_ascii_alphabetic() || matches!(c, ':' | '_') => {
                at = self.tag_name(at + 1, &mut ignoring)?;
            }
            _ => return None,
        }
        loop {
            let c = self.c(at)?;
            at = self.next_at(at);
            match c {
                '>' => return Some((at, ignoring)),
                '\'' | '"' => loop {
                    let inside = self.c(at)?;
                    at = self.next_at(at);
                    match inside {
                        '\\' => {
                            self.c(at)?;
                            at = self.next_at(at);
                        }
                        _ if inside == c => break,
                        _ => {}
                    }
                },
                '=' | '-' | '_' | '#' | '/' | ':' | '.' | '&' | '?' | '%' | '~' => {}
                c if c.is_ascii_alphanumeric() || c.is_whitespace() => {}
                _ => return None,
            }
        }
    }

    /// The rest of a tag's name: where what follows it begins.
    fn tag_name(&self, from: usize, ignoring: &mut bool) -> Option<usize> {
        let mut at = from;
        loop {
            let c = self.c(at)?;
            match c {
                '/' if self.is(at + 1, '>') => return Some(at + 1),
                '>' => break,
                c if c.is_whitespace() => break,
                c if is_alnum(Some(c)) || matches!(c, ':' | '_' | '.' | '-') => {
                    at = self.next_at(at);
                }
                _ => return None,
            }
        }
        let begin = self.part(0, from).rfind('<').unwrap_or(0);
        match self.part(begin, at).to_ascii_lowercase().as_str() {
            "<script" | "<style" => *ignoring = true,
            "</script" | "</style" => *ignoring = false,
            _ => {}
        }
        Some(at)
    }
}
