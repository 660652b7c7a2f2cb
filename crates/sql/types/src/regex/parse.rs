//! PostgreSQL's regular expressions in the words of the libraries that match them (`compiled`), and their errors.

use super::lex::{
    BAD_ARGUMENT, BAD_CLASS, BAD_COUNT, BAD_ELEMENT, BAD_OPERAND, BAD_OPTION, BAD_PATTERN,
    BAD_RANGE, BAD_REFERENCE, Class, Flavor, Lexer, Lookaround, PARENTHESES, RegexError,
    RegexToken, Syntax, TOO_COMPLEX,
};
use super::match_preference::{PreferenceStack, Quantifier};

/// Most repetitions that bounds ask for.
const REPETITIONS_MAX: u32 = 255;
/// Parentheses in parentheses: what the libraries take.
const DEPTH_MAX: usize = 240;
/// Bytes beyond which an expression is not written longer than it is.
const WRITTEN_BYTES_MAX: usize = 1 << 20;
/// Sets of no character, and of all.
const NO_CHARACTER: &str = "[a&&b]";
const ANY_CHARACTER: &str = "(?s:.)";

/// An expression in the libraries' words.
pub(crate) struct Translation {
    pub text: String,
    /// How it is to be matched: with what it says of that itself.
    pub syntax: Syntax,
    /// It has back references or lookaround.
    pub backtracks: bool,
    /// Whether the shortest match is wanted, or the longest; none if there is but one.
    pub shortest: Option<bool>,
    /// Numbered groups.
    pub groups: usize,
}

/// A part of the expression, translated.
#[derive(Default, Clone)]
struct TranslatedFragment {
    text: String,
    /// The same without groups that have numbers; none if there are none.
    groupless: Option<String>,
    /// Of how many characters all its matches are, if that is so.
    width: Option<usize>,
    references: bool,
}

impl TranslatedFragment {
    fn constraint(text: &str) -> TranslatedFragment {
        TranslatedFragment {
            text: text.to_owned(),
            width: Some(0),
            ..TranslatedFragment::default()
        }
    }

    fn character(text: String) -> TranslatedFragment {
        TranslatedFragment {
            text,
            width: Some(1),
            ..TranslatedFragment::default()
        }
    }

    fn without_groups(&self) -> &str {
        self.groupless.as_deref().unwrap_or(&self.text)
    }

    fn push(&mut self, next: &TranslatedFragment) {
        if self.groupless.is_some() || next.groupless.is_some() {
            let mut groupless = self.without_groups().to_owned();
            groupless.push_str(next.without_groups());
            self.groupless = Some(groupless);
        }
        self.text.push_str(&next.text);
        self.width = self
            .width
            .zip(next.width)
            .and_then(|(a, b)| a.checked_add(b));
        self.references |= next.references;
    }
}

/// What a group is written with.
enum Group {
    Numbered,
    Plain,
    Around(Lookaround),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    syntax: Syntax,
    levels: PreferenceStack,
    /// By number: whether the group has ended.
    groups: Vec<bool>,
    backtracks: bool,
    depth: usize,
}

/// Translates an expression.
pub(crate) fn translate(pattern: &str, asked: Syntax) -> Result<Translation, RegexError> {
    if asked.literal && (asked.expanded || asked.newline_stops || asked.newline_anchors) {
        return Err(BAD_ARGUMENT);
    }
    let mut syntax = asked;
    let rest = prefixes(pattern, &mut syntax)?;
    if syntax.literal {
        return Ok(Translation {
            text: regex::escape(rest),
            syntax,
            backtracks: false,
            shortest: None,
            groups: 0,
        });
    }
    let characters: Vec<char> = rest.chars().collect();
    let mut parser = Parser {
        lexer: Lexer::new(&characters, syntax)?,
        syntax,
        levels: PreferenceStack::new(),
        groups: Vec::new(),
        backtracks: false,
        depth: 0,
    };
    let whole = parser.alternatives(false, false)?;
    Ok(Translation {
        text: whole.text,
        syntax,
        backtracks: parser.backtracks,
        shortest: parser.levels.shortest(),
        groups: parser.groups.len(),
    })
}

