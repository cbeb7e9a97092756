package sqlitefile

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"
)

const schema = `
	CREATE TABLE t (name TEXT NOT NULL, n INTEGER NOT NULL, note TEXT, UNIQUE (n, name));
	CREATE INDEX t_name ON t (name);
	CREATE INDEX t_n ON t (n DESC);`

// row is a row of t. No two have the same n and name.
type row struct {
	id   int64
	name string
	n    int64
	note sql.NullString
}

func text(s string) sql.NullString { return sql.NullString{String: s, Valid: true} }

var pageSizes = []int{512, 1024, 2048, 4096, 8192, 16384, 32768}

// connect opens a database with one connection.
func connect(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

func exec(t testing.TB, db *sql.DB, script string, args ...any) {
	t.Helper()
	if _, err := db.Exec(script, args...); err != nil {
		t.Fatalf("%.200s: %v", script, err)
	}
}

// create makes a database with a script and returns its path and the roots of its trees.
func create(t testing.TB, pageSize int, script string) (path string, roots map[string]uint32) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "load")
	db := connect(t, path)
	exec(t, db, fmt.Sprintf("PRAGMA page_size=%d; PRAGMA journal_mode=off; BEGIN; %s; COMMIT", pageSize, script))
	roots = map[string]uint32{}
	for _, r := range query(t, db, "SELECT name, rootpage FROM sqlite_master", func(r *sql.Rows) (v struct {
		name string
		root uint32
	}, err error,
	) {
		return v, r.Scan(&v.name, &v.root)
	}) {
		roots[r.name] = r.root
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path, roots
}

// query returns all rows of a query, each as scan reads it.
func query[T any](t testing.TB, db *sql.DB, q string, scan func(*sql.Rows) (T, error), args ...any) (all []T) {
	t.Helper()
	rows, err := db.Query(q, args...)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return all
}

func scan1[T any](r *sql.Rows) (v T, err error) { return v, r.Scan(&v) }

func scanRow(r *sql.Rows) (v row, err error) { return v, r.Scan(&v.id, &v.name, &v.n, &v.note) }

func openFile(t testing.TB, path string) *File {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fill writes rows, which ascend, to t and its indexes, and returns how many levels the
// tree of each has.
func fill(t testing.TB, d *File, roots map[string]uint32, rows []row) map[string]int {
	t.Helper()
	levels := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	index := func(name string, compare func(a, b row) int, record func(r *Record, v row)) {
		wg.Go(func() {
			var r Record
			x := d.Index(roots[name])
			for _, v := range slices.SortedStableFunc(slices.Values(rows), compare) {
				record(r.Reset(), v)
				x.Add(&r)
			}
			x.Finish()
			mu.Lock()
			defer mu.Unlock()
			levels[name] = len(x.t.levels)
		})
	}
	index("t_name", func(a, b row) int { return cmp.Compare(a.name, b.name) },
		func(r *Record, v row) { r.Text(v.name).Int(v.id) })
	index("t_n", func(a, b row) int { return cmp.Compare(b.n, a.n) },
		func(r *Record, v row) { r.Int(v.n).Int(v.id) })
	index("sqlite_autoindex_t_1", func(a, b row) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.name, b.name)) },
		func(r *Record, v row) { r.Int(v.n).Text(v.name).Int(v.id) })

	x := d.Table(roots["t"])
	var r Record
	for _, v := range rows {
		if r.Reset().Text(v.name).Int(v.n); v.note.Valid {
			r.Text(v.note.String)
		} else {
			r.Null()
		}
		if err := x.Add(v.id, &r); err != nil {
			t.Error(err)
		}
	}
	x.Finish()
	wg.Wait()
	levels["t"] = len(x.t.levels)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return levels
}

