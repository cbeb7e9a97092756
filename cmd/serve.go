package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/git-meta/git-meta-go/cmd/internal/server"
	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
	"github.com/spf13/cobra"
)

type serveOptions struct {
	listen      string
	allowRemote bool
	json        bool
}

func newServeCmd(a *app) *cobra.Command {
	o := serveOptions{listen: "127.0.0.1:0"}
	c := &cobra.Command{
		Use: "serve [options]",
		Long: `Answer HTTP requests of tools beside this repository, and sweep collections in
the background, as often as meta:retention:interval says, where their bounds are
confirmed (git meta retention -h):

  GET   /v1/apps/ID/collections/NAME/retention
        what git meta retention NAME --json prints
  PATCH /v1/apps/ID/collections/NAME/retention
        sets overrides: {"maxRows": 500, "maxAgeDays": null}; null clears one,
        and a field left away stays as it is
  GET   /v1/apps/ID/changes?since=CURSOR
        server-sent events, change and resync: the data is a line of git meta
        changes --json, the id its cursor; since=now begins at the end

ID is the name of the repository's folder, or default.

The first line of output names the address and the file with the token that
every request must carry (Authorization: Bearer TOKEN). The file is in the git
directory, only its owner can read it, and it goes when the server ends. Errors
are JSON with the fields error and hint. Requests are logged on standard error;
-q leaves the errors only.

Only this machine can connect, unless --allow-remote is given: then put TLS in
front, since the token travels as it is. SIGTERM ends the server in order, with
exit status 0.

` + exitStatus,
		Example: `  git meta serve
  git meta serve --listen 127.0.0.1:8080 --json`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runServe(c.Context(), a, o) },
	}
	f := c.Flags()
	f.Var((*givenText)(&o.listen), "listen", "listen on `ADDRESS:PORT`; port 0: any that is free")
	f.BoolVar(&o.allowRemote, "allow-remote", false, "allow an address that other machines can reach")
	f.BoolVar(&o.json, "json", false, "print the address as JSON")
	return c
}

