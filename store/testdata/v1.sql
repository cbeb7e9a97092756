CREATE TABLE metadata (
    target_type TEXT NOT NULL, target_value TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    value_type TEXT NOT NULL, last_timestamp INTEGER NOT NULL DEFAULT 0,
    is_git_ref INTEGER NOT NULL DEFAULT 0, is_promised INTEGER NOT NULL DEFAULT 0,
    UNIQUE(target_type, target_value, key)
);
CREATE TABLE list_values (metadata_id INTEGER NOT NULL, value TEXT NOT NULL, timestamp INTEGER NOT NULL, is_git_ref INTEGER NOT NULL DEFAULT 0);
CREATE TABLE set_values (metadata_id INTEGER NOT NULL, member_id TEXT NOT NULL, value TEXT NOT NULL, timestamp INTEGER NOT NULL, UNIQUE(metadata_id, member_id));
CREATE TABLE tombstones (
    tombstone_type TEXT NOT NULL, target_type TEXT NOT NULL, target_value TEXT NOT NULL, key TEXT NOT NULL,
    entry_id TEXT NOT NULL DEFAULT '', value TEXT NOT NULL DEFAULT '', timestamp INTEGER NOT NULL, email TEXT NOT NULL,
    UNIQUE(tombstone_type, target_type, target_value, key, entry_id)
);
CREATE TABLE metadata_log (
    target_type TEXT NOT NULL, target_value TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    value_type TEXT NOT NULL, operation TEXT NOT NULL, email TEXT NOT NULL, timestamp INTEGER NOT NULL
);
CREATE TABLE sync_state (id INTEGER PRIMARY KEY CHECK (id = 1), last_materialized INTEGER);
INSERT INTO sync_state VALUES (1, NULL);
CREATE INDEX idx_metadata_target ON metadata(target_type, target_value, key);
CREATE INDEX idx_tombstones_target ON tombstones(tombstone_type, target_type, target_value, key);
CREATE INDEX idx_metadata_log_lookup ON metadata_log(target_type, target_value, key);
CREATE INDEX idx_list_values_metadata_timestamp ON list_values(metadata_id, timestamp);
CREATE INDEX idx_set_values_metadata ON set_values(metadata_id);
INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp) VALUES
    ('project', '', 'a', '"old\nvalue"', 'string', 1600000000000),
    ('commit', '0123456789012345678901234567890123456789', 'l', '[]', 'list', 1600000000001),
    ('branch', 'main', 's', '[]', 'set', 1600000000002);
INSERT INTO list_values VALUES (2, 'one', 1600000000001, 0);
INSERT INTO set_values VALUES (3, '2e65efe2a145dda7ee51d1741299f848e5bf752e', 'a', 1600000000002);
INSERT INTO tombstones VALUES ('metadata', 'project', '', 'gone', '', '', 1600000000003, 't@e.x');
INSERT INTO metadata_log VALUES ('project', '', 'a', '"old\nvalue"', 'string', 'set', 't@e.x', 1600000000000);
PRAGMA user_version = 1;
