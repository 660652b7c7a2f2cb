//! A node's title in EXPLAIN: its name, and what it reads.
//!
//! Owns: PostgreSQL's words for each kind of node. Does not: tell a node's conditions and keys; `details` does.

use super::super::explain_expr::qualified;
use super::super::{JoinKind, Node, Plan, SetOpKind};
use super::joins::{join_type, join_words};
use super::{Reader, Title};

impl Reader<'_> {
    pub(super) fn title(&self, plan: &Plan) -> Title {
        let plain = |text: &str| Title {
            text: text.to_owned(),
            kind: vec![("Node Type", text.to_owned())],
            target: Vec::new(),
        };
        let join = |node: &str, text: String, kind: JoinKind| Title {
            text,
            kind: vec![("Node Type", node.to_owned())],
            target: vec![("Join Type", join_type(kind).to_owned())],
        };
        let aggregate = |text: &str, strategy: &str| Title {
            text: text.to_owned(),
            kind: vec![
                ("Node Type", "Aggregate".to_owned()),
                ("Strategy", strategy.to_owned()),
                ("Partial Mode", "Simple".to_owned()),
            ],
            target: Vec::new(),
        };
        let modify = |operation: &str, table: &logstead_sql_catalog::Relation| {
            let mut title = self.scan("ModifyTable", &table.schema_name, &table.name, &table.name);
            let on = title.text.trim_start_matches("ModifyTable").to_owned();
            title.text = format!("{operation}{on}");
            title.kind.push(("Operation", operation.to_owned()));
            title
        };
        match &plan.node {
            Node::OneRow => plain("Result"),
            // WHERE false.
            Node::Values(rows) if rows.is_empty() => plain("Result"),
            Node::Values(_) => {
                let mut title = plain("Values Scan");
                title.text.push_str(" on \"*VALUES*\"");
                title.target.push(("Alias", "*VALUES*".to_owned()));
                title
            }
            Node::SeqScan(scan) => self.scan(
                "Seq Scan",
                &scan.table.schema_name,
                &scan.table.name,
                &scan.alias,
            ),
            Node::RowScan { scan, .. } => self.scan(
                "Tid Scan",
                &scan.table.schema_name,
                &scan.table.name,
                &scan.alias,
            ),
            Node::IndexScan {
                scan,
                index,
                reverse,
                ..
            } => {
                let table = &scan.table;
                let mut title =
                    self.scan("Index Scan", &table.schema_name, &table.name, &scan.alias);
                let on = title.text.trim_start_matches("Index Scan").to_owned();
                title.text = format!(
                    "Index Scan{} using {}{on}",
                    if *reverse { " Backward" } else { "" },
                    index.name,
                );
                let direction = if *reverse { "Backward" } else { "Forward" };
                title
                    .target
                    .insert(0, ("Scan Direction", direction.to_owned()));
                title.target.insert(1, ("Index Name", index.name.clone()));
                title
            }
            Node::VirtualScan { table, alias, .. } => {
                self.scan("Seq Scan", table.schema, table.name, alias)
            }
            Node::FunctionScan {
                function, alias, ..
            } => {
                let mut title = self.scan("Function Scan", "pg_catalog", function.name, alias);
                if let Some(first) = title.target.first_mut() {
                    first.0 = "Function Name";
                }
                title
            }
            Node::RoutineScan { callee, alias, .. } => {
                let (schema, name) = &callee.name;
                let mut title = self.scan("Function Scan", schema, name, alias);
                if let Some(first) = title.target.first_mut() {
                    first.0 = "Function Name";
                }
                title
            }
            Node::ProjectSet { .. } => plain("ProjectSet"),
            Node::Filter { .. } | Node::Project { .. } => plain("Result"),
            Node::NestedLoop { kind, .. } => join(
                "Nested Loop",
                format!("Nested Loop{}", join_words(*kind, false)),
                *kind,
            ),
            Node::HashJoin { kind, .. } => join(
                "Hash Join",
                format!("Hash{}", join_words(*kind, true)),
                *kind,
            ),
            Node::MergeJoin { kind, .. } => join(
                "Merge Join",
                format!("Merge{}", join_words(*kind, true)),
                *kind,
            ),
            Node::Aggregate {
                sets: Some(sets), ..
            } => match sets.sets.iter().filter(|set| set.is_empty()).count() {
                0 => aggregate("HashAggregate", "Hashed"),
                empty if empty == sets.sets.len() => aggregate("Aggregate", "Plain"),
                _ => aggregate("MixedAggregate", "Mixed"),
            },
            Node::Aggregate { keys, .. } => match keys.is_empty() {
                true => aggregate("Aggregate", "Plain"),
                false => aggregate("HashAggregate", "Hashed"),
            },
            Node::Sort { .. } => plain("Sort"),
            Node::Window { .. } => plain("WindowAgg"),
            Node::Limit { .. } => plain("Limit"),
            Node::Distinct(_) => aggregate("HashAggregate", "Hashed"),
            Node::DistinctOn { .. } => plain("Unique"),
            Node::SetOp {
                kind: SetOpKind::Union,
                ..
            } => plain("Append"),
            Node::SetOp { kind, all, .. } => {
                let word = match kind {
                    SetOpKind::Except => "Except",
                    _ => "Intersect",
                };
                let command = format!("{word}{}", if *all { " All" } else { "" });
                Title {
                    text: format!("HashSetOp {command}"),
                    kind: vec![
                        ("Node Type", "SetOp".to_owned()),
                        ("Strategy", "Hashed".to_owned()),
                    ],
                    target: vec![("Command", command)],
                }
            }
            Node::With { .. } => plain("Result"),
            Node::CteScan { slot, name } => {
                let known = self.withs.iter().find(|(s, _)| s == slot);
                let with = known.map_or(name, |(_, with)| with);
                let mut text = format!("CTE Scan on {}", qualified("", with, false));
                if with != name {
                    text.push(' ');
                    text.push_str(&qualified("", name, false));
                }
                Title {
                    text,
                    kind: vec![("Node Type", "CTE Scan".to_owned())],
                    target: vec![("CTE Name", with.to_string()), ("Alias", name.to_string())],
                }
            }
            Node::LockRows { .. } => plain("LockRows"),
            Node::Insert(insert) => modify("Insert", &insert.table),
            Node::Update(update) => modify("Update", &update.table),
            Node::Delete(delete) => modify("Delete", &delete.table),
            Node::Merge(merge) => modify("Merge", &merge.table),
        }
    }

    /// A node that reads a relation.
    fn scan(&self, node: &str, schema: &str, name: &str, alias: &str) -> Title {
        let quoted = qualified("", name, false);
        let mut text = match self.options.verbose {
            true => format!("{node} on {}.{quoted}", qualified("", schema, false)),
            false => format!("{node} on {quoted}"),
        };
        if name != alias {
            text.push(' ');
            text.push_str(&qualified("", alias, false));
        }
        let mut target = vec![("Relation Name", name.to_owned())];
        if self.options.verbose {
            target.push(("Schema", schema.to_owned()));
        }
        target.push(("Alias", alias.to_owned()));
        Title {
            text,
            kind: vec![("Node Type", node.to_owned())],
            target,
        }
    }
}