// check compares a database with the rows it must have: all of them in order, and some by
// each index.
func check(t testing.TB, db *sql.DB, integrity string, rows []row) {
	t.Helper()
	if got := query(t, db, "PRAGMA "+integrity, scan1[string]); !slices.Equal(got, []string{"ok"}) {
		t.Fatalf("%s: %d lines: %.10q", integrity, len(got), got)
	}
	got := query(t, db, "SELECT rowid, * FROM t NOT INDEXED ORDER BY rowid", scanRow)
	if !slices.Equal(got, rows) {
		for i := range min(len(got), len(rows)) {
			if got[i] != rows[i] {
				t.Fatalf("row %d of %d, want of %d: got %.300v, want %.300v", i, len(got), len(rows), got[i], rows[i])
			}
		}
		t.Fatalf("got %d rows, want %d", len(got), len(rows))
	}
	for i := 0; i < len(rows); i += 1 + len(rows)/8 {
		v := rows[i]
		for where, args := range map[string][]any{
			"t_name WHERE name = ?":                         {v.name},
			"t_n WHERE n = ?":                               {v.n},
			"sqlite_autoindex_t_1 WHERE n = ? AND name = ?": {v.n, v.name},
		} {
			if got := query(t, db, "SELECT rowid FROM t INDEXED BY "+where, scan1[int64], args...); !slices.Contains(got, v.id) {
				t.Fatalf("%s: got rows %d, want %d among them", where, got, v.id)
			}
		}
	}
}

// checkCopy lets SQLite copy t into an empty database. Rowids stay only if it takes the
// entries as they are.
func checkCopy(t testing.TB, path string, rows []row) {
	t.Helper()
	db := connect(t, filepath.Join(t.TempDir(), "main"))
	exec(t, db, "PRAGMA journal_mode=off; "+schema)
	exec(t, db, "ATTACH ? AS load", path)
	exec(t, db, "INSERT INTO main.t SELECT * FROM load.t; DETACH load")
	check(t, db, "integrity_check", rows)
	db.Close()
}

// roundTrip writes rows, and checks what SQLite reads and copies.
func roundTrip(t testing.TB, pageSize int, rows []row) map[string]int {
	t.Helper()
	path, roots := create(t, pageSize, schema)
	levels := fill(t, openFile(t, path), roots, rows)
	db := connect(t, path)
	check(t, db, "integrity_check", rows)
	db.Close()
	checkCopy(t, path, rows)
	return levels
}

func TestInts(t *testing.T) {
	t.Parallel()
	ints := []int64{0, 1, 2, math.MinInt64, math.MaxInt64}
	for bits := 6; bits < 63; bits++ {
		v := int64(1) << bits
		ints = append(ints, v-1, v, v+1, -v-1, -v, -v+1)
	}
	slices.Sort(ints)
	ints = slices.Compact(ints)
	var rows []row
	for i, n := range ints { // as rowids they ascend, as values they do not
		rows = append(rows, row{id: n, name: fmt.Sprint(i % 7), n: ints[(i*31)%len(ints)]})
	}
	for _, size := range pageSizes {
		roundTrip(t, size, rows)
	}
}

// The lengths at which a varint grows, or a payload goes to one more overflow page.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, size := range pageSizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			lengths := []int{0, 1, 57, 58, 8185, 8186, 1<<20 - 7, 1<<20 - 6}
			d := File{pageSize: size}
			for _, local := range []int{(size-12)*32/255 - 23, d.maxIndexLocal(), size - 35} {
				for pages := range 3 {
					for n := local - 12; n <= local; n++ {
						lengths = append(lengths, max(0, n+pages*(size-4)))
					}
				}
			}
			var rows []row
			for i, n := range lengths {
				s := strings.Repeat("aé", n)[:n/3*3] + strings.Repeat("x", n%3)
				rows = append(rows, row{int64(2*i + 1), s, int64(i), sql.NullString{}}, row{int64(2*i + 2), "", int64(-i), text(s)})
			}
			roundTrip(t, size, rows[2:]) // -0 is 0
		})
	}
}

// Every number of rows up to the third level of an index, which holds four in a leaf.
func TestCounts(t *testing.T) {
	t.Parallel()
	var rows []row
	for count := range 36 {
		roundTrip(t, 512, rows)
		rows = append(rows, row{int64(count), fmt.Sprintf("%0100d", count), int64(count), sql.NullString{}})
	}
	for _, size := range pageSizes {
		for n := range 2 {
			roundTrip(t, size, rows[:n])
		}
	}
}

// Negative rowids take nine bytes, so the table gets its levels soon.
func TestLevels(t *testing.T) {
	t.Parallel()
	seen := map[string][]int{}
	for _, count := range []int{1, 30, 400, 1200} {
		var rows []row
		for i := range count {
			rows = append(rows, row{int64(i) - 5000, fmt.Sprintf("%0*d", 90+i%9, i), int64(i * 7 % 1201), text(strings.Repeat("y", 300))})
		}
		for name, n := range roundTrip(t, 512, rows) {
			seen[name] = append(seen[name], n)
		}
	}
	for name, want := range map[string][]int{"t": {1, 2, 3, 4}, "t_name": {1, 3, 4, 5}} {
		if got := seen[name]; !slices.Equal(got, want) {
			t.Errorf("%s: got levels %v, want %v", name, got, want)
		}
	}
}

