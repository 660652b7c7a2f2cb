//! The text of a jsonpath read into its tree.

use super::{Expr, Method, Op, Path, Step};
use crate::error::{Result, SqlError};
use crate::value::Numeric;
use logstead_types::SqlState;

/// Parentheses, filters and operators inside each other, at most.
const NESTING_MAX: usize = 200;

/// The flags of `like_regex`, in the order in which they are printed.
const REGEX_FLAGS: &str = "ismxq";

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    String(String),
    Variable(String),
    Number(String),
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 30] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "!", "<", ">", "=", "(", ")", "[", "]", "{",
    "}", ".", ",", "*", "/", "%", "+", "-", "?", "@", "$", "&", "|",
];

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

fn near(what: &str, token: &str) -> SqlError {
    if token.is_empty() {
        return syntax(&format!("{what} at end of jsonpath input"));
    }
    syntax(&format!("{what} at or near \"{token}\" of jsonpath input"))
}

/// Tokens and the text of each, for messages.
fn tokens(text: &str) -> Result<Vec<(Token, String)>> {
    let b = text.as_bytes();
    let mut out = Vec::new();
    let mut i = 0;
    while i < b.len() {
        let start = i;
        let c = b[i];
        if c.is_ascii_whitespace() || c == 0x0b {
            i += 1;
            continue;
        }
        if b[i..].starts_with(b"/*") {
            match text[i + 2..].find("*/") {
                Some(end) => i += end + 4,
                None => return Err(near("unexpected end of comment", "")),
            }
            continue;
        }
        let token = if c == b'"' {
            Token::String(quoted(text, &mut i)?)
        } else if c == b'$' && b.get(i + 1) == Some(&b'"') {
            i += 1;
            Token::Variable(quoted(text, &mut i)?)
        } else if c.is_ascii_digit() || (c == b'.' && b.get(i + 1).is_some_and(u8::is_ascii_digit))
        {
            number(b, &mut i);
            if matches!(b.get(i), Some(b'e' | b'E')) && matches!(b.get(i + 1), Some(b'+' | b'-')) {
                return Err(near("invalid numeric literal", &text[start..i + 2]));
            }
            if b.get(i).is_some_and(|c| is_word(*c)) {
                i += text[i..].chars().next().map_or(0, char::len_utf8);
                return Err(near("trailing junk after numeric literal", &text[start..i]));
            }
            Token::Number(text[start..i].to_owned())
        } else if c == b'$' && b.get(i + 1).is_some_and(|c| is_word(*c)) {
            i += 1;
            Token::Variable(word(text, &mut i)?)
        } else if is_word(c) || c == b'\\' {
            Token::Word(word(text, &mut i)?)
        } else {
            let sign = SIGNS.iter().find(|s| b[i..].starts_with(s.as_bytes()));
            let Some(sign) = sign else {
                let c = text[i..].chars().next().unwrap_or(' ');
                return Err(near("syntax error", &c.to_string()));
            };
            i += sign.len();
            Token::Sign(match *sign {
                "<>" => "!=",
                sign => sign,
            })
        };
        out.push((token, text[start..i].to_owned()));
    }
    out.push((Token::End, String::new()));
    Ok(out)
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

fn number(b: &[u8], i: &mut usize) {
    let digits = |i: &mut usize| {
        while b.get(*i).is_some_and(u8::is_ascii_digit) {
            *i += 1;
        }
    };
    // No digit follows a zero that comes first.
    if b.get(*i) == Some(&b'0') {
        *i += 1;
    } else {
        digits(i);
    }
    if b.get(*i) == Some(&b'.') {
        *i += 1;
        digits(i);
    }
    if matches!(b.get(*i), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(*i + 1), Some(b'+' | b'-')));
        if b.get(*i + 1 + sign).is_some_and(u8::is_ascii_digit) {
            *i += 1 + sign;
            digits(i);
        }
    }
}

fn word(text: &str, i: &mut usize) -> Result<String> {
    let mut out = String::new();
    while let Some(c) = text[*i..].chars().next() {
        if c == '\\' {
            escape(text, i, &mut out)?;
        } else if c.is_ascii() && !is_word(c as u8) {
            break;
        } else {
            out.push(c);
            *i += c.len_utf8();
        }
    }
    Ok(out)
}

