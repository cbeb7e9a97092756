// Makestore fills a git-meta store with a repeatable workload, or edits some of its keys,
// through plain SQL, so that no program under measurement does the work.
//
//	makestore [-churn N] [-epoch MS] [-seed S] REPOSITORY COMMITS
//	makestore -id N
//
// Each commit has three strings, a list of four entries of about 230 bytes and a set of
// two members: five keys, nine values. The commit ids are made up. Times rise by one
// second per commit from -epoch on. With -churn one string of N commits, spread evenly,
// gets a new value with the present time, as if edited since.
//
// With -id it prints the id of commit N, counted from 0.
//
// The store must exist; any git-meta command that writes makes it.
package main

import (
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite"
)

const email = "dev@example.com"

func main() {
	churn := flag.Int("churn", 0, "edit one string of `N` commits instead of filling the store")
	epoch := flag.Int64("epoch", 1700000000000, "time of the first commit's values, in `ms` since 1970")
	id := flag.Int("id", -1, "print the id of commit `N`")
	seed := flag.Uint64("seed", 7, "`seed` of the made-up texts")
	flag.Parse()
	if *id >= 0 && flag.NArg() == 0 {
		fmt.Println(commitID(*id))
		return
	}
	commits, err := strconv.Atoi(flag.Arg(1))
	if flag.NArg() != 2 || err != nil || commits < 1 {
		fmt.Fprintln(os.Stderr, "usage: makestore [-churn N] [-epoch MS] [-seed S] REPOSITORY COMMITS")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), commits, *churn, *epoch, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "makestore:", err)
		os.Exit(1)
	}
}

func run(repo string, commits, churn int, epoch int64, seed uint64) (err error) {
	file := filepath.Join(repo, ".git", "git-meta.sqlite")
	if _, err := os.Stat(file); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // done after Commit
	w := &writer{tx: tx, stmts: map[string]*sql.Stmt{}}
	if churn > 0 {
		w.edit(commits, churn)
	} else {
		w.fill(commits, epoch, rand.New(rand.NewPCG(seed, seed)))
	}
	if w.err != nil {
		return w.err
	}
	return tx.Commit()
}

// writer runs statements until one fails.
type writer struct {
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
	err   error
}

// exec returns the rowid of what was inserted.
func (w *writer) exec(query string, args ...any) int64 {
	if w.err != nil {
		return 0
	}
	st, ok := w.stmts[query]
	if !ok {
		if st, w.err = w.tx.Prepare(query); w.err != nil {
			return 0
		}
		w.stmts[query] = st
	}
	res, err := st.Exec(args...)
	if err != nil {
		w.err = err
		return 0
	}
	id, err := res.LastInsertId()
	w.err = err
	return id
}

func (w *writer) log(target, key, value, valueType, op string, ms int64) {
	w.exec(`INSERT INTO metadata_log(target_type, target_value, key, value, value_type, operation, email, timestamp)
		VALUES ('commit', ?, ?, ?, ?, ?, ?, ?)`, target, key, value, valueType, op, email, ms)
}

func (w *writer) row(target, key, value, valueType string, ms int64) int64 {
	return w.exec(`INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp)
		VALUES ('commit', ?, ?, ?, ?, ?)`, target, key, value, valueType, ms)
}

func (w *writer) fill(commits int, epoch int64, rnd *rand.Rand) {
	words := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliet")
	states := []string{"open", "approved", "rejected"}
	for i := range commits {
		target, ms := commitID(i), epoch+int64(i)*1000
		for _, s := range [][2]string{
			{"agent:model", fmt.Sprintf("model-%d", i%7)},
			{"agent:session-id", fmt.Sprintf("%016x%016x", rnd.Uint64(), rnd.Uint64())},
			{"review:status", states[rnd.IntN(len(states))]},
		} {
			value := strconv.Quote(s[1]) // plain ASCII: the same as JSON
			w.row(target, s[0], value, "string", ms)
			w.log(target, s[0], value, "string", "set", ms)
		}
		list := w.row(target, "agent:transcript", "[]", "list", ms)
		for n := range 4 {
			said := make([]string, 28)
			for j := range said {
				said[j] = words[rnd.IntN(len(words))]
			}
			entry, err := json.Marshal(struct {
				Role string `json:"role"`
				N    int    `json:"n"`
				Text string `json:"text"`
			}{[]string{"user", "assistant"}[n%2], i*4 + n, strings.Join(said, " ")})
			if err != nil {
				w.err = err
				return
			}
			w.exec(`INSERT INTO list_values(metadata_id, value, timestamp) VALUES (?, ?, ?)`, list, string(entry), ms+int64(n))
		}
		w.log(target, "agent:transcript", "[]", "list", "push", ms+3)
		set := w.row(target, "review:owners", "[]", "set", ms)
		for n := range 2 {
			member := fmt.Sprintf("owner-%d@example.com", (i*2+n)%50)
			w.exec(`INSERT INTO set_values(metadata_id, member_id, value, timestamp) VALUES (?, ?, ?, ?)`, set, blobID(member), member, ms)
		}
		w.log(target, "review:owners", "[]", "set", "set_add", ms)
	}
}

func (w *writer) edit(commits, n int) {
	now := time.Now().UnixMilli()
	step := max(1, commits/n)
	for i := range min(n, commits) {
		target, ms := commitID(i*step), now+int64(i)
		value := fmt.Sprintf(`"edited-%d-%d"`, now, i)
		w.exec(`UPDATE metadata SET value = ?, last_timestamp = ?
			WHERE target_type = 'commit' AND target_value = ? AND key = 'review:status'`, value, ms, target)
		w.log(target, "review:status", value, "string", "set", ms)
	}
}

func commitID(i int) string { return sum(fmt.Sprintf("commit %d", i)) }

// blobID returns the id that git gives a blob.
func blobID(s string) string { return sum(fmt.Sprintf("blob %d\x00%s", len(s), s)) }

func sum(s string) string {
	h := sha1.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}