func runServe(ctx context.Context, a *app, o serveOptions) (err error) {
	r, err := a.repo(ctx)
	if err != nil {
		return err
	}
	if _, err := a.namespace(ctx); err != nil {
		return err
	}
	l, host, err := listen(ctx, o)
	if err != nil {
		return err
	}
	defer l.Close()
	src, err := a.feedSource(ctx)
	if err != nil {
		return err
	}
	src.Follow = true
	token, err := server.NewTokenFile(r.CommonDir, l.Addr().String())
	if err != nil {
		return failf("the token is kept there: get write permission for the folder", "token: %w", err)
	}
	defer func() {
		if rerr := token.Remove(); err == nil && rerr != nil {
			err = fmt.Errorf("token: %w", rerr)
		}
	}()
	level := slog.LevelInfo
	if a.quiet {
		level = slog.LevelError
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
	b := backend{app: a, log: log}
	apps := appNames(r)
	s := server.New(server.Config{
		Apps: apps, Token: token.Token,
		Retention: server.Retention{Get: b.get, Set: b.set},
		Feed:      src, Changed: store.NewWatch(src.Path).Changed,
		Sweeper: &server.Sweeper{Auto: b.autoSweep, Pass: b.sweepPass},
		Log:     log, Hint: hintOf,
	})
	url := "http://" + l.Addr().String()
	if o.json {
		a.Out.Println(ui.JSON((&ui.Object{}).Add("url", url).Add("token_file", token.Path).Add("apps", apps)))
	} else {
		a.Out.Printf("listening on %s with the token in %s\n", url, token.Path)
	}
	if err := a.Out.Flush(); err != nil {
		return err
	}
	if err := s.Serve(ctx, l, host); err != nil {
		return err
	}
	if why := (stopSignal{}); errors.As(context.Cause(ctx), &why) && why.Signal == syscall.SIGTERM {
		return nil
	}
	return errStopped
}

// listen opens the port. host is the name it was asked for; "" if that is an address.
func listen(ctx context.Context, o serveOptions) (l net.Listener, host string, err error) {
	host, port, err := net.SplitHostPort(o.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return nil, "", usageErrorf("git meta serve --listen 127.0.0.1:8080", "serve: --listen %q: not an address and a port", o.listen)
	}
	const remoteHint = "listen on 127.0.0.1, or add --allow-remote if other machines shall reach this repository"
	ip, aerr := netip.ParseAddr(host)
	local := aerr == nil && ip.Unmap().IsLoopback() || host == "localhost"
	if !local && !o.allowRemote {
		return nil, "", usageErrorf(remoteHint, "serve: --listen %q: other machines could connect", o.listen)
	}
	l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		if e := (*net.OpError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, "", failf("--listen 127.0.0.1:0 takes a free port", "listen on %s: %w", o.listen, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !o.allowRemote && (!ok || !tcp.IP.IsLoopback()) { // localhost may be anything
		l.Close()
		return nil, "", failf(remoteHint, "listen on %s: that is %s, which other machines could reach", o.listen, l.Addr())
	}
	if aerr == nil {
		host = ""
	}
	return l, host, nil
}

// appNames returns what the repository is called in a URL.
func appNames(r *gitdb.Repo) []string {
	names := []string{"default"}
	folder := r.CommonDir
	switch {
	case r.GitDir == r.CommonDir && r.WorkTree != "":
		folder = r.WorkTree
	case filepath.Base(folder) == ".git":
		folder = filepath.Dir(folder)
	}
	if name := filepath.Base(folder); name != names[0] && name != string(filepath.Separator) {
		names = append(names, name)
	}
	return names
}

// backend does what requests ask for. Each has the repository, its configuration and the
// store opened anew, so that a change of either counts at once, no request waits for
// another, and the store may be removed or replaced while the server runs.
type backend struct {
	app *app
	log *slog.Logger
}

// with runs f with a run of its own.
func (b backend) with(f func(*app) error) error {
	a := &app{IO: b.app.IO, getenv: b.app.getenv, now: b.app.now, dirs: b.app.dirs, quiet: true}
	err := f(a)
	if cerr := a.session.close(); err == nil {
		err = cerr
	}
	return err
}

func (b backend) logged(env *serialize.Env, err error) (*serialize.Env, error) {
	if err != nil {
		return nil, err
	}
	env.Warn = func(text string) { b.log.Warn("store", "warning", text) }
	env.Progress = meta.NoProgress{}
	return env, nil
}

func (b backend) get(ctx context.Context, name string) (s *retention.State, err error) {
	err = b.with(func(a *app) error {
		env, err := b.logged(a.retentionEnv(ctx))
		if err != nil {
			return err
		}
		s, err = retention.GetCollectionRetention(ctx, env, name)
		return err
	})
	return s, err
}

func (b backend) set(ctx context.Context, name string, p retention.Patch) (s *retention.State, err error) {
	err = b.with(func(a *app) error {
		if err := p.Check(name); err != nil {
			return err
		}
		if err := a.checkCollection(ctx, name); err != nil {
			return err
		}
		env, err := b.logged(a.env(ctx))
		if err != nil {
			return err
		}
		s, err = retention.SetCollectionRetention(ctx, env, name, p)
		return err
	})
	return s, err
}

// autoSweep does a pass if one is due. Nothing is opened for writing, or created, to find
// out.
func (b backend) autoSweep(ctx context.Context) (res *retention.AutoResult, err error) {
	err = b.with(func(a *app) error {
		env, err := b.logged(a.pruneEnv(ctx, true))
		if err != nil {
			return err
		}
		due, next, err := retention.Due(ctx, env)
		if err != nil || !due {
			res = &retention.AutoResult{Next: next}
			return err
		}
		if env, err = b.logged(a.env(ctx)); err != nil {
			return err
		}
		res, err = retention.AutoSweep(ctx, env)
		return err
	})
	return res, err
}

// sweepPass goes on where a pass of autoSweep was not the last one.
func (b backend) sweepPass(ctx context.Context) (res *retention.SweepResult, err error) {
	err = b.with(func(a *app) error {
		env, err := b.logged(a.env(ctx))
		if err != nil {
			return err
		}
		res, err = retention.Sweep(ctx, env, retention.SweepOptions{Confirmed: true, Passes: 1})
		return err
	})
	return res, err
}
