package retention

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

func init() { restFor = 0 }

// world is a store in a repository, with a second connection that does what the Rust
// program does.
type world struct {
	t     testing.TB
	g     *gitRepo
	env   *serialize.Env
	path  string
	raw   *sql.DB
	names []string
}

func (g *gitRepo) world(ns string) *world {
	g.t.Helper()
	w := &world{t: g.t, g: g, env: g.env(ns), path: filepath.Join(g.dir, ".git", ns+".sqlite")}
	var err error
	if w.raw, err = sql.Open("sqlite", "file:"+w.path+"?_pragma=busy_timeout(5000)&_pragma=synchronous(off)"); err != nil {
		g.t.Fatal(err)
	}
	w.raw.SetMaxOpenConns(1)
	g.t.Cleanup(func() { w.raw.Close() })
	return w
}

func newWorld(t testing.TB) *world { t.Helper(); return newRepo(t).world("meta") }

// declare writes the manifest.
func (w *world) declare(collections ...string) {
	w.t.Helper()
	w.names = nil
	for _, c := range collections {
		name, _, _ := strings.Cut(c, " ")
		w.names = append(w.names, name)
	}
	slices.Sort(w.names)
	w.g.declare(collections...)
}

func (w *world) exec(query string, args ...any) int64 {
	w.t.Helper()
	res, err := w.raw.Exec(query, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	n, _ := res.RowsAffected()
	return n
}

// lines returns the rows of a query, columns joined by '|'.
func (w *world) lines(query string, args ...any) []string {
	w.t.Helper()
	rows, err := w.raw.Query(query, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	cols, _ := rows.Columns()
	var out []string
	for rows.Next() {
		vals := make([]any, len(cols))
		for i := range vals {
			vals[i] = new(sql.NullString)
		}
		if err := rows.Scan(vals...); err != nil {
			w.t.Fatal(err)
		}
		parts := make([]string, len(cols))
		for i, v := range vals {
			parts[i] = v.(*sql.NullString).String
		}
		out = append(out, strings.Join(parts, "|"))
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) update(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.env.DB.Update(context.Background(), f); err != nil {
		w.t.Fatal(err)
	}
}

// set sets a string with a time in ms; 0: now.
func (w *world) set(target, key string, ms int64) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error { return tx.Set(kref(target, key), "v", store.Edit{Email: "a@b", Time: ms}) })
}

func (w *world) rm(target, key string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error { return tx.Remove(kref(target, key), store.Edit{}) })
}

