-- Text search: tsvector, tsquery, texts to both, matching, ranking, what shows how a text is read.
set client_min_messages = warning;

-- The text form of tsvectors.
select 'a fat cat sat on a mat and ate a fat rat'::tsvector;
select $$the lexeme '    ' contains spaces$$::tsvector, $$the lexeme 'Joe''s' contains a quote$$::tsvector, $$a\'b c\\d 'e\'f' ''$$::tsvector;
select 'a:1 fat:2,4 cat:3 on:5 b:7,6,6'::tsvector, 'a:1A fat:2B,4C cat:5D a:3b,1'::tsvector, 'x:99999 y:16383 z:20000b,16383'::tsvector;
select ':a b: c:1'::tsvector;
select ':a c:1'::tsvector, ''::tsvector, '   '::tsvector, 'A a é É'::tsvector, 'a:1* b:2*,3'::tsvector;
select 'a:0'::tsvector;
select 'a:1x'::tsvector;
select 'a:1AB'::tsvector;
select 'a:'::tsvector;
select $$'abc$$::tsvector;
select $$''$$::tsvector;
select $$abc\$$::tsvector;
select (repeat('x', 2047) || ':1')::tsvector is not null;
select (repeat('x', 2048) || ':1')::tsvector;
-- Order.
select v from (values ('a:1'::tsvector), ('a'), ('b'), (''), ('a b'), ('a:2'), ('a:1A'), ('a:1,2'), ('aa'), ('b:1'), ('c a:1')) t (v) order by v;
select 'a:1'::tsvector = 'a:1', 'a'::tsvector < 'b', 'a b'::tsvector > 'c', 'a:1'::tsvector <> 'a', 'a'::tsvector >= 'a', 'a'::tsvector <= 'a:1';
-- Functions of tsvectors.
select length('a:1 b c:2'::tsvector), strip('a:1,2B b:3'::tsvector), setweight('a:1,2 b:3 c'::tsvector, 'A'), setweight('a:1,2 b:3'::tsvector, 'b', '{a,zz}');
select setweight('a:1'::tsvector, 'q');
select setweight('a:1'::tsvector, 'a', '{a,null}');
select 'a:1 b:2'::tsvector || 'c:1 d:2 b:3', 'a b:2'::tsvector || 'a:1 b', 'a:16380 b:2'::tsvector || 'a:3,9 b:1', ''::tsvector || 'a:1';
select ts_delete('a:1 b:2 c:3'::tsvector, 'b'), ts_delete('a:1 b:2 c:3'::tsvector, '{a,c,x}'::text[]), ts_filter('a:1,2B b:3C c:4A d'::tsvector, '{a,b}');
select ts_filter('a:1'::tsvector, '{a,null}');
select ts_filter('a:1'::tsvector, '{x}');
select * from unnest('a:1,2B b:3C c'::tsvector);
select unnest('a:1'::tsvector);
select tsvector_to_array('a:1 c b:2'::tsvector), array_to_tsvector('{b,a,b}'), array_to_tsvector('{}');
select array_to_tsvector('{a,null}');
select array_to_tsvector('{a,""}');
-- The text form of tsqueries.
select 'fat & rat'::tsquery, 'fat & (rat | cat)'::tsquery, 'fat & rat & ! cat'::tsquery, '!!a'::tsquery, '!(a|b)'::tsquery, '(a|b)&c'::tsquery, 'a|b&c'::tsquery;
select 'a <-> b'::tsquery, 'a<->b'::tsquery, 'a <2> b <0> c'::tsquery, 'a <-> (b <-> c)'::tsquery, '(a & b) <-> c'::tsquery, '!a <-> !b'::tsquery, 'a & !b <-> c'::tsquery;
select 'fat:ab & cats:*c & x:*'::tsquery, $$'a b' & 'it''s':B$$::tsquery, ''::tsquery, '  '::tsquery, 'a:DCBA'::tsquery, 'a:1'::tsvector;
select 'a &'::tsquery;
select '& a'::tsquery;
select 'a b'::tsquery;
select '(a'::tsquery;
select 'a)'::tsquery;
select '()'::tsquery;
select '!'::tsquery;
select ':a'::tsquery;
select 'a:x'::tsquery;
select 'a <-1> b'::tsquery;
select 'a <16385> b'::tsquery;
select 'a <16384> b'::tsquery;
select 'a <x> b'::tsquery;
select $$'a$$::tsquery;
select q from (values ('a'::tsquery), ('b'), ('a & b'), ('b & a'), ('a | b'), ('!a'), ('a <-> b'), ('a <2> b'), (''), ('aa'), ('a & b & c')) t (q) order by q;
select 'a'::tsquery = 'a', 'a & b'::tsquery < 'a | b', 'a'::tsquery <> 'b';
select 'a'::tsquery && 'b | c', 'a'::tsquery || 'b & c', !! 'a & b'::tsquery, 'a'::tsquery <-> 'b', tsquery_phrase('a', 'b | c', 5), 'a'::tsquery && '', !! ''::tsquery;
select tsquery_phrase('a', 'b', -1);
select 'a & b'::tsquery @> 'b', 'a'::tsquery <@ 'a | c', 'a & b'::tsquery @> 'b & c', ''::tsquery <@ 'a';
select numnode('a & b | !c'), numnode(''), querytree('a & !b'), querytree('!a'), querytree(''), querytree('a | !b'), querytree('a & (b | !c) & d');
-- From texts.
select to_tsvector('english', 'The Fat Rats are running; the rat''s ran and RUNS'), to_tsvector('simple', 'The Fat Rats'), to_tsvector('a'), to_tsvector('english', '');
select to_tsvector('english', 'state-of-the-art foo-bar2 12-ab x-1.5 it''s O''Reilly caf' || U&'\00e9' || ' na' || U&'\00ef' || 've re-use');
select to_tsvector('english', 'http://example.com/a/b?c=d&e=f#g mail foo.bar@example.com www.example.com:80/x /usr/local/lib/a.so ../x 1.2.3 -12 +3.5e-7 1e5 1.5 v1.2 <b>bold</b> &amp; a_b');
select to_tsvector('nope', 'x');
select to_tsvector('pg_catalog.english', 'dogs');
select to_tsquery('english', 'The & Fat & Rats'), to_tsquery('english', 'Fat:ab | running:*'), to_tsquery('english', 'the'), to_tsquery('english', 'fat <-> the <-> rat'), to_tsquery('english', 'foo-bar & !(the | cats)'), to_tsquery('english', $$'two words':A$$);
select to_tsquery('english', 'a b');
select to_tsquery('english', 'Fat & &');
select plainto_tsquery('english', 'The Fat & Rats:C'), plainto_tsquery('english', ''), plainto_tsquery('english', 'the'), plainto_tsquery('simple', 'The Rats'), phraseto_tsquery('english', 'The Fat Rats'), phraseto_tsquery('english', 'the cat of the rats is'), phraseto_tsquery('english', 'a-b c');
select websearch_to_tsquery('english', 'fat rats'), websearch_to_tsquery('english', '"fat rats" or cat -dog'), websearch_to_tsquery('english', 'or or x'), websearch_to_tsquery('english', '"'), websearch_to_tsquery('english', '-"a big dog" ( ) & ! | :x ''y'), websearch_to_tsquery('english', 'cat or'), websearch_to_tsquery('english', 'the or cat'), websearch_to_tsquery('english', '-');
select to_tsvector('english', '{"b": "two dogs", "a": ["one cat", 5, true, null], "c": {"d": "cats"}}'::json), to_tsvector('english', '{"b": "two dogs", "a": ["one cat", 5, true, null], "c": {"d": "cats"}}'::jsonb);
select jsonb_to_tsvector('english', '{"b": "two dogs", "a": ["one cat", 5, true, null]}', '["key", "numeric"]'), json_to_tsvector('english', '{"b": "two dogs", "a": [true, 1.50]}', '"all"'), jsonb_to_tsvector('{"a": "dogs"}', '["string", "boolean"]');
select jsonb_to_tsvector('english', '{}', '["x"]');
select jsonb_to_tsvector('english', '{}', '[1]');
select jsonb_to_tsvector('english', '{}', '{}');
-- Matching.
select to_tsvector('english', 'fat cats ate fat rats') @@ to_tsquery('english', 'fat & rat'), 'fat & cow'::tsquery @@ 'a fat cat'::tsvector, 'fat cats' @@ 'cat', 'fat cats' @@ to_tsquery('cow');
select q, 'a:1,5 b:2 c:3B d:4 e'::tsvector @@ q as matches, strip('a:1,5 b:2 c:3B d:4 e'::tsvector) @@ q as stripped
from unnest('{a,x,!a,!x,a&x,a|x,"a <-> b","b <-> a","a <2> c","a <3> c","a <-> b <-> c","a <-> (b <-> c)","(a | b) <-> c","a <-> (b | x)","a <-> (b & x)","!a <-> b","!x <-> b","a <-> !b","d <-> !b","!d <-> !b","!(a <-> x)","(a & !x) <-> b","c:B","c:A","a:D","c:AB <-> d","e <-> a","e:A","b:*","x:*","a <0> a","a <0> b","(!a | b) <-> c","(!a & !b) <-> c","!(a | b) <-> d","(a <-> b) & c","a & !(b <-> c)","(b <-> c) <-> d","a <-> b:* <-> c:*A",""}'::tsquery[]) q;
-- Ranking.
select q, ts_rank(v, q), ts_rank_cd(v, q), ts_rank(v, q, 1), ts_rank(v, q, 2|8), ts_rank(v, q, 16|32), ts_rank_cd(v, q, 1|4), ts_rank_cd(v, q, 2|32), ts_rank('{0.2,0.3,0.5,0.9}', v, q), ts_rank_cd('{0.2,-1,0.5,0.9}', v, q, 8|16)
from (values ('a:1,5,9A b:2,7B c:3B,200 d:4 e aa:6'::tsvector)) t (v), unnest('{a,x,a&b,a|b,"a & b & c","a <-> b",!a,"a & !x",a:*,"a:* & b","e & a","e & d","c:B & b:B","a | b | c","a & b | c & d",""}'::tsquery[]) q;
select ts_rank('{0.1,0.2}', 'a:1'::tsvector, 'a');
select ts_rank('{0.1,0.2,0.3,null}', 'a:1'::tsvector, 'a');
select ts_rank_cd('{0.1,0.2,0.3,2}', 'a:1'::tsvector, 'a');
-- What shows how a text is read.
select * from ts_parse('default', 'foo-bar 12 <a href="x">x</a> mail@x.org, http://a.bc/d 1.5e3');
select * from ts_parse('nope', 'x');
select * from ts_token_type('default');
select ts_lexize('english_stem', 'Running'), ts_lexize('english_stem', 'the'), ts_lexize('simple', 'The');
select ts_lexize('nope', 'x');
-- The configuration of a session.
select get_current_ts_config();
set default_text_search_config = simple;
show default_text_search_config;
select to_tsvector('The Rats'), get_current_ts_config(), plainto_tsquery('The Rats');
set default_text_search_config = 'nope';
reset default_text_search_config;
select 'english'::regconfig, 'pg_catalog.simple'::regconfig, 'english_stem'::regdictionary, 3748::regconfig, 0::regconfig, 'simple'::regconfig::oid, '{simple,english}'::regconfig[];
select 'nope'::regconfig;
-- Columns, casts, generated columns, grouping.
create table docs (id int primary key, title text, body text, tsv tsvector generated always as (setweight(to_tsvector('english', title), 'A') || to_tsvector('english', body)) stored);
insert into docs values (1, 'Cats', 'The quick cat jumps'), (2, 'Dogs', 'A lazy dog sleeps near cats'), (3, null, 'Nothing'), (4, 'Birds', 'Birds fly over the lazy dogs');
select id, tsv from docs order by id;
update docs set body = 'Dogs and dogs' where id = 1;
select id, ts_rank(tsv, q) from docs, to_tsquery('english', 'dog | cat') q where tsv @@ q order by 2 desc, 1;
create index on docs (tsv);
select count(*) from docs where tsv = (select tsv from docs where id = 2);
create table saved (q tsquery, v tsvector[], c regconfig default 'english');
insert into saved values ('a & b', array['a:1'::tsvector, 'b c'], default), ('a | b', '{}', 'simple'), ('a & b', null, null);
select * from saved;
select q, count(*) from saved group by q order by q;
select distinct q::text from saved order by 1;
select pg_typeof(q), pg_typeof(v), pg_typeof(v[1]), concat(q, v[1]), format('%s %L', q, v[1]), q::text || v[1] from saved limit 1;
select to_json(q), to_jsonb(v) from saved limit 1;
create view found as select id from docs where tsv @@ to_tsquery('english', 'dog') and to_tsvector('simple', title) @@ 'dogs'::tsquery;
select pg_get_viewdef('found'::regclass);
select * from found;
drop view found;
drop table saved;
drop table docs;
-- The catalogs.
select cfgname, cfgnamespace::regnamespace, cfgparser from pg_ts_config where cfgname in ('simple', 'english') order by 1;
select dictname, tmplname, dictinitoption from pg_ts_dict d join pg_ts_template t on t.oid = d.dicttemplate where dictname in ('simple', 'english_stem') order by 1;
select maptokentype, mapdict::regdictionary from pg_ts_config_map where mapcfg = 'english'::regconfig order by 1;
select * from pg_ts_parser;
select oprname, oprleft::regtype, oprright::regtype, oprcode from pg_operator where 'tsquery'::regtype in (oprleft, oprright) and oprname <> '<->' order by 1, 2, 3;
\dF+ english
-- Queries that differ in weights and prefix marks only are equal.
select 'a:A'::tsquery = 'a:*B', count(distinct q), count(*) from unnest('{a,a:A,a:*,b}'::tsquery[]) q;
-- Headlines.
select ts_headline('english', 'The most common type of search is to find all documents containing given query terms and return them in order of their similarity to the query.', to_tsquery('english', 'query & similarity'));
select ts_headline('english', 'Search terms may occur many times in a document, requiring ranking of the search matches to decide which occurrences to display in the result.', to_tsquery('english', 'search & term'), 'MaxFragments=10, MaxWords=7, MinWords=3, StartSel=<<, StopSel=>>');
select ts_headline('a <b>fat</b> cat-dog at http://x.com/y and the fattest of cats'::text, 'fat & cat', 'HighlightAll=true'), ts_headline('simple', 'nothing here'::text, 'x'::tsquery), ts_headline(''::text, 'x'), ts_headline('simple', 'a b c d e f'::text, 'c', 'MinWords=1, MaxWords=2, ShortWord=0, StartSel="[", StopSel='']''');
select ts_headline('a'::text, 'a', 'MinWords=5, MaxWords=4');
select ts_headline('a'::text, 'a', 'Foo=5');
select ts_headline('a'::text, 'a', 'MinWords');
reset client_min_messages;
