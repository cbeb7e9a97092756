package store

import "github.com/git-meta/git-meta-go/meta"

// Created is an entry of x_created: a live row of a collection.
type Created struct {
	meta.KeyRef
	Collection string
	Time       int64 // ms; since when the key has been here
	Bytes      int64 // of its values as stored: text columns, without keys and indexes
}

// Age says where the creation time of a counted row comes from.
type Age int

const (
	KeepAge Age = iota // what is known stays; a row that was not counted yet: from the log
	FromLog            // a published time stays, another comes from the log as it is now
	AnewAge            // the row was removed and made again: from the log, published forgotten
)

// Recount is a key whose entry in x_created may be out of date.
type Recount struct {
	meta.KeyRef
	Collection string // that owns the key now; "" if none does
	Age        Age
}

// created is what x_created holds of a key.
type created struct {
	collection string
	time       int64
	published  any // int64, or nil
	bytes      int64
}

const (
	// A live row: ours, with a value, not the project's, and not one that another clone's
	// retention has dropped, unless the peer has edited it since.
	liveCond = ` m.is_promised = 0 AND +m.source_ref IS NULL AND m.target_type <> 'project' AND NOT EXISTS (SELECT 1 FROM x_withheld w
		WHERE w.target_type = m.target_type AND w.target_value = m.target_value AND w.key = m.key AND w.why = 'retention' AND w.edit_time = m.last_timestamp)`
	liveRowSQL   = "SELECT m.rowid, m.value_type, octet_length(m.value), m.last_timestamp FROM metadata m WHERE" + liveCond + keyCond
	createdSQL   = "SELECT collection, created, published, bytes FROM x_created WHERE target_type = ? AND target_value = ? AND key = ?"
	putCreated   = "INSERT OR REPLACE INTO x_created(target_type, target_value, key, collection, created, published, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)"
	addCreated   = "INSERT OR IGNORE INTO x_created(target_type, target_value, key, collection, created, published, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)"
	delCreated   = "DELETE FROM x_created WHERE target_type = ? AND target_value = ? AND key = ?"
	listBytesSQL = "SELECT coalesce(sum(octet_length(value)), 0) FROM list_values WHERE metadata_id = ?"
	setBytesSQL  = "SELECT coalesce(sum(octet_length(value)), 0) FROM set_values WHERE metadata_id = ?"
	// The first record since the last removal.
	madeSQL = `SELECT timestamp FROM metadata_log WHERE target_type = ?1 AND target_value = ?2 AND key = ?3
		AND rowid > coalesce((SELECT max(rowid) FROM metadata_log WHERE target_type = ?1 AND target_value = ?2 AND key = ?3 AND operation = 'rm'), -9223372036854775808)
		ORDER BY rowid LIMIT 1`
	removedSQL = "SELECT timestamp FROM metadata_log WHERE target_type = ? AND target_value = ? AND key = ? AND operation = 'rm' ORDER BY rowid DESC LIMIT 1"
)

func (tx *Tx) created(k meta.KeyRef) (c created, ok bool, err error) {
	ok, err = tx.c.one(bg, createdSQL, keyArgs(k), func(r *rows) {
		c = created{collection: r.str(0), time: r.num(1), bytes: r.num(3)}
		if !r.null(2) {
			c.published = r.num(2)
		}
	})
	return c, ok, err
}

// made returns the time of the key's oldest log record since it was last removed, or
// otherwise if there is none.
func (tx *Tx) made(k meta.KeyRef, otherwise int64) (ms int64, err error) {
	ms = otherwise
	_, err = tx.c.one(bg, madeSQL, keyArgs(k), func(r *rows) { ms = r.num(0) })
	return ms, err
}

// Recount makes x_created and x_usage agree with the rows of the given keys. A key may be
// named more than once. About 25 µs a key.
func (tx *Tx) Recount(list ...Recount) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	d := usageChange{}
	for _, r := range list {
		if err := tx.recount(r, d); err != nil {
			return err
		}
	}
	return tx.changeUsage(d)
}

func (tx *Tx) recount(r Recount, d usageChange) error {
	old, counted, err := tx.created(r.KeyRef)
	if err != nil || !counted && r.Collection == "" {
		return err
	}
	now := created{collection: r.Collection}
	var id, edited int64
	var typ meta.ValueType
	live := false
	if r.Collection != "" {
		live, err = tx.c.one(bg, liveRowSQL, keyArgs(r.KeyRef), func(r *rows) {
			id, typ, now.bytes, edited = r.num(0), valueType(r.str(1)), r.num(2), r.num(3)
		})
		if err != nil {
			return err
		}
	}
	if !live {
		if !counted {
			return nil
		}
		d.add(old.collection, -1, -old.bytes)
		return tx.run(delCreated, keyArgs(r.KeyRef)...)
	}
	switch typ {
	case meta.List:
		now.bytes, err = tx.c.int64(tx.ctx, listBytesSQL, id)
	case meta.Set:
		now.bytes, err = tx.c.int64(tx.ctx, setBytesSQL, id)
	}
	if err != nil {
		return err
	}
	if counted && r.Age != AnewAge {
		now.time, now.published = old.time, old.published
	}
	if now.published == nil && (!counted || r.Age != KeepAge) {
		if now.time, err = tx.made(r.KeyRef, edited); err != nil {
			return err
		}
	}
	if counted {
		if now == old {
			return nil
		}
		d.add(old.collection, -1, -old.bytes)
	}
	d.add(now.collection, 1, now.bytes)
	return tx.putCreated(r.KeyRef, now)
}

