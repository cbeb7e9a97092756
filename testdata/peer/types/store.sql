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
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(1,'project','','review:status','"approved by project"','string',1700000000100,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(2,'project','','agent:chat','[]','list',1700000000102,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(3,'project','','owners','[]','set',1700000000104,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(4,'branch','main','review:status','"approved by branch:main"','string',1700000000105,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(5,'branch','main','agent:chat','[]','list',1700000000107,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(6,'branch','main','owners','[]','set',1700000000109,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(7,'change-id','I1234abcd','review:status','"approved by change-id:I1234abcd"','string',1700000000110,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(8,'change-id','I1234abcd','agent:chat','[]','list',1700000000112,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(9,'change-id','I1234abcd','owners','[]','set',1700000000114,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(10,'path','src/main.go','review:status','"approved by path:src/main.go"','string',1700000000115,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(11,'path','src/main.go','agent:chat','[]','list',1700000000117,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(12,'path','src/main.go','owners','[]','set',1700000000119,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(13,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','review:status','"approved by commit:HEAD"','string',1700000000120,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(14,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','agent:chat','[]','list',1700000000122,0,0,NULL,NULL);
INSERT INTO metadata(rowid,target_type,target_value,"key",value,value_type,last_timestamp,is_git_ref,is_promised,source_ref,promised_commit) VALUES(15,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','owners','[]','set',1700000000124,0,0,NULL,NULL);
CREATE TABLE list_values (
    metadata_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    is_git_ref INTEGER NOT NULL DEFAULT 0
);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(1,2,replace('first\nentry','\n',char(10)),1700000000101,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(2,2,'second',1700000000102,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(3,5,replace('first\nentry','\n',char(10)),1700000000106,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(4,5,'second',1700000000107,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(5,8,replace('first\nentry','\n',char(10)),1700000000111,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(6,8,'second',1700000000112,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(7,11,replace('first\nentry','\n',char(10)),1700000000116,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(8,11,'second',1700000000117,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(9,14,replace('first\nentry','\n',char(10)),1700000000121,0);
INSERT INTO list_values(rowid,metadata_id,value,timestamp,is_git_ref) VALUES(10,14,'second',1700000000122,0);
CREATE TABLE set_values (
    metadata_id INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    UNIQUE(metadata_id, member_id)
);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(1,3,'1993ac62caee1e04a94297ff5f1648cdffc41e55','ada@example.com',1700000000103);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(2,3,'b196d5b1cc386907b04372774f45a75571ed6ffc','grace@example.com',1700000000104);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(3,6,'1993ac62caee1e04a94297ff5f1648cdffc41e55','ada@example.com',1700000000108);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(4,6,'b196d5b1cc386907b04372774f45a75571ed6ffc','grace@example.com',1700000000109);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(5,9,'1993ac62caee1e04a94297ff5f1648cdffc41e55','ada@example.com',1700000000113);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(6,9,'b196d5b1cc386907b04372774f45a75571ed6ffc','grace@example.com',1700000000114);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(7,12,'1993ac62caee1e04a94297ff5f1648cdffc41e55','ada@example.com',1700000000118);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(8,12,'b196d5b1cc386907b04372774f45a75571ed6ffc','grace@example.com',1700000000119);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(9,15,'1993ac62caee1e04a94297ff5f1648cdffc41e55','ada@example.com',1700000000123);
INSERT INTO set_values(rowid,metadata_id,member_id,value,timestamp) VALUES(10,15,'b196d5b1cc386907b04372774f45a75571ed6ffc','grace@example.com',1700000000124);
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
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(1,'project','','review:status','"approved by project"','string','set','t@e.x',1700000000100);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(2,'project','','agent:chat','[]','list','push','t@e.x',1700000000101);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(3,'project','','agent:chat','[]','list','push','t@e.x',1700000000102);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(4,'project','','owners','[]','set','set_add','t@e.x',1700000000103);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(5,'project','','owners','[]','set','set_add','t@e.x',1700000000104);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(6,'branch','main','review:status','"approved by branch:main"','string','set','t@e.x',1700000000105);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(7,'branch','main','agent:chat','[]','list','push','t@e.x',1700000000106);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(8,'branch','main','agent:chat','[]','list','push','t@e.x',1700000000107);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(9,'branch','main','owners','[]','set','set_add','t@e.x',1700000000108);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(10,'branch','main','owners','[]','set','set_add','t@e.x',1700000000109);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(11,'change-id','I1234abcd','review:status','"approved by change-id:I1234abcd"','string','set','t@e.x',1700000000110);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(12,'change-id','I1234abcd','agent:chat','[]','list','push','t@e.x',1700000000111);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(13,'change-id','I1234abcd','agent:chat','[]','list','push','t@e.x',1700000000112);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(14,'change-id','I1234abcd','owners','[]','set','set_add','t@e.x',1700000000113);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(15,'change-id','I1234abcd','owners','[]','set','set_add','t@e.x',1700000000114);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(16,'path','src/main.go','review:status','"approved by path:src/main.go"','string','set','t@e.x',1700000000115);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(17,'path','src/main.go','agent:chat','[]','list','push','t@e.x',1700000000116);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(18,'path','src/main.go','agent:chat','[]','list','push','t@e.x',1700000000117);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(19,'path','src/main.go','owners','[]','set','set_add','t@e.x',1700000000118);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(20,'path','src/main.go','owners','[]','set','set_add','t@e.x',1700000000119);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(21,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','review:status','"approved by commit:HEAD"','string','set','t@e.x',1700000000120);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(22,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','agent:chat','[]','list','push','t@e.x',1700000000121);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(23,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','agent:chat','[]','list','push','t@e.x',1700000000122);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(24,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','owners','[]','set','set_add','t@e.x',1700000000123);
INSERT INTO metadata_log(rowid,target_type,target_value,"key",value,value_type,operation,email,timestamp) VALUES(25,'commit','6b473900097bea63ad6265197ff2fcf8e4ea6f23','owners','[]','set','set_add','t@e.x',1700000000124);
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
