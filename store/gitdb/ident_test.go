package gitdb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIdentAsGit(t *testing.T) {
	dir := newRepo(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	for name, tt := range map[string]struct {
		config string
		env    map[string]string
	}{
		"plain":         {config: "[user]\nname=N\nemail=e@x\n"},
		"crud":          {config: "[user]\nname=\" Bad <x> Name,;\"\nemail=\"a b>c \"\n"},
		"newline":       {config: "[user]\nname=\"a\\nb\"\nemail=\"c\\nd\"\n"},
		"dots":          {config: "[user]\nname=J. Doe Jr.\nemail=.e@x.\n"},
		"latin1":        {config: "[user]\nname=\"J\xf6rg <\"\nemail=e@x\n"},
		"author config": {config: "[user]\nname=N\nemail=e@x\n[author]\nname=AN\nemail=a@x\n[committer]\nemail=c@x\n"},
		"empty author":  {config: "[user]\nname=N\nemail=e@x\n[author]\nname=\nemail=\n"},
		"empty email":   {config: "[user]\nname=N\nemail=\n"},
		"env":           {config: "[user]\nname=N\nemail=e@x\n", env: map[string]string{"GIT_AUTHOR_NAME": "EN", "GIT_AUTHOR_EMAIL": "<ee@x>", "GIT_COMMITTER_EMAIL": "ce@x"}},
		"empty env":     {config: "[user]\nname=N\nemail=e@x\n", env: map[string]string{"GIT_AUTHOR_EMAIL": ""}},
		"EMAIL":         {config: "[user]\nname=N\n", env: map[string]string{"EMAIL": " mail@x "}},
		"dates":         {config: "[user]\nname=N\nemail=e@x\n", env: map[string]string{"GIT_AUTHOR_DATE": "2020-01-02T03:04:05+0130", "GIT_COMMITTER_DATE": "@1234567890 -0730"}},
		"raw date":      {config: "[user]\nname=N\nemail=e@x\n", env: map[string]string{"GIT_COMMITTER_DATE": "1234567890 +0000"}},
		"config env":    {config: "[user]\nname=N\nemail=e@x\n", env: map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.email", "GIT_CONFIG_VALUE_0": "env@x"}},
		"includeIf":     {config: "[user]\nname=N\nemail=e@x\n[includeIf \"gitdir:**/repo/.git\"]\npath=inc\n"},
		"none":          {config: "", env: map[string]string{"GIT_AUTHOR_NAME": "only name"}},
		"config only":   {config: "[user]\nname=N\nuseConfigOnly=true\n", env: map[string]string{"EMAIL": "mail@x"}},
		"crud only":     {config: "[user]\nname=\"<,>\"\nemail=e@x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(home, ".gitconfig"), tt.config)
			write(t, filepath.Join(home, "inc"), "[user]\nemail=included@x\n")
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			r := discover(t, dir)
			for who, f := range map[string]func() (Ident, error){
				"AUTHOR":    func() (Ident, error) { return r.AuthorIdent(t.Context()) },
				"COMMITTER": func() (Ident, error) { return r.CommitterIdent(t.Context()) },
			} {
				got, err := f()
				if err != nil {
					t.Fatal(err)
				}
				out, err := gitErr(dir, "", "var", "GIT_"+who+"_IDENT")
				if err != nil {
					if got.Name != Unknown && got.Email != Unknown {
						t.Errorf("git has no identity, got %v", got)
					}
					continue
				}
				want := parseIdent(out)
				if got.Name != want.Name || got.Email != want.Email || got.When.Sub(want.When).Abs() > 5*time.Second || zone(got.When) != zone(want.When) {
					t.Errorf("%s: got %v, want %v", who, got, want)
				}
				if who == "AUTHOR" && r.AuthorEmail(t.Context()) != want.Email && want.Email != "" {
					t.Errorf("AuthorEmail %q, want %q", r.AuthorEmail(t.Context()), want.Email)
				}
			}
		})
	}
	t.Run("bad date", func(t *testing.T) {
		t.Setenv("GIT_COMMITTER_DATE", "nonsense")
		if _, err := discover(t, dir).CommitterIdent(t.Context()); err == nil || !strings.Contains(err.Error(), "nonsense") {
			t.Error(err)
		}
	})
}

func TestAuthorEmailWithoutProcess(t *testing.T) {
	dir := newRepo(t)
	sub := filepath.Join(t.TempDir(), "bin")
	write(t, filepath.Join(sub, "git"), "#!/bin/sh\necho started >>"+sub+"/log\nexit 1\n")
	must(os.Chmod(filepath.Join(sub, "git"), 0o777))
	t.Setenv("PATH", sub)
	r := discover(t, dir)
	if got := r.AuthorEmail(t.Context()); got != "author@example.com" {
		t.Error(got)
	}
	if _, err := r.CommitterIdent(t.Context()); err != nil {
		t.Error(err)
	}
	if _, ok, err := r.ResolveCommit(t.Context(), "HEAD"); err != nil || !ok {
		t.Error(ok, err)
	}
	if _, err := os.Stat(filepath.Join(sub, "log")); err == nil {
		t.Error("git was started")
	}
}