/// What stands at an expression's very start and says how to read it. Gives the rest.
fn prefixes<'p>(pattern: &'p str, syntax: &mut Syntax) -> Result<&'p str, RegexError> {
    if syntax.literal {
        return Ok(pattern);
    }
    let mut rest = pattern;
    if let Some(behind) = rest.strip_prefix("***") {
        match behind.chars().next() {
            Some('=') => {
                *syntax = Syntax {
                    literal: true,
                    ignore_case: syntax.ignore_case,
                    ..Syntax::default()
                };
                return Ok(&behind[1..]);
            }
            Some(':') => {
                syntax.flavor = Flavor::Advanced;
                rest = &behind[1..];
            }
            Some('?') => return Err(BAD_PATTERN),
            _ => return Err(BAD_OPERAND),
        }
    }
    if syntax.flavor != Flavor::Advanced {
        return Ok(rest);
    }
    let Some(options) = rest
        .strip_prefix("(?")
        .filter(|options| options.starts_with(char::is_alphabetic))
    else {
        return Ok(rest);
    };
    let letters = options
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(options.len());
    for option in options[..letters].chars() {
        match option {
            'b' => (syntax.flavor, syntax.literal) = (Flavor::Basic, false),
            'c' => syntax.ignore_case = false,
            'e' => (syntax.flavor, syntax.literal) = (Flavor::Extended, false),
            'i' => syntax.ignore_case = true,
            'm' | 'n' => (syntax.newline_stops, syntax.newline_anchors) = (true, true),
            'p' => (syntax.newline_stops, syntax.newline_anchors) = (true, false),
            'q' => (syntax.flavor, syntax.literal) = (Flavor::Basic, true),
            's' => (syntax.newline_stops, syntax.newline_anchors) = (false, false),
            't' => syntax.expanded = false,
            'w' => (syntax.newline_stops, syntax.newline_anchors) = (false, true),
            'x' => syntax.expanded = true,
            _ => return Err(BAD_OPTION),
        }
    }
    options[letters..].strip_prefix(')').ok_or(BAD_OPTION)
}

