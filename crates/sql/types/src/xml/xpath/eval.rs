//! The value of an expression for a node.

use super::super::tree::{NONE, NodeId, NodeKind, Tree};
use super::parse::{Axis, Expr, NodeTest, Operator, Start, Step};
use super::text::ChargedText;
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::{Builder, MemoryReservation};
use logstead_types::SqlState;
use std::ops::Deref;

/// What an expression comes to.
#[derive(Debug)]
pub enum Value {
    /// In the document's order.
    Nodes(Nodes),
    /// true() and false().
    Bool(bool),
    /// An IEEE number.
    Number(f64),
    /// A string.
    Text(ChargedText),
}

/// Where an expression is evaluated: the node, its place among those it was chosen from, and their number.
#[derive(Clone, Copy)]
pub(super) struct XPathContext<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    pub(super) node: NodeId,
    pub(super) position: usize,
    pub(super) size: usize,
}

/// The value for a node by itself.
pub(super) fn evaluate(expr: &Expr, tree: &Tree<'_>, node: NodeId) -> Result<Value> {
    let place = XPathContext {
        tree,
        node,
        position: 1,
        size: 1,
    };
    place.value(expr)
}

/// A number as XPath writes it.
pub fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return match number > 0.0 {
            true => "Infinity".to_owned(),
            false => "-Infinity".to_owned(),
        };
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    format!("{number}")
}

/// The number that a text is.
pub(super) fn text_number(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match plain && digits.bytes().any(|b| b.is_ascii_digit()) {
        true => text.parse().unwrap_or(f64::NAN),
        false => f64::NAN,
    }
}

/// The text of a node: of elements that of all texts within.
pub(crate) fn node_string(tree: &Tree<'_>, id: NodeId) -> Result<ChargedText> {
    let node = tree.node(id);
    match node.kind {
        NodeKind::Root | NodeKind::Element => {
            let mut out = Builder::default();
            for within in id + 1..node.end {
                if within % 64 == 0 {
                    check_for_interrupts()?;
                }
                let node = tree.node(within);
                if matches!(node.kind, NodeKind::Text | NodeKind::CData) {
                    out.push_str(&node.value)?;
                }
            }
            ChargedText::built(out)
        }
        _ => ChargedText::copied(&node.value),
    }
}

fn no_nodes() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "could not create XPath object").detail("Invalid type")
}

impl Value {
    pub(super) fn truth(&self) -> bool {
        match self {
            Value::Nodes(nodes) => !nodes.is_empty(),
            Value::Bool(value) => *value,
            Value::Number(number) => *number != 0.0 && !number.is_nan(),
            Value::Text(text) => !text.is_empty(),
        }
    }

    /// As `string()` has it: of nodes that of the first.
    pub fn text(&self, tree: &Tree<'_>) -> Result<ChargedText> {
        match self {
            Value::Nodes(nodes) => match nodes.first() {
                Some(first) => node_string(tree, *first),
                None => Ok(ChargedText::default()),
            },
            Value::Bool(value) => ChargedText::copied(if *value { "true" } else { "false" }),
            Value::Number(number) => ChargedText::copied(&number_text(*number)),
            Value::Text(text) => ChargedText::copied(text),
        }
    }

    /// The same of a value that nobody wants any more.
    pub(super) fn into_text(self, tree: &Tree<'_>) -> Result<ChargedText> {
        match self {
            Value::Text(text) => Ok(text),
            other => other.text(tree),
        }
    }

    pub(super) fn number(&self, tree: &Tree<'_>) -> Result<f64> {
        Ok(match self {
            Value::Number(number) => *number,
            Value::Bool(value) => f64::from(u8::from(*value)),
            Value::Text(text) => text_number(text),
            Value::Nodes(_) => text_number(&self.text(tree)?),
        })
    }

    pub(super) fn nodes(self) -> Result<Nodes> {
        match self {
            Value::Nodes(nodes) => Ok(nodes),
            _ => Err(no_nodes()),
        }
    }
}

