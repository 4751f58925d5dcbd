BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE tokens (
	id VARCHAR(12) NOT NULL, 
	kind VARCHAR(4) NOT NULL, 
	nodes TEXT NOT NULL, 
	digest BLOB NOT NULL, 
	replaces BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	used_at DOUBLE, 
	ended_at DOUBLE, 
	ended VARCHAR(8), 
	joined_by VARCHAR(12), 
	revision INTEGER NOT NULL, 
	members TEXT, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_joined_by FOREIGN KEY(joined_by) REFERENCES tokens (id)
);
INSERT INTO "tokens" VALUES('000000000000','node','gpu01',X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F',0,1.5,1.5,1.5,NULL,NULL,NULL,1,NULL);
CREATE INDEX ix_tokens_nodes ON tokens (nodes);
CREATE INDEX ix_tokens_revision ON tokens (revision);
CREATE UNIQUE INDEX one_live_token ON tokens (nodes) WHERE kind = 'node' AND ended_at IS NULL;
COMMIT;
