//! Large statements say the same, whether they fit into `work_mem` or go to temporary files; and leave nothing behind.

use super::{Script, ask, bind, converse_with, session, worker_on};
use logstead_env::{Env, File, FileKind, FileLock, Files, OpenMode, RealFiles};
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_session::{Session, WorkerSessions};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A conversation on simulated files, where input and output are done at once, then on real ones, by other threads.
fn everywhere(conversation: impl AsyncFn(Rc<WorkerSessions>)) {
    for env in [Env::simulated(5).0, Env::real()] {
        let home = Arc::new(MemoryHome::new(1 << 20));
        converse_with(true, || worker_on(LogHome::from(home), env), &conversation);
    }
}

const TABLES: &str = "
    CREATE TABLE big (id int, k int, t text, n numeric, w text);
    INSERT INTO big SELECT g, CASE WHEN g % 17 <> 0 THEN g * 7919 % 2000 END,
        CASE WHEN g % 23 <> 0 THEN 'Wort ' || g * 31 % 997 END, g % 50 + 0.50, repeat('x', g % 90)
        FROM generate_series(1, 6000) g;
    CREATE TABLE other (id int, k int, w text);
    INSERT INTO other SELECT g, CASE WHEN g % 13 <> 0 THEN g * 31 % 2500 END, repeat('y', g % 70)
        FROM generate_series(1, 5000) g;
    CREATE TABLE skew (id int, k int, w text);
    INSERT INTO skew SELECT g, CASE WHEN g % 10 = 0 THEN g ELSE 7 END, repeat('z', 60) FROM generate_series(1, 5000) g;
    CREATE TABLE few (id int, k int);
    INSERT INTO few SELECT g, CASE g WHEN 3 THEN NULL WHEN 4 THEN -1 ELSE 7 END FROM generate_series(1, 6) g";

async fn fill(session: &mut Session, client: &mut Script) {
    let said = ask(session, client, TABLES).await;
    assert!(!said.iter().any(|s| s.starts_with("ERROR")), "{said:?}");
}

fn files_made(worker: &WorkerSessions) -> u64 {
    worker.instance.spill.counts().files_made
}