/// Nodes, charged as long as they are there.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: Vec<NodeId>,
    room: MemoryReservation,
}

impl Deref for Nodes {
    type Target = [NodeId];

    fn deref(&self) -> &[NodeId] {
        &self.nodes
    }
}

impl Nodes {
    pub(super) fn one(node: NodeId) -> Nodes {
        Nodes {
            nodes: vec![node],
            room: MemoryReservation::default(),
        }
    }

    fn push(&mut self, node: NodeId) -> Result<()> {
        self.room.reserve(&mut self.nodes, 1)?;
        self.nodes.push(node);
        if self.nodes.len().is_multiple_of(256) {
            check_for_interrupts()?;
        }
        Ok(())
    }

    /// Each once, in the document's order.
    fn in_order(mut self) -> Result<Nodes> {
        check_for_interrupts()?;
        if !self.nodes.is_sorted() {
            self.nodes.sort_unstable();
        }
        self.nodes.dedup();
        Ok(self)
    }
}

fn compare_numbers(operator: Operator, a: f64, b: f64) -> bool {
    match operator {
        Operator::Equal => a == b,
        Operator::NotEqual => a != b,
        Operator::Less => a < b,
        Operator::LessEqual => a <= b,
        Operator::Greater => a > b,
        _ => a >= b,
    }
}

fn is_equality(operator: Operator) -> bool {
    matches!(operator, Operator::Equal | Operator::NotEqual)
}

/// The operator with its operands in the other order.
fn turned(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessEqual => Operator::GreaterEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterEqual => Operator::LessEqual,
        other => other,
    }
}

impl XPathContext<'_, '_> {
    pub(super) fn value(&self, expr: &Expr) -> Result<Value> {
        check_for_interrupts()?;
        Ok(match expr {
            Expr::Literal(text) => Value::Text(ChargedText::copied(text)?),
            Expr::Number(number) => Value::Number(*number),
            Expr::Negated(operand) => Value::Number(-self.value(operand)?.number(self.tree)?),
            Expr::Union(all) => {
                let mut found = Nodes::default();
                for one in all {
                    for node in self.value(one)?.nodes()?.iter() {
                        found.push(*node)?;
                    }
                }
                Value::Nodes(found.in_order()?)
            }
            Expr::Chain(first, rest) => {
                let mut value = self.value(first)?;
                for (operator, right) in rest {
                    value = self.operation(*operator, value, right)?;
                }
                value
            }
            Expr::Call(function, args) => self.call(*function, args)?,
            Expr::Filter(value, predicates) => {
                let nodes = self.value(value)?.nodes()?;
                Value::Nodes(self.chosen(nodes, predicates)?)
            }
            Expr::Path(start, steps) => {
                let mut nodes = match start {
                    Start::Root => Nodes::one(0),
                    Start::Context => Nodes::one(self.node),
                    Start::Value(value) => self.value(value)?.nodes()?,
                };
                for step in steps {
                    nodes = self.step(&nodes, step)?;
                }
                Value::Nodes(nodes)
            }
        })
    }

    fn operation(&self, operator: Operator, left: Value, right: &Expr) -> Result<Value> {
        match operator {
            Operator::Or if left.truth() => return Ok(Value::Bool(true)),
            Operator::And if !left.truth() => return Ok(Value::Bool(false)),
            Operator::Or | Operator::And => return Ok(Value::Bool(self.value(right)?.truth())),
            _ => {}
        }
        let right = self.value(right)?;
        if is_equality(operator)
            || !matches!(
                operator,
                Operator::Plus
                    | Operator::Minus
                    | Operator::Multiply
                    | Operator::Divide
                    | Operator::Modulo
            )
        {
            return self.compare(operator, &left, &right).map(Value::Bool);
        }
        let (a, b) = (left.number(self.tree)?, right.number(self.tree)?);
        Ok(Value::Number(match operator {
            Operator::Plus => a + b,
            Operator::Minus => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            _ => a % b,
        }))
    }