impl Parser<'_> {
    fn eat(&mut self, word: RegexToken) -> Result<bool, RegexError> {
        let found = self.lexer.next == word;
        if found {
            self.lexer.advance()?;
        }
        Ok(found)
    }

    /// Alternatives, up to the closing parenthesis if they stand in one, else up to the end.
    fn alternatives(
        &mut self,
        inside: bool,
        around: bool,
    ) -> Result<TranslatedFragment, RegexError> {
        let mut all: Option<TranslatedFragment> = None;
        loop {
            let branch = self.branch(inside, around)?;
            match &mut all {
                None => all = Some(branch),
                Some(all) => {
                    let width = all.width.filter(|width| branch.width == Some(*width));
                    all.push(&TranslatedFragment::constraint("|"));
                    all.push(&branch);
                    all.width = width;
                }
            }
            if self.lexer.next != RegexToken::Or {
                break;
            }
            self.levels.alternative();
            self.lexer.advance()?;
        }
        if inside && self.lexer.next != RegexToken::Close {
            return Err(PARENTHESES);
        }
        Ok(all.unwrap_or_default())
    }

    fn branch(&mut self, inside: bool, around: bool) -> Result<TranslatedFragment, RegexError> {
        let mut branch = TranslatedFragment::constraint("");
        loop {
            match self.lexer.next {
                RegexToken::Or | RegexToken::End => return Ok(branch),
                RegexToken::Close if inside => return Ok(branch),
                _ => {
                    let atom = self.quantified(around)?;
                    branch.push(&atom);
                    let longest = branch.text.len().max(branch.without_groups().len());
                    if longest > 4 * WRITTEN_BYTES_MAX {
                        return Err(TOO_COMPLEX);
                    }
                }
            }
        }
    }

    /// An atom and its quantifier, or a constraint, which takes none.
    fn quantified(&mut self, around: bool) -> Result<TranslatedFragment, RegexError> {
        // What stands between the parentheses of a group that has just ended, and whether groups in it divide it.
        let mut content: Option<(TranslatedFragment, bool)> = None;
        let mut capturing = false;
        let constraint = match self.lexer.next {
            RegexToken::Caret => Some("^"),
            RegexToken::Dollar => Some("$"),
            RegexToken::TextStart => Some("\\A"),
            RegexToken::TextEnd => Some("\\z"),
            RegexToken::Begins => Some("\\b{start}"),
            RegexToken::Ends => Some("\\b{end}"),
            RegexToken::Boundary => Some("\\b"),
            RegexToken::NoBoundary => Some("\\B"),
            _ => None,
        };
        if let Some(text) = constraint {
            self.levels.plain_atom();
            self.lexer.advance()?;
            return Ok(TranslatedFragment::constraint(text));
        }
        let atom = match self.lexer.next {
            RegexToken::Around(kind) => {
                let (part, _) = self.group(Group::Around(kind), true)?;
                self.lexer.advance()?;
                return Ok(TranslatedFragment {
                    width: Some(0),
                    ..part
                });
            }
            // An extended expression may have one that closes nothing.
            RegexToken::Close if self.syntax.flavor == Flavor::Extended => {
                self.character(u32::from(')'))
            }
            RegexToken::Close => return Err(PARENTHESES),
            RegexToken::Plain(c) => self.character(c),
            RegexToken::Set(class) => self.set(class, false),
            RegexToken::NotSet(class) => self.set(class, true),
            RegexToken::Dot => {
                self.levels.plain_atom();
                TranslatedFragment::character(".".to_owned())
            }
            RegexToken::Bracket(positive) => {
                self.levels.plain_atom();
                TranslatedFragment::character(self.bracket(positive)?)
            }
            RegexToken::Open(numbered) => {
                capturing = numbered && !around;
                let kind = match (numbered, around) {
                    (true, false) => Group::Numbered,
                    _ => Group::Plain,
                };
                let (part, inner) = self.group(kind, around)?;
                content = inner;
                part
            }
            RegexToken::Reference(number) => {
                let ended = usize::try_from(number)
                    .ok()
                    .and_then(|n| self.groups.get(n.wrapping_sub(1)));
                if around || ended != Some(&true) {
                    return Err(BAD_REFERENCE);
                }
                self.backtracks = true;
                self.levels.plain_atom();
                TranslatedFragment {
                    text: format!("(?:\\{number})"),
                    references: true,
                    ..TranslatedFragment::default()
                }
            }
            _ => return Err(BAD_OPERAND),
        };
        self.lexer.advance()?;
        let (least, most, much, exactly) = match self.lexer.next {
            RegexToken::Star(much) => (0, None, much, false),
            RegexToken::Plus(much) => (1, None, much, false),
            RegexToken::Maybe(much) => (0, Some(1), much, false),
            RegexToken::Bound => self.bounds()?,
            _ => return Ok(atom),
        };
        self.lexer.advance()?;
        let against = self.levels.atom() == Some(much);
        let turned = self.levels.quantifier(&Quantifier {
            exactly,
            lazy: !much && !exactly,
            fixed: most == Some(least),
        });
        Ok(repeated(
            atom,
            content.filter(|_| turned),
            capturing,
            against,
            (least, most, much || exactly),
        ))
    }

    /// Bounds, up to their brace: least, most, whether much is preferred, and whether there is but one number.
    fn bounds(&mut self) -> Result<(u32, Option<u32>, bool, bool), RegexError> {
        self.lexer.advance()?;
        let least = self.number()?;
        let (most, exactly) = if self.eat(RegexToken::Comma)? {
            let most = match self.lexer.next {
                RegexToken::Digit(_) => Some(self.number()?),
                _ => None,
            };
            if most.is_some_and(|most| least > most) {
                return Err(BAD_COUNT);
            }
            (most, false)
        } else {
            (Some(least), true)
        };
        match self.lexer.next {
            RegexToken::BoundEnd(much) => Ok((least, most, much, exactly)),
            _ => Err(BAD_COUNT),
        }
    }

    fn number(&mut self) -> Result<u32, RegexError> {
        let mut number = 0;
        while let RegexToken::Digit(digit) = self.lexer.next
            && number < REPETITIONS_MAX
        {
            number = number * 10 + digit;
            self.lexer.advance()?;
        }
        if matches!(self.lexer.next, RegexToken::Digit(_)) || number > REPETITIONS_MAX {
            return Err(BAD_COUNT);
        }
        Ok(number)
    }

    /// A group, up to its closing parenthesis. With what stands in it, if no group in it divides that.
    fn group(
        &mut self,
        kind: Group,
        around: bool,
    ) -> Result<(TranslatedFragment, Option<(TranslatedFragment, bool)>), RegexError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TOO_COMPLEX);
        }
        let number = self.groups.len();
        let numbered = matches!(kind, Group::Numbered);
        if numbered {
            self.groups.push(false);
            self.lexer.groups += 1;
        }
        self.lexer.advance()?;
        self.levels.open();
        let content = self.alternatives(true, around)?;
        let undivided = self.levels.close(numbered);
        if let Some(ended) = self.groups.get_mut(number).filter(|_| numbered) {
            *ended = true;
        }
        self.depth -= 1;
        let open = match kind {
            Group::Numbered => "(",
            Group::Plain => "(?:",
            Group::Around(Lookaround::Ahead) => "(?=",
            Group::Around(Lookaround::NotAhead) => "(?!",
            Group::Around(Lookaround::Behind) => "(?<=",
            Group::Around(Lookaround::NotBehind) => "(?<!",
        };
        self.backtracks |= matches!(kind, Group::Around(_));
        let part = TranslatedFragment {
            text: format!("{open}{})", content.text),
            groupless: (numbered || content.groupless.is_some())
                .then(|| format!("(?:{})", content.without_groups())),
            width: content.width,
            references: content.references,
        };
        Ok((part, undivided.then_some((content, numbered))))
    }

    fn character(&mut self, c: u32) -> TranslatedFragment {
        self.levels.plain_atom();
        let mut text = String::new();
        match char::from_u32(c) {
            Some(c) => write_character(c, &mut text),
            None => text.push_str(NO_CHARACTER),
        }
        TranslatedFragment::character(text)
    }

    fn set(&mut self, class: Class, negated: bool) -> TranslatedFragment {
        self.levels.plain_atom();
        let not = if negated { "^" } else { "" };
        TranslatedFragment::character(format!("[{not}{}]", members(class)))
    }

    /// A bracket expression, up to its bracket.
    fn bracket(&mut self, positive: bool) -> Result<String, RegexError> {
        self.lexer.advance()?;
        let mut items = String::new();
        while self.lexer.next != RegexToken::BracketEnd {
            self.item(&mut items)?;
        }
        if !positive && self.syntax.newline_stops {
            items.push_str("\\n");
        }
        Ok(match (items.is_empty(), positive) {
            (true, true) => NO_CHARACTER.to_owned(),
            (true, false) => ANY_CHARACTER.to_owned(),
            (false, true) => format!("[{items}]"),
            (false, false) => format!("[^{items}]"),
        })
    }

    /// One character, range or set of a bracket expression.
    fn item(&mut self, out: &mut String) -> Result<(), RegexError> {
        let first = match self.lexer.next {
            RegexToken::Plain(c) => {
                self.lexer.advance()?;
                c
            }
            RegexToken::Element => self.element()?,
            RegexToken::Equivalence => {
                let c = self.element()?;
                write_range(c, c, out);
                return Ok(());
            }
            RegexToken::ClassName => {
                let class = self.class()?;
                out.push_str(members(class));
                return Ok(());
            }
            RegexToken::Set(class) => {
                out.push_str(members(class));
                return self.lexer.advance();
            }
            RegexToken::NotSet(class) => {
                out.push_str("[^");
                out.push_str(members(class));
                out.push(']');
                return self.lexer.advance();
            }
            _ => return Err(BAD_RANGE),
        };
        let mut last = first;
        if self.eat(RegexToken::Range)? {
            last = match self.lexer.next {
                RegexToken::Plain(c) => {
                    self.lexer.advance()?;
                    c
                }
                RegexToken::Range => {
                    self.lexer.advance()?;
                    u32::from('-')
                }
                RegexToken::Element => self.element()?,
                _ => return Err(BAD_RANGE),
            };
        }
        if last < first {
            return Err(BAD_RANGE);
        }
        write_range(first, last, out);
        Ok(())
    }

    /// A character by its name.
    fn element(&mut self) -> Result<u32, RegexError> {
        let mut name = Vec::new();
        self.lexer.name(&mut name)?;
        if let [c] = name.as_slice() {
            return Ok(u32::from(*c));
        }
        let name: String = name.into_iter().collect();
        ELEMENTS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, c)| u32::from(*c))
            .ok_or(BAD_ELEMENT)
    }

    fn class(&mut self) -> Result<Class, RegexError> {
        let mut name = Vec::new();
        self.lexer.name(&mut name)?;
        let name: String = name.into_iter().collect();
        let class = match name.as_str() {
            "alnum" => Class::Alnum,
            "alpha" => Class::Alpha,
            "ascii" => Class::Ascii,
            "blank" => Class::Blank,
            "cntrl" => Class::Cntrl,
            "digit" => Class::Digit,
            "graph" => Class::Graph,
            "lower" => Class::Lower,
            "print" => Class::Print,
            "punct" => Class::Punct,
            "space" => Class::Space,
            "upper" => Class::Upper,
            "xdigit" => Class::Xdigit,
            "word" => Class::Word,
            _ => return Err(BAD_CLASS),
        };
        Ok(match class {
            Class::Lower | Class::Upper if self.syntax.ignore_case => Class::Alpha,
            class => class,
        })
    }
}

