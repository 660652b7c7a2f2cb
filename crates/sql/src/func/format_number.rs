//! Pictures for numbers: `to_char(number, picture)` and `to_number`.

use crate::error::{Result, SqlError};
use crate::func::numbers::bad_args;
use crate::value::{Datum, Numeric};
use logstead_types::SqlState;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    /// 9 or 0 (true)
    Digit(bool),
    Point,
    Group,
    Sign(Anchor),
    Currency,
    Ordinal(bool),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// S
    Floating,
    /// MI
    Minus,
    /// PL
    Plus,
    /// SG
    Both,
}

#[derive(Default, Debug)]
struct Picture {
    items: Vec<Item>,
    /// FM
    fill: bool,
    /// PR
    brackets: bool,
    exponent: bool,
    roman: Option<bool>,
    /// V: digits to shift by
    shift: Option<u32>,
    before: usize,
    after: usize,
}

fn syntax(text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, text)
}

fn parse(picture: &str) -> Result<Picture> {
    let mut p = Picture::default();
    let mut rest = picture;
    let mut point = false;
    while let Some(c) = rest.chars().next() {
        let two = rest
            .get(..2)
            .map(str::to_ascii_uppercase)
            .unwrap_or_default();
        let lower = c.is_ascii_lowercase();
        let mut used = 2;
        match two.as_str() {
            "FM" => p.fill = true,
            "PR" => p.brackets = true,
            "MI" => p.items.push(Item::Sign(Anchor::Minus)),
            "PL" => p.items.push(Item::Sign(Anchor::Plus)),
            "SG" => p.items.push(Item::Sign(Anchor::Both)),
            "TH" => p.items.push(Item::Ordinal(lower)),
            "RN" => p.roman = Some(lower),
            _ => {
                used = c.len_utf8();
                match c {
                    '9' | '0' => {
                        if let Some(s) = &mut p.shift {
                            *s += 1;
                        } else if point {
                            p.after += 1;
                        } else {
                            p.before += 1;
                        }
                        p.items.push(Item::Digit(c == '0'));
                    }
                    '.' | 'D' | 'd' => {
                        if point {
                            return Err(syntax("multiple decimal points"));
                        }
                        if p.shift.is_some() {
                            return Err(syntax("cannot use \"V\" and decimal point together"));
                        }
                        point = true;
                        p.items.push(Item::Point);
                    }
                    ',' | 'G' | 'g' => p.items.push(Item::Group),
                    'S' | 's' => {
                        if p.items.contains(&Item::Sign(Anchor::Floating)) {
                            return Err(syntax("cannot use \"S\" twice"));
                        }
                        p.items.push(Item::Sign(Anchor::Floating));
                    }
                    'L' | 'l' => p.items.push(Item::Currency),
                    // Blanking zeros has no effect in PostgreSQL either.
                    'B' | 'b' => {}
                    'V' | 'v' => {
                        if point {
                            return Err(syntax("cannot use \"V\" and decimal point together"));
                        }
                        p.shift = Some(0);
                    }
                    'E' | 'e'
                        if rest
                            .get(..4)
                            .is_some_and(|r| r.eq_ignore_ascii_case("EEEE")) =>
                    {
                        p.exponent = true;
                        used = 4;
                    }
                    '"' => {
                        let end = rest[1..].find('"').map_or(rest.len(), |i| i + 2);
                        let body = rest[1..end].trim_end_matches('"');
                        p.items.push(Item::Text(body.to_owned()));
                        used = end;
                    }
                    other => p.items.push(Item::Text(other.to_string())),
                }
            }
        }
        rest = &rest[used..];
    }
    Ok(p)
}

fn roman(mut n: i64) -> String {
    const STEPS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..4000).contains(&n) {
        return "#".repeat(15);
    }
    let mut s = String::new();
    for (v, letters) in STEPS {
        while n >= v {
            s.push_str(letters);
            n -= v;
        }
    }
    s
}