    fn compare(&self, operator: Operator, left: &Value, right: &Value) -> Result<bool> {
        match (left, right) {
            (Value::Nodes(nodes), Value::Bool(value))
            | (Value::Bool(value), Value::Nodes(nodes)) => {
                let truth = f64::from(u8::from(!nodes.is_empty()));
                let value = f64::from(u8::from(*value));
                Ok(match left {
                    Value::Nodes(_) => compare_numbers(operator, truth, value),
                    _ => compare_numbers(operator, value, truth),
                })
            }
            (Value::Nodes(a), Value::Nodes(b)) => self.compare_sets(operator, a, b),
            (Value::Nodes(nodes), value) => self.compare_each(operator, nodes, value),
            (value, Value::Nodes(nodes)) => self.compare_each(turned(operator), nodes, value),
            _ if !is_equality(operator)
                || matches!(left, Value::Number(_))
                || matches!(right, Value::Number(_)) =>
            {
                if is_equality(operator)
                    && (matches!(left, Value::Bool(_)) || matches!(right, Value::Bool(_)))
                {
                    return Ok((left.truth() == right.truth()) == (operator == Operator::Equal));
                }
                let (a, b) = (left.number(self.tree)?, right.number(self.tree)?);
                Ok(compare_numbers(operator, a, b))
            }
            (Value::Bool(_), _) | (_, Value::Bool(_)) => {
                Ok((left.truth() == right.truth()) == (operator == Operator::Equal))
            }
            _ => {
                let same = match (left, right) {
                    (Value::Text(a), Value::Text(b)) => **a == **b,
                    _ => *left.text(self.tree)? == *right.text(self.tree)?,
                };
                Ok(same == (operator == Operator::Equal))
            }
        }
    }

