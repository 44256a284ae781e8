# A large SQL script: tables, indices, joins, recursion, windows, JSON, triggers, transactions, full
# text, vacuum, dumps.
#: program /usr/bin/sqlite3
#: program /usr/lib/x86_64-linux-gnu/libsqlite3.so.0
#: needs sqlite3 sqlite3
#: quick
cat >script.sql <<'SQL'
.mode list
.headers on
PRAGMA journal_mode = WAL;
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, born INTEGER, score REAL, note BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO person SELECT i, 'name' || (i * 7919 % 60000), 1900 + i * 31 % 120, (i * 2654435761 % 100000) / 7.0, zeroblob(i % 50) FROM n;
CREATE INDEX by_name ON person(name); CREATE INDEX by_born ON person(born, score DESC);
ANALYZE;
SELECT count(*), min(name), max(name), round(avg(score), 6), sum(born), total(length(note)) FROM person;
SELECT born, count(*), round(avg(score), 4) FROM person GROUP BY born HAVING count(*) > 400 ORDER BY 3 DESC LIMIT 12;
SELECT a.id, b.id FROM person a JOIN person b ON b.name = 'name' || a.id WHERE a.id % 5000 = 3 ORDER BY 1;
SELECT name, born, rank() OVER (PARTITION BY born ORDER BY score DESC) r, lag(id, 2) OVER w, round(sum(score) OVER w, 3) FROM person
    WHERE born IN (1950, 1951) WINDOW w AS (PARTITION BY born ORDER BY id ROWS 5 PRECEDING) ORDER BY born, r LIMIT 30;
EXPLAIN QUERY PLAN SELECT * FROM person WHERE born = 1980 AND score > 100 ORDER BY name;
CREATE TABLE log(what TEXT, was, became);
CREATE TRIGGER changed AFTER UPDATE OF score ON person WHEN old.score <> new.score BEGIN INSERT INTO log VALUES (old.name, old.score, new.score); END;
BEGIN; UPDATE person SET score = score * 1.5 WHERE id % 17 = 0; SAVEPOINT s; DELETE FROM person WHERE id > 100; SELECT count(*) FROM person; ROLLBACK TO s; COMMIT;
SELECT count(*), round(sum(became - was), 4) FROM log;
SELECT typeof(1 + 1.0), 7 / 2, 7 % -3, 1 << 40, 'a' < 'B', 'abc' LIKE 'A%', 'abc' GLOB 'a[b-d]c', NULL IS NULL, 1e308 * 10, -9223372036854775808, abs(-4), hex('äö'), unicode('ß'), printf('%08.3f|%+d|%x', 3.14159, 5, 255);
SELECT json_extract('{"a":[1,{"b":[true,null,"x"]}]}', '$.a[1].b[2]'), json_group_array(value) FROM json_each('[3,1,2,{"z":1}]');
SELECT date('2024-01-31', '+1 month'), julianday('2000-01-01'), strftime('%W %j', '2023-07-04'), datetime(1e9, 'unixepoch');
WITH RECURSIVE xaxis(x) AS (VALUES(-2.0) UNION ALL SELECT x + 0.05 FROM xaxis WHERE x < 1.2), yaxis(y) AS (VALUES(-1.0) UNION ALL SELECT y + 0.1 FROM yaxis WHERE y < 1.0),
 m(iter, cx, cy, x, y) AS (SELECT 0, x, y, 0.0, 0.0 FROM xaxis, yaxis UNION ALL SELECT iter + 1, cx, cy, x * x - y * y + cx, 2.0 * x * y + cy FROM m WHERE (x * x + y * y) < 4.0 AND iter < 28),
 m2(iter, cx, cy) AS (SELECT max(iter), cx, cy FROM m GROUP BY cx, cy), a(t) AS (SELECT group_concat(substr(' .+*#', 1 + min(iter / 7, 4), 1), '') FROM m2 GROUP BY cy)
SELECT group_concat(rtrim(t), x'0a') FROM a;
WITH RECURSIVE input(sud) AS (VALUES('53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79')), digits(z, lp) AS (VALUES('1', 1) UNION ALL SELECT CAST(lp + 1 AS TEXT), lp + 1 FROM digits WHERE lp < 9),
 x(s, ind) AS (SELECT sud, instr(sud, '.') FROM input UNION ALL SELECT substr(s, 1, ind - 1) || z || substr(s, ind + 1), instr(substr(s, 1, ind - 1) || z || substr(s, ind + 1), '.') FROM x, digits AS z WHERE ind > 0 AND NOT EXISTS (SELECT 1 FROM digits AS lp
 WHERE z.z = substr(s, ((ind - 1) / 9) * 9 + lp, 1) OR z.z = substr(s, ((ind - 1) % 9) + (lp - 1) * 9 + 1, 1) OR z.z = substr(s, (((ind - 1) / 3) % 3) * 3 + ((ind - 1) / 27) * 27 + lp + ((lp - 1) / 3) * 6, 1)))
SELECT s FROM x WHERE ind = 0;
CREATE VIRTUAL TABLE doc USING fts5(body);
INSERT INTO doc SELECT 'word' || (id % 100) || ' and ' || name || ' of ' || born FROM person WHERE id < 8000;
SELECT count(*) FROM doc WHERE doc MATCH 'word7 AND born*'; SELECT rowid, snippet(doc, 0, '[', ']', '…', 4) FROM doc WHERE doc MATCH '"word7 and" NOT 1950' ORDER BY rank, rowid LIMIT 5;
CREATE VIRTUAL TABLE place USING rtree(id, x0, x1, y0, y1);
INSERT INTO place SELECT id, born, born + 1, score, score + 10 FROM person WHERE id < 5000; SELECT count(*) FROM place WHERE x0 > 1950 AND x1 < 1960 AND y0 > 100;
CREATE VIEW old AS SELECT * FROM person WHERE born < 1905; SELECT count(*), group_concat(id) FROM (SELECT id FROM old ORDER BY score LIMIT 20);
ALTER TABLE person ADD COLUMN extra DEFAULT 5; ALTER TABLE person DROP COLUMN note; SELECT * FROM person LIMIT 2;
INSERT INTO person(id, name) VALUES (1, 'twice') ON CONFLICT(id) DO UPDATE SET name = excluded.name || '!' RETURNING id, name;
INSERT INTO person(id, name) VALUES (1, 'twice');
SELECT * FROM nothing; SELEC 1;
DELETE FROM person WHERE id % 3 = 0; VACUUM; PRAGMA integrity_check; PRAGMA page_count;
.schema person
.mode box
SELECT id, name, score FROM person WHERE id < 12;
.mode json
SELECT id, name, score FROM person WHERE id < 5;
SQL
sqlite3 data.db <script.sql
echo "status $?"
sqlite3 data.db .dump | sha256sum
sqlite3 data.db .dump | sqlite3 copy.db; sqlite3 copy.db 'SELECT count(*), sum(id), round(sum(score), 3) FROM person'
sqlite3 copy.db '.import --csv /dev/stdin csv' <<<$'a,b\n1,"two, three"\n4,5'; sqlite3 -markdown copy.db 'SELECT * FROM csv'
sqlite3 data.db .sha3sum