// random returns up to count rows.
func random(r *rand.Rand, pageSize, count int) (rows []row) {
	number := func() int64 { return int64(r.Uint64()) >> r.IntN(64) }
	name := func() string {
		n := r.IntN(20)
		if r.IntN(4) == 0 {
			n = r.IntN(3 * pageSize)
		}
		return strings.Repeat(string(rune('a'+r.IntN(26))), n)
	}
	dense := r.IntN(2) == 0
	names := map[string]bool{}
	ids := map[int64]bool{}
	for i := range count {
		v := row{id: number(), name: name(), n: number()}
		if dense {
			v.id = int64(i) + 1
		}
		if r.IntN(3) > 0 {
			v.note = text(name())
		}
		if key := fmt.Sprint(v.n, v.name); !names[key] && !ids[v.id] {
			names[key], ids[v.id] = true, true
			rows = append(rows, v)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return rows
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(28) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			size := pageSizes[seed%uint64(len(pageSizes))]
			roundTrip(t, size, random(r, size, r.IntN(1<<r.IntN(10)+1)))
		})
	}
}

// A header of more than 127 bytes has a length of two.
func TestWide(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{1, 125, 126, 127, 128, 129, 2000} {
		path, roots := create(t, 4096, "CREATE TABLE w (c0"+func() (s string) {
			for i := 1; i < columns; i++ {
				s += fmt.Sprintf(", c%d", i)
			}
			return s
		}()+")")
		d := openFile(t, path)
		var r Record
		want := make([]any, columns)
		for i := range want {
			switch i % 3 {
			case 0:
				r.Int(int64(i))
				want[i] = int64(i)
			case 1:
				r.Null()
			case 2:
				s := fmt.Sprint(i)
				r.Text(s)
				want[i] = s
			}
		}
		w := d.Table(roots["w"])
		if err := w.Add(1, &r); err != nil {
			t.Fatal(err)
		}
		w.Finish()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		db := connect(t, path)
		if got := query(t, db, "PRAGMA integrity_check", scan1[string]); !slices.Equal(got, []string{"ok"}) {
			t.Errorf("%d columns: %q", columns, got)
		}
		got := query(t, db, "SELECT * FROM w", func(r *sql.Rows) ([]any, error) {
			values := make([]any, columns)
			at := make([]any, columns)
			for i := range at {
				at[i] = &values[i]
			}
			return values, r.Scan(at...)
		})
		if len(got) != 1 || !slices.Equal(got[0], want) {
			t.Errorf("%d columns: got %v, want %v", columns, got, want)
		}
	}
}

// The lengths that no table of SQLite reaches here.
func TestHeaderLength(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 126, 127, 128, 16380, 16381, 16382, 16383, 1<<21 - 4, 1<<21 - 3, 1<<21 - 2} {
		r := Record{types: make([]byte, n), values: []byte("values")}
		b := r.bytes()
		size, length := readVarint(b)
		if size != uint64(length+n) || len(b) != length+n+len("values") {
			t.Errorf("%d types: header of %d, its length takes %d, record of %d", n, size, length, len(b))
		}
	}
}