/// An atom with its quantifier, which the atom's own preference may be against.
///
/// A group that is repeated at least once is its repetitions but for the last, without numbers, and then the group:
/// PostgreSQL divides a match so, what comes first taking what it can, and what a group has is what the last repetition
/// is left with.
fn repeated(
    atom: TranslatedFragment,
    turned: Option<(TranslatedFragment, bool)>,
    capturing: bool,
    against: bool,
    (least, most, much): (u32, Option<u32>, bool),
) -> TranslatedFragment {
    let mut atom = atom;
    if let Some((content, numbered)) = turned {
        // The group as a whole decides: its own quantifiers prefer the other way.
        let open = if numbered { "(" } else { "(?:" };
        atom.text = format!("{open}(?U:{}))", content.text);
        atom.groupless = (numbered || content.groupless.is_some())
            .then(|| format!("(?:(?U:{}))", content.without_groups()));
    }
    let width = match (atom.width, most) {
        (Some(width), Some(most)) if most == least => width.checked_mul(least as usize),
        (Some(0), _) => Some(0),
        _ => None,
    };
    let has_groups = capturing || atom.groupless.is_some();
    if atom.width == Some(0) && !atom.references {
        return repeated_nothing(atom, has_groups, least, most, much);
    }
    let divides = has_groups
        && least > 0
        && most != Some(1)
        && !atom.references
        && atom.width.is_none_or(|width| width == 0)
        && atom.text.len() + atom.without_groups().len() < WRITTEN_BYTES_MAX;
    let mut text = String::new();
    if divides {
        // It takes much or little as its quantifier says, whatever those in it say.
        let open = if against { "(?U:" } else { "(?:" };
        text.push_str(&format!("{open}{})", atom.without_groups()));
        write_quantifier(least - 1, most.map(|most| most - 1), much, &mut text);
        text.push_str(&atom.text);
    } else {
        text.push_str(&atom.text);
        write_quantifier(least, most, much, &mut text);
    }
    let groupless = atom.groupless.map(|mut groupless| {
        write_quantifier(least, most, much, &mut groupless);
        groupless
    });
    TranslatedFragment {
        text,
        groupless,
        width,
        references: atom.references,
    }
}

