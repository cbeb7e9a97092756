CREATE TABLE tree_stats (tree_oid TEXT PRIMARY KEY, key_count INTEGER, byte_size INTEGER, last_used INTEGER NOT NULL DEFAULT 0);
CREATE INDEX idx_tree_stats_last_used ON tree_stats(last_used);
PRAGMA user_version = 4;
