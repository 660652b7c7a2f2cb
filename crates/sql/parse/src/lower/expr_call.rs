//! Calls of functions, their windows and their keys of sorting.

use super::Lower;
use crate::ast::{FrameBound, FuncCall, SortBy, WindowDef};
use crate::lowered as library;
use logstead_sql_types::error::Result;

impl Lower<'_> {
    /// A call.
    pub(super) fn func_call(&self, node: &FuncCall) -> Result<library::FuncCall> {
        let mut args = Vec::with_capacity(node.args.len());
        for arg in &node.args {
            let name = arg.name.as_ref();
            args.push(library::FuncArg {
                name: name.map(|(name, location)| (name.clone(), *location)),
                value: self.expr(&arg.value)?,
            });
        }
        Ok(library::FuncCall {
            funcname: node.funcname.clone(),
            args,
            agg_order: self.sort_keys(&node.agg_order)?,
            agg_filter: self.opt_expr(node.agg_filter.as_ref())?,
            over: match &node.over {
                Some(over) => Some(Box::new(self.window(over)?)),
                None => None,
            },
            agg_within_group: node.agg_within_group,
            agg_star: node.agg_star,
            agg_distinct: node.agg_distinct,
            func_variadic: node.func_variadic,
            funcformat: node.funcformat,
            location: node.location,
        })
    }

    /// Keys of sorting.
    pub(crate) fn sort_keys(&self, keys: &[SortBy]) -> Result<Vec<library::SortBy>> {
        let key = |key: &SortBy| {
            Ok(library::SortBy {
                node: self.expr(&key.node)?,
                dir: key.dir.clone(),
                nulls: key.nulls,
                location: key.location,
            })
        };
        keys.iter().map(key).collect()
    }

    /// A window.
    pub(super) fn window(&self, window: &WindowDef) -> Result<library::WindowDef> {
        Ok(library::WindowDef {
            name: window.name.clone(),
            refname: window.refname.clone(),
            partition_clause: self.exprs(&window.partition_clause)?,
            order_clause: self.sort_keys(&window.order_clause)?,
            frame: match &window.frame {
                Some(frame) => Some(library::WindowFrame {
                    mode: frame.mode,
                    start: self.frame_bound(&frame.start)?,
                    end: match &frame.end {
                        Some(end) => Some(self.frame_bound(end)?),
                        None => None,
                    },
                    exclusion: frame.exclusion,
                }),
                None => None,
            },
            location: window.location,
        })
    }

    fn frame_bound(&self, bound: &FrameBound) -> Result<library::FrameBound> {
        use library::FrameBound as Bound;
        Ok(match bound {
            FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
            FrameBound::Preceding(offset) => Bound::Preceding(self.expr(offset)?),
            FrameBound::CurrentRow => Bound::CurrentRow,
            FrameBound::Following(offset) => Bound::Following(self.expr(offset)?),
            FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
        })
    }
}
