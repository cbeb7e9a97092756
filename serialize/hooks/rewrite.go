package hooks

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Pair is a commit and what it was rewritten to.
type Pair struct{ Old, New string }

// ReadPairs reads the list that git gives to a post-rewrite hook: "old new [extra]" a
// line (githooks(5)).
func ReadPairs(r io.Reader) ([]Pair, error) {
	var out []Pair
	for in := bufio.NewScanner(r); ; {
		if !in.Scan() {
			return out, in.Err()
		}
		f := strings.Fields(in.Text())
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 || !meta.IsCommitID(f[0]) || !meta.IsCommitID(f[1]) {
			return nil, meta.Invalid(fmt.Sprintf("line %q", in.Text()), "not two commit ids", "this is called by git, as a post-rewrite hook")
		}
		out = append(out, Pair{f[0], f[1]})
	}
}

// Mode says what happens to a key that the new commit already has.
type Mode string

// The modes, named as those of notes.rewriteMode.
const (
	Ignore      Mode = "ignore"      // the new commit's value stays
	Overwrite   Mode = "overwrite"   // the old commit's value replaces it
	Concatenate Mode = "concatenate" // lists and sets are united; of strings the new commit's stays
)

// Settings says whether metadata follows rewritten commits, and how.
type Settings struct {
	Enabled bool
	Mode    Mode
}

// ReadSettings reads what the repository wants for a command ("amend" or "rebase"):
// meta.rewrite.<command> and meta.rewriteMode, else notes.rewrite.<command> and
// notes.rewriteMode as git-config(1) has them; by default it is on and concatenates.
func ReadSettings(cfg *gitdb.Config, command string) (Settings, error) {
	s := Settings{Enabled: cfg.Bool("meta.rewrite."+command, cfg.Bool("notes.rewrite."+command, true)), Mode: Concatenate}
	text, ok := cfg.Get("meta.rewriteMode")
	if !ok {
		text, ok = cfg.Get("notes.rewriteMode")
	}
	if !ok {
		return s, nil
	}
	switch m := Mode(strings.ToLower(text)); m {
	case Ignore, Overwrite, Concatenate:
		s.Mode = m
	case "cat_sort_uniq":
		s.Mode = Concatenate
	default:
		return s, meta.Invalid(fmt.Sprintf("meta.rewriteMode %q", text), "neither concatenate, overwrite nor ignore", "git config meta.rewriteMode concatenate")
	}
	return s, nil
}

// Carry copies the metadata of every old commit to what it became. The old commit keeps
// its own. Several old commits may have become one (a squash): they are taken in order.
// It returns the number of keys written. Edit times and authors go along.
func Carry(tx *store.Tx, pairs []Pair, mode Mode) (int, error) {
	n := 0
	for _, p := range pairs {
		old := meta.Target{Type: meta.Commit, Value: p.Old}
		var recs []store.Record
		for rec, err := range tx.Records(store.Query{Target: &old, Publishable: true}) {
			if err != nil {
				return n, err
			}
			recs = append(recs, rec)
		}
		for _, rec := range recs {
			done, err := carryKey(tx, rec, p.New, mode)
			if err != nil {
				return n, fmt.Errorf("carry %s: %w", rec.KeyRef, err)
			}
			if done {
				n++
			}
		}
	}
	return n, nil
}

func carryKey(tx *store.Tx, rec store.Record, commit string, mode Mode) (bool, error) {
	k := meta.KeyRef{Target: meta.Target{Type: meta.Commit, Value: commit}, Key: rec.Key}
	email, _, err := tx.Author(rec.KeyRef)
	if err != nil {
		return false, err
	}
	value, ms := rec.Value, rec.Time
	have, err := tx.Get(k)
	if err == nil {
		switch {
		case mode == Ignore, mode == Concatenate && (have.Type != rec.Type || have.Type == meta.String):
			return false, nil
		case mode == Concatenate:
			value, ms = unite(have.Value, rec.Value), max(have.Time, rec.Time)
			if value.Equal(have.Value) {
				return false, nil
			}
		}
	}
	return true, tx.Put(k, value, store.Edit{Email: email, Time: ms}, store.PutOptions{})
}

// unite joins two lists or two sets.
func unite(a, b meta.Value) meta.Value {
	out := meta.Value{Type: a.Type}
	if a.Type == meta.Set {
		out.Members = append(slices.Clone(a.Members), b.Members...)
		slices.Sort(out.Members)
		out.Members = slices.Compact(out.Members)
		return out
	}
	out.Entries = slices.Clone(a.Entries)
	for _, e := range b.Entries {
		if !slices.Contains(out.Entries, e) {
			out.Entries = append(out.Entries, e)
		}
	}
	meta.SortEntries(out.Entries)
	return out
}
