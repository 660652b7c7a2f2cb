//! What the columns of FROM items are called in a view's text.
//!
//! A column has its present name where the text then means what the query means. Where it would not (a column came to
//! a table or was renamed since, and its name is that of another), the item is given aliases of columns. The rules
//! are PostgreSQL's: names of columns that JOIN ... USING merges are chosen first, from the outermost join to the
//! innermost one; then each item's others, each of them once.

use super::super::scope::{NsColumnSource, NsItem};
use super::Shown;
use logstead_sql_catalog::Relation;
use logstead_sql_parse::ast::{JoinExpr, JoinQual, TableRef};

/// Longest name.
const NAME_BYTES_MAX: usize = 63;

/// What a column is to the query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    There,
    /// It was there when the query was kept.
    Dropped,
    /// It has come since.
    New,
    /// It was dropped before, or is no column of this item.
    Never,
}

struct Column {
    /// What the query calls it.
    was: String,
    /// What it is called now: of an item.
    real: String,
    /// The alias that the query gives it.
    given: Option<String>,
    state: State,
    /// What it is called in the text, once that is chosen.
    name: Option<String>,
    /// Where it is among the columns of a join's sides.
    sides: [Option<usize>; 2],
}

/// A FROM item or a join.
struct Node {
    /// The binder's item, if there is one for it.
    item: Option<usize>,
    /// The binder's item for the alias of USING.
    using_alias: Option<usize>,
    sides: Option<[usize; 2]>,
    /// How many columns come first that the join merges, and whether it is a join that names them.
    merged: usize,
    names_columns: bool,
    /// A join that has a name.
    named: bool,
    /// A relation or a WITH query, whose columns are listed only if that says something.
    kind: Kind,
    columns: Vec<Column>,
    /// The columns as they are when the text is read: the name, and whether it has come since.
    now: Vec<(String, bool)>,
    parent_using: Vec<String>,
    listed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Relation,
    Function,
    /// XMLTABLE, whose columns no alias names.
    Unlisted,
    /// A subquery, VALUES, a WITH query; whether its alias has columns.
    Query(bool),
    Join,
}

/// The nodes of one FROM clause; a join stands behind its sides.
#[derive(Default)]
pub(super) struct Columns {
    nodes: Vec<Node>,
    roots: Vec<usize>,
    /// Names of merged columns that nothing else of this query may have.
    using_names: Vec<String>,
}

/// What the binder and the catalog know of an item.
pub(super) struct Items<'s> {
    pub(super) ns: &'s [NsItem],
    pub(super) relations: Vec<Option<&'s Relation>>,
}

impl Columns {
    /// Names for the columns of all items, and those of each join with USING or NATURAL, in the order in which the
    /// joins end.
    pub(super) fn name(
        from: &[TableRef],
        items: &Items<'_>,
        shown: &mut [Shown],
    ) -> Vec<Vec<String>> {
        let mut all = Columns::default();
        let mut at = 0;
        for item in from {
            let root = all.table_ref(item, items, &mut at);
            all.roots.push(root);
        }
        let unique = all.nodes.iter().any(|node| node.is_dangerous(items));
        for root in all.roots.clone() {
            all.name_merged(root, &[], unique);
        }
        for node in 0..all.nodes.len() {
            match all.nodes[node].sides {
                Some(sides) => all.name_join(node, sides),
                None => all.name_item(node),
            }
        }
        all.give(shown)
    }

    fn push(&mut self, item: Option<usize>, kind: Kind, columns: Vec<Column>) -> usize {
        self.nodes.push(Node {
            item,
            using_alias: None,
            sides: None,
            merged: 0,
            names_columns: false,
            named: false,
            kind,
            columns,
            now: Vec::new(),
            parent_using: Vec::new(),
            listed: false,
        });
        self.nodes.len() - 1
    }