fn quoted(text: &str, i: &mut usize) -> Result<String> {
    let start = *i;
    *i += 1;
    let mut out = String::new();
    loop {
        match text[*i..].chars().next() {
            None => return Err(near("unterminated quoted string", &text[start..])),
            Some('"') => {
                *i += 1;
                return Ok(out);
            }
            Some('\\') => escape(text, i, &mut out)?,
            Some(c) => {
                out.push(c);
                *i += c.len_utf8();
            }
        }
    }
}

/// An escape sequence, as JavaScript has them.
fn escape(text: &str, i: &mut usize, out: &mut String) -> Result<()> {
    *i += 1;
    let Some(c) = text[*i..].chars().next() else {
        return Err(near("unexpected end after backslash", ""));
    };
    *i += c.len_utf8();
    let start = *i - 1 - c.len_utf8();
    // Digits at a place, at most so many.
    let digits = |at: usize, most: usize| {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        { rest.iter().take(most) }
            .take_while(|b| b.is_ascii_hexdigit())
            .count()
    };
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to).unwrap_or_default();
        u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
    };
    // The scanner tells of what it took before something was wrong.
    let unicode = |i: &mut usize, start: usize| -> Result<u32> {
        let braced = text[*i..].starts_with('{');
        let from = *i + usize::from(braced);
        let end = from + digits(from, if braced { 6 } else { 4 });
        let closed = text.as_bytes().get(end) == Some(&b'}');
        let whole = match braced {
            true => end > from && closed,
            false => end == from + 4,
        };
        if !whole {
            let near_text = text.get(start..end).unwrap_or_default();
            return Err(near("invalid unicode sequence", near_text));
        }
        *i = end + usize::from(braced);
        Ok(number(from, end))
    };
    let code = match c {
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        'x' => {
            let end = *i + digits(*i, 2);
            if end < *i + 2 {
                let near_text = text.get(start..end).unwrap_or_default();
                return Err(near("invalid hex character sequence", near_text));
            }
            let code = number(*i, end);
            *i = end;
            code
        }
        'u' => {
            let first = unicode(i, start)?;
            if (0xd800..0xdc00).contains(&first) && text[*i..].starts_with("\\u") {
                let start = *i;
                *i += 2;
                let second = unicode(i, start)?;
                if (0xd800..0xdc00).contains(&second) {
                    return Err(SqlError::new(
                        SqlState::INVALID_TEXT_REPRESENTATION,
                        "invalid input syntax for type jsonpath",
                    )
                    .detail("Unicode high surrogate must not follow a high surrogate."));
                }
                match (0xdc00..0xe000).contains(&second) {
                    true => 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff),
                    false => first,
                }
            } else {
                first
            }
        }
        other => u32::from(other),
    };
    match char::from_u32(code) {
        Some('\0') => Err(SqlError::new(
            SqlState::UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
        )
        .detail("\\u0000 cannot be converted to text.")),
        Some(c) => {
            out.push(c);
            Ok(())
        }
        None => Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type jsonpath",
        )
        .detail("Unicode low surrogate must follow a high surrogate.")),
    }
}

struct Parser {
    tokens: Vec<(Token, String)>,
    at: usize,
    depth: usize,
    /// Inside a filter: `@` has a meaning.
    filters: usize,
    /// Inside a subscript: `last` has a meaning.
    subscripts: usize,
}

