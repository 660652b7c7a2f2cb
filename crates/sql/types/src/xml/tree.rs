//! A document as a tree, for XPath.
//!
//! Nodes are numbered in the order of the document: an element, its namespaces and attributes, what is in it. So what
//! is within a node are the
//! numbers up to its `end`.

use super::read::{SaxHandler, XmlTextKind, read};
use super::{Declaration, XmlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::MemoryReservation;
use std::borrow::Cow;
use std::collections::HashMap;

/// A node by its number.
pub type NodeId = u32;

/// No node.
pub(super) const NONE: NodeId = u32::MAX;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Root,
    Element,
    /// A declaration of a namespace: the name is the prefix, the value its URI.
    Namespace,
    Attribute,
    Text,
    CData,
    Comment,
    Instruction,
}

#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) kind: NodeKind,
    /// As it is written, prefix included.
    pub(super) name: Cow<'a, str>,
    pub(super) value: Cow<'a, str>,
    /// The declaration of its namespace; `NONE` if it is in none.
    pub(super) namespace: NodeId,
    pub(super) parent: NodeId,
    /// The node behind it and the one in front of it among the children of its parent.
    pub(super) next: NodeId,
    pub(super) previous: NodeId,
    pub(super) first: NodeId,
    last: NodeId,
    /// The first number that is not within it.
    pub(super) end: NodeId,
}

/// A document.
#[derive(Debug)]
pub struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    room: MemoryReservation,
    texts: MemoryReservation,
    text_bytes: usize,
}

/// The namespace of the prefix `xml`.
const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

impl<'a> Tree<'a> {
    /// The tree of a value, which has to be a document. Its declaration is of no interest: it may name an encoding
    /// that the text has no more.
    pub fn of(text: &'a str) -> Result<Tree<'a>, XmlError> {
        let len = Declaration::parse(text).map_or(0, |(_, len)| len);
        let mut builder = Builder {
            tree: Tree {
                nodes: Vec::new(),
                room: MemoryReservation::default(),
                texts: MemoryReservation::default(),
                text_bytes: 0,
            },
            open: Vec::new(),
            scope: HashMap::new(),
            declared: Vec::new(),
            scopes: Vec::new(),
            scope_bytes: 0,
            scope_room: MemoryReservation::default(),
        };
        builder.push(NodeKind::Root, Cow::Borrowed(""), Cow::Borrowed(""))?;
        builder.open.push(0);
        builder.scope.insert(Cow::Borrowed("xml"), 1);
        builder.push(
            NodeKind::Namespace,
            Cow::Borrowed("xml"),
            Cow::Borrowed(XML_NAMESPACE),
        )?;
        read(&text[len..], XmlTextKind::Document, &mut builder)?;
        let mut tree = builder.tree;
        let end = tree.len();
        if let Some(root) = tree.nodes.first_mut() {
            root.end = end;
        }
        Ok(tree)
    }

    pub(super) fn len(&self) -> NodeId {
        NodeId::try_from(self.nodes.len()).unwrap_or(NONE)
    }

    pub(super) fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id as usize]
    }

    pub(super) fn kind(&self, id: NodeId) -> NodeKind {
        self.node(id).kind
    }

    /// The children of a node, in order.
    pub(super) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let mut next = self.node(id).first;
        std::iter::from_fn(move || {
            let found = next;
            next = self.nodes.get(found as usize)?.next;
            Some(found)
        })
    }

    /// The attributes of an element, or the namespaces that it declares.
    pub(super) fn of_kind(
        &self,
        element: NodeId,
        wanted: NodeKind,
    ) -> impl Iterator<Item = NodeId> {
        let behind = element + 1..self.node(element).end;
        let own = behind.take_while(move |id| {
            matches!(self.kind(*id), NodeKind::Attribute | NodeKind::Namespace)
                && self.node(*id).parent == element
        });
        own.filter(move |id| self.kind(*id) == wanted)
    }

    /// The name without its prefix.
    pub(super) fn local_name(&self, id: NodeId) -> &str {
        let name: &str = &self.node(id).name;
        match self.kind(id) {
            NodeKind::Element | NodeKind::Attribute => {
                name.split_once(':').map_or(name, |(_, l)| l)
            }
            _ => name,
        }
    }

    /// The URI of the namespace that its name is in.
    pub(super) fn uri(&self, id: NodeId) -> Option<&str> {
        let declared = self.nodes.get(self.node(id).namespace as usize)?;
        Some(&*declared.value).filter(|uri| !uri.is_empty())
    }
}

