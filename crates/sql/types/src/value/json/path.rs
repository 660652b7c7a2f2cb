//! The type `jsonpath`: its text read into a tree, and printed as PostgreSQL prints it.
//!
//! A value of the type is its printed text, which reads back as the same tree. What a path finds is the business of
//! `func::json::path`.

mod read;

pub use read::parse;

use super::text::write_string;
use crate::value::Numeric;

/// A whole path.
#[derive(Debug)]
pub struct Path {
    /// lax: structural errors are forgiven, arrays are unwrapped.
    pub lax: bool,
    /// What is evaluated.
    pub root: Expr,
}

/// An operator between two numbers or two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is its sign")]
pub enum Op {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

/// An expression of a path.
#[derive(Debug)]
pub enum Expr {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `$name`
    Variable(String),
    /// null
    Null,
    /// true, false
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A string.
    String(String),
    /// An expression and what is taken of its items.
    Chain(Box<Expr>, Vec<Step>),
    /// Two operands.
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `-` (true) or `+`.
    Sign(bool, Box<Expr>),
    /// `!(...)`
    Not(Box<Expr>),
    /// `(...) is unknown`
    IsUnknown(Box<Expr>),
    /// `exists (...)`
    Exists(Box<Expr>),
    /// `... starts with ...`
    StartsWith(Box<Expr>, Box<Expr>),
    /// `... like_regex "pattern" flag "flags"`
    LikeRegex(Box<Expr>, String, String),
}

/// What is taken of an item.
#[derive(Debug)]
pub enum Step {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyElement,
    /// `[1, 2 to last]`
    Elements(Vec<(Expr, Option<Expr>)>),
    /// `.**{first to last}`; `u32::MAX` is the last level.
    AnyLevel(u32, u32),
    /// `?(...)`
    Filter(Expr),
    /// `.type()` and its kin.
    Method(Method),
    /// `.datetime("template")`
    Datetime(Option<String>),
}

/// A method of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is its name")]
pub enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    KeyValue,
}

impl Method {
    const ALL: [(Method, &'static str); 7] = [
        (Method::Type, "type"),
        (Method::Size, "size"),
        (Method::Abs, "abs"),
        (Method::Floor, "floor"),
        (Method::Ceiling, "ceiling"),
        (Method::Double, "double"),
        (Method::KeyValue, "keyvalue"),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        let all = Self::ALL.iter();
        all.filter(|m| m.0 == self)
            .map(|m| m.1)
            .next()
            .unwrap_or("")
    }
}

impl Op {
    /// As it is printed.
    pub fn sign(self) -> &'static str {
        match self {
            Op::Or => "||",
            Op::And => "&&",
            Op::Eq => "==",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Gt => ">",
            Op::Le => "<=",
            Op::Ge => ">=",
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::Mod => "%",
        }
    }

    fn priority(self) -> u8 {
        match self {
            Op::Or => 0,
            Op::And => 1,
            Op::Eq | Op::Ne | Op::Lt | Op::Gt | Op::Le | Op::Ge => 2,
            Op::Add | Op::Sub => 3,
            Op::Mul | Op::Div | Op::Mod => 4,
        }
    }
}

impl Expr {
    /// True for what is true, false or unknown.
    pub fn is_condition(&self) -> bool {
        match self {
            Expr::Binary(op, ..) => op.priority() <= 2,
            Expr::Not(_)
            | Expr::IsUnknown(_)
            | Expr::Exists(_)
            | Expr::StartsWith(..)
            | Expr::LikeRegex(..) => true,
            _ => false,
        }
    }

    fn priority(&self) -> u8 {
        match self {
            Expr::Binary(op, ..) => op.priority(),
            Expr::StartsWith(..) => 2,
            Expr::Sign(..) => 5,
            _ => 6,
        }
    }
}

