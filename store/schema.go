package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// schemaVersion is the user_version of the peer's schema that this program writes.
const schemaVersion = 6

// tablesSQL creates the shared tables in the form they have at version 6, without the
// two columns that migrations add (columns).
const tablesSQL = `
CREATE TABLE IF NOT EXISTS metadata (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    value_type TEXT NOT NULL,
    last_timestamp INTEGER NOT NULL DEFAULT 0,
    is_git_ref INTEGER NOT NULL DEFAULT 0,
    is_promised INTEGER NOT NULL DEFAULT 0,
    UNIQUE(target_type, target_value, key)
);
CREATE TABLE IF NOT EXISTS list_values (
    metadata_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    is_git_ref INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS set_values (
    metadata_id INTEGER NOT NULL,
    member_id TEXT NOT NULL,
    value TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    UNIQUE(metadata_id, member_id)
);
CREATE TABLE IF NOT EXISTS tombstones (
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
CREATE TABLE IF NOT EXISTS metadata_log (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    value_type TEXT NOT NULL,
    operation TEXT NOT NULL,
    email TEXT NOT NULL,
    timestamp INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS sync_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last_materialized INTEGER
);
CREATE TABLE IF NOT EXISTS tree_stats (
    tree_oid TEXT PRIMARY KEY,
    key_count INTEGER,
    byte_size INTEGER,
    last_used INTEGER NOT NULL DEFAULT 0
);
INSERT OR IGNORE INTO sync_state(id, last_materialized) VALUES (1, NULL);
`

// indexesSQL creates the shared indexes; it runs after the columns are complete.
const indexesSQL = `
CREATE INDEX IF NOT EXISTS idx_metadata_target ON metadata(target_type, target_value, key);
CREATE INDEX IF NOT EXISTS idx_tombstones_target ON tombstones(tombstone_type, target_type, target_value, key);
CREATE INDEX IF NOT EXISTS idx_metadata_log_lookup ON metadata_log(target_type, target_value, key);
CREATE INDEX IF NOT EXISTS idx_list_values_metadata_timestamp ON list_values(metadata_id, timestamp);
CREATE INDEX IF NOT EXISTS idx_set_values_metadata ON set_values(metadata_id);
CREATE INDEX IF NOT EXISTS idx_metadata_source_ref ON metadata(source_ref);
CREATE INDEX IF NOT EXISTS idx_metadata_log_timestamp ON metadata_log(timestamp, target_type, target_value, key);
CREATE INDEX IF NOT EXISTS idx_tree_stats_last_used ON tree_stats(last_used);
CREATE INDEX IF NOT EXISTS idx_metadata_recency ON metadata(last_timestamp DESC, target_type, target_value, key);
`

// ownSQL creates the tables that only this program uses. They name rows by target and
// key, never by rowid, so that the peer may delete and re-create rows at will.
const ownSQL = `
CREATE TABLE IF NOT EXISTS x_cursor (
    ref TEXT NOT NULL,
    commit_oid TEXT NOT NULL,
    log_rowid INTEGER NOT NULL,
    log_fingerprint TEXT NOT NULL,
    filter_set TEXT NOT NULL,
    prune_checked INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    PRIMARY KEY(ref, commit_oid)
);
CREATE TABLE IF NOT EXISTS x_withheld (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    edit_time INTEGER NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY(target_type, target_value, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS x_explicit (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    PRIMARY KEY(target_type, target_value, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS x_created (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    collection TEXT NOT NULL,
    created INTEGER NOT NULL,
    published INTEGER,
    bytes INTEGER NOT NULL,
    PRIMARY KEY(target_type, target_value, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS x_recount (
    target_type TEXT NOT NULL,
    target_value TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY(target_type, target_value, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS x_usage (
    collection TEXT PRIMARY KEY,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS x_facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS x_created_order ON x_created(collection, created DESC, target_type, target_value, key);
CREATE INDEX IF NOT EXISTS x_withheld_swept ON x_withheld(why) WHERE why IN ('swept', 'retention');
INSERT OR IGNORE INTO x_facts(name, value) VALUES ('store-id', lower(hex(randomblob(8))));
`

var ownTables = []string{"x_cursor", "x_withheld", "x_explicit", "x_created", "x_recount", "x_usage", "x_facts"}

// addedColumns are the columns of metadata that versions 2 and 6 brought.
var addedColumns = []string{"source_ref", "promised_commit"}

// knownColumns are what a newer schema must still have to be readable.
var knownColumns = map[string]string{
	"metadata":     "target_type target_value key value value_type last_timestamp is_git_ref is_promised source_ref promised_commit",
	"list_values":  "metadata_id value timestamp is_git_ref",
	"set_values":   "metadata_id member_id value timestamp",
	"tombstones":   "tombstone_type target_type target_value key entry_id value timestamp email",
	"metadata_log": "target_type target_value key value value_type operation email timestamp",
	"sync_state":   "id last_materialized",
	"tree_stats":   "tree_oid key_count byte_size last_used",
}

func (c *conn) userVersion() (int64, error) {
	return c.int64(context.Background(), "PRAGMA user_version")
}

// columns returns the names of a table's columns; none if there is no such table.
func (c *conn) columns(table string) (map[string]bool, error) {
	r, err := c.query(context.Background(), "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer r.close()
	out := map[string]bool{}
	for {
		ok, err := r.next()
		if !ok || err != nil {
			return out, err
		}
		out[r.str(0)] = true
	}
}

// complete reports whether the tables of our own are there, and the indexes that a load
// does without for a while.
func (c *conn) complete() (bool, error) {
	n, err := c.int64(context.Background(), completeSQL)
	return n == int64(len(ownTables)+len(loadIndexes)), err
}

var completeSQL = "SELECT count(*) FROM sqlite_master WHERE name IN ('" + strings.Join(slices.Concat(ownTables, loadIndexes), "','") + "')"

// tables returns which of names exist as tables.
func (c *conn) tables(names []string) (map[string]bool, error) {
	q := "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('" + strings.Join(names, "','") + "')"
	r, err := c.query(context.Background(), q)
	if err != nil {
		return nil, err
	}
	defer r.close()
	out := map[string]bool{}
	for {
		ok, err := r.next()
		if !ok || err != nil {
			return out, err
		}
		out[r.str(0)] = true
	}
}

// superset returns nil if every column that this program knows exists.
func (c *conn) superset() error {
	for table, want := range knownColumns {
		have, err := c.columns(table)
		if err != nil {
			return err
		}
		for col := range strings.FieldsSeq(want) {
			if !have[col] {
				return fmt.Errorf("column %s.%s is missing", table, col)
			}
		}
	}
	return nil
}
