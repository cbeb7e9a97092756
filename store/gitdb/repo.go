package gitdb

import (
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// Hash is the id of an object, 20 bytes.
type Hash = plumbing.Hash

// ZeroHash is no object: "must not exist" as an old value.
var ZeroHash Hash

// ObjectType is the type of an object, with the numbers of the pack format.
type ObjectType = plumbing.ObjectType

// The four types an object can have.
const (
	CommitObject = plumbing.CommitObject
	TreeObject   = plumbing.TreeObject
	BlobObject   = plumbing.BlobObject
	TagObject    = plumbing.TagObject
)

// Repo is a repository that git would accept. Paths are absolute and free of
// symbolic links. A Repo is safe for concurrent use; make one with [Discover]
// and close it with [Repo.Close].
type Repo struct {
	GitDir    string // of this worktree; git rev-parse --absolute-git-dir
	CommonDir string // shared by all worktrees; git rev-parse --git-common-dir
	WorkTree  string // top of the worktree, "" without one
	ObjectDir string // where new objects go
	Bare      bool

	dir        string // where Discover started; git runs here
	refStorage string // "files", or what extensions.refStorage says
	promisor   bool   // extensions.partialClone

	mu      sync.Mutex
	local   []ConfigEntry // parsed CommonDir/config, nil if not yet read
	config  *Config
	objects *Reader
}

// RefStorage returns "files" or the name of another ref backend ("reftable"),
// for which all refs go through the git program.
func (r *Repo) RefStorage() string { return r.refStorage }

// Dir returns the directory that [Discover] started from.
func (r *Repo) Dir() string { return r.dir }

// Close releases what the repository's [Reader] holds. Idempotent.
func (r *Repo) Close() error {
	r.mu.Lock()
	rd := r.objects
	r.objects = nil
	r.mu.Unlock()
	if rd != nil {
		return rd.Close()
	}
	return nil
}
