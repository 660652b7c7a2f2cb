//! The core library of functions.

use super::super::tree::NodeKind;
use super::eval::{Nodes, Value, XPathContext, node_string};
use super::parse::Expr;
use super::text::ChargedText;
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::Builder;

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal..=$most:literal,)*) => {
        /// A function of the library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function {
            $($variant,)*
        }

        impl Function {
            /// The function of a name.
            pub(super) fn named(name: &str) -> Option<Function> {
                match name {
                    $($name => Some(Function::$variant),)*
                    _ => None,
                }
            }

            /// Does it take so many arguments?
            pub(super) fn takes(self, count: usize) -> bool {
                match self {
                    $(Function::$variant => ($least..=$most).contains(&count),)*
                }
            }
        }
    };
}

functions! {
    Boolean "boolean" 1..=1,
    Ceiling "ceiling" 1..=1,
    Concat "concat" 2..=10_000,
    Contains "contains" 2..=2,
    Count "count" 1..=1,
    False "false" 0..=0,
    Floor "floor" 1..=1,
    Id "id" 1..=1,
    Lang "lang" 1..=1,
    Last "last" 0..=0,
    LocalName "local-name" 0..=1,
    Name "name" 0..=1,
    NamespaceUri "namespace-uri" 0..=1,
    NormalizeSpace "normalize-space" 0..=1,
    Not "not" 1..=1,
    Number "number" 0..=1,
    Position "position" 0..=0,
    Round "round" 1..=1,
    StartsWith "starts-with" 2..=2,
    String "string" 0..=1,
    StringLength "string-length" 0..=1,
    Substring "substring" 2..=3,
    SubstringAfter "substring-after" 2..=2,
    SubstringBefore "substring-before" 2..=2,
    Sum "sum" 1..=1,
    Translate "translate" 3..=3,
    True "true" 0..=0,
}

/// XPath's rounding: halves go up.
fn rounded(number: f64) -> f64 {
    match number.is_finite() {
        true => (number + 0.5).floor(),
        false => number,
    }
}

/// The characters from a place, 1 for the first, for a length.
fn substring(text: &str, from: f64, length: Option<f64>) -> Result<ChargedText> {
    let begin = rounded(from);
    let end = length.map_or(f64::INFINITY, |length| begin + rounded(length));
    let mut out = Builder::default();
    for (at, c) in text.chars().enumerate() {
        if at % 4096 == 0 {
            check_for_interrupts()?;
        }
        let place = (at + 1) as f64;
        if place >= begin && place < end {
            out.push_char(c)?;
        }
    }
    ChargedText::built(out)
}

fn translated(text: &str, from: &str, to: &str) -> Result<ChargedText> {
    let mut mapped: foldhash::HashMap<char, Option<char>> = foldhash::HashMap::default();
    let mut to = to.chars();
    for (at, c) in from.chars().enumerate() {
        if at % 4096 == 0 {
            check_for_interrupts()?;
        }
        let by = to.next();
        mapped.entry(c).or_insert(by);
    }
    let mut out = Builder::default();
    for (at, c) in text.chars().enumerate() {
        if at % 4096 == 0 {
            check_for_interrupts()?;
        }
        match mapped.get(&c) {
            None => out.push_char(c)?,
            Some(Some(by)) => out.push_char(*by)?,
            Some(None) => {}
        }
    }
    ChargedText::built(out)
}

impl XPathContext<'_, '_> {
    fn text_of(&self, args: &[Expr], at: usize) -> Result<ChargedText> {
        match args.get(at) {
            Some(arg) => self.value(arg)?.into_text(self.tree),
            None => node_string(self.tree, self.node),
        }
    }

    fn number_of(&self, args: &[Expr], at: usize) -> Result<f64> {
        match args.get(at) {
            Some(arg) => self.value(arg)?.number(self.tree),
            None => Ok(super::eval::text_number(&node_string(
                self.tree, self.node,
            )?)),
        }
    }

    fn nodes_of(&self, args: &[Expr]) -> Result<Nodes> {
        match args.first() {
            Some(arg) => self.value(arg)?.nodes(),
            None => Ok(Nodes::one(self.node)),
        }
    }

    /// The language that the node, or what it is in, says it is in.
    fn is_in_language(&self, wanted: &str) -> bool {
        let mut at = Some(self.node);
        while let Some(id) = at {
            let of = self.tree.of_kind(id, NodeKind::Attribute);
            for attribute in of {
                let attribute = self.tree.node(attribute);
                if attribute.name == "xml:lang" {
                    let said: &str = &attribute.value;
                    let head = said.get(..wanted.len()).unwrap_or_default();
                    let rest = said.get(wanted.len()..).unwrap_or_default();
                    return head.eq_ignore_ascii_case(wanted)
                        && (rest.is_empty() || rest.starts_with('-'));
                }
            }
            let parent = self.tree.node(id).parent;
            at = (parent != super::super::tree::NONE).then_some(parent);
        }
        false
    }

