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
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(1,'project','','meta:filter','[]','set',1700000000102,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(2,'project','','local:meta:filter','[]','set',1700000000103,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(3,'branch','main','draft:text','"no"','string',1700000000104,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(4,'branch','main','draft','"only below"','string',1700000000105,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(5,'branch','main','secret','"no"','string',1700000000106,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(6,'branch','main','local:mine','"no"','string',1700000000107,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(7,'branch','main','review:status','"side"','string',1700000000108,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(8,'branch','main','review:owners','[]','set',1700000000109,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(9,'branch','main','both:x','"in both"','string',1700000000110,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(10,'branch','main','other','"main"','string',1700000000111,0,0,NULL,NULL);
CREATE TABLE list_values (
    metadata_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    is_git_ref INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE set_values (
    metadata_id INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    UNIQUE(metadata_id, member_id)
);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(1,1,'2f37048332463cbe7f4cf018e5f49f1b352029e6','exclude draft:**',1700000000100);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(2,1,'cc965c3e921b3863443c01fe9e2f41b6d1f9b4ed','route review:** side',1700000000101);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(3,1,'f18ef9df7b1d1b7e2438c0bc5371494f22bef499','route both:* main,side',1700000000102);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(4,2,'e3c71a3b21e824d78f017281e5375115dcb6f11b','exclude secret',1700000000103);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(5,8,'1993ac62caee1e04a94297ff5f1648cdffc41e55','ada@example.com',1700000000109);
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
INSERT INTO tombstones(rowid,tombstone_type,target_type,target_value,"key",entry_id,value,timestamp,email) VALUES(1,'metadata','branch','main','review:gone','','',1700000000113,'t@e.x');
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
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(1,'project','','meta:filter','[]','set','set_add','t@e.x',1700000000100);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(2,'project','','meta:filter','[]','set','set_add','t@e.x',1700000000101);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(3,'project','','meta:filter','[]','set','set_add','t@e.x',1700000000102);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(4,'project','','local:meta:filter','[]','set','set_add','t@e.x',1700000000103);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(5,'branch','main','draft:text','"no"','string','set','t@e.x',1700000000104);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(6,'branch','main','draft','"only below"','string','set','t@e.x',1700000000105);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(7,'branch','main','secret','"no"','string','set','t@e.x',1700000000106);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(8,'branch','main','local:mine','"no"','string','set','t@e.x',1700000000107);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(9,'branch','main','review:status','"side"','string','set','t@e.x',1700000000108);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(10,'branch','main','review:owners','[]','set','set_add','t@e.x',1700000000109);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(11,'branch','main','both:x','"in both"','string','set','t@e.x',1700000000110);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(12,'branch','main','other','"main"','string','set','t@e.x',1700000000111);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(13,'branch','main','review:gone','"1"','string','set','t@e.x',1700000000112);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(14,'branch','main','review:gone','','','rm','t@e.x',1700000000113);
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