func (w *world) serialize() *serialize.Result {
	w.t.Helper()
	res, err := serialize.Run(context.Background(), w.env, serialize.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func (w *world) catchUp() {
	w.t.Helper()
	if err := catchUp(context.Background(), w.env, w.names); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sweep(o SweepOptions) *SweepResult {
	w.t.Helper()
	res, err := Sweep(context.Background(), w.env, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func (w *world) state(name string) State {
	w.t.Helper()
	s, err := GetCollectionRetention(context.Background(), w.env, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return *s
}

// keys returns the keys with a row, by target and key.
func (w *world) keys() string {
	return strings.Join(w.lines("SELECT target_type || ':' || target_value || ' ' || key FROM metadata ORDER BY 1"), "\n")
}

// kref reads "type:value".
func kref(target, key string) meta.KeyRef {
	typ, value, _ := strings.Cut(target, ":")
	return meta.KeyRef{Target: meta.Target{Type: meta.TargetType(typ), Value: value}, Key: key}
}

// liveSQL says what a live row is, apart from its collection, and how long it is.
const liveSQL = `SELECT m.target_type, m.target_value, m.key,
	CASE m.value_type WHEN 'list' THEN (SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM list_values WHERE metadata_id = m.rowid)
		WHEN 'set' THEN (SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM set_values WHERE metadata_id = m.rowid)
		ELSE length(CAST(m.value AS BLOB)) END
	FROM metadata m WHERE m.is_promised = 0 AND m.source_ref IS NULL AND m.target_type <> 'project'
	AND NOT EXISTS (SELECT 1 FROM x_withheld w WHERE w.target_type = m.target_type AND w.target_value = m.target_value AND w.key = m.key AND w.why = 'retention' AND w.edit_time = m.last_timestamp)
	ORDER BY 1, 2, 3`

// audit compares what is counted with a full count.
func (w *world) audit() {
	w.t.Helper()
	type usage struct{ rows, bytes int64 }
	want, wantUsage := []string{}, map[string]usage{}
	for _, l := range w.lines(liveSQL) {
		f := strings.Split(l, "|")
		owner := ""
		for _, n := range w.names {
			if (f[2] == n || strings.HasPrefix(f[2], n+":")) && len(n) > len(owner) {
				owner = n
			}
		}
		if owner == "" {
			continue
		}
		want = append(want, l+"|"+owner)
		var bytes int64
		fmt.Sscan(f[3], &bytes)
		u := wantUsage[owner]
		wantUsage[owner] = usage{u.rows + 1, u.bytes + bytes}
	}
	got := w.lines("SELECT target_type, target_value, key, bytes, collection FROM x_created ORDER BY 1, 2, 3")
	if !slices.Equal(got, want) {
		w.t.Fatalf("x_created\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	gotUsage := map[string]usage{}
	for _, l := range w.lines("SELECT collection, rows, bytes FROM x_usage WHERE rows <> 0 OR bytes <> 0") {
		f := strings.Split(l, "|")
		var u usage
		fmt.Sscan(f[1], &u.rows)
		fmt.Sscan(f[2], &u.bytes)
		gotUsage[f[0]] = u
	}
	if !maps.Equal(gotUsage, wantUsage) {
		w.t.Fatalf("x_usage %v, want %v", gotUsage, wantUsage)
	}
}

// What the Rust program does to a store (format.md §4.4, §7.5).

func (w *world) peerSet(target, key, value string, ms int64) {
	k := kref(target, key)
	w.exec(`INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp) VALUES (?, ?, ?, json_quote(?), 'string', ?)
		ON CONFLICT DO UPDATE SET value = excluded.value, value_type = 'string', last_timestamp = excluded.last_timestamp, is_git_ref = 0, is_promised = 0, source_ref = NULL`,
		string(k.Target.Type), k.Target.Value, k.Key, value, ms)
	for _, t := range []string{"list_values", "set_values"} {
		w.exec("DELETE FROM "+t+" WHERE metadata_id = (SELECT rowid FROM metadata WHERE target_type = ? AND target_value = ? AND key = ?)", string(k.Target.Type), k.Target.Value, k.Key)
	}
	w.exec("DELETE FROM tombstones WHERE target_type = ? AND target_value = ? AND key = ?", string(k.Target.Type), k.Target.Value, k.Key)
	w.exec("INSERT INTO metadata_log VALUES (?, ?, ?, json_quote(?), 'string', 'set', 'peer@x', ?)", string(k.Target.Type), k.Target.Value, k.Key, value, ms)
}

func (w *world) peerRemove(target, key string, ms int64) {
	k := kref(target, key)
	args := []any{string(k.Target.Type), k.Target.Value, k.Key}
	const where = " WHERE target_type = ? AND target_value = ? AND key = ?"
	if len(w.lines("SELECT 1 FROM metadata"+where, args...)) == 0 {
		return
	}
	for _, t := range []string{"list_values", "set_values"} {
		w.exec("DELETE FROM "+t+" WHERE metadata_id = (SELECT rowid FROM metadata"+where+")", args...)
	}
	w.exec("DELETE FROM metadata"+where, args...)
	w.exec("INSERT OR REPLACE INTO tombstones VALUES ('metadata', ?, ?, ?, '', '', ?, 'peer@x')", append(args, ms)...)
	w.exec("INSERT INTO metadata_log VALUES (?, ?, ?, '', '', 'rm', 'peer@x', ?)", append(args, ms)...)
}

func (w *world) peerPush(target, key, value string, ms int64) {
	k := kref(target, key)
	args := []any{string(k.Target.Type), k.Target.Value, k.Key}
	w.exec(`INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp) VALUES (?, ?, ?, '[]', 'list', ?)
		ON CONFLICT DO UPDATE SET value = '[]', value_type = 'list', last_timestamp = excluded.last_timestamp, is_promised = 0, source_ref = NULL`, append(args, ms)...)
	w.exec("DELETE FROM set_values WHERE metadata_id = (SELECT rowid FROM metadata WHERE target_type = ? AND target_value = ? AND key = ?)", args...)
	w.exec("INSERT INTO list_values(metadata_id, value, timestamp) SELECT rowid, ?, ? FROM metadata WHERE target_type = ? AND target_value = ? AND key = ?", append([]any{value, ms}, args...)...)
	w.exec("INSERT INTO metadata_log VALUES (?, ?, ?, '[]', 'list', 'push', 'peer@x', ?)", append(args, ms)...)
}

// peerLocalPrune deletes without leaving a record.
func (w *world) peerLocalPrune(before int64) {
	const old = "target_type <> 'project' AND "
	w.exec("DELETE FROM list_values WHERE metadata_id IN (SELECT rowid FROM metadata WHERE "+old+"last_timestamp < ?)", before)
	w.exec("DELETE FROM set_values WHERE metadata_id IN (SELECT rowid FROM metadata WHERE "+old+"last_timestamp < ?)", before)
	w.exec("DELETE FROM metadata WHERE "+old+"last_timestamp < ?", before)
	w.exec("DELETE FROM list_values WHERE timestamp < ? AND metadata_id IN (SELECT rowid FROM metadata WHERE target_type <> 'project')", before)
	w.exec("DELETE FROM tombstones WHERE "+old+"timestamp < ? AND tombstone_type <> 'list_entry'", before)
	w.exec("DELETE FROM metadata_log WHERE "+old+"timestamp < ?", before)
}

// peerHydrate gives promised rows a value, without a record and a time.
func (w *world) peerHydrate() int64 {
	return w.exec("UPDATE metadata SET value = '\"old\"', is_promised = 0 WHERE is_promised = 1")
}

const day = 24 * time.Hour
