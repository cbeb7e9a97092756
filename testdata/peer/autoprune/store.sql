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
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(1,'project','','meta:prune:max-keys','"10"','string',1700000000100,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(2,'project','','meta:prune:min-keys','"4"','string',1700000000101,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(3,'path','file1','owner','"again"','string',1700000000117,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(6,'path','file4','owner','"o4"','string',1700000000105,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(7,'path','file5','owner','"o5"','string',1700000000106,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(8,'path','file6','owner','"o6"','string',1700000000107,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(9,'path','file7','owner','"o7"','string',1700000000108,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(10,'path','file8','owner','"o8"','string',1700000000109,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(11,'branch','main','chat','[]','list',1700000000112,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(12,'branch','main','tags','[]','set',1700000000113,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(13,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','review:status','"ok"','string',1700000000115,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(14,'change-id','I1234abcd','k','"v"','string',1700000000116,0,0,NULL,NULL);
CREATE TABLE list_values (
    metadata_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    is_git_ref INTEGER NOT NULL DEFAULT 0
);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(1,11,'one',1700000000111,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(2,11,'two',1700000000112,0);
CREATE TABLE set_values (
    metadata_id INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    UNIQUE(metadata_id, member_id)
);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(1,12,'2e65efe2a145dda7ee51d1741299f848e5bf752e','a',1700000000113);
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
INSERT INTO tombstones(rowid,tombstone_type,target_type,target_value,"key",entry_id,value,timestamp,email) VALUES(1,'metadata','path','file2','owner','','',1700000000110,'t@e.x');
INSERT INTO tombstones(rowid,tombstone_type,target_type,target_value,"key",entry_id,value,timestamp,email) VALUES(2,'metadata','path','file3','owner','','',1700000000114,'t@e.x');
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
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(1,'project','','meta:prune:max-keys','"10"','string','set','t@e.x',1700000000100);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(2,'project','','meta:prune:min-keys','"4"','string','set','t@e.x',1700000000101);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(3,'path','file1','owner','"o1"','string','set','t@e.x',1700000000102);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(4,'path','file2','owner','"o2"','string','set','t@e.x',1700000000103);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(5,'path','file3','owner','"o3"','string','set','t@e.x',1700000000104);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(6,'path','file4','owner','"o4"','string','set','t@e.x',1700000000105);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(7,'path','file5','owner','"o5"','string','set','t@e.x',1700000000106);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(8,'path','file6','owner','"o6"','string','set','t@e.x',1700000000107);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(9,'path','file7','owner','"o7"','string','set','t@e.x',1700000000108);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(10,'path','file8','owner','"o8"','string','set','t@e.x',1700000000109);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(11,'path','file2','owner','','','rm','t@e.x',1700000000110);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(12,'branch','main','chat','[]','list','push','t@e.x',1700000000111);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(13,'branch','main','chat','[]','list','push','t@e.x',1700000000112);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(14,'branch','main','tags','[]','set','set_add','t@e.x',1700000000113);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(15,'path','file3','owner','','','rm','t@e.x',1700000000114);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(16,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','review:status','"ok"','string','set','t@e.x',1700000000115);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(17,'change-id','I1234abcd','k','"v"','string','set','t@e.x',1700000000116);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(18,'path','file1','owner','"again"','string','set','t@e.x',1700000000117);
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
