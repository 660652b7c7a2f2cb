-- pg_snapshot and txid_snapshot: values.
select '10:20:12,14'::pg_snapshot, '10:20:10,14,14,15'::pg_snapshot, '10:20:10,14,14,15'::txid_snapshot;
select '12:13:'::pg_snapshot, ' 12:13:'::pg_snapshot, '12:16:14,'::pg_snapshot, '1:9223372036854775807:3'::pg_snapshot;
select '10:20:12,14,14,13'::pg_snapshot;
select '31:12:'::pg_snapshot;
select '0:1:'::pg_snapshot;
select '12:13:0'::pg_snapshot;
select '12:16:14,13'::pg_snapshot;
select '12:13'::pg_snapshot;
select '12:16:15,x'::pg_snapshot;
select '12:16:16'::pg_snapshot;
select '1:9223372036854775808:3'::pg_snapshot;
select 'x'::txid_snapshot;
select ''::pg_snapshot;
select pg_snapshot_xmin('10:20:12,14'), pg_snapshot_xmax('10:20:12,14'), pg_snapshot_xip('10:20:12,14');
select txid_snapshot_xmin('10:20:12,14'), txid_snapshot_xmax('10:20:12,14'), txid_snapshot_xip('10:20:12,14');
select pg_typeof(pg_snapshot_xip('1:5:2')), pg_typeof(txid_snapshot_xip('1:5:2')), pg_typeof(pg_snapshot_xmin('1:5:2'));
select * from pg_snapshot_xip('10:20:12,14') as ran;
select pg_snapshot_xip(null), pg_snapshot_xip('1:2:');
select id, pg_visible_in_snapshot(id::text::xid8, '12:20:14,17'), txid_visible_in_snapshot(id, '12:20:14,17')
  from generate_series(11, 21) id;
create table snaps (a pg_snapshot, b txid_snapshot, c pg_snapshot[]);
insert into snaps values ('1:5:2', '1:6:3,3', array['1:5:2'::pg_snapshot]) returning *;
select a::text, b::text, c[1], to_json(a), row(a, b), pg_column_size(a) > 0 as there from snaps;
select distinct a from snaps;
select a from snaps order by a;
select a = a from snaps;
select a::txid_snapshot from snaps;
select pg_snapshot_in('1:5:2'), txid_snapshot_out('1:5:2'), tidin('(1,2)'), xid8in('7'), cidout('3'::cid);
select t.oid, t.typname, t.typlen, t.typbyval, t.typcategory, t.typarray::regtype, t.typinput, t.typsend from pg_type t
  where typname in ('pg_snapshot', 'txid_snapshot', 'tid', 'xid8', 'cid') order by oid;
select oid, proname, proargtypes, prorettype::regtype, provolatile, proisstrict, proretset from pg_proc
  where proname ~ '^(pg_snapshot_x|txid_|pg_current_|pg_visible_|pg_export_snap|pg_xact_commit_timestamp$)' and proname !~ 'logfile|wal|_(in|out|recv|send)$' order by oid;
drop table snaps;

-- What a transaction sees of itself and of others by their ids.
select pg_visible_in_snapshot(pg_current_xact_id(), pg_current_snapshot());
select pg_snapshot_xmin(s) <= pg_snapshot_xmax(s) as ordered, pg_typeof(s) from pg_current_snapshot() s;
begin;
select pg_current_xact_id() as own \gset
select txid_visible_in_snapshot(:own, txid_current_snapshot()), pg_current_xact_id() = :'own'::xid8 as same;
select pg_xact_status(:'own'), txid_status(:own);
commit;
select txid_visible_in_snapshot(:own, txid_current_snapshot()), pg_xact_status(:'own');
begin;
select pg_current_xact_id() as gone \gset
rollback;
select pg_visible_in_snapshot(:'gone', pg_current_snapshot()), pg_xact_status(:'gone'), :gone > :own as later;

-- In REPEATABLE READ the snapshot stays the same.
begin isolation level repeatable read;
select pg_current_snapshot() as first \gset
select pg_current_snapshot()::text = :'first' as same;
select count(*) from (select pg_current_snapshot() from generate_series(1, 3)) s(s) where s::text = :'first';
commit;

-- As defaults of columns (SpiceDB, outboxes).
create table box (id int primary key, xid xid8 not null default pg_current_xact_id(), snap pg_snapshot default pg_current_snapshot(), old bigint default txid_current());
insert into box (id) values (1);
insert into box (id) values (2), (3);
insert into box (id) select g from generate_series(4, 5) g;
select id, pg_visible_in_snapshot(xid, pg_current_snapshot()) as seen, pg_visible_in_snapshot(xid, snap) as by_itself, xid::text::bigint = old as same, xmin = xid::xid as written
  from box order by id;
select count(distinct xid) from box;
select count(*) from box where xid < pg_snapshot_xmin(pg_current_snapshot());
begin;
insert into box (id) values (6);
select id from box where xid < pg_snapshot_xmin(pg_current_snapshot()) order by id;
select id from box where xid >= pg_snapshot_xmin(pg_current_snapshot()) order by id;
commit;
alter table box add column later pg_snapshot default '1:2:';
alter table box add column late xid8 default pg_current_xact_id();
select count(distinct late), count(later) from box;
\d box
select max(xid) = (select xid from box where id = 6) as newest, min(xid) < max(xid) as several from box;
create index on box (xid);
select id from box where xid = (select xid from box where id = 6);
drop table box;

-- Times of commits are not kept.
show track_commit_timestamp;
set track_commit_timestamp = on;
select pg_xact_commit_timestamp('3'::xid);

-- Exported snapshots.
select length(pg_export_snapshot()) > 0 as exported;
begin;
savepoint a;
select pg_export_snapshot();
rollback;
begin isolation level repeatable read;
set transaction snapshot 'abc';
rollback;
begin isolation level repeatable read;
set transaction snapshot '00000003-FFFFFFFF-1';
rollback;
begin;
set transaction snapshot '00000003-0000001B-1';
rollback;
begin isolation level repeatable read;
select 1;
set transaction snapshot '00000003-0000001B-1';
rollback;
begin isolation level repeatable read;
savepoint a;
set transaction snapshot '00000003-0000001B-1';
rollback;
begin isolation level serializable;
set transaction snapshot 'X ';
rollback;
set transaction snapshot '00000003-0000001B-1';