    fn table_ref(&mut self, item: &TableRef, items: &Items<'_>, at: &mut usize) -> usize {
        match item {
            TableRef::Join(join) => self.joined(join, items, at),
            item => self.item(item, items, at),
        }
    }

    fn joined(&mut self, join: &JoinExpr, items: &Items<'_>, at: &mut usize) -> usize {
        let left = self.table_ref(&join.larg, items, at);
        let right = self.table_ref(&join.rarg, items, at);
        let (names, alias) = match &join.quals {
            JoinQual::Using(names, alias) => (
                Some(names.iter().map(ToString::to_string).collect()),
                alias.is_some(),
            ),
            JoinQual::None if join.is_natural => (Some(self.common(left, right)), false),
            JoinQual::None | JoinQual::On(_) => (None, false),
        };
        let node = self.join(left, right, names.as_deref());
        if names.is_some() {
            self.nodes[node].item = Some(*at);
            *at += 1;
        }
        if alias {
            self.nodes[node].using_alias = Some(*at);
            *at += 1;
        }
        if let Some(alias) = &join.alias {
            let own = &mut self.nodes[node];
            own.item = Some(*at);
            own.named = true;
            for (column, given) in own.columns.iter_mut().zip(&alias.colnames) {
                column.was = given.to_string();
                column.given = Some(column.was.clone());
            }
            *at += 1;
        }
        node
    }

    /// An item that is no join.
    fn item(&mut self, item: &TableRef, items: &Items<'_>, at: &mut usize) -> usize {
        let index = *at;
        *at += 1;
        let aliased = match item {
            TableRef::Function(node) if !node.coldeflist.is_empty() => node.coldeflist.len(),
            item => item.alias().map_or(0, |alias| alias.colnames.len()),
        };
        let relation = items.relations.get(index).copied().flatten();
        let kind = match item {
            TableRef::TableFunc(_) => Kind::Unlisted,
            TableRef::RangeVar(_) if relation.is_some() => Kind::Relation,
            TableRef::RangeVar(_) | TableRef::Subselect(_) => Kind::Query(aliased > 0),
            _ => Kind::Function,
        };
        let mut live = 0;
        let columns = items.ns.get(index).map(|item| item.columns.as_slice());
        let columns = columns.unwrap_or_default().iter().enumerate();
        let columns = columns.map(|(at, c)| {
            let state = match (&c.what, &c.in_row) {
                (NsColumnSource::Gone { counts: true }, _) => State::Dropped,
                (NsColumnSource::Gone { counts: false }, Some(_)) => State::New,
                (NsColumnSource::Gone { counts: false }, None) => State::Never,
                _ => State::There,
            };
            let counted = matches!(state, State::There | State::Dropped);
            let given = counted && live < aliased;
            live += usize::from(counted);
            let real = relation.and_then(|r| r.columns.get(at));
            Column {
                was: c.name.to_string(),
                real: real.map_or_else(|| c.name.to_string(), |real| real.name.clone()),
                given: given.then(|| c.name.to_string()),
                state,
                name: None,
                sides: [None, None],
            }
        });
        let columns = columns.collect();
        self.push(Some(index), kind, columns)
    }

    /// Columns that the two sides of a natural join have in common.
    fn common(&self, left: usize, right: usize) -> Vec<String> {
        let there = |node: usize| {
            let columns = self.nodes[node].columns.iter();
            columns.filter(|c| c.state == State::There)
        };
        there(left)
            .filter(|c| there(right).any(|other| other.was == c.was))
            .map(|c| c.was.clone())
            .collect()
    }

