package serialize

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// IndexFile is where both programs say how far the history is indexed, in the common git
// folder (format.md §8.5).
const IndexFile = "git-meta-index.json"

// IndexState is the content of [IndexFile].
type IndexState struct {
	Tip            string  `json:"tip"`         // of the tracking ref
	ResumeFrom     *string `json:"resume_from"` // the first commit not indexed yet, if that is known
	CommitsIndexed int64   `json:"commits_indexed"`
	KeysIndexed    int64   `json:"keys_indexed"`
	Complete       bool    `json:"complete"`
	HeartbeatMS    int64   `json:"heartbeat_ms"`
	PID            int     `json:"pid"`
}

// indexerAlive is how long after its last sign of life an indexer counts as running.
const indexerAlive = 30 * time.Second

// active reports whether another process is indexing.
func (s *IndexState) active(now time.Time) bool {
	return !s.Complete && s.PID != os.Getpid() && now.Sub(time.UnixMilli(s.HeartbeatMS)) < indexerAlive
}

// readIndexState returns nil where there is no file, or one that cannot be read.
func readIndexState(repo *gitdb.Repo) *IndexState {
	data, err := os.ReadFile(filepath.Join(repo.CommonDir, IndexFile))
	if err != nil {
		return nil
	}
	s := &IndexState{}
	if json.Unmarshal(data, s) != nil {
		return nil
	}
	return s
}

// write replaces the file in one step.
func (s *IndexState) write(repo *gitdb.Repo) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(repo.CommonDir, IndexFile+".*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // not there after the rename
	_, err = f.Write(data)
	mode := fs.FileMode(0o644)
	if info, serr := os.Stat(filepath.Join(repo.CommonDir, store.FileName)); serr == nil {
		mode = info.Mode().Perm() // whoever may read the store
	}
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(repo.CommonDir, IndexFile))
}

// IndexReport says what [UpdateIndex] did.
type IndexReport struct {
	*Index             // nil: there was nothing to do
	Busy   *IndexState // another process is at it; nil: none
	Total  int64       // keys known from history only
	Resume int64       // commits that an interrupted run had indexed
}

// UpdateIndexOptions says how to bring the index up to date.
type UpdateIndexOptions struct {
	Full  bool // everything again, whatever was indexed
	Step  func(id gitdb.Hash, c *gitdb.Commit, lost int)
	Begin func(*IndexReport) // called before the first commit is read; nil: nobody listens
}

// UpdateIndex indexes what the history of the tracking ref ref, which is at tip, has
// besides what was indexed before: commits that are new, and those before a cut that
// have been fetched since. What an interrupted run, of either program, has done is not
// done again. Where nothing is new it costs one look-up.
func UpdateIndex(ctx context.Context, env *Env, ref string, tip gitdb.Hash, o UpdateIndexOptions) (*IndexReport, error) {
	u := &indexUpdate{env: env, ref: ref, tip: tip, file: readIndexState(env.Repo)}
	rep := &IndexReport{}
	if u.file != nil && u.file.active(env.now()) && !o.Full {
		rep.Busy = u.file
		return rep, nil
	}
	opts := IndexOptions{Step: o.Step, Checkpoint: u.checkpoint}
	if !o.Full {
		done, err := u.plan(ctx, &opts, rep)
		if err != nil || done {
			return rep, err
		}
	}
	if o.Begin != nil {
		o.Begin(rep)
	}
	if err := u.run(ctx, opts, rep); err != nil {
		return nil, err
	}
	return rep, nil
}

// indexUpdate is one [UpdateIndex]. The store itself remembers with a cursor, whose name
// is no ref's, up to which commit it was indexed and, as its filter set, at which cut:
// the file may outlive the store.
type indexUpdate struct {
	env   *Env
	ref   string
	tip   gitdb.Hash
	file  *IndexState
	known store.Cursor
	saved bool // a checkpoint was written
}

func (u *indexUpdate) cursorRef() string { return "index:" + u.ref }

