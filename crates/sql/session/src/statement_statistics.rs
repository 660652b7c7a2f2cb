//! What statements cost, by their kind: `pg_stat_statements`, as PostgreSQL's extension of this name shows it.
//!
//! Owns: the counters of each kind of statement, of all sessions, and what makes two texts the same kind: they differ
//! in their constants, blanks, comments and the case of their words only.
//!
//! A text that a worker keeps parsed keeps its counters at hand, so a statement that comes again costs one uncontended
//! lock. There are [`KINDS_MAX`] kinds at most: when there are more, those with the fewest calls are forgotten, a
//! twentieth at a time.
//!
//! Does not: survive a restart, count planning, or know who may see what (`pg_stat_statements`).

use logstead_sql_catalog::context::StatementRow;
use logstead_sql_parse::lexer::{Lexer, LexerOptions, TokenKind};
use logstead_sql_types::{DatabaseOid, RoleId};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Kinds of statements that are counted (`pg_stat_statements.max`).
const KINDS_MAX: usize = 5000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PgssHashKey {
    pub(crate) role: RoleId,
    pub(crate) database: DatabaseOid,
    pub(crate) query_id: i64,
}

/// Milliseconds; the variance by Welford's method, as PostgreSQL's.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    calls: i64,
    rows: i64,
    total: f64,
    min: f64,
    max: f64,
    mean: f64,
    squares: f64,
}

/// The counters of one kind of statement.
#[derive(Debug)]
pub(super) struct PgssEntry {
    pub(crate) kind: PgssHashKey,
    query: Arc<str>,
    counters: Mutex<Counters>,
    /// Nobody is shown these any more.
    pub(crate) forgotten: AtomicBool,
}

impl PgssEntry {
    /// It has run once more.
    pub(super) fn add(&self, took_us: i64, rows: u64) {
        let ms = took_us as f64 / 1000.0;
        let mut counters = self.counters.lock();
        counters.calls += 1;
        counters.rows = counters.rows.saturating_add_unsigned(rows);
        counters.total += ms;
        counters.min = if counters.calls == 1 {
            ms
        } else {
            counters.min.min(ms)
        };
        counters.max = counters.max.max(ms);
        let off = ms - counters.mean;
        counters.mean += off / counters.calls as f64;
        counters.squares += off * (ms - counters.mean);
    }
}

/// All kinds of a server.
#[derive(Debug, Default)]
pub(super) struct Statistics(Mutex<HashMap<PgssHashKey, Arc<PgssEntry>>>);

impl Statistics {
    /// The counters of a kind, new ones if need be.
    pub(crate) fn of(&self, kind: PgssHashKey, query: impl FnOnce() -> Arc<str>) -> Arc<PgssEntry> {
        let mut kinds = self.0.lock();
        if let Some(counted) = kinds.get(&kind) {
            return Arc::clone(counted);
        }
        if kinds.len() >= KINDS_MAX {
            let mut by_calls: Vec<(i64, PgssHashKey)> = kinds
                .values()
                .map(|counted| (counted.counters.lock().calls, counted.kind))
                .collect();
            by_calls.sort_unstable_by_key(|(calls, _)| *calls);
            for (_, kind) in by_calls.iter().take(KINDS_MAX / 20) {
                if let Some(counted) = kinds.remove(kind) {
                    counted.forgotten.store(true, Ordering::Relaxed);
                }
            }
        }
        let counted = Arc::new(PgssEntry {
            kind,
            query: query(),
            counters: Mutex::default(),
            forgotten: AtomicBool::new(false),
        });
        kinds.insert(kind, Arc::clone(&counted));
        counted
    }

    /// `pg_stat_statements_reset`: no role and no database stand for all, and so does 0.
    pub(crate) fn reset(&self, role: Option<RoleId>, database: Option<DatabaseOid>, query_id: i64) {
        self.0.lock().retain(|kind, counted| {
            let goes = role.is_none_or(|role| role == kind.role)
                && database.is_none_or(|database| database == kind.database)
                && (query_id == 0 || query_id == kind.query_id);
            if goes {
                counted.forgotten.store(true, Ordering::Relaxed);
            }
            !goes
        });
    }

    pub(crate) fn rows(&self, may_see: impl Fn(RoleId) -> bool) -> Vec<StatementRow> {
        let row = |counted: &Arc<PgssEntry>| {
            let counters = *counted.counters.lock();
            let seen = may_see(counted.kind.role);
            let calls = counters.calls as f64;
            (counters.calls > 0).then(|| StatementRow {
                role: counted.kind.role,
                database: counted.kind.database,
                query_id: seen.then_some(counted.kind.query_id),
                query: seen.then(|| Arc::clone(&counted.query)),
                calls: counters.calls,
                rows: counters.rows,
                total_ms: counters.total,
                min_ms: counters.min,
                max_ms: counters.max,
                mean_ms: counters.mean,
                deviation_ms: (counters.squares / calls).sqrt(),
            })
        };
        self.0.lock().values().filter_map(row).collect()
    }
}

