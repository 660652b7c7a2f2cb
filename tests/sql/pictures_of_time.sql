-- to_date and to_timestamp: separators, widths, FX, ISO weeks, centuries
SET timezone = 'UTC';
SELECT to_date('2024-W09-4', 'IYYY-"W"IW-ID'), to_date('2024 09 7', 'IYYY IW ID'), to_date('2024 060', 'IYYY IDDD'), to_date('2024-366', 'YYYY-DDD'), to_date('21 24', 'CC YY'), to_date('21', 'CC'), to_date('3 24', 'CC YY BC'), to_date('2451545', 'J'), to_date('IX 2024', 'RM YYYY'), to_date('44-03-15 BC', 'YYYY-MM-DD BC');
SELECT to_date('24-2-9', 'YYYY-MM-DD'), to_date('99', 'Y-MM-DD'), to_date('2024-02-29 12:34:56.789', 'YY-MM-DD'), to_date('20240229', 'YYYYMMDD'), to_date('1-2-3', 'FMYYYY-FMMM-FMDD'), to_date('2024 Feb 29', 'YYYY Mon DD'), to_date('29february2024', 'DDMonthYYYY'), to_date('2024  02   29', 'YYYY MM DD'), to_date('2024/02/29', 'YYYY"x"MM"y"DD'), to_date('5/1/2', 'MM/W/YYYY'), to_date('2024 9', 'YYYY WW');
SELECT to_timestamp('2024-02-29 12:34:56.789', 'YYYY-MM-DD HH24:MI:SS.MS'), to_timestamp('12:34:56 pm', 'HH12:MI:SS am'), to_timestamp('2024-02-29 -3:30', 'YYYY-MM-DD TZH:TZM'), to_timestamp('2024-02-29 45296', 'YYYY-MM-DD SSSSS'), to_timestamp('2024.5', 'YYYY.US'), to_timestamp('2024.025', 'YYYY.MS'), to_timestamp('1,999 3', 'Y,YYY MM'), to_timestamp('2024-02-29T12', 'FXYYYY-MM-DD"T"HH24'), to_timestamp('12th', 'DDth');
SELECT to_date('1-2-3', 'YYYYMMDD');
SELECT to_date('2024-02-30', 'YYYY-MM-DD');
SELECT to_date('2024-13-01', 'YYYY-MM-DD');
SELECT to_date('2024 W9 2', 'YYYY "W"IW ID');
SELECT to_date('20240229', 'DD Mon YYYY');
SELECT to_date('99999999999', 'YYYY');
SELECT to_date('12 13', 'DD DD');
SELECT to_date('060', 'DDD');
SELECT to_date('2024', 'YYYY OF');
SELECT to_timestamp('25', 'HH24');
SELECT to_timestamp('13', 'HH12');
SELECT to_timestamp('xm', 'AM');
SELECT to_timestamp('1', 'FXHH24MI');
SELECT to_timestamp('12 x', 'FXHH24 MI');
SELECT to_timestamp('16', 'TZH');
SELECT to_char(interval '-36:00:00', 'HH12 HH24 DDD WW J'), to_char(interval '2 years 3 mons 4 days', 'J WW DDD rm'), to_char(timestamp '2024-02-29', 'FXYYYY\"MM"\\DD"'), to_char(12.3, 'MIrn'), to_number('1e5', '999.99'), to_number('$1,234.56', 'L9,999.99');
SELECT to_char(485, 'th');
SELECT to_number('123456', '9.9');
-- time zones: abbreviations that move, POSIX ones, any number of hours
SELECT '2005-07-01 12:00 MSK'::timestamptz, '2012-07-01 12:00 MSK'::timestamptz, '2020-07-01 12:00 MSK'::timestamptz, '2020-01-01 12:00 NOVT'::timestamptz, '2024-01-01 12:00 AEST'::timestamptz, '2024-01-01 12:00 ist'::timestamptz, '12:00 PKT'::timetz;
SELECT timestamptz '2024-01-01 12:00Z' AT TIME ZONE 'PST-03:00', timestamptz '2024-01-01 12:00Z' AT TIME ZONE '<+0530>-05:30', timestamp '2024-01-01 12:00' AT TIME ZONE 'X+30', timestamptz '2012-07-01 12:00Z' AT TIME ZONE 'msk', timestamp '2024-01-01' AT TIME ZONE interval '36 hours', timestamptz '2024-01-01Z' AT TIME ZONE 'nst';
SELECT timestamptz '2024-01-01Z' AT TIME ZONE 'X+168';
-- the order of a date's fields
SET datestyle = 'DMY';
SHOW datestyle;
SELECT date '1/2/2024', date '31-12-24', date '24-Jan-2', timestamp '1.2.2024 3:04', date '2024-02-01';
SELECT date '12/31/2024';
SET datestyle = 'iso';
SHOW datestyle;
SET datestyle = 'ISO, YMD';
SELECT date '24/2/1', date '24-Jan-2', date '2-Jan-2024', date '99-1-8';
SELECT date '1/2/2024';
SET datestyle = 'european';
SHOW datestyle;
RESET datestyle;
SELECT date '99-Jan-08';
-- random numbers from a seed
SELECT setseed(0.5);
SELECT random(), random();
SELECT setseed(-1), random() < 1;
SELECT setseed(1.5);
SELECT extract('year', date '2024-01-01');
RESET timezone;
