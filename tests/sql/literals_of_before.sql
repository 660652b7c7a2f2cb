-- standard_conforming_strings = off and its kin.
set standard_conforming_strings = off;
select 'a\nb', 'it\'s', 'x\\y', E'\t|', '\x41\101\u0042';
select 'plain', 'it''s';
set escape_string_warning = off;
select 'a\nb' || 'c\\d', '\'', 'first'
  'sec\\ond';
select 'tab\there' as "a\b", $$dollar \n$$, B'101', X'1f' -- 'x\'
;
/* 'a\' */ select 'after\\comment';
select length('\\'), '%\\_%' , 'a%' like 'a\\%';
select U&'\0061';
create table lits (a text default 'd\\e' check (a <> 'f\\g')); insert into lits default values;
insert into lits values ('f\\g');
prepare p as select 'p\\q' as v; execute p;
set standard_conforming_strings = on;
select * from lits; execute p; select 'a\nb';
set backslash_quote = off; select E'it\'s'; select 'it\'; select E'it''s'; set backslash_quote = on; select E'it\'s';
reset backslash_quote; drop table lits;
select U&'d\0061t\+000061', U&'d!0061t!+000061' UESCAPE '!', U&"d\0061t" from (select 1 as dat) q;
select U&'\D83D\DE00', U&'a\\b', U&'a''b', u&'\00e4' || U&'x';
select U&'wrong\06'; select U&'wrong\D83D'; select U&'wrong\D83D\0061'; select U&'a' UESCAPE '+'; select U&'\0061' 'x';
create table U&"t\0061b" (U&"c!006fl" uescape '!' int); insert into tab values (1); select * from tab; drop table tab;