    fn join(&mut self, left: usize, right: usize, using: Option<&[String]>) -> usize {
        let sides = [left, right];
        let find = |side: usize, name: &str| {
            let columns = self.nodes[sides[side]].columns.iter();
            columns
                .clone()
                .position(|c| c.state == State::There && c.was == name)
        };
        let column = |was: &str, state, sides| Column {
            was: was.to_owned(),
            real: was.to_owned(),
            given: None,
            state,
            name: None,
            sides,
        };
        let using_names = using.unwrap_or_default();
        let mut columns: Vec<Column> = using_names
            .iter()
            .map(|name| column(name, State::There, [find(0, name), find(1, name)]))
            .collect();
        for side in 0..2 {
            for (at, c) in self.nodes[sides[side]].columns.iter().enumerate() {
                let merged =
                    { columns.iter().take(using_names.len()) }.any(|m| m.sides[side] == Some(at));
                if merged || matches!(c.state, State::New | State::Never) {
                    continue;
                }
                let mut place = [None, None];
                place[side] = Some(at);
                columns.push(column(&c.was, c.state, place));
            }
        }
        let node = self.push(None, Kind::Join, columns);
        self.nodes[node].sides = Some(sides);
        self.nodes[node].merged = using_names.len();
        self.nodes[node].names_columns = using.is_some();
        node
    }

    /// Chooses the names of merged columns, and hands them down to the sides.
    fn name_merged(&mut self, node: usize, parent_using: &[String], unique: bool) {
        let Some(sides) = self.nodes[node].sides else {
            return;
        };
        if !self.nodes[node].named {
            self.hand_down(node, sides, self.nodes[node].columns.len());
        }
        let mut using = parent_using.to_vec();
        for at in 0..self.nodes[node].merged {
            let column = &self.nodes[node].columns[at];
            let name = match &column.name {
                Some(name) => name.clone(),
                None => {
                    let wanted = column.given.as_ref().unwrap_or(&column.was).clone();
                    let name = self.unique(node, &wanted);
                    if unique {
                        self.using_names.push(name.clone());
                    }
                    self.nodes[node].columns[at].name = Some(name.clone());
                    name
                }
            };
            using.push(name);
        }
        self.hand_down(node, sides, self.nodes[node].merged);
        for side in sides {
            self.nodes[side].parent_using.clone_from(&using);
            self.name_merged(side, &using, unique);
        }
    }

    /// Names that the first columns of a join have been given are those of the sides' columns.
    fn hand_down(&mut self, node: usize, sides: [usize; 2], count: usize) {
        for at in 0..count {
            let column = &self.nodes[node].columns[at];
            let (Some(name), places) = (column.name.clone(), column.sides) else {
                continue;
            };
            for (side, place) in sides.into_iter().zip(places) {
                if let Some(place) = place {
                    self.nodes[side].columns[place].name = Some(name.clone());
                }
            }
        }
    }

    /// `wanted`, or with a number behind it if the name is taken.
    fn unique(&self, node: usize, wanted: &str) -> String {
        let own = &self.nodes[node];
        let taken = |name: &str| {
            own.columns.iter().any(|c| c.name.as_deref() == Some(name))
                || own.now.iter().any(|(n, _)| n == name)
                || self.using_names.iter().any(|n| n == name)
                || own.parent_using.iter().any(|n| n == name)
        };
        let mut name = wanted.to_owned();
        let mut number = 0;
        while taken(&name) {
            number += 1;
            let behind = format!("_{number}");
            let room = NAME_BYTES_MAX.saturating_sub(behind.len());
            let cut = wanted.floor_char_boundary(room.min(wanted.len()));
            name = format!("{}{behind}", &wanted[..cut]);
        }
        name
    }

    fn name_item(&mut self, node: usize) {
        let mut changed = false;
        for at in 0..self.nodes[node].columns.len() {
            let column = &self.nodes[node].columns[at];
            if !matches!(column.state, State::There | State::New) {
                continue;
            }
            let is_new = column.state == State::New;
            let name = match &column.name {
                Some(name) => name.clone(),
                None => {
                    let wanted = column.given.as_ref().unwrap_or(&column.real).clone();
                    self.unique(node, &wanted)
                }
            };
            let own = &mut self.nodes[node];
            changed |= name != own.columns[at].real;
            own.columns[at].name = Some(name.clone());
            own.now.push((name, is_new));
        }
        let own = &mut self.nodes[node];
        own.listed = match own.kind {
            Kind::Function | Kind::Query(true) => true,
            Kind::Unlisted => false,
            Kind::Relation | Kind::Query(false) | Kind::Join => changed,
        };
    }

