package exchange

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// AddOptions says which remote to add.
type AddOptions struct {
	URL       string // from [ResolveURL]
	Name      string // "": DefaultName
	Namespace string // "": the repository's
	Init      bool   // make refs/ns/main on a remote without metadata
	Depth     int    // commits to fetch, 0: all
	// Setup: the remote is the project's. One that is configured already is checked
	// and repaired.
	Setup bool
}

// Added is a remote that is configured now.
type Added struct {
	Remote
	Existed bool // it was configured before and has been checked
	Created bool // this call has made MainRef on the remote
	Rules   bool // the default auto-prune rules were stored

	Brought *Brought // what it held, where that had to be read
}

// Add configures a remote and, where it is empty, initializes it; what it holds is
// fetched and read: merged for the primary remote, imported for a side remote. If it
// fails, also by an interrupt, configuration and refs are as they were.
func (e *Env) Add(ctx context.Context, o AddOptions) (*Added, error) {
	add, err := e.planAdd(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := e.checkStore(ctx); err != nil {
		return nil, err
	}
	e.say(Step, "Checking "+Redact(add.URL)+"...")
	refs, err := e.inspect(ctx, add.URL, add.Namespace)
	if err != nil {
		return nil, err
	}
	if refs.main.IsZero() {
		if err := e.mayInit(ctx, o, add.Remote, refs); err != nil {
			return nil, err
		}
	}
	var u undo
	if err := e.connect(ctx, o, add, refs, &u); err != nil {
		if uerr := u.run(ctx); uerr != nil {
			err = fmt.Errorf("%w; and what was configured could not be taken back: %w", err, uerr)
		}
		return nil, err
	}
	if add.Created {
		tip, err := e.tip(ctx, add.LocalRef())
		if err == nil {
			add.Rules, err = e.writeRules(ctx, tip)
		}
		if err != nil {
			return nil, &meta.Error{Op: fmt.Sprintf("remote %q is set up, but the default auto-prune rules are not stored", add.Name), Err: err}
		}
	}
	return add, nil
}

// planAdd checks what can be checked without the network.
func (e *Env) planAdd(ctx context.Context, o AddOptions) (*Added, error) {
	r := Remote{Name: o.Name, URL: o.URL, Namespace: e.Namespace}
	if r.Name == "" {
		r.Name = DefaultName
	}
	if o.Namespace != "" {
		r.Namespace, r.OwnNamespace = o.Namespace, true
	}
	if err := errors.Join(CheckName(r.Name), serialize.CheckNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	all := Remotes(cfg, e.Namespace)
	if o.Setup {
		for _, have := range all {
			if have.URL == o.URL {
				return &Added{Remote: have, Existed: true}, nil
			}
		}
	}
	if have, ok := remoteOf(cfg, r.Name, e.Namespace); ok {
		if o.Setup && have.URL == o.URL && halfMade(cfg, have) {
			have.Side = hasPrimary(all)
			return &Added{Remote: have, Existed: true}, nil
		}
		return nil, exists(have, o, slices.Contains(all, have))
	}
	if o.Setup && hasPrimary(all) {
		return nil, exists(all[slices.IndexFunc(all, func(r Remote) bool { return !r.Side })], o, true)
	}
	r.Side = hasPrimary(all)
	return &Added{Remote: r}, nil
}

func hasPrimary(all []Remote) bool {
	return slices.ContainsFunc(all, func(r Remote) bool { return !r.Side })
}

// halfMade reports whether a remote that is not a meta remote was about to become one:
// it fetches nothing but metadata.
func halfMade(cfg *gitdb.Config, r Remote) bool {
	for _, spec := range cfg.GetAll("remote." + r.Name + ".fetch") {
		if !strings.HasPrefix(spec, "+"+r.MainRef()+":refs/"+r.Namespace+"/remotes/") {
			return false
		}
	}
	return true
}

// exists is the error of a name that is taken.
func exists(have Remote, o AddOptions, isMeta bool) error {
	op := fmt.Sprintf("remote %q", have.Name)
	switch {
	case !isMeta:
		return &meta.Error{Op: op, Err: errors.New("already exists and is not a metadata remote"), Hint: "choose another name: git meta remote add URL --name NAME"}
	case o.Setup:
		return &meta.Error{
			Op: op, Err: fmt.Errorf("already exists with the url %s, not %s", Redact(have.URL), Redact(o.URL)),
			Hint: "git meta remote remove " + shellWord(have.Name) + " && git meta setup",
		}
	}
	return &meta.Error{Op: op, Err: fmt.Errorf("already exists (%s)", Redact(have.URL)), Hint: "git meta remote remove " + shellWord(have.Name) + ", or choose another --name"}
}

// checkStore fails early where a store exists that cannot be used.
func (e *Env) checkStore(ctx context.Context) error {
	if _, err := os.Lstat(filepath.Join(e.Repo.CommonDir, store.FileName)); err != nil {
		return nil
	}
	_, err := e.Open(ctx)
	return err
}

// mayInit returns nil if an empty remote is to be initialized.
func (e *Env) mayInit(ctx context.Context, o AddOptions, r Remote, refs remoteRefs) error {
	op := "remote " + Redact(r.URL)
	again := "git meta remote add " + shellWord(Redact(r.URL))
	if r.Name != DefaultName {
		again += " --name=" + shellWord(r.Name)
	}
	if len(refs.others) > 0 && o.Namespace == "" {
		var found, hints []string
		for _, x := range refs.others {
			found = append(found, "refs/"+x+"/main")
			hints = append(hints, again+" --namespace="+shellWord(x))
		}
		return &meta.Error{
			Op: op, Err: fmt.Errorf("no metadata refs found under %s, but there is %s", r.MainRef(), strings.Join(found, ", ")),
			Hint: strings.Join(hints, ", or "),
		}
	}
	if o.Init {
		return nil
	}
	if e.Confirm != nil {
		yes, err := e.Confirm(ctx, "There is no metadata on "+Redact(r.URL)+". Initialize "+r.MainRef()+" with a starter README commit?", true)
		if yes || err != nil {
			return err
		}
	}
	if o.Namespace != "" {
		again += " --namespace=" + shellWord(o.Namespace)
	}
	return &meta.Error{Op: op, Err: fmt.Errorf("no metadata refs found (there is no %s)", r.MainRef()), Hint: "to start there: " + again + " --init"}
}

// connect configures the remote and brings it and this repository together.
func (e *Env) connect(ctx context.Context, o AddOptions, add *Added, refs remoteRefs, u *undo) error {
	origin := e.origin(ctx)
	if err := e.configure(ctx, add.Remote, u); err != nil {
		return err
	}
	if refs.main.IsZero() {
		return e.initialize(ctx, add, origin, u)
	}
	return e.join(ctx, o, add, refs.main, u)
}

// origin returns the URL of the repository's code, "" if there is none.
func (e *Env) origin(ctx context.Context) string {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return ""
	}
	url, _ := cfg.Get("remote.origin.url")
	return url
}

// initialize publishes the first commit of a remote: exactly the local ref's.
func (e *Env) initialize(ctx context.Context, add *Added, origin string, u *undo) error {
	tip, own, err := e.starter(ctx, add.Remote, origin, u)
	if err != nil {
		return err
	}
	e.say(Step, fmt.Sprintf("Initializing %s on %s...", add.MainRef(), add.Name))
	how, err := e.push(ctx, add.Remote, tip, gitdb.ZeroHash)
	if how < created && ctx.Err() == nil {
		// The answer may have been lost, or somebody else was faster. The very same commit
		// there is ours, or as good as.
		refs, ierr := e.look(ctx, add.Remote)
		switch {
		case ierr != nil || refs.main.IsZero():
		case refs.main == tip:
			how, err = created, nil
		default:
			if own && !add.Side { // theirs is the starter now
				if err := e.putBack(ctx, add.LocalRef(), gitdb.ZeroHash); err != nil {
					return err
				}
			}
			return e.read(ctx, add, 0, u)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &meta.Error{
			Op:   fmt.Sprintf("could not push the initial metadata commit to %s (%s)", add.Name, Redact(add.URL)),
			Err:  &redactedError{err, add.URL},
			Hint: "nothing was configured; repeat the command when the remote accepts a push to " + add.MainRef(),
		}
	}
	add.Created = how == created
	return e.track(ctx, add.Remote, tip)
}

// track makes the tracking ref what the remote is known to have, where git has not.
func (e *Env) track(ctx context.Context, r Remote, commit gitdb.Hash) error {
	for {
		at, err := e.tip(ctx, r.TrackingRef())
		if err != nil || at == commit {
			return err
		}
		err = e.Repo.UpdateRef(ctx, r.TrackingRef(), commit, at, "git-meta: remote add")
		if !errors.Is(err, gitdb.ErrRefMoved) {
			return err
		}
	}
}

// join connects with a remote that has metadata.
func (e *Env) join(ctx context.Context, o AddOptions, add *Added, main gitdb.Hash, u *undo) error {
	tracking, err := e.tip(ctx, add.TrackingRef())
	if err != nil {
		return err
	}
	if add.Existed && !tracking.IsZero() {
		return nil // what is new there is for a pull to bring
	}
	local, err := e.tip(ctx, add.LocalRef())
	if err != nil {
		return err
	}
	known, err := e.contains(ctx, local, main)
	if err != nil {
		return err
	}
	if known { // all of it was published from here
		return e.track(ctx, add.Remote, main)
	}
	return e.read(ctx, add, o.Depth, u)
}