/// What matches no character is the same once or more often. Libraries do not let all of it be quantified.
fn repeated_nothing(
    atom: TranslatedFragment,
    has_groups: bool,
    least: u32,
    most: Option<u32>,
    much: bool,
) -> TranslatedFragment {
    let repeat = |text: String| match (least, most, much) {
        (_, Some(0), _) if !has_groups => String::new(),
        (_, Some(0), _) => format!("(?:|{text}){{0}}"),
        (0, _, true) => format!("(?:{text}|)"),
        (0, _, false) => format!("(?:|{text})"),
        _ => text,
    };
    TranslatedFragment {
        groupless: atom.groupless.map(repeat),
        text: repeat(atom.text),
        width: Some(0),
        references: false,
    }
}

fn write_quantifier(least: u32, most: Option<u32>, much: bool, out: &mut String) {
    match (least, most) {
        (0, None) => out.push('*'),
        (1, None) => out.push('+'),
        (0, Some(1)) => out.push('?'),
        (least, None) => out.push_str(&format!("{{{least},}}")),
        (least, Some(most)) if least == most => {
            // The library would read a `?` as a preference, which one number does not have.
            out.push_str(&format!("{{{least}}}"));
            return;
        }
        (least, Some(most)) => out.push_str(&format!("{{{least},{most}}}")),
    }
    if !much {
        out.push('?');
    }
}

fn write_character(c: char, out: &mut String) {
    if c.is_ascii() && !c.is_ascii_alphanumeric() {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    } else {
        out.push(c);
    }
}

/// A range, as far as there are characters in it.
fn write_range(first: u32, last: u32, out: &mut String) {
    let from = (first..=last.min(first.saturating_add(0x800))).find_map(char::from_u32);
    let last = last.min(0x10_ffff);
    let to = (last.saturating_sub(0x800)..=last)
        .rev()
        .find_map(char::from_u32);
    let (Some(from), Some(to)) = (from, to) else {
        return;
    };
    if from > to {
        return;
    }
    write_character(from, out);
    if from < to {
        out.push('-');
        write_character(to, out);
    }
}

