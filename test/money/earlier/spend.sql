PRAGMA user_version = 4;
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE spend (
  id INTEGER PRIMARY KEY, time INTEGER NOT NULL, request TEXT NOT NULL, key TEXT NOT NULL,
  labels INTEGER NOT NULL, session TEXT, client TEXT NOT NULL, model TEXT NOT NULL, target TEXT NOT NULL,
  upstream_key TEXT, hop INTEGER NOT NULL, attempt INTEGER NOT NULL, status INTEGER, ended TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL, searches INTEGER NOT NULL,
  estimated INTEGER NOT NULL, cost INTEGER, price INTEGER, trace TEXT);
CREATE TABLE totals (
  span INTEGER NOT NULL, start INTEGER NOT NULL, key TEXT NOT NULL, labels INTEGER NOT NULL,
  model TEXT NOT NULL, target TEXT NOT NULL, 
  tries INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL,
  searches INTEGER NOT NULL, cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, estimated INTEGER NOT NULL,
  PRIMARY KEY (span, start, key, labels, model, target)) WITHOUT ROWID;
CREATE TABLE session_totals (
  start INTEGER NOT NULL, session TEXT NOT NULL, key TEXT NOT NULL, 
  tries INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, reasoning INTEGER NOT NULL,
  searches INTEGER NOT NULL, cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, estimated INTEGER NOT NULL, first_row INTEGER, last_row INTEGER,
  PRIMARY KEY (start, session, key)) WITHOUT ROWID;
CREATE TABLE writers (id TEXT PRIMARY KEY, pid INTEGER NOT NULL, seen INTEGER NOT NULL, started TEXT) WITHOUT ROWID;
CREATE TABLE running (
  writer TEXT NOT NULL, seq INTEGER NOT NULL, row TEXT NOT NULL, spend INTEGER,
  PRIMARY KEY (writer, seq)) WITHOUT ROWID;
CREATE INDEX session_days ON session_totals (session);
CREATE TABLE learned (
  target TEXT NOT NULL, stream INTEGER NOT NULL, bytes_per_token REAL NOT NULL, mean REAL NOT NULL,
  spread REAL NOT NULL, written INTEGER NOT NULL, PRIMARY KEY (target, stream)) WITHOUT ROWID;
CREATE TABLE unsent (
    writer TEXT NOT NULL, n INTEGER NOT NULL, rev INTEGER NOT NULL, at INTEGER NOT NULL, written INTEGER NOT NULL,
    spend INTEGER, refused INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (writer, n, rev)) WITHOUT ROWID;
CREATE INDEX unsent_spend ON unsent (spend);
CREATE TABLE taken_totals (database TEXT PRIMARY KEY, through INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE shared_rows (
    writer TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, rev INTEGER NOT NULL, spend INTEGER NOT NULL,
    time INTEGER NOT NULL, PRIMARY KEY (writer, n, at)) WITHOUT ROWID;
CREATE INDEX shared_rows_time ON shared_rows (time, spend);
CREATE TABLE imports (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, database TEXT NOT NULL);
CREATE TABLE spool (id TEXT PRIMARY KEY, sender TEXT, until INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO texts VALUES (1, '{"team":"web"}');
INSERT INTO texts VALUES (2, '{"input":3}');
INSERT INTO spend VALUES (1, 1795176001000, 'req_1', 'ci', 1, 's', 'test', 'm', 'up/m', 'key-1', 1, 1, 200, 'done', 10, 5, 3, 2, 1, 4, 0, 0, 1000, 2, NULL);
INSERT INTO spend VALUES (2, 1795176002000, 'req_2', 'ci', 1, NULL, 'test', 'm', 'up/m', 'key-1', 1, 1, 200, 'done', 10, 5, 3, 2, 1, 4, 0, 0, 1000, 2, NULL);
INSERT INTO spend VALUES (3, 1795176003000, 'req_3', 'ci', 1, 's', 'test', 'm', 'up/m', 'key-1', 1, 1, 200, 'done', 10, 5, 3, 2, 1, 4, 0, 0, 1000, 2, NULL);
INSERT INTO spend VALUES (4, 1795176004000, 'req_4', 'ci', 1, NULL, 'test', 'm', 'up/m', 'key-1', 1, 1, 200, 'done', 10, 5, 3, 2, 1, 4, 0, 0, 1000, 2, NULL);
INSERT INTO totals VALUES (0, 1795176000000, 'ci', 1, 'm', 'up/m', 4, 40, 20, 12, 8, 4, 16, 0, 4000, 0, 0);
INSERT INTO totals VALUES (1, 1795132800000, 'ci', 1, 'm', 'up/m', 4, 40, 20, 12, 8, 4, 16, 0, 4000, 0, 0);
INSERT INTO totals VALUES (2, 1793491200000, 'ci', 1, 'm', 'up/m', 4, 40, 20, 12, 8, 4, 16, 0, 4000, 0, 0);
INSERT INTO session_totals VALUES (1795132800000, 's', 'ci', 2, 20, 10, 6, 4, 2, 8, 0, 2000, 0, 0, 1, 3);
INSERT INTO writers VALUES ('4194305-written', 4194305, 1795777230632, NULL);
INSERT INTO running VALUES ('4194305-written', 5, '{"request":"req_5","time":1795176005000,"key":"ci","labels":{"team":"web"},"session":"s","client":"test","model":"m","target":"up/m","upstreamKey":"key-1","hop":1,"attempt":1,"status":200,"ended":"cut","tokens":{"input":10,"output":5,"cacheRead":3,"cacheWrite":2,"cacheWrite1h":1,"reasoning":4,"searches":0},"estimated":true,"cost":7000,"price":"{\"input\":3}"}', NULL);
INSERT INTO running VALUES ('4194305-written', 6, '{"request":"req_6","time":1795176006000,"key":"ci","labels":{"team":"web"},"client":"test","model":"m","target":"up/m","upstreamKey":"key-1","hop":1,"attempt":1,"status":200,"ended":"cut","tokens":{"input":10,"output":5,"cacheRead":3,"cacheWrite":2,"cacheWrite1h":1,"reasoning":4,"searches":0},"estimated":true,"cost":7000,"price":"{\"input\":3}"}', NULL);
INSERT INTO learned VALUES ('up/m', 1, 44, 100, 10, 1795777230632);
INSERT INTO unsent VALUES ('4194305-written', 3, 3, 1795176003000, 1795777230631, 3, 0);
INSERT INTO unsent VALUES ('4194305-written', 4, 3, 1795176004000, 1795777230631, 4, 0);
INSERT INTO unsent VALUES ('4194305-written', 5, 0, 1795176005000, 1795777230632, NULL, 0);
INSERT INTO unsent VALUES ('4194305-written', 6, 0, 1795176006000, 1795777230632, NULL, 0);
INSERT INTO shared_rows VALUES ('4194305-written', 1, 1795176001000, 3, 1, 1795176001000);
INSERT INTO shared_rows VALUES ('4194305-written', 2, 1795176002000, 3, 2, 1795176002000);
INSERT INTO shared_rows VALUES ('4194305-written', 3, 1795176003000, 3, 3, 1795176003000);
INSERT INTO shared_rows VALUES ('4194305-written', 4, 1795176004000, 3, 4, 1795176004000);
INSERT INTO spool VALUES ('zbkbjvcn2l6dgi3ly0oa', NULL, 0);
