-- Values in their binary forms, by the functions that their types name.
SELECT int2send(258::int2), int4send(-2), int8send(1), float4send(1.5), float8send(-0.0), boolsend(true), oidsend(16384::oid);
SELECT textsend('aé'), varcharsend('b'), bpcharsend('c'::char(3)), namesend('n'), "charsend"('x'::"char"), byteasend('\x00ff'), cstring_send('d');
SELECT uuid_send('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), numeric_send(12345.678), numeric_send('NaN'), cash_send('1.23');
SELECT date_send('2024-02-29'), time_send('12:34:56.789'), timetz_send('12:34:56+02'), timestamp_send('2024-02-29 12:34'), timestamptz_send('2024-02-29 12:34+00'), interval_send('1 mon 2 days 3 secs');
SELECT json_send('{"a": 1}'), jsonb_send('{"a": 1}'), jsonpath_send('$.a'), bit_send(B'101'), varbit_send(B'1'), inet_send('10.0.0.1/8'), cidr_send('10.0.0.0/8'), macaddr_send('08:00:2b:01:02:03'), macaddr8_send('08:00:2b:01:02:03:04:05');
SELECT array_send(ARRAY[1, NULL, 3]), array_send(ARRAY['a', 'b']), array_send('{}'::int[]), range_send(int4range(1, 5)), multirange_send('{[1,3),[5,7)}'::int4multirange);
SELECT record_send(row(1, 'a'::text, NULL::int)), tsvectorsend('a:1B b'), tsquerysend('a & b'), tidsend('(1,2)'), xidsend('7'), xid8send('8'), cidsend('9');
SELECT int4send(NULL), encode(uuid_send('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), 'base64');
SELECT oid::int4, proname, prorettype::regtype, provolatile FROM pg_proc WHERE proname IN ('int4send', 'uuid_send', 'array_send', 'textsend') ORDER BY 1;
SELECT regclasssend('pg_class'::regclass) = oidsend('pg_class'::regclass::oid), regtypesend('int4'::regtype) = oidsend(23::oid);
