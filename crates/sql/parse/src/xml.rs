//! XML's constructs, which are no calls in PostgreSQL's grammar: XMLELEMENT(NAME ...), XMLPARSE(DOCUMENT ...), `x IS
//! DOCUMENT` and their like.
//!
//! Each travels as a call of a function of a name that nobody can write, whose arguments are what the binder needs in
//! order; `IS DOCUMENT`
//! as IS DISTINCT FROM such a name. Inner constructs are rewritten first: the walk goes from the last token to the
//! first.

/// What the names of the constructs begin with; the construct's own in lower case follows.
pub(crate) const XML_MARK: &str = "\0";

/// Constructs that look like calls.
const CONSTRUCTS: [&str; 10] = [
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// Parts of XMLTABLE that travel as calls within it.
const PARTS: [&str; 2] = ["xmlcolumn", "xmlnamespaces"];

/// The construct that a function's name means, if any does.
pub fn xml_construct(name: &str) -> Option<&str> {
    let name = name.strip_prefix(XML_MARK)?;
    (name == "xmldocument" || CONSTRUCTS.contains(&name) || PARTS.contains(&name)).then_some(name)
}
