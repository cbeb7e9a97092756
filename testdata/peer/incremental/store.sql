PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE metadata (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    value_type TEXT NOT NULL,
    last_timestamp INTEGER NOT NULL DEFAULT 0,
    is_git_ref INTEGER NOT NULL DEFAULT 0,
    is_promised INTEGER NOT NULL DEFAULT 0, source_ref TEXT, promised_commit TEXT,
    UNIQUE(target_type, target_value, key)
);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(1,'path','a/b','owner','"one"','string',1700000000100,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(2,'path','a/c','owner','"one"','string',1700000000101,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(3,'path','a/c','chat','[]','list',1700000000102,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(4,'path','a/d','tags','[]','set',1700000000104,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(5,'branch','main','s','"1"','string',1700000000105,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(6,'project','','p','"1"','string',1700000000106,0,0,NULL,NULL);
CREATE TABLE list_values (
    metadata_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    is_git_ref INTEGER NOT NULL DEFAULT 0
);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(1,3,'one',1700000000102,0);
CREATE TABLE set_values (
    metadata_id INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    UNIQUE(metadata_id, member_id)
);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(1,4,'c1b0730e0133447badcfd47fd144e254807b06e1','x',1700000000103);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(2,4,'e25f1814e51579d5f55c0f1fe0135ddb28a47f4a','y',1700000000104);
CREATE TABLE tombstones (
    tombstone_type TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    entry_id TEXT NOT NULL DEFAULT '',
    value TEXT NOT NULL DEFAULT '',
    timestamp INTEGER NOT NULL,
    email TEXT NOT NULL,
    UNIQUE(tombstone_type, target_type, target_value, key, entry_id)
);
CREATE TABLE metadata_log (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    value_type TEXT NOT NULL,
    operation TEXT NOT NULL,
    email TEXT NOT NULL,
    timestamp INTEGER NOT NULL
);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(1,'path','a/b','owner','"one"','string','set','t@e.x',1700000000100);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(2,'path','a/c','owner','"one"','string','set','t@e.x',1700000000101);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(3,'path','a/c','chat','[]','list','push','t@e.x',1700000000102);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(4,'path','a/d','tags','[]','set','set_add','t@e.x',1700000000103);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(5,'path','a/d','tags','[]','set','set_add','t@e.x',1700000000104);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(6,'branch','main','s','"1"','string','set','t@e.x',1700000000105);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(7,'project','','p','"1"','string','set','t@e.x',1700000000106);
CREATE TABLE sync_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last_materialized INTEGER
);
INSERT INTO sync_state VALUES(1,NULL);
CREATE TABLE tree_stats (
    tree_oid TEXT PRIMARY KEY,
    key_count INTEGER,
    byte_size INTEGER,
    last_used INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX idx_metadata_target ON metadata(target_type, target_value, key);
CREATE INDEX idx_tombstones_target ON tombstones(tombstone_type, target_type, target_value, key);
CREATE INDEX idx_metadata_log_lookup ON metadata_log(target_type, target_value, key);
CREATE INDEX idx_list_values_metadata_timestamp ON list_values(metadata_id, timestamp);
CREATE INDEX idx_set_values_metadata ON set_values(metadata_id);
CREATE INDEX idx_metadata_source_ref ON metadata(source_ref);
CREATE INDEX idx_metadata_log_timestamp
    ON metadata_log(timestamp, target_type, target_value, key);
CREATE INDEX idx_tree_stats_last_used ON tree_stats(last_used);
CREATE INDEX idx_metadata_recency
    ON metadata(last_timestamp DESC, target_type, target_value, key);
COMMIT;
PRAGMA user_version=6;