/// Nothing is open, and nothing is left.
async fn nothing_is_left(worker: &WorkerSessions) {
    for _ in 0..1000 {
        let counts = worker.instance.spill.counts();
        if counts.files_open == 0 {
            assert_eq!(counts.used_bytes, 0);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("files stay open: {:?}", worker.instance.spill.counts());
}

/// What `query` gives with much memory, and with so little that it writes `files` files at least.
async fn compare(worker: &Rc<WorkerSessions>, s: &mut Session, query: &str, files: u64) {
    let mut c = Script::default();
    ask(s, &mut c, "SET work_mem = '64MB'").await;
    let before = files_made(worker);
    let mut much = ask(s, &mut c, query).await;
    assert_eq!(files_made(worker), before, "{query}");
    assert!(!much[0].starts_with("ERROR"), "{query}: {much:?}");
    assert!(much.len() > 2, "{query}: {much:?}");
    ask(s, &mut c, "SET work_mem = '64kB'").await;
    let mut little = ask(s, &mut c, query).await;
    let made = files_made(worker) - before;
    assert!(made >= files, "{made} files: {query}");
    // In which order rows come that nobody has asked for in any order is not the same.
    let outer = query.rsplit(')').next().unwrap_or_default();
    if !outer.contains("ORDER BY") {
        much.sort();
        little.sort();
    }
    if much != little {
        let at = much.iter().zip(&little).position(|(a, b)| a != b);
        panic!(
            "{query}\nrow {at:?} of {} and {}: {:?} and {:?}",
            much.len(),
            little.len(),
            at.map(|at| &much[at]),
            at.map(|at| &little[at])
        );
    }
    nothing_is_left(worker).await;
}

async fn compare_all(worker: Rc<WorkerSessions>, queries: &[&str]) {
    let mut s = session(&worker);
    fill(&mut s, &mut Script::default()).await;
    for query in queries {
        compare(&worker, &mut s, query, 1).await;
    }
}

#[test]
fn sorts() {
    everywhere(async |worker| {
        compare_all(
            worker,
            &[
                "SELECT id, k FROM big ORDER BY k NULLS FIRST, id",
                // Ties come in the order of arrival, either way.
                "SELECT id, k, w FROM big ORDER BY k",
                "SELECT id, t FROM big ORDER BY t DESC, id DESC",
                "SELECT id, t FROM big ORDER BY t COLLATE \"C\" DESC NULLS LAST, id",
                "SELECT * FROM big ORDER BY n, t NULLS FIRST, w DESC, id",
                "SELECT id, n, w FROM big ORDER BY w, k LIMIT 5000 OFFSET 100",
                "SELECT DISTINCT ON (k) k, id FROM big ORDER BY k, id DESC",
                "SELECT ARRAY[id, k], n, t FROM big ORDER BY ARRAY[k, id]",
                "SELECT id, (SELECT sum(x.id) FROM (SELECT o.id FROM other o ORDER BY o.w LIMIT 4000) x WHERE x.id < few.id) FROM few ORDER BY id",
            ],
        )
        .await;
    });
}

#[test]
fn hash_joins() {
    everywhere(async |worker| {
        compare_all(
            worker,
            &[
                "SELECT a.id, b.id FROM big a JOIN other b ON a.k = b.k",
                "SELECT a.id, b.id, b.w FROM big a JOIN other b ON a.k = b.k AND a.id % 3 <> b.id % 3",
                "SELECT a.id, b.id FROM big a LEFT JOIN other b ON a.k = b.k AND a.id % 5 <> b.id % 5",
                "SELECT a.id, b.id FROM big a RIGHT JOIN other b ON a.k = b.k AND a.id < b.id",
                "SELECT a.id, b.id FROM big a FULL JOIN other b ON a.k = b.k AND a.id < b.id",
                "SELECT a.id, b.id FROM big a FULL JOIN other b ON a.k = b.k",
                "SELECT id FROM big a WHERE EXISTS (SELECT 1 FROM other b WHERE b.k = a.k AND b.id > a.id)",
                "SELECT id, k FROM big a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE b.k = a.k AND b.id > a.id)",
                "SELECT id FROM big a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE b.k = a.k)",
                "SELECT a.id, b.id FROM big a JOIN other b ON a.k = b.k AND a.n = b.id % 50 + 0.5",
            ],
        )
        .await;
    });
}

#[test]
fn parts_that_cannot_be_divided_are_joined_in_chunks() {
    everywhere(async |worker| {
        let rows = &[
            "SELECT few.id, skew.id FROM few JOIN skew ON few.k = skew.k AND skew.id % 100 = few.id",
            "SELECT few.id, skew.id FROM few LEFT JOIN skew ON few.k = skew.k AND skew.id % 4999 = few.id",
            "SELECT few.id, skew.id FROM skew RIGHT JOIN few ON few.k = skew.k AND skew.id % 4999 = few.id",
            "SELECT few.id, skew.id FROM few FULL JOIN skew ON few.k = skew.k AND skew.id % 4999 = few.id",
            "SELECT few.id, skew.id FROM few RIGHT JOIN skew ON few.k = skew.k AND skew.id % 4999 = few.id",
        ];
        let mut s = session(&worker);
        fill(&mut s, &mut Script::default()).await;
        for query in rows {
            compare(&worker, &mut s, query, 0).await;
        }
        // An outer join keeps its smaller side; here it is always the subquery's.
        let anti = "SELECT id FROM few WHERE NOT EXISTS (SELECT 1 FROM skew WHERE few.k = skew.k AND skew.id % 4999 = few.id)";
        compare(&worker, &mut s, anti, 1).await;
        let explained = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {anti}");
        let said = ask(&mut s, &mut Script::default(), &explained)
            .await
            .join("\n");
        let batches = said
            .split("Batches: ")
            .nth(1)
            .and_then(|s| s.split(' ').next());
        let batches: u64 = batches.and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(batches > 2, "{said}");
        let both = [
            "SELECT a.id, b.id FROM skew a JOIN skew b ON a.k = b.k AND a.id = b.id * 3",
            "SELECT a.id, b.id FROM skew a LEFT JOIN skew b ON a.k = b.k AND a.id = b.id * 3",
            "SELECT a.id, b.id FROM skew a FULL JOIN skew b ON a.k = b.k AND a.id = b.id * 3",
        ];
        for query in both {
            let shorter = query.replace(
                "FROM skew a",
                "FROM (SELECT * FROM skew WHERE id % 20 = 0 OR id < 300) a",
            );
            // Which side goes into the table is the planner's choice.
            compare(&worker, &mut s, &shorter, 0).await;
        }
        let semi = "SELECT id FROM (SELECT * FROM skew WHERE id % 40 = 0 OR id < 200) a
            WHERE EXISTS (SELECT 1 FROM skew b WHERE a.k = b.k AND b.id = a.id * 3)";
        compare(&worker, &mut s, semi, 0).await;
        let anti = semi.replace("EXISTS", "NOT EXISTS");
        compare(&worker, &mut s, &anti, 0).await;
    });
}

#[test]
fn groups() {
    everywhere(async |worker| {
        compare_all(
            worker,
            &[
                "SELECT k, count(*), sum(n), min(w), max(t) FROM big GROUP BY k",
                "SELECT k, count(*) FILTER (WHERE id % 2 = 0), string_agg(id::text, ',') FROM big GROUP BY k",
                "SELECT k, count(DISTINCT id % 3), string_agg(DISTINCT t, '|' ORDER BY t DESC) FROM big GROUP BY k",
                "SELECT t, k, array_agg(id ORDER BY w, id DESC) FROM big GROUP BY t, k HAVING count(*) > 0",
                "SELECT id % 3, count(DISTINCT w || id), count(DISTINCT n), array_length(array_agg(DISTINCT w || id ORDER BY w || id), 1) FROM big GROUP BY 1",
                "SELECT count(DISTINCT w || id % 3000) || ' ' || count(DISTINCT n) || md5(string_agg(w, ',' ORDER BY id % 99, id)) FROM big UNION ALL SELECT 'x'",
                "SELECT k, t, count(*), grouping(k, t) FROM big GROUP BY GROUPING SETS ((k), (t), (k, t), ())",
                "SELECT avg(id), max(c) FROM (SELECT k, max(id) AS id, count(*) AS c FROM big GROUP BY k) x UNION ALL SELECT 0, 0",
            ],
        )
        .await;
    });
}

#[test]
fn distinct_and_set_operations() {
    everywhere(async |worker| {
        compare_all(
            worker,
            &[
                "SELECT DISTINCT k, t FROM big",
                "SELECT DISTINCT w, n, id % 4000 FROM big",
                "SELECT k, w FROM big UNION SELECT k, w FROM other",
                "SELECT k, id % 700 FROM big INTERSECT SELECT k, id % 700 FROM other",
                "SELECT k, w FROM big INTERSECT ALL SELECT k, w FROM (SELECT k, w FROM big UNION ALL SELECT k, w FROM other) x",
                "SELECT k, id % 7 FROM big EXCEPT SELECT k, id % 7 FROM other",
                "SELECT k, w FROM big EXCEPT ALL SELECT k, w FROM other",
                "SELECT id, w FROM big EXCEPT ALL SELECT id, w FROM big WHERE id % 3 = 0",
                "SELECT n, id FROM big EXCEPT SELECT 1.5000, id FROM big",
            ],
        )
        .await;
    });
}

#[test]
fn rows_that_are_kept() {
    everywhere(async |worker| {
        compare_all(
            Rc::clone(&worker),
            &[
                "WITH c AS MATERIALIZED (SELECT * FROM big) SELECT a.id, b.id, b.w FROM c a JOIN c b ON a.id = b.id + 3000 AND a.k <> b.k",
                "WITH c AS MATERIALIZED (SELECT * FROM big) SELECT (SELECT max(w) FROM c), id FROM c ORDER BY id LIMIT 9",
                "WITH RECURSIVE r(n, w) AS (SELECT 1, repeat('x', 50) UNION ALL SELECT n + 1, w FROM r WHERE n < 3000) SELECT n, length(w) FROM r",
                "WITH RECURSIVE r(id, k) AS (SELECT id, k FROM big WHERE id < 50 UNION SELECT b.id, b.k FROM r JOIN big b ON b.id = r.id + 50)
                    SELECT id, k FROM r",
                "SELECT few.id, b.id FROM few LEFT JOIN other b ON few.id > b.id % 500",
            ],
        )
        .await;
        let mut s = session(&worker);
        for query in [
            "SELECT few.id, b.id FROM few RIGHT JOIN other b ON few.id > b.id % 500",
            "SELECT id FROM few WHERE NOT EXISTS (SELECT 1 FROM other b WHERE few.id < b.id % 4) UNION ALL SELECT 0",
        ] {
            compare(&worker, &mut s, query, 0).await;
        }
    });
}

#[test]
fn windows() {
    everywhere(async |worker| {
        compare_all(
            worker,
            &[
                // Nothing is sorted here: the file is the window's.
                "SELECT id, w, count(*) OVER (), sum(n) OVER () FROM big",
                "SELECT id, lag(id, 3000) OVER o, lead(w, 2500, 'none') OVER o FROM big WINDOW o AS (ORDER BY id)",
                "SELECT id, first_value(id) OVER o, last_value(w) OVER o, nth_value(id, 77) OVER o, ntile(7) OVER o, row_number() OVER o
                    FROM big WINDOW o AS (PARTITION BY id % 2 ORDER BY k NULLS FIRST, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
                "SELECT id, percent_rank() OVER o, cume_dist() OVER o, rank() OVER o FROM big WINDOW o AS (ORDER BY n)",
                "SELECT id, count(w) OVER o, first_value(id) OVER o, sum(n) OVER o
                    FROM big WINDOW o AS (ORDER BY id RANGE BETWEEN 2000 PRECEDING AND 1500 FOLLOWING)",
                "SELECT id, last_value(id) OVER (ORDER BY k GROUPS BETWEEN 900 FOLLOWING AND 1000 FOLLOWING) FROM big",
            ],
        )
        .await;
    });
}

#[test]
fn held_cursors_keep_their_rows_in_a_file() {
    everywhere(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        fill(&mut s, &mut c).await;
        ask(&mut s, &mut c, "SET work_mem = '64kB'").await;
        let declare = "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id, w FROM big ORDER BY id";
        let said = ask(
            &mut s,
            &mut c,
            &format!("BEGIN; {declare}; FETCH 2 FROM c; COMMIT"),
        )
        .await;
        assert_eq!(said.last().map(String::as_str), Some("COMMIT"), "{said:?}");
        assert!(worker.instance.spill.counts().files_open > 0);
        ask(&mut s, &mut c, "DELETE FROM big").await;
        for (fetch, ids) in [
            ("FETCH 2 FROM c", &[3, 4][..]),
            ("FETCH ABSOLUTE 5999 FROM c", &[5999]),
            ("FETCH BACKWARD 3 FROM c", &[5998, 5997, 5996]),
            ("FETCH FIRST FROM c", &[1]),
            ("FETCH RELATIVE 3000 FROM c", &[3001]),
            ("FETCH RELATIVE 0 FROM c", &[3001]),
            ("MOVE FORWARD ALL IN c; FETCH PRIOR FROM c", &[6000]),
            ("FETCH ABSOLUTE -5990 FROM c", &[11]),
        ] {
            let said = ask(&mut s, &mut c, fetch).await;
            let rows = said.iter().filter(|line| line.contains('|'));
            let expected: Vec<String> = ids
                .iter()
                .map(|id| format!("{id}|{}", "x".repeat(id % 90)))
                .collect();
            let rows: Vec<&str> = rows
                .map(String::as_str)
                .filter(|row| !row.starts_with("id|"))
                .collect();
            assert_eq!(rows, expected, "{fetch}: {said:?}");
        }
        ask(&mut s, &mut c, "CLOSE c").await;
        nothing_is_left(&worker).await;
        // One that only goes forward gives room back as it goes.
        let declare = declare.replace("SCROLL CURSOR", "NO SCROLL CURSOR");
        let declare = declare.replace("FROM big", "FROM other");
        ask(&mut s, &mut c, &format!("BEGIN; {declare}; COMMIT")).await;
        let before = worker.instance.spill.counts().used_bytes;
        let said = ask(&mut s, &mut c, "FETCH 4900 FROM c").await;
        assert_eq!(said.last().map(String::as_str), Some("FETCH 4900"));
        assert!(worker.instance.spill.counts().used_bytes < before / 2);
        ask(&mut s, &mut c, "CLOSE ALL").await;
        nothing_is_left(&worker).await;
    });
}

#[test]
fn suspended_portals_keep_their_rows_in_a_file() {
    everywhere(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        fill(&mut s, &mut c).await;
        ask(&mut s, &mut c, "SET work_mem = '64kB'").await;
        for query in [
            "SELECT id, w FROM big",
            "SELECT id, w FROM big ORDER BY id",
            "UPDATE few SET k = k FROM generate_series(1, 1) RETURNING few.id",
        ] {
            s.parse("q", query, &[], &mut c).await.unwrap();
            ask(&mut s, &mut c, "BEGIN").await;
            bind(&mut s, &mut c, "p", "q", &[]).await.unwrap();
            s.execute("p", 2, &mut c).await.unwrap();
            s.sync(&mut c).await.unwrap();
            let mut rows = c.take();
            assert_eq!(rows.pop().as_deref(), Some("suspended"));
            // The portal shows what was there.
            ask(
                &mut s,
                &mut c,
                "UPDATE big SET w = 'changed' WHERE id < 100",
            )
            .await;
            if query.contains("big") {
                assert!(worker.instance.spill.counts().files_open > 0, "{query}");
            }
            s.execute("p", 3, &mut c).await.unwrap();
            let some = c.take();
            assert_eq!((some.len(), some[3].as_str()), (4, "suspended"));
            rows.extend(some.into_iter().take(3));
            ask(&mut s, &mut c, "SELECT 1").await;
            s.execute("p", 0, &mut c).await.unwrap();
            rows.extend(c.take());
            let told = rows.pop();
            if query.contains("big") {
                let mut asked = ask(
                    &mut s,
                    &mut c,
                    "ROLLBACK; BEGIN; SELECT id, w FROM big ORDER BY id",
                )
                .await;
                asked.drain(..3);
                assert_eq!(asked.pop().as_deref(), Some("SELECT 6000"));
                rows.sort_by_key(|row| row.split('|').next().and_then(|id| id.parse::<i32>().ok()));
                assert_eq!(rows, asked);
                assert_eq!(told.as_deref(), Some("SELECT 5995"));
            } else {
                assert_eq!((rows.len(), told.as_deref()), (6, Some("UPDATE 6")));
            }
            ask(&mut s, &mut c, "ROLLBACK").await;
            nothing_is_left(&worker).await;
            s.close_statement("q");
        }
    });
}

#[test]
fn sets_of_any_length_can_be_cancelled() {
    everywhere(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "SET statement_timeout = '300ms'").await;
        for query in [
            "SELECT count(*) FROM generate_series(1, 9000000000000)",
            "SELECT count(*) FROM (SELECT generate_series(1, 9000000000000)) x",
            "SELECT max(g) FROM generate_series('2020-01-01'::timestamp, 'infinity', '1us') g",
        ] {
            let said = ask(&mut s, &mut c, query).await;
            let last = said.last().map_or("", String::as_str);
            assert!(last.starts_with("ERROR 57014"), "{query}: {said:?}");
        }
        ask(&mut s, &mut c, "SET statement_timeout = 0").await;
        let query = "SELECT * FROM generate_series(1, 9000000000000) LIMIT 2";
        assert_eq!(ask(&mut s, &mut c, query).await.len(), 4);
        let query = "SELECT generate_series(1, 2), generate_series(10, 8, -1), 7";
        assert_eq!(
            ask(&mut s, &mut c, query).await[1..4],
            ["1|10|7", "2|9|7", "-|8|7"]
        );
    });
}

