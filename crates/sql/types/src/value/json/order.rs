//! The B-tree order of `jsonb`, its hash and its index key: equal values are those that compare equal, as in
//! PostgreSQL.
//!
//! Kinds order null, string, number, boolean, array, object; containers order by their number of elements first. One
//! oddity is PostgreSQL's and kept: an empty array at the top is below every scalar.

use super::{JsonType, JsonbRef};
use crate::value::key;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

impl JsonbRef<'_> {
    fn rank(self) -> u8 {
        match self.kind() {
            JsonType::Null => 1,
            JsonType::String => 2,
            JsonType::Number => 3,
            JsonType::False | JsonType::True => 4,
            JsonType::Array => 5,
            JsonType::Object => 6,
        }
    }

    fn is_empty_array(self) -> bool {
        self.kind() == JsonType::Array && self.is_empty()
    }

    /// Order of two whole values.
    pub fn compare(self, other: JsonbRef<'_>) -> Ordering {
        match (self.is_empty_array(), other.is_empty_array()) {
            (true, false) if other.is_scalar() => Ordering::Less,
            (false, true) if self.is_scalar() => Ordering::Greater,
            _ => self.compare_inside(other),
        }
    }

    fn compare_inside(self, other: JsonbRef<'_>) -> Ordering {
        let ranks = self.rank().cmp(&other.rank());
        if ranks != Ordering::Equal {
            return ranks;
        }
        match self.kind() {
            JsonType::Null => Ordering::Equal,
            JsonType::False | JsonType::True => (self.kind() as u8).cmp(&(other.kind() as u8)),
            JsonType::String => self.as_str().as_bytes().cmp(other.as_str().as_bytes()),
            JsonType::Number => self.as_number().cmp(&other.as_number()),
            JsonType::Array => self.len().cmp(&other.len()).then_with(|| {
                let pairs = self.elements().zip(other.elements());
                let mut orders = pairs.map(|(a, b)| a.compare_inside(b));
                orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            }),
            JsonType::Object => self.len().cmp(&other.len()).then_with(|| {
                let pairs = self.members().zip(other.members());
                let mut orders = pairs.map(|((a, x), (b, y))| {
                    a.as_bytes()
                        .cmp(b.as_bytes())
                        .then_with(|| x.compare_inside(y))
                });
                orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            }),
        }
    }

    /// Feeds a hasher; values that compare equal feed the same.
    pub fn hash_value<H: Hasher>(self, h: &mut H) {
        h.write_u8(self.rank());
        match self.kind() {
            JsonType::Null => {}
            JsonType::False => h.write_u8(0),
            JsonType::True => h.write_u8(1),
            JsonType::String => self.as_str().hash(h),
            JsonType::Number => {
                if let Some(n) = self.as_number() {
                    n.hash_value(h);
                }
            }
            JsonType::Array => {
                h.write_usize(self.len());
                self.elements().for_each(|element| element.hash_value(h));
            }
            JsonType::Object => {
                h.write_usize(self.len());
                for (key, value) in self.members() {
                    key.hash(h);
                    value.hash_value(h);
                }
            }
        }
    }

    /// Appends the key form: byte strings that compare as the values do.
    pub fn write_key(self, out: &mut Vec<u8>) {
        if self.is_empty_array() {
            out.push(0);
        } else {
            self.write_key_inside(out);
        }
    }

    fn write_key_inside(self, out: &mut Vec<u8>) {
        out.push(self.rank());
        match self.kind() {
            JsonType::Null => {}
            JsonType::False => out.push(0),
            JsonType::True => out.push(1),
            JsonType::String => key::bytes(self.as_str().as_bytes(), out),
            JsonType::Number => {
                if let Some(n) = self.as_number() {
                    key::numeric(&n, out);
                }
            }
            JsonType::Array => {
                out.extend_from_slice(&(self.len() as u32).to_be_bytes());
                self.elements()
                    .for_each(|element| element.write_key_inside(out));
            }
            JsonType::Object => {
                out.extend_from_slice(&(self.len() as u32).to_be_bytes());
                for (name, value) in self.members() {
                    key::bytes(name.as_bytes(), out);
                    value.write_key_inside(out);
                }
            }
        }
    }
}