/// `to_char` of a number.
pub(super) fn number_to_char(d: &Datum, picture: &str) -> Result<String> {
    let p = parse(picture)?;
    let n = match d {
        Datum::Int2(v) => Numeric::from(i32::from(*v)),
        Datum::Int4(v) => Numeric::from(*v),
        Datum::Int8(v) => Numeric::from(*v),
        Datum::Numeric(v) => (**v).clone(),
        Datum::Float8(v) => Numeric::from_f64(*v),
        Datum::Float4(v) => Numeric::from_f32(*v),
        _ => return Err(bad_args(std::slice::from_ref(d))),
    };
    if let Some(lower) = p.roman {
        let s = roman(n.to_i64("bigint").unwrap_or(0));
        let s = if lower { s.to_ascii_lowercase() } else { s };
        return Ok(if p.fill { s } else { format!("{s:>15}") });
    }
    if p.exponent {
        return Ok(scientific(d, &n, &p));
    }
    let n = match p.shift {
        Some(s) => n.mul(&Numeric::from(10i128.pow(s.min(30))))?.round(0),
        None => n.round(p.after as i32),
    };
    let negative = n.signum() < 0;
    let before = p.before + p.shift.unwrap_or(0) as usize;
    let (whole, fraction) = if n.is_finite() {
        let text = n.abs().to_string();
        let (w, f) = text.split_once('.').unwrap_or((&text, ""));
        (w.trim_start_matches('0').to_owned(), f.to_owned())
    } else {
        (String::new(), String::new())
    };
    let overflow = whole.len().max(1) > before || !n.is_finite();
    Ok(layout(&p, before, &whole, &fraction, negative, overflow))
}