#[test]
fn what_ends_early_leaves_nothing() {
    everywhere(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        fill(&mut s, &mut c).await;
        ask(&mut s, &mut c, "SET work_mem = '64kB'").await;
        // An error in the middle.
        let said = ask(
            &mut s,
            &mut c,
            "SELECT id, 1 / (id - 4000) FROM (SELECT id FROM big ORDER BY id, w) x",
        )
        .await;
        assert!(said.last().unwrap().starts_with("ERROR 22012"), "{said:?}");
        nothing_is_left(&worker).await;
        // The limit.
        ask(&mut s, &mut c, "SET temp_file_limit = '100kB'").await;
        for query in [
            "SELECT w FROM big ORDER BY w",
            "SELECT count(*) FROM big a JOIN big b USING (id, w)",
            "SELECT DISTINCT id, w FROM big",
        ] {
            let said = ask(&mut s, &mut c, query).await;
            assert_eq!(
                said.last().map(String::as_str),
                Some("ERROR 53400: temporary file size exceeds temp_file_limit (100kB)"),
                "{query}"
            );
            nothing_is_left(&worker).await;
        }
        ask(&mut s, &mut c, "RESET temp_file_limit").await;
        // A cursor in the middle of its rows, and a rollback.
        ask(&mut s, &mut c, "BEGIN").await;
        ask(
            &mut s,
            &mut c,
            "DECLARE c NO SCROLL CURSOR FOR SELECT id FROM big ORDER BY w, id",
        )
        .await;
        ask(&mut s, &mut c, "FETCH 3 FROM c").await;
        assert!(worker.instance.spill.counts().files_open > 0);
        ask(&mut s, &mut c, "ROLLBACK").await;
        nothing_is_left(&worker).await;
        // A session that ends.
        ask(&mut s, &mut c, "BEGIN").await;
        ask(
            &mut s,
            &mut c,
            "DECLARE c NO SCROLL CURSOR FOR SELECT id FROM big ORDER BY w, id",
        )
        .await;
        ask(&mut s, &mut c, "FETCH 3 FROM c").await;
        drop(s);
        nothing_is_left(&worker).await;
    });
}