// readVarint is sqlite3GetVarint: up to eight bytes of seven bits, then one of eight.
func readVarint(b []byte) (v uint64, length int) {
	for i := range 8 {
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return v<<8 | uint64(b[8]), 9
}

func TestVarint(t *testing.T) {
	t.Parallel()
	want := func(v uint64, length int) {
		b := appendVarint(nil, v)
		if len(b) != length || varintLen(v) != length {
			t.Errorf("%#x takes %d bytes, varintLen is %d, want %d", v, len(b), varintLen(v), length)
		}
		if got, n := readVarint(append(b, make([]byte, 8)...)); got != v || n != length {
			t.Errorf("%#x reads as %#x in %d bytes", v, got, n)
		}
	}
	want(0, 1)
	for length := 1; length <= 8; length++ {
		want(1<<(7*length)-1, length)
		want(1<<(7*length), length+1)
	}
	want(math.MaxUint64, 9)
}

func TestRowidsAscend(t *testing.T) {
	t.Parallel()
	path, roots := create(t, 512, "CREATE TABLE w (s TEXT)")
	d := openFile(t, path)
	w := d.Table(roots["w"])
	long := new(Record).Text(strings.Repeat("x", 5000))
	for _, c := range []struct {
		id int64
		ok bool
	}{{-5, true}, {-5, false}, {math.MinInt64, false}, {0, true}, {-1, false}, {1, true}} {
		if err := w.Add(c.id, long); (err == nil) != c.ok {
			t.Errorf("rowid %d: %v, want success %v", c.id, err, c.ok)
		}
	}
	w.Finish()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db := connect(t, path)
	if got := query(t, db, "PRAGMA integrity_check", scan1[string]); !slices.Equal(got, []string{"ok"}) {
		t.Error(got)
	}
	if got, want := query(t, db, "SELECT rowid FROM w", scan1[int64]), []int64{-5, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// SQLite reads no page that holds the byte at 1 GiB. The file before it is a hole here.
func TestLockPage(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the file would take 1 GiB")
	}
	for _, before := range []uint32{1, 2, 3, 5} { // pages left before it
		for _, long := range []int{10, 100_000} {
			const size = 32768
			path, roots := create(t, size, schema)
			var rows []row
			for i := range 6 {
				rows = append(rows, row{int64(i), strings.Repeat("n", i), int64(i), text(strings.Repeat("y", 20_000+long))})
			}
			d := openFile(t, path)
			d.pages = lockByte/size - before
			fill(t, d, roots, rows)
			if d.pages*size <= lockByte+size {
				t.Fatalf("the file has only %d pages", d.pages)
			}
			db := connect(t, path)
			check(t, db, "integrity_check(t)", rows) // of one table: the hole is of none
			db.Close()
			checkCopy(t, path, rows)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	edit := func(change func(b []byte) []byte) func(*testing.T) string {
		return func(t *testing.T) string {
			path, _ := create(t, 1024, schema)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(b), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	made := func(pageSize int, script string) func(*testing.T) string {
		return func(t *testing.T) string {
			path, _ := create(t, pageSize, schema)
			db := connect(t, path)
			exec(t, db, script)
			db.Close()
			return path
		}
	}
	first := func(pragma string) func(*testing.T) string {
		return func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "load")
			db := connect(t, path)
			exec(t, db, pragma+";"+schema)
			db.Close()
			return path
		}
	}
	const notSQLite, notDefault, notNew = "not a SQLite database with a rollback journal", "not a database with SQLite's default format", "not a new database"
	for _, c := range []struct {
		name, want string
		make       func(*testing.T) string
	}{
		{"empty", notSQLite, edit(func([]byte) []byte { return nil })},
		{"short", notSQLite, edit(func([]byte) []byte { return []byte("SQLite") })},
		{"header only", notNew, edit(func(b []byte) []byte { return b[:headerSize] })},
		{"other", notSQLite, edit(func([]byte) []byte { return bytes.Repeat([]byte("# a text\n"), 1000) })},
		{"wal", notSQLite, made(1024, "PRAGMA journal_mode=wal; INSERT INTO t VALUES ('a', 1, 'b')")},
		{"reserved", notSQLite, edit(func(b []byte) []byte { b[20] = 8; return b })},
		{"large pages", "pages of 65536 bytes are not supported", made(65536, "")},
		{"no pages", "pages of 0 bytes are not supported", edit(func(b []byte) []byte { b[16], b[17] = 0, 0; return b })},
		{"odd pages", "pages of 1023 bytes are not supported", edit(func(b []byte) []byte { b[16], b[17] = 3, 255; return b })},
		{"utf-16", notDefault, first("PRAGMA encoding='UTF-16le'")},
		{"auto-vacuum", notDefault, first("PRAGMA auto_vacuum=incremental")},
		{"free pages", notNew, made(1024, "CREATE TABLE gone (x); DROP TABLE gone")},
		{"truncated", notNew, edit(func(b []byte) []byte { return b[:len(b)-1024] })},
		{"extended", notNew, edit(func(b []byte) []byte { return append(b, make([]byte, 1024)...) })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := c.make(t)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path); err == nil || err.Error() != path+": "+c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed, or %v", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "none")
	if _, err := Open(path); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
}