fn scientific(d: &Datum, n: &Numeric, p: &Picture) -> String {
    let blank = if n.signum() < 0 || p.fill { "" } else { " " };
    if !n.is_finite() {
        let width = p.before + p.after + 6;
        return format!("{blank}#{}", "#".repeat(width.saturating_sub(2)));
    }
    let value = match d {
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        _ => n.to_f64(),
    };
    let s = format!("{:.*e}", p.after, value);
    let (m, e) = s.split_once('e').unwrap_or((&s, "0"));
    let e: i32 = e.parse().unwrap_or(0);
    format!("{blank}{m}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
}

/// Puts digits into the picture.
fn layout(
    p: &Picture,
    before: usize,
    whole: &str,
    fraction: &str,
    negative: bool,
    overflow: bool,
) -> String {
    let explicit = p.brackets
        || p.items
            .iter()
            .any(|i| matches!(i, Item::Sign(a) if *a != Anchor::Plus));
    let digits: Vec<u8> = {
        let mut v = vec![b' '; before.saturating_sub(whole.len())];
        v.extend_from_slice(whole.as_bytes());
        v
    };
    // From which place on zeros are shown although no significant digit came yet.
    let first_zero = p
        .items
        .iter()
        .filter(|i| matches!(i, Item::Digit(_)))
        .take(before)
        .position(|i| *i == Item::Digit(true));
    let has_point = p.items.contains(&Item::Point);
    let significant = before.saturating_sub(whole.len());
    // Without a fraction, or when nothing else would be shown, the last place shows its 0.
    let mut start = significant.min(first_zero.unwrap_or(before));
    // With FM trailing zeros of 9 places go.
    let mut shown_fraction = p.after;
    if p.fill && has_point {
        let places: Vec<bool> = p
            .items
            .iter()
            .skip_while(|i| **i != Item::Point)
            .filter_map(|i| {
                if let Item::Digit(z) = i {
                    Some(*z)
                } else {
                    None
                }
            })
            .collect();
        let last_zero = places.iter().rposition(|z| *z).map_or(0, |i| i + 1);
        let last_digit = fraction
            .bytes()
            .rposition(|b| b != b'0')
            .map_or(0, |i| i + 1);
        shown_fraction = if overflow {
            p.after
        } else {
            last_zero.max(last_digit).min(p.after)
        };
    }
    if start >= before && before > 0 && shown_fraction == 0 {
        start = before - 1;
    }
    let mut out = String::new();
    let mut place = 0usize;
    let mut after_point = false;
    let mut sign_done = explicit && !p.brackets;
    let sign_text = |neg: bool| {
        if p.brackets {
            if neg { "<" } else { " " }
        } else if neg {
            "-"
        } else {
            " "
        }
    };
    let number_started = |place: usize, after_point: bool| after_point || place > start;
    let mut fraction_place = 0usize;
    let first_sign = p
        .items
        .iter()
        .position(|i| matches!(i, Item::Sign(Anchor::Floating)));
    let first_digit = p.items.iter().position(|i| matches!(i, Item::Digit(_)));
    // S before the digits floats to the number; behind them it stays at the end.
    let floating_front = matches!((first_sign, first_digit), (Some(s), Some(d)) if s < d);
    let mut floating_done = !floating_front;
    let put_sign = |out: &mut String, done: &mut bool| {
        if !*done {
            let s = sign_text(negative);
            if !(p.fill && s == " ") {
                out.push_str(s);
            }
            *done = true;
        }
    };
    for item in &p.items {
        match item {
            Item::Digit(_) if !after_point => {
                if place >= start {
                    if !floating_done {
                        out.push(if negative { '-' } else { '+' });
                        floating_done = true;
                    }
                    put_sign(&mut out, &mut sign_done);
                    let c = digits.get(place).copied().unwrap_or(b'0');
                    out.push(if overflow {
                        '#'
                    } else if c == b' ' {
                        '0'
                    } else {
                        c as char
                    });
                } else if overflow {
                    out.push('#');
                } else if !p.fill {
                    out.push(' ');
                }
                place += 1;
            }
            Item::Digit(_) => {
                if fraction_place < shown_fraction {
                    let c = fraction
                        .as_bytes()
                        .get(fraction_place)
                        .copied()
                        .unwrap_or(b'0');
                    out.push(if overflow { '#' } else { c as char });
                }
                fraction_place += 1;
            }
            Item::Point => {
                if !floating_done {
                    out.push(if negative { '-' } else { '+' });
                    floating_done = true;
                }
                put_sign(&mut out, &mut sign_done);
                after_point = true;
                if p.after > 0 || overflow {
                    out.push('.');
                }
            }
            Item::Group => {
                if number_started(place, after_point) {
                    out.push(',');
                } else if !p.fill {
                    out.push(' ');
                }
            }
            Item::Sign(Anchor::Floating) => {
                if !floating_front {
                    out.push(if negative { '-' } else { '+' });
                }
            }
            Item::Sign(Anchor::Minus) => {
                if negative {
                    out.push('-');
                } else if !p.fill {
                    out.push(' ');
                }
            }
            Item::Sign(Anchor::Plus) => {
                if !negative {
                    out.push('+');
                } else if !p.fill {
                    out.push(' ');
                }
            }
            Item::Sign(Anchor::Both) => out.push(if negative { '-' } else { '+' }),
            Item::Currency => out.push(' '),
            Item::Ordinal(lower) => {
                if !negative && p.after == 0 && !overflow {
                    out.push_str(super::ordinal_suffix(
                        if whole.is_empty() { "0" } else { whole },
                        *lower,
                    ));
                }
            }
            Item::Text(t) => out.push_str(t),
        }
    }
    if p.brackets {
        if negative {
            out.push('>');
        } else if !p.fill {
            out.push(' ');
        }
    }
    out
}

/// `to_number`
pub(in crate::func) fn to_number(a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(picture)] = a else {
        return Err(bad_args(a));
    };
    let p = parse(picture)?;
    if p.roman.is_some() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "\"RN\" not supported for input",
        ));
    }
    let mut digits = String::new();
    let mut negative = text.contains('-') || (p.brackets && text.contains('<'));
    let mut chars = text.trim_start().chars().peekable();
    let mut point = false;
    for item in &p.items {
        while matches!(chars.peek(), Some('-' | '+' | '<' | ' ')) {
            negative |= chars.next() == Some('-');
        }
        match item {
            Item::Digit(_) => {
                if let Some('.') = chars.peek()
                    && !point
                    && p.items.contains(&Item::Point)
                {
                    continue;
                }
                if let Some(c) = chars.peek().copied().filter(char::is_ascii_digit) {
                    digits.push(c);
                    chars.next();
                }
            }
            Item::Point => {
                if chars.peek() == Some(&'.') {
                    chars.next();
                    digits.push('.');
                    point = true;
                }
            }
            Item::Group => {
                if chars.peek() == Some(&',') {
                    chars.next();
                }
            }
            Item::Currency => {
                if chars.peek().is_some_and(|c| !c.is_ascii_digit()) {
                    chars.next();
                }
            }
            Item::Text(t) => {
                for _ in t.chars() {
                    if chars.peek().is_some_and(|c| !c.is_ascii_digit()) {
                        chars.next();
                    }
                }
            }
            Item::Sign(_) | Item::Ordinal(_) => {}
        }
    }
    if digits.is_empty() || digits == "." {
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type numeric: \" \"",
        ));
    }
    let mut n = Numeric::parse(digits.trim_end_matches('.'))?;
    if let Some(s) = p.shift {
        n = n.div(&Numeric::from(10i128.pow(s.min(30))))?;
    } else {
        n = n.round(p.after as i32);
    }
    Ok(Datum::numeric(if negative { n.neg() } else { n }))
}