#[test]
fn explain_tells_how_it_was_done() {
    everywhere(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        fill(&mut s, &mut c).await;
        let mut explain = async |query: &str| {
            let text = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}");
            ask(&mut s, &mut c, &text).await.join("\n")
        };
        let sort = "SELECT id FROM big ORDER BY w, id";
        let said = explain(sort).await;
        assert!(said.contains("Sort Method: quicksort  Memory: "), "{said}");
        let said = explain(&format!("{sort} LIMIT 3")).await;
        assert!(
            said.contains("Sort Method: top-N heapsort  Memory: "),
            "{said}"
        );
        explain("SELECT set_config('work_mem', '64kB', false)").await;
        let said = explain(sort).await;
        assert!(
            said.contains("Sort Method: external merge  Disk: "),
            "{said}"
        );
        let said = explain("SELECT a.id FROM big a JOIN other b ON a.k = b.k").await;
        assert!(said.contains("Batches: "), "{said}");
        assert!(!said.contains("Batches: 1 "), "{said}");
        let said = explain("SELECT w, n, id % 4000, count(*) FROM big GROUP BY 1, 2, 3").await;
        assert!(said.contains("Disk Usage: "), "{said}");
    });
}

#[test]
fn settings_are_as_in_postgresql() {
    everywhere(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        for (text, answer) in [
            ("SHOW hash_mem_multiplier", "2"),
            ("SHOW temp_file_limit", "-1"),
        ] {
            assert_eq!(ask(&mut s, &mut c, text).await[1], answer);
        }
        ask(&mut s, &mut c, "SET hash_mem_multiplier = 1.5").await;
        let said = ask(&mut s, &mut c, "SHOW hash_mem_multiplier").await;
        assert_eq!(said[1], "1.5");
        let said = ask(&mut s, &mut c, "SET hash_mem_multiplier = 0.5").await;
        assert!(
            said[0].contains(
                "0.5 is outside the valid range for parameter \"hash_mem_multiplier\" (1 .. 1000)"
            ),
            "{said:?}"
        );
        let said = ask(&mut s, &mut c, "SET temp_directory = '/elsewhere'").await;
        assert!(said[0].starts_with("ERROR 55P02"), "{said:?}");
    });
}