    /// Is there a node for which it holds?
    fn compare_each(&self, operator: Operator, nodes: &[NodeId], value: &Value) -> Result<bool> {
        let number = match value {
            Value::Text(_) if is_equality(operator) => None,
            value => Some(value.number(self.tree)?),
        };
        for node in nodes {
            check_for_interrupts()?;
            let text = node_string(self.tree, *node)?;
            let holds = match (number, value) {
                (None, Value::Text(wanted)) => (*text == **wanted) == (operator == Operator::Equal),
                (number, _) => {
                    compare_numbers(operator, text_number(&text), number.unwrap_or(f64::NAN))
                }
            };
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Are there a node of each for which it holds?
    fn compare_sets(&self, operator: Operator, a: &[NodeId], b: &[NodeId]) -> Result<bool> {
        let mut room = MemoryReservation::default();
        let mut bytes = 0;
        let mut texts = Vec::with_capacity(b.len().min(1 << 16));
        for node in b {
            let text = node_string(self.tree, *node)?;
            bytes += text.len() + 32;
            room.hold(bytes)?;
            texts.push(text.into_string());
        }
        for node in a {
            let text = node_string(self.tree, *node)?;
            for other in &texts {
                check_for_interrupts()?;
                let holds = match is_equality(operator) {
                    true => (*text == **other) == (operator == Operator::Equal),
                    false => compare_numbers(operator, text_number(&text), text_number(other)),
                };
                if holds {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Those of some nodes, in the order in which they are counted, that predicates choose.
    fn chosen(&self, mut nodes: Nodes, predicates: &[Expr]) -> Result<Nodes> {
        for predicate in predicates {
            let size = nodes.len();
            let mut kept = Nodes::default();
            for (at, node) in nodes.iter().copied().enumerate() {
                let place = XPathContext {
                    tree: self.tree,
                    node,
                    position: at + 1,
                    size,
                };
                let holds = match place.value(predicate)? {
                    Value::Number(number) => number == place.position as f64,
                    value => value.truth(),
                };
                if holds {
                    kept.push(node)?;
                }
            }
            nodes = kept;
        }
        Ok(nodes)
    }

    fn step(&self, from: &[NodeId], step: &Step) -> Result<Nodes> {
        let mut found = Nodes::default();
        for node in from {
            check_for_interrupts()?;
            let mut along = Nodes::default();
            let target = match step.predicates.is_empty() {
                true => &mut found,
                false => &mut along,
            };
            self.walk(*node, step.axis, &mut |id| match matches(
                self.tree, id, step.axis, &step.test,
            ) {
                true => target.push(id),
                false => Ok(()),
            })?;
            for node in self.chosen(along, &step.predicates)?.iter() {
                found.push(*node)?;
            }
        }
        found.in_order()
    }

    /// The nodes of an axis, nearest first.
    fn walk(
        &self,
        from: NodeId,
        axis: Axis,
        visit: &mut dyn FnMut(NodeId) -> Result<()>,
    ) -> Result<()> {
        let tree = self.tree;
        let node = tree.node(from);
        let parent = |id: NodeId| Some(tree.node(id).parent).filter(|id| *id != NONE);
        let of_tree =
            |id: NodeId| !matches!(tree.kind(id), NodeKind::Attribute | NodeKind::Namespace);
        let mut range = |range: &mut dyn Iterator<Item = NodeId>| -> Result<()> {
            for id in range {
                if id % 256 == 0 {
                    check_for_interrupts()?;
                }
                if of_tree(id) {
                    visit(id)?;
                }
            }
            Ok(())
        };
        match axis {
            Axis::Own => visit(from),
            Axis::Parent => parent(from).map_or(Ok(()), visit),
            Axis::Child => range(&mut tree.children(from)),
            Axis::Attribute => {
                let mut of = tree.of_kind(from, NodeKind::Attribute);
                of.try_for_each(visit)
            }
            Axis::Descendant => range(&mut (from + 1..node.end)),
            Axis::DescendantOrSelf => {
                visit(from)?;
                range_of(tree, from + 1..node.end, visit)
            }
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let first = match axis {
                    Axis::Ancestor => parent(from),
                    _ => Some(from),
                };
                std::iter::successors(first, |id| parent(*id)).try_for_each(visit)
            }
            Axis::Following => range(&mut (node.end..tree.len())),
            Axis::Preceding => {
                let mut before = (1..from).rev().filter(|id| tree.node(*id).end <= from);
                range(&mut before)
            }
            Axis::FollowingSibling | Axis::PrecedingSibling => {
                let next = |id: NodeId| match axis {
                    Axis::FollowingSibling => tree.node(id).next,
                    _ => tree.node(id).previous,
                };
                let step = |id: NodeId| Some(next(id)).filter(|id| *id != NONE);
                range(&mut std::iter::successors(step(from), |id| step(*id)))
            }
        }
    }
}

/// The nodes of a range, attributes and namespaces left out.
fn range_of(
    tree: &Tree<'_>,
    range: std::ops::Range<NodeId>,
    visit: &mut dyn FnMut(NodeId) -> Result<()>,
) -> Result<()> {
    for id in range {
        if id % 256 == 0 {
            check_for_interrupts()?;
        }
        if !matches!(tree.kind(id), NodeKind::Attribute | NodeKind::Namespace) {
            visit(id)?;
        }
    }
    Ok(())
}

fn matches(tree: &Tree<'_>, id: NodeId, axis: Axis, test: &NodeTest) -> bool {
    let kind = tree.kind(id);
    // Names are names of elements, on the axis of attributes of these.
    let principal = match axis {
        Axis::Attribute => NodeKind::Attribute,
        _ => NodeKind::Element,
    };
    match test {
        NodeTest::Node => true,
        NodeTest::Text => matches!(kind, NodeKind::Text | NodeKind::CData),
        NodeTest::Comment => kind == NodeKind::Comment,
        NodeTest::Instruction(target) => {
            kind == NodeKind::Instruction
                && target
                    .as_ref()
                    .is_none_or(|target| *target == *tree.node(id).name)
        }
        NodeTest::Any => kind == principal,
        NodeTest::In(uri) => kind == principal && tree.uri(id) == Some(&**uri),
        NodeTest::Name(uri, local) => {
            kind == principal && tree.local_name(id) == local && tree.uri(id) == uri.as_deref()
        }
    }
}
