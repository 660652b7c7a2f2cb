-- What is looked for is long itself: nothing depends on the product of two lengths.
SELECT length(rtrim(repeat('a', 3000), repeat('b', 3000) || 'a'));
SELECT length(ltrim(repeat('äb', 3000) || 'c', repeat('x', 3000) || 'bä'));
SELECT btrim('  xyx trim me yxy ', 'xyzuvwabcdefghijklmnopqs0123456789 ');
SELECT btrim('xyxtrimyyx', 'xyz'), ltrim('zzzytest', 'xyz'), rtrim('testxxzx', 'xyz'), btrim('  both  '), trim(both from '  '), rtrim(''), btrim('abc', '');
SELECT btrim('\x00010203000100'::bytea, '\x0001'::bytea), ltrim('\x0001'::bytea, '\x0001'::bytea), rtrim('\x000102'::bytea, ''::bytea);
SELECT length(rtrim(convert_to(repeat('a', 3000), 'UTF8'), convert_to(repeat('b', 3000) || 'a', 'UTF8')));
SELECT translate('12345', '143', 'ax'), translate('aabb', 'aa', 'xy'), translate('äöü', 'öü', 'o'), translate('abc', '', 'x');
SELECT length(translate(repeat('ab', 3000), repeat('a', 3000) || 'b', 'x'));
SELECT to_tsvector('english', repeat('a,', 3000)), length(to_tsvector('english', repeat('cats and dogs ', 20000)));
SELECT ts_match_tt(repeat('cat ', 10000), 'cats'), count(*) FROM ts_parse('default', repeat('a,', 10000));