#[test]
fn a_start_clears_the_directory() {
    let (env, _files) = Env::simulated(5);
    let directory = PathBuf::from("/somewhere");
    env.files.create_dir(&directory).unwrap();
    let put = |name: &str| {
        let mode = logstead_env::OpenMode::buffered(logstead_env::Access::CreateNew);
        env.files.open(&directory.join(name), mode).unwrap();
    };
    put("logstead_temp_0.lock");
    put("logstead_temp_0.12");
    put("kept");
    logstead_sql_exec::SpillSpace::new(env.clone(), directory.clone());
    let left = env.files.list(Path::new("/somewhere")).unwrap();
    assert_eq!(left, ["kept", "logstead_temp_0.lock"]);
}

/// The machine's files, but the first writes take a while.
struct SlowFiles(RealFiles, Arc<AtomicUsize>);

struct SlowFile(Box<dyn File>, Arc<AtomicUsize>);

/// So many writes are slow.
const SLOW_WRITES: usize = 300;

impl File for SlowFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, into)
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a slow disk; no worker waits here"
    )]
    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        if self.1.fetch_add(1, Ordering::Relaxed) < SLOW_WRITES {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        self.0.write_at(offset, from)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn is_direct(&self) -> bool {
        self.0.is_direct()
    }
    fn writes_are_durable(&self) -> bool {
        self.0.writes_are_durable()
    }
}

