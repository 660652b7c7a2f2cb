//! Reads an expression.

use super::functions::Function;
use super::lex::{Token, tokens};
use super::{Namespaces, XPathError};
use std::sync::Arc;

/// How deep an expression may be nested.
const DEPTH_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Plus,
    Minus,
    Multiply,
    Divide,
    Modulo,
}

/// Operators by how tightly they bind, the loosest first.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[("=", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterEqual),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[
        ("*", Operator::Multiply),
        ("div", Operator::Divide),
        ("mod", Operator::Modulo),
    ],
];

#[derive(Debug)]
pub(super) enum Expr {
    /// Operands of operators of one level, from the left.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    Negated(Box<Expr>),
    Union(Vec<Expr>),
    /// From the root, from a value, or from the context's node: steps.
    Path(Start, Vec<Step>),
    /// A value, of which predicates choose.
    Filter(Box<Expr>, Vec<Expr>),
    Literal(String),
    Number(f64),
    Call(Function, Vec<Expr>),
}

#[derive(Debug)]
pub(super) enum Start {
    Root,
    Context,
    Value(Box<Expr>),
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: NodeTest,
    pub(super) predicates: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Parent,
    Preceding,
    PrecedingSibling,
    Own,
}

const AXES: [(&str, Axis); 12] = [
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrSelf),
    ("attribute", Axis::Attribute),
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrSelf),
    ("following", Axis::Following),
    ("following-sibling", Axis::FollowingSibling),
    ("parent", Axis::Parent),
    ("preceding", Axis::Preceding),
    ("preceding-sibling", Axis::PrecedingSibling),
    ("self", Axis::Own),
];

#[derive(Debug)]
pub(super) enum NodeTest {
    /// `node()`
    Node,
    Text,
    Comment,
    /// `processing-instruction()`, maybe of a target.
    Instruction(Option<String>),
    /// `*`
    Any,
    /// `prefix:*`
    In(Arc<str>),
    /// A name, in a namespace or in none.
    Name(Option<Arc<str>>, String),
}

/// Reads a whole expression.
pub(super) fn parse(text: &str, namespaces: &Namespaces<'_>) -> Result<Expr, XPathError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        namespaces,
    };
    let expr = parser.binary(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(XPathError::Syntax),
    }
}

struct Parser<'n> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    namespaces: &'n Namespaces<'n>,
}