/// Reads a path.
pub fn parse(text: &str) -> Result<Path> {
    let mut p = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        filters: 0,
        subscripts: 0,
    };
    if p.tokens.len() == 1 {
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type jsonpath: \"{text}\""),
        ));
    }
    let strict = p.word("strict");
    if !strict {
        p.word("lax");
    }
    let root = p.condition(0)?;
    if *p.peek() != Token::End {
        return Err(p.unexpected());
    }
    Ok(Path { lax: !strict, root })
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.0)
    }

    fn unexpected(&self) -> SqlError {
        near(
            "syntax error",
            self.tokens.get(self.at).map_or("", |t| &t.1),
        )
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, sign: &str) -> Result<()> {
        if self.sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// Keywords are of any case, except those of JSON.
    fn word(&mut self, word: &str) -> bool {
        let exact = matches!(word, "true" | "false" | "null");
        let found = matches!(self.peek(), Token::Word(w) if
            if exact { w == word } else { w.eq_ignore_ascii_case(word) });
        self.at += usize::from(found);
        found
    }

    fn want_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= NESTING_MAX {
            return Err(super::super::too_deep());
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Operators of `priority` and above, from the left.
    fn condition(&mut self, priority: u8) -> Result<Expr> {
        self.deeper(|p| p.operators(priority))
    }

    fn operators(&mut self, priority: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        let mut chained = 0;
        loop {
            if priority <= 2 && !left.is_condition() {
                if self.word("starts") {
                    self.want_word("with")?;
                    let prefix = match self.peek().clone() {
                        Token::String(s) => Expr::String(s),
                        Token::Variable(name) => Expr::Variable(name),
                        _ => return Err(self.unexpected()),
                    };
                    self.at += 1;
                    left = Expr::StartsWith(Box::new(left), Box::new(prefix));
                    continue;
                }
                if self.word("like_regex") {
                    left = self.like_regex(left)?;
                    continue;
                }
            }
            let op = match self.peek() {
                Token::Sign("||") => Op::Or,
                Token::Sign("&&") => Op::And,
                Token::Sign("==") => Op::Eq,
                Token::Sign("!=") => Op::Ne,
                Token::Sign("<") => Op::Lt,
                Token::Sign(">") => Op::Gt,
                Token::Sign("<=") => Op::Le,
                Token::Sign(">=") => Op::Ge,
                Token::Sign("+") => Op::Add,
                Token::Sign("-") => Op::Sub,
                Token::Sign("*") => Op::Mul,
                Token::Sign("/") => Op::Div,
                Token::Sign("%") => Op::Mod,
                _ => return Ok(left),
            };
            // Conditions are joined, values are compared and reckoned with; comparisons do not chain.
            if op.priority() < priority {
                return Ok(left);
            }
            if left.is_condition() != (op.priority() < 2) {
                return Err(self.unexpected());
            }
            chained += 1;
            if chained > NESTING_MAX {
                return Err(super::super::too_deep());
            }
            self.at += 1;
            let at = self.at;
            let right = self.condition(op.priority() + 1)?;
            if right.is_condition() != (op.priority() < 2) {
                self.at = at;
                return Err(self.unexpected());
            }
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
    }

    fn like_regex(&mut self, left: Expr) -> Result<Expr> {
        let Token::String(pattern) = self.peek().clone() else {
            return Err(self.unexpected());
        };
        self.at += 1;
        let mut flags = String::new();
        if self.word("flag") {
            let Token::String(given) = self.peek().clone() else {
                return Err(self.unexpected());
            };
            self.at += 1;
            if let Some(unknown) = given.chars().find(|flag| !REGEX_FLAGS.contains(*flag)) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "invalid input syntax for type jsonpath",
                )
                .detail(format!(
                    "Unrecognized flag character \"{unknown}\" in LIKE_REGEX predicate."
                )));
            }
            flags.extend(REGEX_FLAGS.chars().filter(|flag| given.contains(*flag)));
        }
        if flags.contains('x') && !flags.contains('q') {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "XQuery \"x\" flag (expanded regular expressions) is not implemented",
            ));
        }
        // What is wrong with it is told now.
        crate::regex::check_like_regex(&pattern, &flags)?;
        Ok(Expr::LikeRegex(Box::new(left), pattern, flags))
    }

    fn unary(&mut self) -> Result<Expr> {
        if self.sign("!") {
            let at = self.at;
            let inner = self.deeper(Self::unary)?;
            if !inner.is_condition() {
                self.at = at;
                return Err(self.unexpected());
            }
            return Ok(Expr::Not(Box::new(inner)));
        }
        for (sign, minus) in [("-", true), ("+", false)] {
            if self.sign(sign) {
                let inner = self.deeper(Self::unary)?;
                // A number's sign belongs to it.
                return Ok(match inner {
                    Expr::Number(n) => Expr::Number(if minus { n.neg() } else { n }),
                    inner => Expr::Sign(minus, Box::new(inner)),
                });
            }
        }
        if self.word("exists") {
            self.want("(")?;
            let inner = self.condition(0)?;
            self.want(")")?;
            return Ok(Expr::Exists(Box::new(inner)));
        }
        let primary = self.primary()?;
        self.steps(primary)
    }

    fn primary(&mut self) -> Result<Expr> {
        if self.sign("(") {
            let inner = self.condition(0)?;
            self.want(")")?;
            if inner.is_condition() && self.word("is") {
                self.want_word("unknown")?;
                return Ok(Expr::IsUnknown(Box::new(inner)));
            }
            return Ok(inner);
        }
        let token = self.peek().clone();
        let primary = match token {
            Token::Sign("$") => Expr::Root,
            Token::Sign("@") if self.filters > 0 => Expr::Current,
            Token::Sign("@") => return Err(syntax("@ is not allowed in root expressions")),
            Token::Variable(name) => Expr::Variable(name),
            Token::String(s) => Expr::String(s),
            Token::Number(n) => Expr::Number(Numeric::parse(&n)?),
            Token::Word(w) => match w.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "null" => Expr::Null,
                w if w.eq_ignore_ascii_case("last") => {
                    if self.subscripts == 0 {
                        return Err(syntax("LAST is allowed only in array subscripts"));
                    }
                    Expr::Last
                }
                _ => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(primary)
    }

    fn steps(&mut self, primary: Expr) -> Result<Expr> {
        let mut steps = Vec::new();
        loop {
            if self.sign("[") {
                steps.push(self.subscripts()?);
            } else if self.sign("?") {
                self.want("(")?;
                self.filters += 1;
                let condition = self.condition(0);
                self.filters -= 1;
                let condition = condition?;
                if !condition.is_condition() {
                    return Err(self.unexpected());
                }
                self.want(")")?;
                steps.push(Step::Filter(condition));
            } else if self.sign(".") {
                steps.push(self.member()?);
            } else {
                break;
            }
        }
        if steps.is_empty() {
            return Ok(primary);
        }
        Ok(Expr::Chain(Box::new(primary), steps))
    }

    fn subscripts(&mut self) -> Result<Step> {
        if self.sign("*") {
            self.want("]")?;
            return Ok(Step::AnyElement);
        }
        let mut list = Vec::new();
        self.subscripts += 1;
        loop {
            let from = self.condition(3)?;
            let to = match self.word("to") {
                true => Some(self.condition(3)?),
                false => None,
            };
            list.push((from, to));
            if !self.sign(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.want("]")?;
        Ok(Step::Elements(list))
    }

    fn level(&mut self) -> Result<u32> {
        if self.word("last") {
            return Ok(u32::MAX);
        }
        match self.peek().clone() {
            Token::Number(n) => match n.parse() {
                Ok(level) => {
                    self.at += 1;
                    Ok(level)
                }
                Err(_) => Err(self.unexpected()),
            },
            _ => Err(self.unexpected()),
        }
    }

    fn member(&mut self) -> Result<Step> {
        if self.sign("**") {
            if !self.sign("{") {
                return Ok(Step::AnyLevel(0, u32::MAX));
            }
            let first = self.level()?;
            let last = match self.word("to") {
                true => self.level()?,
                false => first,
            };
            self.want("}")?;
            return Ok(Step::AnyLevel(first, last));
        }
        if self.sign("*") {
            return Ok(Step::AnyKey);
        }
        let token = self.peek().clone();
        match token {
            Token::String(key) => {
                self.at += 1;
                Ok(Step::Key(key))
            }
            Token::Word(name) => {
                self.at += 1;
                if !self.is_sign("(") {
                    return Ok(Step::Key(name));
                }
                let lower = name.to_ascii_lowercase();
                if lower == "datetime" {
                    self.want("(")?;
                    let template = match self.peek().clone() {
                        Token::String(template) => {
                            self.at += 1;
                            Some(template)
                        }
                        _ => None,
                    };
                    self.want(")")?;
                    return Ok(Step::Datetime(template));
                }
                let method = Method::ALL.iter().find(|m| m.1 == lower);
                let Some((method, _)) = method else {
                    return Err(self.unexpected());
                };
                self.want("(")?;
                self.want(")")?;
                Ok(Step::Method(*method))
            }
            _ => Err(self.unexpected()),
        }
    }
}
