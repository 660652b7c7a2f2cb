-- What a client is told that asks for everything: the sequences and indexes that tables bring along.
SET client_min_messages = debug1;
CREATE TEMP TABLE dm_a (id serial);
CREATE TEMP TABLE dm_b (id serial, b int GENERATED ALWAYS AS IDENTITY); CREATE TEMP TABLE dm_c (id bigserial);
SET client_min_messages = notice;
CREATE TEMP TABLE dm_d (id serial PRIMARY KEY);
SET client_min_messages = log;
CREATE TEMP TABLE dm_e (id serial PRIMARY KEY, u int UNIQUE);
