//! Expr.