impl Files for SlowFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let file = self.0.open(path, mode)?;
        Ok(Box::new(SlowFile(file, Arc::clone(&self.1))))
    }
    fn open_private(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.0.open_private(path)?;
        Ok(Box::new(SlowFile(file, Arc::clone(&self.1))))
    }
    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_private_dir(path)
    }
    fn lock_private(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.0.lock_private(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }
    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        self.0.kind(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.0.lock(path)
    }
    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.0.free_space(path)
    }
    fn total_space(&self, path: &Path) -> io::Result<u64> {
        self.0.total_space(path)
    }
}

/// Has a statement run whose rows come faster than the disk takes them: those that wait in memory are few.
fn on_a_slow_disk(query: &str) {
    let writes = Arc::new(AtomicUsize::new(0));
    let env = Env {
        files: Arc::new(SlowFiles(RealFiles::default(), Arc::clone(&writes))),
        ..Env::real()
    };
    let home = Arc::new(MemoryHome::new(1 << 20));
    converse_with(
        true,
        || worker_on(LogHome::from(home), env),
        async |worker: Rc<WorkerSessions>| {
            let (mut s, mut c) = (session(&worker), Script::default());
            ask(&mut s, &mut c, "SET work_mem = '64kB'").await;
            let said = ask(&mut s, &mut c, query).await;
            assert_eq!(
                said.last().map(String::as_str),
                Some("SELECT 1"),
                "{said:?}"
            );
            assert!(writes.load(Ordering::Relaxed) > SLOW_WRITES);
            let most = worker.instance.spill.counts().unwritten_bytes_max;
            assert!(most < 2 << 20, "{most} bytes waited");
        },
    );
}

#[test]
fn a_join_waits_for_the_disk_after_its_table_was_divided() {
    on_a_slow_disk(
        "SELECT count(b.p) FROM generate_series(1, 1000) a(x)
            LEFT JOIN (SELECT g, repeat('x', 1000) p FROM generate_series(1, 6000) g OFFSET 0) b ON a.x = b.g",
    );
}

#[test]
fn grouping_sets_wait_for_the_disk_within_a_row() {
    on_a_slow_disk(
        "SELECT count(*) FROM (SELECT 1 FROM (SELECT repeat('x', 200) p, g FROM generate_series(1, 100) g) s
            GROUP BY CUBE (g, g + 1, g + 2, g + 3, g + 4, g + 5, g + 6, p)) x",
    );
}
