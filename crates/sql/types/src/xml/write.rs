//! Nodes as text, as libxml2 writes them for PostgreSQL.

use super::tree::{NONE, NodeId, NodeKind, Tree};
use crate::error::Result;
use crate::interrupt::check_for_interrupts;
use crate::memory::{Builder, MemoryReservation};
use std::collections::HashSet;

/// An attribute's value in its quotes. `ascii`: other characters are written as references.
pub fn quoted(text: &str, ascii: bool, out: &mut Builder) -> Result<()> {
    out.push_byte(b'"')?;
    for c in text.chars() {
        match c {
            '"' => out.push_str("&quot;")?,
            '<' => out.push_str("&lt;")?,
            '>' => out.push_str("&gt;")?,
            '&' => out.push_str("&amp;")?,
            '\n' | '\r' | '\t' => out.push_str(&format!("&#{};", u32::from(c)))?,
            c if c.is_ascii() || !ascii => out.push_char(c)?,
            c => out.push_str(&format!("&#x{:X};", u32::from(c)))?,
        }
    }
    out.push_byte(b'"')
}

/// What a node is as a value of type `xml`: attributes and texts what they say, others their markup.
pub fn node_text(tree: &Tree<'_>, id: NodeId, out: &mut Builder) -> Result<()> {
    let node = tree.node(id);
    match node.kind {
        NodeKind::Attribute | NodeKind::Text => escaped(&node.value, out),
        NodeKind::Root => {
            out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
            for child in tree.children(id) {
                markup(tree, child, NONE, false, out)?;
                out.push_byte(b'\n')?;
            }
            Ok(())
        }
        _ => markup(tree, id, id, true, out),
    }
}

/// The namespaces that names within `top` are in and that are declared outside of it.
fn outer_namespaces(tree: &Tree<'_>, top: NodeId) -> Result<Vec<NodeId>> {
    let mut found: Vec<NodeId> = Vec::new();
    let mut known: HashSet<NodeId> = HashSet::new();
    let mut room = MemoryReservation::default();
    for id in top..tree.node(top).end {
        if id % 256 == 0 {
            check_for_interrupts()?;
        }
        let declared = tree.node(id).namespace;
        // The prefix `xml` needs no declaration.
        if matches!(tree.kind(id), NodeKind::Element | NodeKind::Attribute)
            && declared != NONE
            && declared < top
            && declared > 1
            && !tree.node(declared).value.is_empty()
            && known.insert(declared)
        {
            room.hold(known.len() * 32)?;
            found.push(declared);
        }
    }
    Ok(found)
}

fn text(value: &str, out: &mut Builder) -> Result<()> {
    escape(value, "&#13;", out)
}

fn namespace(prefix: &str, uri: &str, out: &mut Builder) -> Result<()> {
    out.push_str(match prefix {
        "" => " xmlns",
        _ => " xmlns:",
    })?;
    out.push_str(prefix)?;
    out.push_byte(b'=')?;
    quoted(uri, false, out)
}

/// Appends a node's markup. What stands alone, `top`, declares the namespaces that are declared around it.
fn markup(tree: &Tree<'_>, id: NodeId, top: NodeId, ascii: bool, out: &mut Builder) -> Result<()> {
    check_for_interrupts()?;
    let node = tree.node(id);
    match node.kind {
        NodeKind::Text => text(&node.value, out),
        NodeKind::CData => {
            out.push_str("<![CDATA[")?;
            out.push_str(&node.value)?;
            out.push_str("]]>")
        }
        NodeKind::Comment => {
            out.push_str("<!--")?;
            out.push_str(&node.value)?;
            out.push_str("-->")
        }
        NodeKind::Instruction => {
            out.push_str("<?")?;
            out.push_str(&node.name)?;
            if !node.value.is_empty() {
                out.push_byte(b' ')?;
                out.push_str(&node.value)?;
            }
            out.push_str("?>")
        }
        NodeKind::Element => {
            out.push_byte(b'<')?;
            out.push_str(&node.name)?;
            for id in tree.of_kind(id, NodeKind::Namespace) {
                let declared = tree.node(id);
                namespace(&declared.name, &declared.value, out)?;
            }
            if id == top {
                for id in outer_namespaces(tree, id)? {
                    let declared = tree.node(id);
                    namespace(&declared.name, &declared.value, out)?;
                }
            }
            for id in tree.of_kind(id, NodeKind::Attribute) {
                let attribute = tree.node(id);
                out.push_byte(b' ')?;
                out.push_str(&attribute.name)?;
                out.push_byte(b'=')?;
                quoted(&attribute.value, ascii, out)?;
            }
            if node.first == NONE {
                return out.push_str("/>");
            }
            out.push_byte(b'>')?;
            for child in tree.children(id) {
                markup(tree, child, top, ascii, out)?;
            }
            out.push_str("</")?;
            out.push_str(&node.name)?;
            out.push_byte(b'>')
        }
        NodeKind::Attribute => text(&node.value, out),
        NodeKind::Root | NodeKind::Namespace => Ok(()),
    }
}

/// A text with what has a meaning in XML written so that it has none.
pub fn escaped(text: &str, out: &mut Builder) -> Result<()> {
    escape(text, "&#x0d;", out)
}

/// The same, with what a carriage return is written as.
pub(super) fn escape(text: &str, carriage_return: &str, out: &mut Builder) -> Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '\r']) {
        out.push_str(&rest[..at])?;
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => carriage_return,
        })?;
        rest = &rest[at + 1..];
    }
    out.push_str(rest)
}
