//! Rewrite passes over the logical query tree and its expressions. Each file is one pass, with its rule on top.
//!
//! | pass | what it does |
//! |---|---|
//! | [`fold_constants`] | computes what follows from constants |
//! | [`factor_disjuncts`] | takes out of OR what all its arms say, and makes of the rest conditions on one item |
//! | [`propagate_constants`] | what is equal to a constant is it, wherever it stands |
//! | [`push_down_quals`] | conditions go into the query in FROM that they are about |
//! | [`prune_columns`] | columns of a query in FROM that nobody reads are not computed |
//! | [`pull_up_sublinks`] | EXISTS and IN become semi and anti joins |
//! | [`decorrelate`] | a correlated aggregate becomes, as a second form, a join with groups |
//!
//! Views become part of the query that reads them while they are bound (`bind::view`): their texts have to be bound in
//! any case. Passes that ask for costs are the planner's (`planner::reduce_joins`, `planner::decorrelation_choice`).

mod decorrelate;
pub(crate) mod factor_disjuncts;
pub(crate) mod fold_constants;
pub(crate) mod leakproof;
pub(crate) mod propagate_constants;
pub(crate) mod prune_columns;
mod pull_up_sublinks;
pub(crate) mod push_down_quals;
