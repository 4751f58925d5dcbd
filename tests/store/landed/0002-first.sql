BEGIN TRANSACTION;
CREATE TABLE accounts (
	id VARCHAR(12) NOT NULL, 
	name TEXT NOT NULL, 
	folded TEXT NOT NULL, 
	display TEXT NOT NULL, 
	role VARCHAR(8) NOT NULL, 
	password TEXT, 
	issuer TEXT, 
	subject TEXT, 
	created_at DOUBLE NOT NULL, 
	signed_in_at DOUBLE, 
	disabled_at DOUBLE, 
	revision INTEGER NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (id), 
	CONSTRAINT uq_accounts_folded UNIQUE (folded)
);
INSERT INTO "accounts" VALUES('cccccccccccc','ann','ann','display of accounts','admin','$argon2id$x',NULL,NULL,1.5,1.5,NULL,1);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0002');
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	who TEXT NOT NULL, 
	way VARCHAR(9) NOT NULL, 
	address TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id)
);
INSERT INTO "audit" VALUES(1,1.5,'who of audit','local','address of audit','imported','target of audit','{"role":"admin"}');
CREATE TABLE hub (
	id VARCHAR(32) NOT NULL, 
	revision INTEGER NOT NULL, 
	CONSTRAINT pk_hub PRIMARY KEY (id)
);
INSERT INTO "hub" VALUES('11111111111111111111111111111111',9);
CREATE TABLE keys (
	id VARCHAR(12) NOT NULL, 
	account VARCHAR(12) NOT NULL, 
	digest BLOB NOT NULL, 
	label TEXT NOT NULL, 
	scopes TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	used_at DOUBLE, 
	ended_at DOUBLE, 
	revision INTEGER NOT NULL, 
	CONSTRAINT pk_keys PRIMARY KEY (id), 
	CONSTRAINT fk_keys_account FOREIGN KEY(account) REFERENCES accounts (id)
);
INSERT INTO "keys" VALUES('dddddddddddd','cccccccccccc',X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F','label of keys','read,write',1.5,1.5,1.5,NULL,1);
CREATE TABLE links (
	id VARCHAR(12) NOT NULL, 
	account VARCHAR(12) NOT NULL, 
	digest BLOB NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_links PRIMARY KEY (id), 
	CONSTRAINT fk_links_account FOREIGN KEY(account) REFERENCES accounts (id)
);
INSERT INTO "links" VALUES('ffffffffffff','cccccccccccc',X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F',1.5);
CREATE TABLE sessions (
	id VARCHAR(12) NOT NULL, 
	account VARCHAR(12) NOT NULL, 
	digest BLOB NOT NULL, 
	address TEXT NOT NULL, 
	browser TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	revision INTEGER NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_sessions_account FOREIGN KEY(account) REFERENCES accounts (id)
);
INSERT INTO "sessions" VALUES('eeeeeeeeeeee','cccccccccccc',X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F','address of sessions','browser of sessions',1.5,1.5,NULL,1);
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
CREATE INDEX ix_accounts_revision ON accounts (revision);
CREATE UNIQUE INDEX one_subject ON accounts (issuer, subject) WHERE issuer IS NOT NULL;
CREATE INDEX ix_sessions_account ON sessions (account);
CREATE INDEX ix_sessions_revision ON sessions (revision);
CREATE INDEX ix_keys_account ON keys (account);
CREATE INDEX ix_keys_revision ON keys (revision);
CREATE INDEX ix_links_account ON links (account);
CREATE INDEX ix_audit_at ON audit (at);
COMMIT;