    pub(super) fn call(&self, function: Function, args: &[Expr]) -> Result<Value> {
        let text = |at| self.text_of(args, at);
        Ok(match function {
            Function::Last => Value::Number(self.size as f64),
            Function::Position => Value::Number(self.position as f64),
            Function::Count => Value::Number(self.nodes_of(args)?.len() as f64),
            Function::Id => return Err(SqlError::unsupported("function id() of XPath")),
            Function::LocalName | Function::Name | Function::NamespaceUri => {
                let Some(node) = self.nodes_of(args)?.first().copied() else {
                    return Ok(Value::Text(ChargedText::default()));
                };
                let named = matches!(
                    self.tree.kind(node),
                    NodeKind::Element | NodeKind::Attribute | NodeKind::Instruction
                );
                let name: &str = match function {
                    _ if !named => "",
                    Function::LocalName => self.tree.local_name(node),
                    Function::Name => &self.tree.node(node).name,
                    _ => self.tree.uri(node).unwrap_or_default(),
                };
                Value::Text(ChargedText::copied(name)?)
            }
            Function::String => Value::Text(text(0)?),
            Function::Concat => {
                let mut out = Builder::default();
                for at in 0..args.len() {
                    out.push_str(&text(at)?)?;
                }
                Value::Text(ChargedText::built(out)?)
            }
            Function::StartsWith => {
                let (whole, part) = (text(0)?, text(1)?);
                Value::Bool(whole.starts_with(&*part))
            }
            Function::Contains => {
                let (whole, part) = (text(0)?, text(1)?);
                Value::Bool(whole.contains(&*part))
            }
            Function::SubstringBefore => {
                let (whole, part) = (text(0)?, text(1)?);
                let found = whole.split_once(&*part);
                Value::Text(ChargedText::copied(found.map_or("", |(before, _)| before))?)
            }
            Function::SubstringAfter => {
                let (whole, part) = (text(0)?, text(1)?);
                let found = whole.split_once(&*part);
                Value::Text(ChargedText::copied(found.map_or("", |(_, after)| after))?)
            }
            Function::Substring => {
                let length = match args.get(2) {
                    Some(_) => Some(self.number_of(args, 2)?),
                    None => None,
                };
                Value::Text(substring(&text(0)?, self.number_of(args, 1)?, length)?)
            }
            Function::StringLength => Value::Number(text(0)?.chars().count() as f64),
            Function::NormalizeSpace => {
                let whole = text(0)?;
                let words = whole
                    .split([' ', '\t', '\n', '\r'])
                    .filter(|w| !w.is_empty());
                let mut out = Builder::default();
                for (at, word) in words.enumerate() {
                    if at > 0 {
                        out.push_byte(b' ')?;
                    }
                    out.push_str(word)?;
                }
                Value::Text(ChargedText::built(out)?)
            }
            Function::Translate => Value::Text(translated(&text(0)?, &text(1)?, &text(2)?)?),
            Function::Boolean => Value::Bool(self.truth_of(args)?),
            Function::Not => Value::Bool(!self.truth_of(args)?),
            Function::True => Value::Bool(true),
            Function::False => Value::Bool(false),
            Function::Lang => Value::Bool(self.is_in_language(&text(0)?)),
            Function::Number => Value::Number(self.number_of(args, 0)?),
            Function::Sum => {
                let mut sum = 0.0;
                for node in self.nodes_of(args)?.iter() {
                    sum += super::eval::text_number(&node_string(self.tree, *node)?);
                }
                Value::Number(sum)
            }
            Function::Floor => Value::Number(self.number_of(args, 0)?.floor()),
            Function::Ceiling => Value::Number(self.number_of(args, 0)?.ceil()),
            Function::Round => Value::Number(rounded(self.number_of(args, 0)?)),
        })
    }

    fn truth_of(&self, args: &[Expr]) -> Result<bool> {
        match args.first() {
            Some(arg) => Ok(self.value(arg)?.truth()),
            None => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::eval::number_text;
    use super::*;

    #[test]
    fn numbers_are_written_as_xpath_has_them() {
        assert_eq!(number_text(-0.0), "0");
        assert_eq!(number_text(1.5), "1.5");
        assert_eq!(number_text(100.0), "100");
        assert_eq!(number_text(f64::NAN), "NaN");
    }

    #[test]
    fn halves_go_up() {
        assert_eq!(rounded(-2.5), -2.0);
        assert_eq!(rounded(2.5), 3.0);
    }

    #[test]
    fn substrings_count_from_one() {
        let part = |from, length| {
            let found = substring("12345", from, length).unwrap();
            found.into_string()
        };
        assert_eq!(part(1.5, Some(2.6)), "234");
        assert_eq!(part(0.0, Some(3.0)), "12");
        assert_eq!(part(f64::NAN, Some(3.0)), "");
        assert_eq!(part(2.0, None), "2345");
    }
}
