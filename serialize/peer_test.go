package serialize_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

const peerDir = "../testdata/peer"

// TestPeer serializes stores that the Rust program has filled and compares trees and
// messages with what that program made of them; testdata/peer/record.sh records both.
func TestPeer(t *testing.T) {
	scenarios, err := filepath.Glob(filepath.Join(peerDir, "*", "store.sql"))
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("no recorded scenario in %s: %v", peerDir, err)
	}
	for _, file := range scenarios {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			repo := newPeerRepo(t)
			repo.load(file)
			repo.serialize(serialize.Options{Pruner: prune.Auto{}})
			repo.compare(dir, "")

			second := filepath.Join(dir, "2.store.sql")
			if _, err := os.Stat(second); errors.Is(err, fs.ErrNotExist) {
				return
			}
			repo.load(second)
			repo.serialize(serialize.Options{Pruner: prune.Auto{}})
			repo.compare(dir, "2.")
		})
	}
}

// TestPeerFull builds the same trees with --force-full, on top of other ones too.
func TestPeerFull(t *testing.T) {
	for _, name := range []string{"types", "escaping", "tombstones", "filters", "unicode", "vector"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(peerDir, name)
			repo := newPeerRepo(t)
			repo.load(filepath.Join(dir, "store.sql"))
			repo.serialize(serialize.Options{ForceFull: true})
			repo.compare(dir, "")
			before := repo.git("rev-parse", "refs/meta/local/main")
			repo.serialize(serialize.Options{ForceFull: true})
			if after := repo.git("rev-parse", "refs/meta/local/main"); after != before {
				t.Errorf("a second full build of the same content moved the ref from %s to %s", before, after)
			}
		})
	}
}

// TestVector holds the ids of one tree with everything in it and of the commit that the
// format's description gives for it.
func TestVector(t *testing.T) {
	t.Parallel()
	const (
		wantTree   = "68269ac4414418e3269278ec919985eefa83a5dc"
		wantCommit = "187cd8ee6df43eefcb77e78fef588f427ec3a938"
		wantBlobs  = `b5754e20373fdaa5331ef6e4623dbae636225e3b branch/45/feature/x/review/status/__value
bb79ec2de59197fe11eeb60d312673a87c1b8932 change-id/7c/abcd1234/k/__value
fe062a6d451cbc700276ea6a2a25d460dd61f2b3 commit/98/98afc48127dd62ab6e54b17aa86aac61885501e6/agent/model/__value
1b3d7ec40cced9fe3a3e672bc0b721ebe717a631 path/src/~__gen/~~t/f.rs/__target__/owner/__value
5094492d2b8f1ffd5eafda68746fc3da32d8b33a project/__tombstones/gone/__deleted
2e65efe2a145dda7ee51d1741299f848e5bf752e project/label/__set/2e65efe2a145dda7ee51d1741299f848e5bf752e
63d8dbd40c23542e740659a7168a0ce3138ea748 project/label/__set/63d8dbd40c23542e740659a7168a0ce3138ea748
3410062ba67c5ed59b854387a8bc0ec012479368 project/label/__tombstones/3410062ba67c5ed59b854387a8bc0ec012479368
b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0 project/notes/__list/1700000000000-aaf4c
04fea06420ca60892f73becee3614f6d023a4b7f project/notes/__list/1700000000001-7c211
5094492d2b8f1ffd5eafda68746fc3da32d8b33a project/notes/__list/__tombstones/1700000000002-78c9a
2716170431b190e1bc82ae389a0125a5ca4779da project/p2/__value`
	)
	repo := newPeerRepo(t)
	repo.load(filepath.Join(peerDir, "vector", "store.sql"))
	repo.serialize(serialize.Options{})
	const ref = "refs/meta/local/main"
	var blobs []string
	for line := range strings.SplitSeq(repo.git("ls-tree", "-r", ref), "\n") {
		info, path, _ := strings.Cut(line, "\t")
		blobs = append(blobs, strings.Fields(info)[2]+" "+path)
	}
	if diff := cmp.Diff(wantBlobs, strings.Join(blobs, "\n")); diff != "" {
		t.Errorf("blobs (-want +got):\n%s", diff)
	}
	if got := repo.git("rev-parse", ref+"^{tree}"); got != wantTree {
		t.Errorf("tree %s, want %s", got, wantTree)
	}
	// the commit as the peer dates and signs it
	tree, _ := gitdb.ParseHash(wantTree)
	who := gitdb.Ident{Name: "T U", Email: "t@e.x", When: time.Unix(1700000000, 0).UTC()}
	data := (&gitdb.Commit{Tree: tree, Author: who, Committer: who, Message: repo.message(ref)}).Encode()
	if got := gitdb.HashObject(gitdb.CommitObject, data).String(); got != wantCommit {
		t.Errorf("commit %s, want %s:\n%s", got, wantCommit, data)
	}
	if len(data) != 348 {
		t.Errorf("commit of %d bytes, want 348", len(data))
	}
}