// plan finds out what is to be indexed; done says nothing.
func (u *indexUpdate) plan(ctx context.Context, o *IndexOptions, rep *IndexReport) (done bool, err error) {
	var has bool
	if err := u.env.DB.View(ctx, func(tx *store.Tx) error {
		var ok bool
		if u.known, ok, err = tx.LatestCursor(u.cursorRef()); err != nil {
			return err
		}
		if ok {
			return nil
		}
		has, err = tx.HasPromised()
		return err
	}); err != nil {
		return false, err
	}
	rd, err := u.env.Repo.Objects(ctx)
	if err != nil {
		return false, err
	}
	f := u.file
	if f != nil && !f.Complete { // what was interrupted
		if from, ok := parsed(f.ResumeFrom); ok && f.Tip == u.tip.String() {
			o.From, rep.Resume = from, f.CommitsIndexed
		}
		return false, nil
	}
	if u.known.Commit == "" && f != nil && (has || f.KeysIndexed == 0) {
		u.known.Commit = f.Tip // by the other program
	}
	last, ok := gitdb.ParseHash(u.known.Commit)
	if !ok || !rd.Has(ctx, last) {
		return false, nil
	}
	if cut, ok := gitdb.ParseHash(u.known.FilterSet); ok {
		c, err := commitHere(ctx, rd, cut)
		if err != nil {
			return false, err
		}
		if c != nil && len(c.Parents) > 0 && rd.Has(ctx, c.Parents[0]) {
			o.From = cut // what lies before it has been fetched
			return false, nil
		}
	}
	if last == u.tip {
		if err := u.count(ctx, rep); err != nil || f != nil {
			return true, err
		}
		return true, u.complete(0, rep.Total) // for the other program
	}
	ancestor, err := isAncestor(ctx, rd, last, u.tip)
	if ancestor {
		o.Stop = last
	}
	return false, err
}

func parsed(s *string) (gitdb.Hash, bool) {
	if s == nil {
		return zero, false
	}
	return gitdb.ParseHash(*s)
}

func (u *indexUpdate) count(ctx context.Context, rep *IndexReport) error {
	return u.env.DB.View(ctx, func(tx *store.Tx) (err error) {
		rep.Total, err = tx.CountPromised()
		return err
	})
}

// state returns what the file is to say.
func (u *indexUpdate) state(commits, keys int64) *IndexState {
	return &IndexState{Tip: u.tip.String(), CommitsIndexed: commits, KeysIndexed: keys, HeartbeatMS: u.env.now().UnixMilli(), PID: os.Getpid()}
}

func (u *indexUpdate) checkpoint(next gitdb.Hash, commits, keys int) error {
	u.saved = true
	s := u.state(int64(commits), int64(keys))
	from := next.String()
	s.ResumeFrom = &from
	return s.write(u.env.Repo)
}

func (u *indexUpdate) run(ctx context.Context, o IndexOptions, rep *IndexReport) error {
	if o.Stop != zero {
		o.Checkpoint = nil // a range is short; an interrupted one is read again
	}
	x, err := IndexHistory(ctx, u.env, u.tip, o)
	if err != nil {
		if s := readIndexState(u.env.Repo); u.saved && s != nil && s.PID == os.Getpid() {
			s.HeartbeatMS = 0 // nobody is at it any more
			err = errors.Join(err, s.write(u.env.Repo))
		}
		return err
	}
	rep.Index = x
	if err := u.count(ctx, rep); err != nil {
		return err
	}
	cut := hexOf(x.Cut)
	commits := int64(x.Commits)
	if o.Stop != zero {
		if cut == "" {
			cut = u.known.FilterSet
		}
		if u.file != nil {
			commits += u.file.CommitsIndexed
		}
	}
	if err := u.env.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.DeleteCursors(u.cursorRef()); err != nil {
			return err
		}
		return tx.PutCursor(store.Cursor{Ref: u.cursorRef(), Commit: u.tip.String(), FilterSet: cut, PruneChecked: true})
	}); err != nil {
		return err
	}
	return u.complete(commits, rep.Total)
}

// complete writes that the history is indexed.
func (u *indexUpdate) complete(commits, keys int64) error {
	s := u.state(commits, keys)
	s.Complete = true
	return s.write(u.env.Repo)
}