fn any_node() -> Step {
    Step {
        axis: Axis::DescendantOrSelf,
        test: NodeTest::Node,
        predicates: Vec::new(),
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, offset: usize, sign: &str) -> bool {
        matches!(self.tokens.get(self.at + offset), Some(Token::Sign(found)) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(0, sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), XPathError> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(XPathError::Syntax),
        }
    }

    fn operator(&mut self, level: usize) -> Option<Operator> {
        let (Token::Sign(found) | Token::Word(found)) = self.peek()? else {
            return None;
        };
        let known = LEVELS.get(level)?.iter().find(|(sign, _)| sign == found);
        let operator = known?.1;
        self.at += 1;
        Some(operator)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, XPathError> {
        if level == LEVELS.len() {
            return self.unary();
        }
        let first = self.binary(level + 1)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator(level) {
            rest.push((operator, self.binary(level + 1)?));
        }
        Ok(match rest.is_empty() {
            true => first,
            false => Expr::Chain(Box::new(first), rest),
        })
    }

    fn unary(&mut self) -> Result<Expr, XPathError> {
        let mut signs = 0_usize;
        while self.take("-") {
            signs += 1;
        }
        let operand = self.union()?;
        Ok(match signs {
            0 => operand,
            signs if signs % 2 == 1 => Expr::Negated(Box::new(operand)),
            // A number all the same.
            _ => Expr::Negated(Box::new(Expr::Negated(Box::new(operand)))),
        })
    }

    fn union(&mut self) -> Result<Expr, XPathError> {
        let mut all = vec![self.path()?];
        while self.take("|") {
            all.push(self.path()?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Expr::Union(all),
        })
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, XPathError>,
    ) -> Result<T, XPathError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(XPathError::Syntax);
        }
        let found = inner(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn path(&mut self) -> Result<Expr, XPathError> {
        if self.take("//") {
            let mut steps = vec![any_node(), self.step()?];
            self.more_steps(&mut steps)?;
            return Ok(Expr::Path(Start::Root, steps));
        }
        if self.take("/") {
            let mut steps = Vec::new();
            let goes_on = matches!(self.peek(), Some(Token::Name(_) | Token::Star))
                || [".", "..", "@"].iter().any(|sign| self.is(0, sign));
            if goes_on {
                steps.push(self.step()?);
                self.more_steps(&mut steps)?;
            }
            return Ok(Expr::Path(Start::Root, steps));
        }
        if !self.begins_value() {
            let mut steps = vec![self.step()?];
            self.more_steps(&mut steps)?;
            return Ok(Expr::Path(Start::Context, steps));
        }
        let value = self.primary()?;
        let predicates = self.predicates()?;
        let value = match predicates.is_empty() {
            true => value,
            false => Expr::Filter(Box::new(value), predicates),
        };
        if !self.is(0, "/") && !self.is(0, "//") {
            return Ok(value);
        }
        let mut steps = Vec::new();
        self.more_steps(&mut steps)?;
        Ok(Expr::Path(Start::Value(Box::new(value)), steps))
    }

    fn more_steps(&mut self, steps: &mut Vec<Step>) -> Result<(), XPathError> {
        loop {
            if self.take("//") {
                steps.push(any_node());
            } else if !self.take("/") {
                return Ok(());
            }
            steps.push(self.step()?);
        }
    }

    /// Does something begin here that is no step?
    fn begins_value(&self) -> bool {
        match self.peek() {
            Some(Token::Literal(_) | Token::Number(_) | Token::Variable) => true,
            Some(Token::Sign(sign)) => *sign == "(",
            Some(Token::Name(name)) => {
                let types = ["node", "text", "comment", "processing-instruction"];
                self.is(1, "(") && !types.contains(&name.as_str())
            }
            _ => false,
        }
    }

    fn primary(&mut self) -> Result<Expr, XPathError> {
        let token = self.peek().cloned().ok_or(XPathError::Syntax)?;
        self.at += 1;
        match token {
            Token::Literal(text) => Ok(Expr::Literal(text)),
            Token::Number(number) => Ok(Expr::Number(number)),
            Token::Variable => Err(XPathError::Unknown("Undefined variable")),
            Token::Sign("(") => {
                let inner = self.nested(|parser| parser.binary(0))?;
                self.expect(")")?;
                // So that predicates are of the whole.
                Ok(inner)
            }
            Token::Name(name) => {
                self.expect("(")?;
                let mut args = Vec::new();
                if !self.take(")") {
                    loop {
                        args.push(self.nested(|parser| parser.binary(0))?);
                        if self.take(")") {
                            break;
                        }
                        self.expect(",")?;
                    }
                }
                let function =
                    Function::named(&name).ok_or(XPathError::Unknown("Unregistered function"))?;
                match function.takes(args.len()) {
                    true => Ok(Expr::Call(function, args)),
                    false => Err(XPathError::Unknown("Invalid number of arguments")),
                }
            }
            _ => Err(XPathError::Syntax),
        }
    }

    fn predicates(&mut self) -> Result<Vec<Expr>, XPathError> {
        let mut found = Vec::new();
        while self.take("[") {
            found.push(self.nested(|parser| parser.binary(0))?);
            self.expect("]")?;
        }
        Ok(found)
    }

    fn step(&mut self) -> Result<Step, XPathError> {
        let short = |axis| Step {
            axis,
            test: NodeTest::Node,
            predicates: Vec::new(),
        };
        if self.take(".") {
            return Ok(short(Axis::Own));
        }
        if self.take("..") {
            return Ok(short(Axis::Parent));
        }
        let axis = if self.take("@") {
            Axis::Attribute
        } else if self.is(1, "::") {
            let Some(Token::Name(name)) = self.peek() else {
                return Err(XPathError::Syntax);
            };
            if name == "namespace" {
                return Err(XPathError::Unsupported("the axis \"namespace\" of XPath"));
            }
            let axis = AXES.iter().find(|(known, _)| known == name);
            let axis = axis.ok_or(XPathError::Syntax)?.1;
            self.at += 2;
            axis
        } else {
            Axis::Child
        };
        let test = self.test(axis)?;
        let predicates = self.predicates()?;
        Ok(Step {
            axis,
            test,
            predicates,
        })
    }

    fn test(&mut self, axis: Axis) -> Result<NodeTest, XPathError> {
        let token = self.peek().cloned().ok_or(XPathError::Syntax)?;
        self.at += 1;
        let name = match token {
            Token::Star => return Ok(NodeTest::Any),
            Token::Name(name) => name,
            _ => return Err(XPathError::Syntax),
        };
        if self.take("(") {
            let test = match name.as_str() {
                "node" => NodeTest::Node,
                "text" => NodeTest::Text,
                "comment" => NodeTest::Comment,
                "processing-instruction" => match self.peek().cloned() {
                    Some(Token::Literal(target)) => {
                        self.at += 1;
                        NodeTest::Instruction(Some(target))
                    }
                    _ => NodeTest::Instruction(None),
                },
                _ => return Err(XPathError::Syntax),
            };
            self.expect(")")?;
            return Ok(test);
        }
        let Some((prefix, local)) = name.split_once(':') else {
            let default = self.namespaces.uri("");
            let default = default.filter(|_| axis != Axis::Attribute);
            return Ok(NodeTest::Name(default, name));
        };
        let uri = match self.namespaces.uri(prefix) {
            Some(uri) => uri,
            None if prefix == "xml" => "http://www.w3.org/XML/1998/namespace".into(),
            None => return Err(XPathError::Unknown("Undefined namespace prefix")),
        };
        Ok(match local {
            "*" => NodeTest::In(uri),
            local => NodeTest::Name(Some(uri), local.to_owned()),
        })
    }
}
