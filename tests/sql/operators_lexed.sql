-- Where an operator ends: in front of a sign, unless it has an unusual character; in front of a comment.
select 1<>-1 as a, 1>=-1 as b, 1<=-1 as c, 1>-1 as d, 1<>+1 as e, 1=-1 as f, 1<-1 as g;
select 2*-3 as a, 7/-2 as b, 1+-1 as d, 1- -1 as e, 1<>-+-1 as f;
select 1 <=/**/ 2 as a, 1 <>/* it's "quoted" /* nested $$ */ */ 2 as b, 3 -/* c */2 as c, 6 //* c */2 as d;
select 1 <>--
2 as a, 1 +-- comment's end
2 as b, 5*-- c /* d
-1 as c;
select '<>/* kept */' as a, $q$ <>-- kept $q$ as b, "<>--c" from (values (1)) v("<>--c");
select E'\'<>/* kept */' as a, 'it''s <>-- kept' as b;
select '{"a": [1, 2]}'::jsonb->'a'->-1 as a, array[1,2]<>array[1,-2] as b, 'a'||/* c */'b' as c;
select '1'::int/* c */<>/* d */-1 as a, (1)<>/* e */(2) as b;
-- With an unusual character the sign belongs to it.
select 1 <>-@ 1;
select 1 <=
- 1 as a, 1 >=
/* c */ - 1 as b;