/// Makes a tree of what the reader tells.
struct Builder<'a> {
    tree: Tree<'a>,
    open: Vec<NodeId>,
    /// The namespaces that hold: the innermost declaration of each prefix.
    scope: HashMap<Cow<'a, str>, NodeId>,
    /// The declarations of the elements that are open, the innermost last, each with the one that it hides, or `NONE`.
    declared: Vec<(NodeId, NodeId)>,
    /// How many of these there were outside of each element that is open.
    scopes: Vec<usize>,
    /// What the declarations take beside their nodes.
    scope_bytes: usize,
    scope_room: MemoryReservation,
}

/// What a declaration takes in `scope` and `declared`, beside its prefix; both may be half empty.
const DECLARED_BYTES: usize = 128;

#[allow(clippy::ptr_arg, reason = "whether it is owned is the question")]
fn owned_bytes(text: &Cow<'_, str>) -> usize {
    match text {
        Cow::Borrowed(_) => 0,
        Cow::Owned(text) => text.capacity() + 32,
    }
}

/// Whether a text can be a URI, as far as libxml2 looks.
fn is_uri(text: &str) -> bool {
    let outside = |b: u8| !b.is_ascii_graphic() || b"<>\"{}|\\^`".contains(&b);
    !text.bytes().any(outside)
}

impl<'a> Builder<'a> {
    fn push(
        &mut self,
        kind: NodeKind,
        name: Cow<'a, str>,
        value: Cow<'a, str>,
    ) -> Result<NodeId, XmlError> {
        let tree = &mut self.tree;
        tree.text_bytes += owned_bytes(&name) + owned_bytes(&value);
        tree.texts.hold(tree.text_bytes)?;
        tree.room.reserve(&mut tree.nodes, 1)?;
        let id = tree.len();
        if id == NONE {
            return Err(XmlError::Malformed(1, "too many nodes".to_owned()));
        }
        tree.nodes.push(Node {
            kind,
            name,
            value,
            namespace: NONE,
            parent: self.open.last().copied().unwrap_or(NONE),
            next: NONE,
            previous: NONE,
            first: NONE,
            last: NONE,
            end: id + 1,
        });
        Ok(id)
    }

    /// Another child of the element that is open.
    fn child(
        &mut self,
        kind: NodeKind,
        name: Cow<'a, str>,
        value: Cow<'a, str>,
    ) -> Result<NodeId, XmlError> {
        let id = self.push(kind, name, value)?;
        let parent = self.tree.node(id).parent;
        if let Some(parent) = self.tree.nodes.get_mut(parent as usize) {
            let previous = std::mem::replace(&mut parent.last, id);
            if previous == NONE {
                parent.first = id;
            } else {
                self.tree.nodes[previous as usize].next = id;
                self.tree.nodes[id as usize].previous = previous;
            }
        }
        Ok(id)
    }

    fn declaration(&self, prefix: &str) -> Option<NodeId> {
        self.scope.get(prefix).copied()
    }

    /// The declarations among the attributes of the element hold from now on; what is wrong with one.
    fn declare(&mut self, element: NodeId) -> Result<Option<String>, XmlError> {
        for id in element + 1..self.tree.len() {
            check_for_interrupts()?;
            let node = self.tree.node(id);
            if node.kind != NodeKind::Namespace {
                continue;
            }
            let (prefix, uri) = (node.name.clone(), node.value.clone());
            let shown = match prefix.is_empty() {
                true => "xmlns".to_owned(),
                false => format!("xmlns:{prefix}"),
            };
            if !is_uri(&uri) {
                return Ok(Some(format!("{shown}: '{uri}' is not a valid URI")));
            }
            if uri.is_empty() && !prefix.is_empty() {
                return Ok(Some(format!("{shown}: Empty XML namespace is not allowed")));
            }
            self.scope_bytes += prefix.len() + DECLARED_BYTES;
            self.scope_room.hold(self.scope_bytes)?;
            let hidden = self.scope.insert(prefix, id).unwrap_or(NONE);
            self.declared.push((id, hidden));
        }
        Ok(None)
    }
}