/// The text of a path, as `jsonpath_out` prints it.
pub fn print(path: &Path) -> String {
    let mut out = Vec::new();
    if !path.lax {
        out.extend_from_slice(b"strict ");
    }
    write(&path.root, true, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn put(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
}

fn write(expr: &Expr, brackets: bool, out: &mut Vec<u8>) {
    match expr {
        Expr::Root => put("$", out),
        Expr::Current => put("@", out),
        Expr::Last => put("last", out),
        Expr::Variable(name) => {
            put("$", out);
            write_string(name, out);
        }
        Expr::Null => put("null", out),
        Expr::Bool(v) => put(if *v { "true" } else { "false" }, out),
        Expr::Number(n) => n.write(out),
        Expr::String(s) => write_string(s, out),
        Expr::Chain(head, steps) => {
            let number = matches!(**head, Expr::Number(_));
            if number {
                put("(", out);
            }
            write(head, true, out);
            if number {
                put(")", out);
            }
            for step in steps {
                write_step(step, out);
            }
        }
        Expr::Binary(op, left, right) => {
            if brackets {
                put("(", out);
            }
            write(left, left.priority() <= op.priority(), out);
            put(" ", out);
            put(op.sign(), out);
            put(" ", out);
            write(right, right.priority() <= op.priority(), out);
            if brackets {
                put(")", out);
            }
        }
        Expr::Sign(minus, inner) => {
            if brackets {
                put("(", out);
            }
            put(if *minus { "-" } else { "+" }, out);
            write(inner, inner.priority() <= 5, out);
            if brackets {
                put(")", out);
            }
        }
        Expr::Not(inner) => {
            put("!(", out);
            write(inner, false, out);
            put(")", out);
        }
        Expr::IsUnknown(inner) => {
            put("(", out);
            write(inner, false, out);
            put(") is unknown", out);
        }
        Expr::Exists(inner) => {
            put("exists (", out);
            write(inner, false, out);
            put(")", out);
        }
        Expr::StartsWith(left, right) => {
            if brackets {
                put("(", out);
            }
            write(left, left.priority() <= 2, out);
            put(" starts with ", out);
            write(right, right.priority() <= 2, out);
            if brackets {
                put(")", out);
            }
        }
        Expr::LikeRegex(left, pattern, flags) => {
            if brackets {
                put("(", out);
            }
            write(left, left.priority() <= 6 && left.is_condition(), out);
            put(" like_regex ", out);
            write_string(pattern, out);
            if !flags.is_empty() {
                put(" flag ", out);
                write_string(flags, out);
            }
            if brackets {
                put(")", out);
            }
        }
    }
}

fn write_step(step: &Step, out: &mut Vec<u8>) {
    match step {
        Step::Key(key) => {
            put(".", out);
            write_string(key, out);
        }
        Step::AnyKey => put(".*", out),
        Step::AnyElement => put("[*]", out),
        Step::Elements(list) => {
            put("[", out);
            for (i, (from, to)) in list.iter().enumerate() {
                if i > 0 {
                    put(",", out);
                }
                write(from, false, out);
                if let Some(to) = to {
                    put(" to ", out);
                    write(to, false, out);
                }
            }
            put("]", out);
        }
        Step::AnyLevel(first, last) => {
            let level = |level: u32| match level {
                u32::MAX => "last".to_owned(),
                level => level.to_string(),
            };
            put(".**", out);
            match (*first, *last) {
                (0, u32::MAX) => {}
                (first, last) if first == last => put(&format!("{{{}}}", level(first)), out),
                (first, last) => put(&format!("{{{} to {}}}", level(first), level(last)), out),
            }
        }
        Step::Filter(condition) => {
            put("?(", out);
            write(condition, false, out);
            put(")", out);
        }
        Step::Method(method) => {
            put(".", out);
            put(method.name(), out);
            put("()", out);
        }
        Step::Datetime(template) => {
            put(".datetime(", out);
            if let Some(template) = template {
                write_string(template, out);
            }
            put(")", out);
        }
    }
}
