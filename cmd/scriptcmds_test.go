package cmd_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	_ "modernc.org/sqlite"
)

// canMount reports whether a script can mount a file system of its own, out of sight of
// everybody else.
var canMount = sync.OnceValue(func() bool {
	return os.Geteuid() == 0 && exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt").Run() == nil
})

// hasSetpriv reports whether root can run a program to which permissions apply.
var hasSetpriv = sync.OnceValue(func() bool {
	return exec.Command("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "true").Run() == nil
})

// hasReftable reports whether git can keep refs in a reftable (2.45).
var hasReftable = sync.OnceValue(func() bool {
	c := exec.Command("git", "init", "-h")
	out, _ := c.CombinedOutput() // exit code 129
	return strings.Contains(string(out), "--ref-format") || strings.Contains(string(out), "--[no-]ref-format")
})

// gitCommand runs git as the script would.
func gitCommand(ts *testscript.TestScript, args ...string) *exec.Cmd {
	c := exec.Command("git", args...)
	c.Dir, c.Env = ts.MkAbs("."), os.Environ()
	for _, name := range []string{"HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_DIR"} {
		if v := ts.Getenv(name); v != "" {
			c.Env = append(c.Env, name+"="+v)
		}
	}
	return c
}

// treeEntry is a line of git ls-tree -r -l.
type treeEntry struct {
	path string
	size int64
}

func lsTree(ts *testscript.TestScript, rev string) []treeEntry {
	out, err := gitCommand(ts, "ls-tree", "-r", "-l", "-z", rev).Output()
	if err != nil {
		ts.Fatalf("git ls-tree %s: %v", rev, err)
	}
	var entries []treeEntry
	for line := range strings.SplitSeq(string(out), "\x00") {
		info, path, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		size, err := strconv.ParseInt(strings.Fields(info)[3], 10, 64)
		ts.Check(err)
		entries = append(entries, treeEntry{path, size})
	}
	return entries
}

// between checks that n is args[1], or lies between args[1] and args[2].
func between(ts *testscript.TestScript, neg bool, name string, args []string, count func(rev string) int64) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: %s REV MIN [MAX]", name)
	}
	low, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	high := low
	if len(args) == 3 {
		high, err = strconv.ParseInt(args[2], 10, 64)
		ts.Check(err)
	}
	if n := count(args[0]); n < low || n > high {
		ts.Fatalf("%d %s in %s, want %s", n, name, args[0], strings.Join(args[1:], " to "))
	}
}

// cmdBytes: bytes REV MIN [MAX] checks the size of all blobs of a tree, each path counted.
func cmdBytes(ts *testscript.TestScript, neg bool, args []string) {
	between(ts, neg, "bytes", args, func(rev string) int64 {
		sum := int64(0)
		for _, e := range lsTree(ts, rev) {
			sum += e.size
		}
		return sum
	})
}

// cmdKeys: keys REV MIN [MAX] checks how many keys a tree holds: values, lists and sets.
func cmdKeys(ts *testscript.TestScript, neg bool, args []string) {
	between(ts, neg, "keys", args, func(rev string) int64 {
		keys := map[string]bool{}
		for _, e := range lsTree(ts, rev) {
			parts := strings.Split(e.path, "/")
			for i, part := range parts {
				if part == "__tombstones" {
					break
				}
				if part == "__value" || part == "__list" && i == len(parts)-2 || part == "__set" {
					keys[strings.Join(parts[:i+1], "/")] = true
					break
				}
			}
		}
		return int64(len(keys))
	})
}

// cmdAgo: ago NAME DAYS [SECONDS] sets $NAME to the time so long ago, in ms.
func cmdAgo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: ago NAME DAYS [SECONDS]")
	}
	days, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	seconds := int64(0)
	if len(args) == 3 {
		seconds, err = strconv.ParseInt(args[2], 10, 64)
		ts.Check(err)
	}
	ts.Setenv(args[0], strconv.FormatInt(time.Now().UnixMilli()-(days*86_400+seconds)*1000, 10))
}

// cmdSQL: sql FILE STATEMENT runs a statement on a store and prints its rows, with tabs.
func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?mode=rw&_pragma=busy_timeout(5000)")
	ts.Check(err)
	defer db.Close()
	rows, err := db.Query(args[1])
	ts.Check(err)
	defer rows.Close()
	columns, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		values, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		ts.Check(rows.Scan(to...))
		line := make([]string, len(values))
		for i, v := range values {
			line[i] = v.String
		}
		fmt.Fprintln(ts.Stdout(), strings.Join(line, "\t"))
	}
	ts.Check(rows.Err())
}