// peerRepo is a fresh repository with a store of the peer's.
type peerRepo struct {
	*testing.T
	dir   string
	clean []string // environment
}

func newPeerRepo(t *testing.T) *peerRepo {
	t.Helper()
	r := &peerRepo{T: t, dir: t.TempDir()}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			r.clean = append(r.clean, kv)
		}
	}
	r.clean = append(r.clean, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	r.git("init", "-q", "--template=")
	r.git("config", "user.name", "T U")
	r.git("config", "user.email", "t@e.x")
	return r
}

// git returns what a git command prints, without the last line feed.
func (r *peerRepo) git(args ...string) string {
	r.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = r.dir, r.clean
	out, err := c.Output()
	if err != nil {
		exit := (*exec.ExitError)(nil)
		if errors.As(err, &exit) {
			r.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
		}
		r.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (r *peerRepo) message(rev string) string {
	r.Helper()
	c := exec.Command("git", "cat-file", "commit", rev)
	c.Dir, c.Env = r.dir, r.clean
	out, err := c.Output()
	if err != nil {
		r.Fatal(err)
	}
	_, msg, _ := strings.Cut(string(out), "\n\n")
	return msg
}

// load fills the store from a dump. An existing store keeps its own tables: that is what
// it looks like when the peer goes on working on it.
func (r *peerRepo) load(file string) {
	r.Helper()
	dump, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	path := filepath.Join(r.dir, ".git", store.FileName)
	text := string(dump)
	if _, err := os.Stat(path); err == nil {
		var b strings.Builder
		b.WriteString("BEGIN;\n")
		for _, table := range []string{"metadata", "list_values", "set_values", "tombstones", "metadata_log", "sync_state"} {
			b.WriteString("DELETE FROM " + table + ";\n")
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "INSERT INTO ") {
				b.WriteString(line)
			}
		}
		b.WriteString("COMMIT;\n")
		text = b.String()
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		r.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(r.Context(), text); err != nil {
		r.Fatalf("%s: %v", file, err)
	}
	if err := db.Close(); err != nil {
		r.Fatal(err)
	}
}

func (r *peerRepo) serialize(o serialize.Options) {
	r.Helper()
	ctx := r.Context()
	repo, err := gitdb.Discover(ctx, r.dir)
	if err != nil {
		r.Fatal(err)
	}
	defer repo.Close()
	db, err := store.Open(ctx, filepath.Join(repo.CommonDir, store.FileName), store.Options{})
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	env := &serialize.Env{Repo: repo, DB: db, Namespace: "meta", Warn: func(s string) { r.Errorf("warning: %s", s) }}
	if _, err := serialize.Run(context.WithoutCancel(ctx), env, o); err != nil {
		r.Fatalf("serialize: %v", err)
	}
}

// What the messages of the two programs say differently: the peer counts blobs, this one
// keys; and from the second serialize on the peer calls a new key modified, not added.
var (
	counts = regexp.MustCompile(`(?m)^(keys-dropped|keys-retained): \d+$`)
	added  = regexp.MustCompile(`(?m)^A\t`)
)

func comparableMessage(msg, step string) string {
	msg = counts.ReplaceAllString(msg, "$1: N")
	if step != "" {
		msg = added.ReplaceAllString(msg, "M\t")
	}
	return msg
}

// compare looks at every commit recorded for a step and at the number of refs.
func (r *peerRepo) compare(dir, step string) {
	r.Helper()
	trees, err := filepath.Glob(filepath.Join(dir, step+"*.tree"))
	if err != nil {
		r.Fatal(err)
	}
	refs := map[string]bool{}
	for _, file := range trees {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), step), ".tree")
		if strings.HasPrefix(name, "2.") {
			continue
		}
		rev := "refs/meta/local/" + name
		ref, _, _ := strings.Cut(rev, "~")
		refs[ref] = true
		want, err := os.ReadFile(file)
		if err != nil {
			r.Fatal(err)
		}
		got := "tree " + r.git("rev-parse", rev+"^{tree}") + "\n" + r.git("-c", "core.quotePath=true", "ls-tree", "-r", rev) + "\n"
		if diff := cmp.Diff(string(want), got); diff != "" {
			r.Errorf("%s%s: tree (-want +got):\n%s", step, name, diff)
		}
		msg, err := os.ReadFile(strings.TrimSuffix(file, ".tree") + ".message")
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(comparableMessage(string(msg), step), comparableMessage(r.message(rev), step)); diff != "" {
			r.Errorf("%s%s: message (-want +got):\n%s", step, name, diff)
		}
	}
	if len(refs) == 0 {
		r.Fatalf("nothing recorded in %s for step %q", dir, step)
	}
	if got := strings.Fields(r.git("for-each-ref", "--format=%(refname)", "refs/meta")); len(got) != len(refs) {
		r.Errorf("refs %v, want %d of them", got, len(refs))
	}
}