    fn name_join(&mut self, node: usize, sides: [usize; 2]) {
        let named = self.nodes[node].named;
        let merged = self.nodes[node].merged;
        let mut changed = false;
        for at in merged..self.nodes[node].columns.len() {
            let column = &self.nodes[node].columns[at];
            let real = { sides.into_iter().zip(column.sides) }
                .find_map(|(side, place)| self.nodes[side].columns[place?].name.clone());
            let Some(real) = real.filter(|_| column.state == State::There) else {
                self.nodes[node].columns[at].name = None;
                continue;
            };
            let name = match (&column.name, named) {
                (_, false) => real.clone(),
                (Some(name), true) => name.clone(),
                (None, true) => {
                    let wanted = column.given.as_ref().unwrap_or(&real).clone();
                    self.unique(node, &wanted)
                }
            };
            changed |= name != real;
            self.nodes[node].columns[at].name = Some(name);
        }
        let own = &self.nodes[node];
        let names = own
            .columns
            .iter()
            .take(merged)
            .filter_map(|c| c.name.clone());
        self.nodes[node].now = names.map(|name| (name, false)).collect();
        // Those of the sides that are not merged, with what has come to them since.
        let mut next = merged;
        for (side, child) in sides.into_iter().enumerate() {
            let mut old = 0;
            for at in 0..self.nodes[child].now.len() {
                let (name, is_new) = self.nodes[child].now[at].clone();
                if is_new {
                    let given = if named {
                        self.unique(node, &name)
                    } else {
                        name.clone()
                    };
                    changed |= given != name;
                    self.nodes[node].now.push((given, true));
                    continue;
                }
                let columns = &self.nodes[child].columns;
                let here = |c: &Column| c.state == State::There;
                while columns.get(old).is_some_and(|c| !here(c)) {
                    old += 1;
                }
                let own = &mut self.nodes[node];
                let joined = own.columns.iter().take(merged);
                let is_merged = { joined }.any(|c| c.sides[side] == Some(old));
                old += 1;
                if is_merged {
                    continue;
                }
                while own.columns.get(next).is_some_and(|c| !here(c)) {
                    next += 1;
                }
                let name = own.columns.get(next).and_then(|c| c.name.clone());
                own.now.extend(name.map(|name| (name, false)));
                next += 1;
            }
        }
        self.nodes[node].listed = named && changed;
    }

    fn give(self, shown: &mut [Shown]) -> Vec<Vec<String>> {
        let mut using = Vec::new();
        for node in self.nodes {
            let names: Vec<String> = { node.columns.iter() }
                .map(|c| c.name.clone().unwrap_or_else(|| c.was.clone()))
                .collect();
            let merged: Vec<String> = names.iter().take(node.merged).cloned().collect();
            if let Some(item) = node.using_alias.and_then(|at| shown.get_mut(at)) {
                item.columns.clone_from(&merged);
            }
            if node.names_columns {
                using.push(merged);
            }
            if let Some(item) = node.item.and_then(|at| shown.get_mut(at)) {
                item.columns = names;
                if node.listed {
                    item.listed = node.now.into_iter().map(|(name, _)| name).collect();
                }
            }
        }
        using
    }
}

impl Node {
    /// Does a join without a name merge columns into something that has no name of its own? It can be named by the
    /// merged column alone.
    fn is_dangerous(&self, items: &Items<'_>) -> bool {
        let item = self.item.filter(|_| !self.named && self.merged > 0);
        let columns = item.and_then(|at| items.ns.get(at));
        let merged = columns.map(|item| item.columns.iter().take(self.merged));
        { merged.into_iter().flatten() }.any(|c| matches!(c.what, NsColumnSource::Merged(..)))
    }
}
