"""sysbench's oltp_* through its pgsql driver: prepare, a fixed number of events, cleanup; and what must be in the tables then."""

import subprocess

from report import Result

SCRIPTS = [
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index", "oltp_update_non_index",
    "oltp_insert", "oltp_delete", "bulk_insert", "select_random_points", "select_random_ranges",
]  # fmt: skip
ROWS = 1000
EVENTS = 200
THREADS = 4


def sysbench(server, script, command, prepared):
    """One command of sysbench: whether it went well, and what it said."""
    arguments = [
        "sysbench", script, "--db-driver=pgsql", f"--pgsql-host={server.host}", f"--pgsql-port={server.port}", "--pgsql-user=postgres",
        "--pgsql-db=postgres", f"--threads={THREADS}", f"--events={EVENTS}", "--time=0", f"--db-ps-mode={prepared}", "--rand-seed=7",
    ]  # fmt: skip
    if script != "bulk_insert":
        arguments += [f"--tables={len(tables(script))}", f"--table-size={ROWS}"]
    try:
        done = subprocess.run([*arguments, command], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return False, f"{command}: more than 300 s"
    said = done.stdout + done.stderr
    return done.returncode == 0 and "FATAL" not in said, f"{command}: {' '.join(said.split())[-2000:]}"


def tables(script):
    """Two of them have one table only."""
    return ["sbtest1"] if script.startswith("select_random") else ["sbtest1", "sbtest2"]


def rows_of(server, table):
    return server.execute(f"SELECT count(*), count(DISTINCT id) FROM {table}")[0]


def one(server, script, prepared):
    for command in ["prepare", "run"]:
        good, said = sysbench(server, script, command, prepared)
        if not good:
            return said
        if command == "run" and "transactions:" in said and f"transactions: {EVENTS} " not in said and script != "bulk_insert":
            return f"not {EVENTS} transactions: {said}"
    if script not in ("bulk_insert", "oltp_insert", "oltp_delete"):
        for table in tables(script):
            if rows_of(server, table) != (ROWS, ROWS):
                return f"{table} has {rows_of(server, table)} rows, not {ROWS}"
    if script == "oltp_insert":
        total = sum(rows_of(server, table)[0] for table in tables(script))
        if total != 2 * ROWS + EVENTS:
            return f"{total} rows, not {2 * ROWS + EVENTS}"
    return None


def run(context):
    results = []
    server = context.server("server")
    for script in SCRIPTS:
        for prepared in ["auto", "disable"]:
            wrong = one(server, script, prepared)
            name = f"{script} prepared={prepared}"
            results.append(Result(name, "fail" if wrong else "pass", wrong or ""))
            good, said = sysbench(server, script, "cleanup", prepared)
            if not good:
                results.append(Result(f"{name} cleanup", "fail", said))
    context.close(server)
    return results