func (tx *Tx) putCreated(k meta.KeyRef, c created) error {
	return tx.run(putCreated, append(keyArgs(k), c.collection, c.time, c.published, c.bytes)...)
}

// SetPublished says that a commit brought the key at ms: from then on that is its
// creation time. Nothing happens if the key is not counted, or if the log says that it
// was removed here since.
func (tx *Tx) SetPublished(k meta.KeyRef, ms int64) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	c, ok, err := tx.created(k)
	if err != nil || !ok || c.published == ms {
		return err
	}
	removed := false
	if _, err := tx.c.one(bg, removedSQL, keyArgs(k), func(r *rows) { removed = r.num(0) >= ms }); err != nil || removed {
		return err
	}
	c.time, c.published = ms, ms
	return tx.putCreated(k, c)
}

const createdAfterSQL = "SELECT target_type, target_value, key, collection, created, bytes FROM x_created WHERE (target_type, target_value, key) > (?, ?, ?) ORDER BY target_type, target_value, key LIMIT ?"

// CreatedAfter returns up to limit entries of x_created in the order of their keys, from
// the one behind k on; the zero k is before all.
func (tx *Tx) CreatedAfter(k meta.KeyRef, limit int) ([]Created, error) {
	return collect(tx, createdAfterSQL, append(keyArgs(k), limit), func(r *rows) Created {
		return Created{r.key(0), r.str(3), r.num(4), r.num(5)}
	})
}

const (
	rowBytes = `CASE m.value_type WHEN 'list' THEN (SELECT coalesce(sum(octet_length(c.value)), 0) FROM list_values c WHERE c.metadata_id = m.rowid)
		WHEN 'set' THEN (SELECT coalesce(sum(octet_length(c.value)), 0) FROM set_values c WHERE c.metadata_id = m.rowid)
		ELSE octet_length(m.value) END`
	// As madeSQL.
	rowMade = `coalesce((SELECT l.timestamp FROM metadata_log l WHERE l.target_type = m.target_type AND l.target_value = m.target_value AND l.key = m.key
		AND l.rowid > coalesce((SELECT max(r.rowid) FROM metadata_log r WHERE r.target_type = m.target_type AND r.target_value = m.target_value AND r.key = m.key AND r.operation = 'rm'), -9223372036854775808)
		ORDER BY l.rowid LIMIT 1), m.last_timestamp)`
	uncountedSQL = "SELECT m.target_type, m.target_value, m.key, " + rowMade + ", " + rowBytes + ` FROM metadata m
		WHERE (m.target_type, m.target_value, m.key) > (?, ?, ?) AND NOT EXISTS (SELECT 1 FROM x_created x
			WHERE x.target_type = m.target_type AND x.target_value = m.target_value AND x.key = m.key) AND` + liveCond
)

// maxNamespaces is how many namespaces a query can name: SQLite limits the depth of an
// expression.
const maxNamespaces = 100

// UncountedAfter returns up to limit live rows below the given namespaces that have no
// entry in x_created, as they would stand there but for the collection, in the order of
// their keys, from the one behind k on. About 40 µs a row; with many namespaces also for
// each row that is in none of them.
func (tx *Tx) UncountedAfter(k meta.KeyRef, namespaces []string, limit int) ([]Created, error) {
	cond, args := "0", keyArgs(k)
	var in meta.Namespaces
	if len(namespaces) > maxNamespaces {
		cond, in, namespaces = "1", meta.NamespacesOf(namespaces), nil
	}
	for _, ns := range namespaces {
		cond += " OR m.key = ? OR m.key >= ? AND m.key < ?"
		args = append(args, ns, ns+":", ns+";") // ';' follows ':'
	}
	var out []Created
	for c, err := range each2(tx, uncountedSQL+" AND ("+cond+")"+keyOrder, args, func(r *rows) Created {
		return Created{KeyRef: r.key(0), Time: r.num(3), Bytes: r.num(4)}
	}) {
		if err != nil {
			return nil, err
		}
		if in != nil && in.Longest(c.Key) == "" {
			continue
		}
		if out = append(out, c); len(out) == limit {
			break
		}
	}
	return out, nil
}

// AddCreated adds entries for rows that have none; those that have keep theirs.
func (tx *Tx) AddCreated(list []Created) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	d := usageChange{}
	for _, c := range list {
		n, err := tx.changed(addCreated, append(keyArgs(c.KeyRef), c.Collection, c.Time, nil, c.Bytes)...)
		if err != nil {
			return err
		}
		d.add(c.Collection, n, n*c.Bytes)
	}
	return tx.changeUsage(d)
}

// The peer turns a promised row into one with a value without a log record and leaves its
// time at 0.
const silentSQL = `SELECT m.target_type, m.target_value, m.key FROM metadata m
	WHERE m.last_timestamp = 0 AND m.is_promised = 0 AND m.target_type <> 'project' AND NOT EXISTS (SELECT 1 FROM x_created x
		WHERE x.target_type = m.target_type AND x.target_value = m.target_value AND x.key = m.key)`

// Silent returns keys without an entry in x_created to which the peer may have given a row
// without saying so in the log. It looks at every promised row.
func (tx *Tx) Silent() ([]meta.KeyRef, error) {
	return collect(tx, silentSQL, nil, func(r *rows) meta.KeyRef { return r.key(0) })
}
