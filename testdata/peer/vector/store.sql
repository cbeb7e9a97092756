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
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(1,'branch','feature/x','review:status','"ok"','string',1700000000000,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(2,'change-id','abcd1234','k','"v"','string',1700000000000,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(3,'commit','98afc48127dd62ab6e54b17aa86aac61885501e6','agent:model','"claude-4.6"','string',1700000000000,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(4,'path','src/__gen/~t/f.rs','owner','"schacon"','string',1700000000000,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(6,'project','','label','[]','set',1700000000000,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(7,'project','','notes','[]','list',1700000000000,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(8,'project','','p2','"he\"llo\\ é"','string',1700000000000,0,0,NULL,NULL);
CREATE TABLE list_values (
    metadata_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    is_git_ref INTEGER NOT NULL DEFAULT 0
);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(1,7,'hello',1700000000000,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(2,7,'world',1700000000001,0);
CREATE TABLE set_values (
    metadata_id INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    UNIQUE(metadata_id, member_id)
);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(1,6,'2e65efe2a145dda7ee51d1741299f848e5bf752e','a',1700000000105);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(2,6,'63d8dbd40c23542e740659a7168a0ce3138ea748','b',1700000000106);
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
INSERT INTO tombstones(rowid,tombstone_type,target_type,target_value,"key",entry_id,value,timestamp,email) VALUES(1,'set_member','project','','label','3410062ba67c5ed59b854387a8bc0ec012479368','c',1700000000005,'t@e.x');
INSERT INTO tombstones(rowid,tombstone_type,target_type,target_value,"key",entry_id,value,timestamp,email) VALUES(2,'list_entry','project','','notes','1700000000002-78c9a','',1700000000005,'t@e.x');
INSERT INTO tombstones(rowid,tombstone_type,target_type,target_value,"key",entry_id,value,timestamp,email) VALUES(3,'metadata','project','','gone','','',1700000000005,'t@e.x');
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
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(1,'branch','feature/x','review:status','"ok"','string','set','t@e.x',1700000000100);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(2,'change-id','abcd1234','k','"v"','string','set','t@e.x',1700000000101);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(3,'commit','98afc48127dd62ab6e54b17aa86aac61885501e6','agent:model','"claude-4.6"','string','set','t@e.x',1700000000102);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(4,'path','src/__gen/~t/f.rs','owner','"schacon"','string','set','t@e.x',1700000000103);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(5,'project','','gone','"1"','string','set','t@e.x',1700000000104);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(6,'project','','label','[]','set','set_add','t@e.x',1700000000105);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(7,'project','','label','[]','set','set_add','t@e.x',1700000000106);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(8,'project','','label','[]','set','set_add','t@e.x',1700000000107);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(9,'project','','notes','[]','list','push','t@e.x',1700000000000);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(10,'project','','notes','[]','list','push','t@e.x',1700000000001);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(11,'project','','notes','[]','list','push','t@e.x',1700000000002);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(12,'project','','p2','"he\"llo\\ é"','string','set','t@e.x',1700000000003);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(13,'project','','label','[]','set','set_rm','t@e.x',1700000000004);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(14,'project','','notes','[]','list','list_rm','t@e.x',1700000000005);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(15,'project','','gone','','','rm','t@e.x',1700000000006);
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