/// A text's counters, at hand.
#[derive(Debug, Default)]
pub(super) struct CachedPgssEntry(pub(crate) RefCell<Option<Arc<PgssEntry>>>);

/// The text with `$n` for its constants, and the number of its kind.
pub(crate) fn kind_of(text: &str) -> (String, i64) {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    let tokens = Lexer::client(text, LexerOptions::default());
    if tokens.error.is_some() {
        text.hash(&mut hasher);
        return (text.to_owned(), hasher.finish().cast_signed());
    }
    let given = tokens.tokens.iter().filter_map(|token| match token.kind {
        TokenKind::Param => tokens.written(*token).strip_prefix('$')?.parse().ok(),
        _ => None,
    });
    let mut number: u64 = given.max().unwrap_or(0);
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for token in &tokens.tokens {
        // Blanks and comments are shown and do not count.
        shown.push_str(text.get(copied..token.start as usize).unwrap_or_default());
        copied = token.end as usize;
        let written = tokens.written(*token);
        match token.kind {
            TokenKind::IConst
            | TokenKind::FConst
            | TokenKind::SConst
            | TokenKind::BConst
            | TokenKind::XConst => {
                number += 1;
                shown.push_str(&format!("${number}"));
                '$'.hash(&mut hasher);
            }
            TokenKind::Param => {
                shown.push_str(written);
                '$'.hash(&mut hasher);
            }
            TokenKind::Semicolon => {}
            TokenKind::QuotedIdent => {
                shown.push_str(written);
                written.hash(&mut hasher);
            }
            _ => {
                shown.push_str(written);
                written.to_ascii_lowercase().hash(&mut hasher);
            }
        }
    }
    let shown = shown.trim();
    (shown.to_owned(), hasher.finish().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_catalog::role::BOOTSTRAP;

    #[test]
    fn texts_that_differ_in_constants_and_blanks_are_one_kind() {
        let (shown, kind) = kind_of("SELECT a, 'x' FROM t WHERE b = 4711 AND c = $2;");
        assert_eq!(shown, "SELECT a, $3 FROM t WHERE b = $4 AND c = $2");
        for same in [
            "select a,'yy'  FROM t where b=1.5 and c = $1",
            "SELECT a, $$z$$ /* why */ FROM t WHERE b = $1 AND c = 7",
        ] {
            assert_eq!(kind_of(same).1, kind, "{same}");
        }
        for other in [
            "SELECT a, 'x' FROM t WHERE b = 4711 OR c = $2",
            "SELECT a, 'x' FROM \"T\" WHERE b = 4711 AND c = $2",
        ] {
            assert_ne!(kind_of(other).1, kind, "{other}");
        }
    }

    #[test]
    fn the_least_used_kinds_are_forgotten() {
        let statistics = Statistics::default();
        let kind = |query_id| PgssHashKey {
            role: BOOTSTRAP,
            database: DatabaseOid::new(1),
            query_id,
        };
        let often = statistics.of(kind(-1), || "often".into());
        often.add(2000, 3);
        often.add(4000, 1);
        let others: Vec<Arc<PgssEntry>> = (0..2 * KINDS_MAX as i64)
            .map(|id| statistics.of(kind(id), || id.to_string().into()))
            .collect();
        let kept = statistics.0.lock().len();
        assert!(kept <= KINDS_MAX);
        let forgotten = |counted: &&Arc<PgssEntry>| counted.forgotten.load(Ordering::Relaxed);
        assert_eq!(
            others.iter().filter(forgotten).count(),
            others.len() + 1 - kept
        );
        let rows = statistics.rows(|_| true);
        assert_eq!(rows.len(), 1, "the others have not run");
        let row = &rows[0];
        assert_eq!((row.calls, row.rows, row.query_id), (2, 4, Some(-1)));
        assert_eq!((row.total_ms, row.min_ms, row.max_ms), (6.0, 2.0, 4.0));
        assert_eq!((row.mean_ms, row.deviation_ms), (3.0, 1.0));
        assert_eq!(statistics.rows(|_| false)[0].query, None);
        statistics.reset(Some(BOOTSTRAP), Some(DatabaseOid::new(1)), 5);
        assert_eq!(statistics.rows(|_| true).len(), 1);
        statistics.reset(None, None, -1);
        assert!(statistics.rows(|_| true).is_empty());
    }
}
