package serialize

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// line is one line of a serialize commit's change list.
type line struct {
	letter byte // A, M or D
	meta.KeyRef
	time int64 // ms
}

type keyTime struct {
	path string // tree path of the key + "/"
	time int64  // ms
}

// maxLines is the number of changes above which a message leaves them out.
const maxLines = 1000

const (
	subjectSerialize = "git-meta: serialize"
	prunedLine       = "pruned: true"
)

// message returns the commit message of lines (format.md §5.4).
func message(lines []line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d changes)\n", subjectSerialize, len(lines))
	if len(lines) > maxLines {
		fmt.Fprintf(&b, "\nchanges-omitted: true\ncount: %d", len(lines))
		return b.String()
	}
	for _, l := range lines {
		fmt.Fprintf(&b, "\n%c\t%s\t%s", l.letter, field(l.Target.String()), field(l.Key))
	}
	return b.String()
}

// field quotes a text that would break its line, as git quotes odd paths. Names like
// that are refused at set; rows written by others may hold them.
func field(s string) string {
	if strings.ContainsFunc(s, meta.IsControl) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// removals returns the keys that a commit message says were removed.
func removals(msg string) []meta.KeyRef {
	if !strings.HasPrefix(msg, subjectSerialize) {
		return nil
	}
	var out []meta.KeyRef
	for l := range strings.SplitSeq(msg, "\n") {
		f := strings.SplitN(l, "\t", 3)
		if len(f) != 3 || f[0] != "D" {
			continue
		}
		typ, value, _ := strings.Cut(f[1], ":")
		if t := (meta.Target{Type: meta.TargetType(typ), Value: value}); t.Type.Known() {
			out = append(out, meta.KeyRef{Target: t, Key: f[2]})
		}
	}
	return out
}

// isPruneCommit reports whether the message is one of a commit that only dropped keys.
func isPruneCommit(msg string) bool {
	for l := range strings.SplitSeq(msg, "\n") {
		if l == prunedLine {
			return true
		}
	}
	return false
}

// signatures returns author and committer for a commit whose content was edited at ms:
// the identity is git's, the author date the edit time, the committer date now.
func (e *Env) signatures(ctx context.Context, ms int64) (author, committer gitdb.Ident, err error) {
	if author, err = e.Repo.AuthorIdent(ctx); err != nil {
		return author, committer, err
	}
	if committer, err = e.Repo.CommitterIdent(ctx); err != nil {
		return author, committer, err
	}
	author.When = time.Unix(max(ms, 0)/1000, 0).UTC()
	return author, committer, nil
}

// serializeCommit returns the bytes of the commit that brings lines.
func (e *Env) serializeCommit(ctx context.Context, tree, parent gitdb.Hash, lines []line, times []keyTime) ([]byte, error) {
	newest := int64(0)
	for _, l := range lines {
		newest = max(newest, l.time)
	}
	if len(lines) == 0 {
		newest = e.now().UnixMilli()
	}
	author, committer, err := e.signatures(ctx, newest)
	if err != nil {
		return nil, err
	}
	c := gitdb.Commit{Tree: tree, Author: author, Committer: committer, Message: message(lines)}
	if parent != zero {
		c.Parents = []gitdb.Hash{parent}
	}
	ms := make([]int64, len(times))
	for i, t := range times {
		ms[i] = t.time
	}
	if h := meta.EncodeTimes(ms, author.When.Unix()); h != "" {
		c.Headers = append(c.Headers, gitdb.Header{Key: meta.TimesHeader, Value: h})
	}
	return c.Encode(), nil
}

// PruneCommit returns the bytes of a commit with the given message on top of parent.
// Author date and committer date are now.
func (e *Env) PruneCommit(ctx context.Context, tree, parent gitdb.Hash, msg string) ([]byte, error) {
	author, committer, err := e.signatures(ctx, 0)
	if err != nil {
		return nil, err
	}
	author.When = committer.When
	c := gitdb.Commit{Tree: tree, Parents: []gitdb.Hash{parent}, Author: author, Committer: committer, Message: msg}
	return c.Encode(), nil
}
