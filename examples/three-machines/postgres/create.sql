-- Once, as an administrator: psql --set password=… --file create.sql
-- hopgate makes its tables itself, in a schema of its own.
CREATE ROLE hopgate LOGIN PASSWORD :'password';
CREATE DATABASE hopgate OWNER hopgate;
