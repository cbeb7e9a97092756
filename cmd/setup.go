package cmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/git-meta/git-meta-go/serialize/manifest"
	"github.com/spf13/cobra"
)

func newSetupCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "setup",
		Long: `Connect this repository with its project's metadata. The file .git-meta at the
top of the work tree (in a bare repository: of HEAD) says where it is:

  url: https://example.com/team/metadata.git
  depth: 50

depth is optional. The remote is added under the name meta, as by git meta
remote add --init. Where that has been done, it is checked and repaired. The
file comes with a clone and is not trusted: transports that git would not use
for a submodule are refused, and so are repositories inside this one.

` + exitStatus,
		Example: `  git meta setup`,
		Args:    takes(0),
		RunE:    func(c *cobra.Command, _ []string) error { return runSetup(c.Context(), a) },
	}
}

func runSetup(ctx context.Context, a *app) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	r := env.Repo
	m, err := a.readManifest(ctx)
	offered := false
	if errors.Is(err, meta.ErrNotFound) {
		m, err = a.offerOrigin(ctx, env, err)
		if m == nil {
			return err // declined, or there is nothing to offer
		}
		offered = true
	}
	if err == nil {
		err = m.RequireURL()
	}
	if err != nil {
		return err
	}
	o := exchange.AddOptions{Init: true, Setup: true, Depth: m.Depth}
	c := exchange.URLContext{Dir: r.WorkTree, Untrusted: true, Inside: []string{r.GitDir, r.CommonDir}}
	if r.WorkTree == "" {
		c.Dir = r.GitDir
	} else {
		c.Inside = append(c.Inside, r.WorkTree)
	}
	if o.URL, err = exchange.ResolveURL(m.URL, c); err != nil {
		return m.At(m.URLLine, err)
	}
	if !a.quiet {
		a.say(exchange.Step, "Using metadata remote URL from "+m.Name)
	}
	path := filepath.Join(r.WorkTree, manifest.FileName)
	if offered {
		if err := writeManifest(path, m.URL); err != nil {
			return err
		}
		a.confirm("Wrote %s with metadata remote URL.", manifest.FileName)
	}
	a.loadsMuch()
	added, err := env.Add(ctx, o)
	if err != nil {
		if offered { // a failed setup leaves nothing behind
			err = errors.Join(err, os.Remove(path))
		}
		return err
	}
	a.confirmAdded(added)
	a.index(ctx, env)
	return nil
}

// readManifest reads .git-meta; where there is none the error tells how to make one.
func (a *app) readManifest(ctx context.Context) (*manifest.File, error) {
	m, err := manifest.Read(ctx, a.repository)
	if !errors.Is(err, meta.ErrNotFound) {
		return m, err
	}
	if a.repository.WorkTree == "" {
		return nil, a.noManifest(ctx, "HEAD:"+manifest.FileName, "")
	}
	path := filepath.Join(a.repository.WorkTree, manifest.FileName)
	return nil, a.noManifest(ctx, path, path)
}

// noManifest is the error of a missing .git-meta. The hint can be pasted; file is where
// it is to be written, "" if that takes a commit.
func (a *app) noManifest(ctx context.Context, where, file string) error {
	url := "https://example.com/team/metadata.git"
	if origin := a.originURL(ctx); origin != "" {
		url = origin
	}
	add := "git meta remote add " + shellWord(url) + " --init"
	hint, also := add, ""
	if text, err := manifest.Format(url); err == nil && file != "" {
		hint = "printf '%s\\n' " + shellWord(string(text[:len(text)-1])) + " >" + shellWord(file) + " && git meta setup"
		also = "; for this clone alone: " + add
	}
	return meta.NotFound("setup", "no .git-meta file found at "+where+also, hint)
}

// originURL returns the URL of origin as it may stand in a shared file, "" if there is
// none that can.
func (a *app) originURL(ctx context.Context) string {
	cfg, err := a.repository.Config(ctx)
	if err != nil {
		return ""
	}
	url, _ := cfg.Get("remote.origin.url")
	url = exchange.StripUser(url)
	if _, err := exchange.ResolveURL(url, exchange.URLContext{Dir: a.repository.WorkTree, Untrusted: true}); err != nil {
		return ""
	}
	return url
}

// offerOrigin asks whether the remote of the code is to hold the metadata too. It
// returns missing where nobody can be asked, and no manifest and no error for a no.
func (a *app) offerOrigin(ctx context.Context, env *exchange.Env, missing error) (*manifest.File, error) {
	url := a.originURL(ctx)
	if env.Confirm == nil || url == "" || a.repository.WorkTree == "" {
		return nil, missing
	}
	a.Errf("There is no .git-meta file. The remote origin is %s.", exchange.Redact(url))
	yes, err := env.Confirm(ctx, "Use this remote to store metadata under refs/"+env.Namespace+"/main?", true)
	if err != nil {
		return nil, err
	}
	if !yes {
		a.note("nothing was set up; to use another remote: git meta remote add URL --init")
		return nil, nil
	}
	return &manifest.File{Name: manifest.FileName, URL: url, URLLine: 1}, nil
}

func writeManifest(path, url string) error {
	text, err := manifest.Format(url)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