impl<'a> SaxHandler<'a> for Builder<'a> {
    const BUILDS: bool = true;

    fn start(&mut self, name: Cow<'a, str>) -> Result<(), XmlError> {
        let id = self.child(NodeKind::Element, name, Cow::Borrowed(""))?;
        self.open.push(id);
        self.scopes.push(self.declared.len());
        Ok(())
    }

    fn attribute(&mut self, name: Cow<'a, str>, value: Cow<'a, str>) -> Result<(), XmlError> {
        let prefix = match &*name {
            "xmlns" => Some(""),
            name => name.strip_prefix("xmlns:"),
        };
        let id = match prefix {
            Some(prefix) => {
                let prefix = Cow::Owned(prefix.to_owned());
                self.push(NodeKind::Namespace, prefix, value)?
            }
            None => self.push(NodeKind::Attribute, name, value)?,
        };
        // What is within the element begins behind it.
        self.tree.nodes[id as usize].end = id + 1;
        Ok(())
    }

    fn started(&mut self) -> Result<Option<String>, XmlError> {
        let element = self.open.last().copied().unwrap_or(0);
        if let Some(wrong) = self.declare(element)? {
            return Ok(Some(wrong));
        }
        for id in element..self.tree.len() {
            check_for_interrupts()?;
            let node = self.tree.node(id);
            if node.kind == NodeKind::Namespace {
                continue;
            }
            let prefix = node.name.split_once(':').map(|(prefix, _)| prefix);
            let found = match (prefix, node.kind) {
                (Some(prefix), _) => match self.declaration(prefix) {
                    Some(found) => found,
                    None => {
                        let local = self.tree.local_name(id);
                        return Ok(Some(match node.kind {
                            NodeKind::Element => {
                                format!("Namespace prefix {prefix} on {local} is not defined")
                            }
                            _ => format!(
                                "Namespace prefix {prefix} for {local} on {} is not defined",
                                self.tree.local_name(element)
                            ),
                        }));
                    }
                },
                (None, NodeKind::Element) => self.declaration("").unwrap_or(NONE),
                (None, _) => NONE,
            };
            self.tree.nodes[id as usize].namespace = found;
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<(), XmlError> {
        let end = self.tree.len();
        if let Some(id) = self.open.pop() {
            self.tree.nodes[id as usize].end = end;
        }
        if let Some(outside) = self.scopes.pop() {
            for (id, hidden) in self.declared.drain(outside..).rev() {
                check_for_interrupts()?;
                let prefix: &str = &self.tree.node(id).name;
                self.scope_bytes -= prefix.len() + DECLARED_BYTES;
                if hidden == NONE {
                    self.scope.remove(prefix);
                } else if let Some(holds) = self.scope.get_mut(prefix) {
                    *holds = hidden;
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, text: Cow<'a, str>) -> Result<(), XmlError> {
        let parent = self.open.last().copied().unwrap_or(0);
        let last = self.tree.node(parent).last;
        // Characters that references stand for are part of the text around them.
        if let Some(node) = self.tree.nodes.get_mut(last as usize)
            && node.kind == NodeKind::Text
        {
            let before = owned_bytes(&node.value);
            node.value.to_mut().push_str(&text);
            self.tree.text_bytes += owned_bytes(&node.value) - before;
            self.tree.texts.hold(self.tree.text_bytes)?;
            return Ok(());
        }
        self.child(NodeKind::Text, Cow::Borrowed(""), text)
            .map(|_| ())
    }

    fn cdata(&mut self, text: Cow<'a, str>) -> Result<(), XmlError> {
        self.child(NodeKind::CData, Cow::Borrowed(""), text)
            .map(|_| ())
    }

    fn comment(&mut self, text: Cow<'a, str>) -> Result<(), XmlError> {
        self.child(NodeKind::Comment, Cow::Borrowed(""), text)
            .map(|_| ())
    }

    fn instruction(&mut self, target: Cow<'a, str>, content: Cow<'a, str>) -> Result<(), XmlError> {
        self.child(NodeKind::Instruction, target, content)
            .map(|_| ())
    }
}
