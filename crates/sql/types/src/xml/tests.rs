//! What is taken, what is not, and what bounds hold.

use super::xpath::{Namespaces, Value, XPath};
use super::*;
use crate::memory::Builder;
use crate::value::xml::{XmlOption, check, is_well_formed, shown};

fn well_formed(text: &str) -> bool {
    is_well_formed(text, XmlOption::Content).unwrap()
}

fn wrong(text: &str) -> String {
    let error = check(text, XmlOption::Content).unwrap_err();
    error.fields().detail.clone().unwrap_or_default()
}

#[test]
fn entities_are_bounded() {
    let mut laughs = String::from("<!DOCTYPE a [<!ENTITY l0 \"ha\">");
    for level in 1..10 {
        let below = format!("&l{};", level - 1).repeat(10);
        laughs.push_str(&format!("<!ENTITY l{level} \"{below}\">"));
    }
    laughs.push_str("]><a>&l9;</a>");
    assert_eq!(wrong(&laughs), "line 1: Detected an entity reference loop");
    let value = laughs.replace("<a>&l9;</a>", "<a b=\"&l9;\"/>");
    assert_eq!(wrong(&value), "line 1: Detected an entity reference loop");
    assert!(Tree::of(&laughs).is_err());
    // The same with few of them is right.
    assert!(well_formed(&laughs.replace("&l9;", "&l3;")));
    // One that stands for itself.
    let itself = "<!DOCTYPE a [<!ENTITY x \"&x;\">]><a>&x;</a>";
    assert_eq!(wrong(itself), "line 1: Detected an entity reference loop");
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(well_formed(&nested(256)));
    assert!(!well_formed(&nested(257)));
    let path = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    let none = Namespaces::default();
    assert!(XPath::parse(&path(100), &none).is_ok());
    assert!(XPath::parse(&path(101), &none).is_err());
    assert!(XPath::parse(&"1+".repeat(6_000), &none).is_err());
}

#[test]
fn nothing_outside_is_read() {
    let external = "<!DOCTYPE a [<!ENTITY x SYSTEM \"/etc/passwd\">]><a>&x;</a>";
    assert!(well_formed(external));
    assert_eq!(text_of(external, "string(/a)"), "");
    assert!(!well_formed(
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"/etc/passwd\">]><a b=\"&x;\"/>"
    ));
}

fn text_of(document: &str, path: &str) -> String {
    let tree = Tree::of(document).unwrap();
    let path = XPath::parse(path, &Namespaces::default()).unwrap();
    let value = path.value(&tree, 0).unwrap();
    let Value::Nodes(nodes) = value else {
        return value.text(&tree).unwrap().into_string();
    };
    let mut out = Builder::default();
    for node in nodes.iter() {
        node_text(&tree, *node, &mut out).unwrap();
    }
    out.finish_string().unwrap()
}

#[test]
fn what_a_declaration_hides_holds_behind_its_element() {
    let document = "<a xmlns:p=\"u\"><b xmlns:p=\"v\" xmlns:q=\"w\"><p:c/></b><p:d/></a>";
    assert_eq!(text_of(document, "namespace-uri(/a/b/*)"), "v");
    assert_eq!(text_of(document, "namespace-uri(/a/*[2])"), "u");
    assert!(Tree::of("<a><b xmlns:q=\"w\"/><q:c/></a>").is_err());
}

#[test]
fn a_document_is_written_as_it_was_read() {
    let documents = [
        "<a/>",
        "<a b=\"1\" c=\"&lt;&quot;\">x<b/>y<!--c--><?p i?><![CDATA[<&]]></a>",
        "<x:a xmlns:x=\"http://x\" x:b=\"1\"><c xmlns=\"http://y\"/></x:a>",
    ];
    for document in documents {
        assert_eq!(text_of(document, "/*"), document);
    }
    // References to characters become text; lines end alike.
    assert_eq!(text_of("<a>&#65;&amp;\r\n</a>", "/a"), "<a>A&amp;\n</a>");
}

#[test]
fn namespaces_come_along() {
    let document = "<a xmlns:x=\"http://x\" xmlns=\"http://d\"><x:b><c x:d=\"1\"/></x:b></a>";
    assert_eq!(
        text_of(document, "//*[local-name() = 'c']"),
        "<c xmlns=\"http://d\" xmlns:x=\"http://x\" x:d=\"1\"/>"
    );
    assert!(Tree::of("<x:a/>").is_err());
}

#[test]
fn errors_name_their_line() {
    assert_eq!(
        wrong("<a>\n<b>\n</a>"),
        "line 3: Opening and ending tag mismatch: b line 2 and a"
    );
    assert_eq!(wrong("\n\n&x;"), "line 3: Entity 'x' not defined");
}

#[test]
fn no_text_makes_the_reader_fail_otherwise() {
    let parts = [
        "<",
        ">",
        "/",
        "a",
        "=",
        "\"",
        "'",
        "&",
        ";",
        "#",
        "x",
        "<!--",
        "-->",
        "<?",
        "?>",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE",
        "[",
        "]",
        "<!ENTITY",
        " ",
        "\n",
        "xml",
        "version=\"1.0\"",
        ":",
        "ä",
        "%",
    ];
    // A fixed sequence that looks like any.
    let mut state = 0x9e37_79b9_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..state % 12 + 1 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        let content = is_well_formed(&text, XmlOption::Content).unwrap();
        let document = is_well_formed(&text, XmlOption::Document).unwrap();
        // What is a document is content, too, unless its declaration is another's.
        assert!(!document || content, "{text}");
        if let Ok(tree) = Tree::of(&text) {
            assert!(tree.nodes.len() > 2, "{text}");
            let mut out = Builder::default();
            node_text(&tree, 0, &mut out).unwrap();
        }
        let _ = XPath::parse(&text, &Namespaces::default());
        let _ = Declaration::parse(&text);
        let _ = shown(&text);
    }
}
