// Package store keeps metadata in SQLite: fast to write, fast to ask. The file is
// git-meta.sqlite in the repository's common git directory. The Rust git-meta 0.1.13
// ("the peer") uses the same file at the same time, so that the schema is its schema,
// version 6 (PRAGMA user_version), and everything here keeps to what the peer can read:
// only TEXT and INTEGER values, valid UTF-8, its type and operation names, no VACUUM
// (children name their row by its implicit rowid).
//
// Times are milliseconds since 1970-01-01 UTC. Text compares byte by byte.
//
// # Shared tables
//
//	metadata(target_type, target_value, key, value, value_type, last_timestamp,
//	    is_git_ref, is_promised, source_ref, promised_commit)
//	    UNIQUE(target_type, target_value, key); ordinary rowid table
//
// One row for each key. target_value is empty for the project. value_type is string, list
// or set. value is, for a string, its JSON form (only '"', '\' and bytes below 0x20 are
// escaped), or with is_git_ref = 1 the id of the git blob that holds it; for a list or
// set it is "[]". This program always writes is_git_ref = 0. last_timestamp is the time
// of the last write. is_promised = 1: the key is known from history and has no value
// here (value empty, type string, time 0; promised_commit names the commit that has it).
// source_ref names the ref of a side remote: such a row is read, never published, and
// becomes ours (NULL) when it is edited.
//
//	list_values(metadata_id, value, timestamp, is_git_ref)
//
// The entries of lists: raw text. The order is timestamp, then rowid. A string that
// became a list is an entry with timestamp 0.
//
//	set_values(metadata_id, member_id, value, timestamp) UNIQUE(metadata_id, member_id)
//
// The members of sets: raw text; member_id is its git blob id (SHA-1).
//
//	tombstones(tombstone_type, target_type, target_value, key, entry_id, value,
//	    timestamp, email) UNIQUE(tombstone_type, target_type, target_value, key, entry_id)
//
// Removals. tombstone_type is metadata (a key; entry_id empty), set_member (entry_id is the
// member id, value its text) or list_entry (entry_id is the entry's name in a tree).
//
//	metadata_log(target_type, target_value, key, value, value_type, operation, email,
//	    timestamp)
//
// One record for each change, in rowid order. operation is set, rm, push, pop, list_rm,
// set_add or set_rm. value is that of the row; for a string of more than 1024 bytes the
// git blob id of its text; empty for rm. A value that was loaded from history, long after
// it was published, has its record at a rowid below 1: behind every position.
//
//	sync_state(id = 1, last_materialized)
//
// The peer's only synchronisation mark: it takes records with a later timestamp for
// unpublished. Edits stamped by the clock are therefore lifted above it. This program
// itself goes by positions in the log (x_cursor), never by times.
//
//	tree_stats(tree_oid PRIMARY KEY, key_count, byte_size, last_used)
//
// A cache of what trees hold; either number may be NULL. Rows may go at any time.
//
// # What a change writes
//
//	change       row              children             tombstones written / dropped            log
//	Set          upsert, string   all deleted          - / metadata, set_member                set
//	ListPush     upsert, list     entry appended       - / metadata                            push
//	ListPop      time             last equal deleted   list_entry / metadata                   pop
//	ListRemove   time             entry deleted        list_entry / metadata                   list_rm
//	SetAdd       upsert, set      member upserted      - / metadata, that set_member           set_add
//	SetRemove    time             member deleted       set_member / metadata                   set_rm
//	Remove       deleted          all deleted          metadata, explicit / list_entry         rm
//	Clear        deleted          all deleted          metadata, explicit / list_entry, set_member   rm
//	Put          upsert           replaced             - / metadata                            set
//
// Every change sets is_promised = 0 and source_ref = NULL and ends the key's withheld
// entry.
//
// # Tables of this program
//
// Their names start with x_; the peer leaves them alone. They name rows by target and
// key, never by rowid. There are no triggers.
//
//	x_cursor(ref, commit_oid, log_rowid, log_fingerprint, filter_set, prune_checked, seq)
//	    PRIMARY KEY(ref, commit_oid)
//
// The commit at ref holds everything in the store up to the log record log_rowid, under
// the filter rules with the id filter_set; prune_checked says whether the auto-prune
// rules have been checked on it. log_fingerprint (see [Position]) tells whether the
// record is still the same one. A cursor is written before the ref moves and counts once
// the ref is at commit_oid; seq orders the cursors of a ref. Whoever deletes the record
// at a cursor moves the cursor to the newest record before it in the same transaction.
// The ref "retention:" is that of x_created: its commit is how far the history of the local
// main has been read. Two refs are no positions in the log: that of a side remote's tracking ref (the commit
// that was imported), and "index:" and the primary's tracking ref (the commit up to which
// its history has been indexed; filter_set is the commit at which it was cut off, or empty).
//
//	x_withheld(target_type, target_value, key, edit_time, why)
//	    PRIMARY KEY(target_type, target_value, key) WITHOUT ROWID
//
// Keys for which store and tree differ on purpose; why is one of pruned, too-big,
// unclear, retention (a row, not in the tree), local, swept (in the tree, no row), gone
// (neither: retention deleted it after a prune, and history must not bring it back). A
// retention row was dropped from the tree by another clone's retention: it is not live,
// and counts as absent in a merge. edit_time is the row's last_timestamp at that moment:
// another time there means that the peer has written the row since.
//
//	x_explicit(target_type, target_value, key, timestamp)
//	    PRIMARY KEY(target_type, target_value, key) WITHOUT ROWID
//
// Somebody removed the key knowingly. It counts while the key's tombstone has the same
// timestamp; the peer may have replaced the tombstone.
//
//	x_created(target_type, target_value, key, collection, created, published, bytes)
//	    PRIMARY KEY(target_type, target_value, key) WITHOUT ROWID
//	    INDEX x_created_order(collection, created DESC, target_type, target_value, key)
//
// The live rows of collections (the namespaces that the manifest declares): ours, with a
// value, not the project's, and without an entry retention in x_withheld. A row is in the
// collection with the longest name that it is in. created is since when it has been here:
// published, the edit time in the commit that first brought it since the local main's tree
// last lacked it; where that is NULL, the time of its oldest log record since it was last
// removed, and where there is none, its last_timestamp. A prune leaves published as it is.
// bytes is what its values take: of a string the text of the column value, of a list or
// set those of its entries or members.
//
//	x_usage(collection PRIMARY KEY, rows, bytes) WITHOUT ROWID
//
// How many rows x_created has of a collection, and their bytes; a collection without one
// has none. Whoever changes x_created changes it in the same transaction.
//
//	x_recount(target_type, target_value, key)
//	    PRIMARY KEY(target_type, target_value, key) WITHOUT ROWID
//
// Keys of collections whose row became live, ceased to be, or changed, without a log
// record. x_created is brought up to date from these, from the log behind the cursor
// "retention:", and from the history, before it is used; repositories without collections
// have nothing in any of the three. What the peer does without a record is noticed: values
// that it gives to promised rows have the time 0, and its local-prune deletes the guard, a
// log record of the path .git-meta and the key x:retention with the time 0 at a rowid
// below 1. Then all rows are looked at again.
//
//	x_facts(name PRIMARY KEY, value) WITHOUT ROWID
//
//	store-id                    random; tells a store from another
//	watermark                   number of the newest retention pass that deleted anything
//	log-cut                     see The feed
//	retention:names             names of the collections x_created is kept for, one a line
//	retention:guard             "record", or where the log is empty the numbers of rows
//	retention:fill              how far filling x_created has got (JSON)
//	retention:turn              a process is bringing x_created up to date for other names
//	retention:births            a process is reading much history
//	retention:swept-at          ms; the last automatic sweep
//	retention:confirmed:NAME    hash of the bounds that were confirmed here
//
// # A sweep
//
// Retention deletes a row with its entries, members, tombstones and log records, its
// entry in x_created included, and puts the entry swept into x_withheld, which takes the
// key out of the tree at the next serialize. There is no tombstone and no log record; the
// watermark goes up by one in each transaction that deletes something.
//
// # The feed
//
// [Tx.Feed] is metadata_log for others: the records at rowids above 0, in their order. A
// [FeedCursor] kept outside names the store (the fact [FactStoreID]), the newest retention
// pass ([FactWatermark]), how often this program has deleted the newest record (the fact
// log-cut, since SQLite then gives its rowid to the next one), and a record by rowid and
// fingerprint. If one of them is no longer so, records may be missing behind the cursor
// that nothing tells of: its reader is told to read everything again. [Watch] notices
// that there may be something new.
//
// # Files and transactions
//
// The file is in WAL mode, set when it is created. Writers start with BEGIN IMMEDIATE
// and wait up to 5 s for one another. Creating, migrating (versions 1 to 5) and
// repairing happen in one such transaction that reads user_version again. A reader
// creates nothing; in a folder that cannot be written a cleanly closed file is opened
// as immutable.
package store