/// What stands in brackets for a class. Only ASCII digits are digits, but those of other scripts are letters, and
/// spaces that do not break are no spaces: as the C library has it, and so PostgreSQL.
fn members(class: Class) -> &'static str {
    match class {
        Class::Alnum => r"\p{Alphabetic}\p{Nd}",
        Class::Word => r"\p{Alphabetic}\p{Nd}_",
        Class::Alpha => r"\p{Alphabetic}[\p{Nd}--[0-9]]",
        Class::Ascii => r"\x{0}-\x{7f}",
        Class::Blank => r"\x{20}\x{9}",
        Class::Cntrl => r"\x{0}-\x{1f}\x{7f}-\x{9f}",
        Class::Digit => "0-9",
        Class::Xdigit => "0-9a-fA-F",
        Class::Lower => r"\p{Lowercase}\x{1c5}\x{1c8}\x{1cb}\x{1f2}",
        Class::Upper => r"\p{Uppercase}\p{Lt}",
        Class::Space => {
            r"\x{9}-\x{d}\x{20}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
        }
        Class::Graph => {
            r"[^\p{Cn}\p{Cc}\x{20}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}]"
        }
        Class::Print => r"[^\p{Cn}\p{Cc}\x{2028}\x{2029}]",
        Class::Punct => {
            r"[[^\p{Cn}\p{Cc}\x{20}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}]--[\p{Alphabetic}\p{Nd}]]"
        }
    }
}

/// POSIX's names of characters.
const ELEMENTS: &[(&str, char)] = &[
    ("NUL", '\0'),
    ("SOH", '\x01'),
    ("STX", '\x02'),
    ("ETX", '\x03'),
    ("EOT", '\x04'),
    ("ENQ", '\x05'),
    ("ACK", '\x06'),
    ("BEL", '\x07'),
    ("alert", '\x07'),
    ("BS", '\x08'),
    ("backspace", '\x08'),
    ("HT", '\t'),
    ("tab", '\t'),
    ("LF", '\n'),
    ("newline", '\n'),
    ("VT", '\x0b'),
    ("vertical-tab", '\x0b'),
    ("FF", '\x0c'),
    ("form-feed", '\x0c'),
    ("CR", '\r'),
    ("carriage-return", '\r'),
    ("SO", '\x0e'),
    ("SI", '\x0f'),
    ("DLE", '\x10'),
    ("DC1", '\x11'),
    ("DC2", '\x12'),
    ("DC3", '\x13'),
    ("DC4", '\x14'),
    ("NAK", '\x15'),
    ("SYN", '\x16'),
    ("ETB", '\x17'),
    ("CAN", '\x18'),
    ("EM", '\x19'),
    ("SUB", '\x1a'),
    ("ESC", '\x1b'),
    ("IS4", '\x1c'),
    ("FS", '\x1c'),
    ("IS3", '\x1d'),
    ("GS", '\x1d'),
    ("IS2", '\x1e'),
    ("RS", '\x1e'),
    ("IS1", '\x1f'),
    ("US", '\x1f'),
    ("space", ' '),
    ("exclamation-mark", '!'),
    ("quotation-mark", '"'),
    ("number-sign", '#'),
    ("dollar-sign", '$'),
    ("percent-sign", '%'),
    ("ampersand", '&'),
    ("apostrophe", '\''),
    ("left-parenthesis", '('),
    ("right-parenthesis", ')'),
    ("asterisk", '*'),
    ("plus-sign", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("hyphen-minus", '-'),
    ("period", '.'),
    ("full-stop", '.'),
    ("slash", '/'),
    ("solidus", '/'),
    ("zero", '0'),
    ("one", '1'),
    ("two", '2'),
    ("three", '3'),
    ("four", '4'),
    ("five", '5'),
    ("six", '6'),
    ("seven", '7'),
    ("eight", '8'),
    ("nine", '9'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less-than-sign", '<'),
    ("equals-sign", '='),
    ("greater-than-sign", '>'),
    ("question-mark", '?'),
    ("commercial-at", '@'),
    ("left-square-bracket", '['),
    ("backslash", '\\'),
    ("reverse-solidus", '\\'),
    ("right-square-bracket", ']'),
    ("circumflex", '^'),
    ("circumflex-accent", '^'),
    ("underscore", '_'),
    ("low-line", '_'),
    ("grave-accent", '`'),
    ("left-brace", '{'),
    ("left-curly-bracket", '{'),
    ("vertical-line", '|'),
    ("right-brace", '}'),
    ("right-curly-bracket", '}'),
    ("tilde", '~'),
    ("DEL", '\x7f'),
];
