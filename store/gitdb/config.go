package gitdb

import (
	"context"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Config is the configuration git uses in a repository: system, global,
// local, worktree and command line, in this order. Immutable.
type Config struct {
	entries []ConfigEntry
	last    map[string]int // key to the index of its last entry
}

// Config returns the configuration, read once per Repo. Plain files are
// parsed here; as soon as there is an include, a GIT_CONFIG_ variable that
// adds entries, or syntax that git may read in another way, the answer is
// that of git config --list.
func (r *Repo) Config(ctx context.Context) (*Config, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config != nil {
		return r.config, nil
	}
	es, err := r.plainConfig()
	if err != nil {
		// GIT_CONFIG replaces the files for git config alone.
		out, err := r.Git(ctx, "config", "--list", "-z").Unset("GIT_CONFIG").Output()
		if err != nil {
			return nil, err
		}
		es = parseConfigList(out)
	}
	r.config = newConfig(es)
	return r.config, nil
}

func newConfig(es []ConfigEntry) *Config {
	c := &Config{entries: es, last: make(map[string]int, len(es))}
	for i, e := range es {
		c.last[e.Key] = i
	}
	return c
}

// ReloadConfig forgets the configuration that was read, after a change.
func (r *Repo) ReloadConfig() {
	r.mu.Lock()
	r.config, r.local = nil, nil
	r.mu.Unlock()
}

// plainConfig reads all files itself or returns an error.
func (r *Repo) plainConfig() ([]ConfigEntry, error) {
	es, err := readOuterConfig()
	if err != nil {
		return nil, err
	}
	local := r.local
	if local == nil {
		if local, err = readConfigFile(filepath.Join(r.CommonDir, "config")); err != nil {
			return nil, err
		}
	}
	es = append(es, local...)
	for _, e := range local {
		if e.Key != "extensions.worktreeconfig" {
			continue
		}
		if on, ok := e.bool(); !ok || on {
			wt, err := readConfigFile(filepath.Join(r.GitDir, "config.worktree"))
			if err != nil {
				return nil, err
			}
			es = append(es, wt...)
			break
		}
	}
	if includes(es) {
		return nil, errAskGit
	}
	return es, nil
}

// readOuterConfig reads the system and global files; errAskGit if that takes
// more than reading files.
func readOuterConfig() ([]ConfigEntry, error) {
	for _, k := range []string{"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"} {
		if os.Getenv(k) != "" {
			return nil, errAskGit
		}
	}
	var files []string
	switch v := strings.ToLower(os.Getenv("GIT_CONFIG_NOSYSTEM")); v {
	case "1", "true", "yes", "on":
	case "", "0", "false", "no", "off":
		p, ok := systemConfigPath()
		if !ok {
			return nil, errAskGit
		}
		files = append(files, p)
	default:
		return nil, errAskGit
	}
	home := os.Getenv("HOME")
	if p, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		if p == "" {
			return nil, errAskGit
		}
		files = append(files, p)
	} else {
		if home == "" && runtime.GOOS == "windows" {
			return nil, errAskGit // git makes one from HOMEDRIVE, USERPROFILE
		}
		if x := os.Getenv("XDG_CONFIG_HOME"); x != "" {
			files = append(files, filepath.Join(x, "git", "config"))
		} else if home != "" {
			files = append(files, filepath.Join(home, ".config", "git", "config"))
		}
		if home != "" {
			files = append(files, filepath.Join(home, ".gitconfig"))
		}
	}
	var es []ConfigEntry
	for _, p := range files {
		if !filepath.IsAbs(p) {
			return nil, errAskGit // relative to where git runs
		}
		e, err := readConfigFile(p)
		if err != nil {
			return nil, err
		}
		es = append(es, e...)
	}
	if includes(es) {
		return nil, errAskGit
	}
	return es, nil
}

// systemConfigPath tells where git was built to look, for the builds that are
// known by the place of the program.
func systemConfigPath() (string, bool) {
	if p, ok := os.LookupEnv("GIT_CONFIG_SYSTEM"); ok {
		return p, p != ""
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return "", false
	}
	switch {
	case runtime.GOOS != "windows" && runtime.GOOS != "darwin" && (git == "/usr/bin/git" || git == "/bin/git"):
		return "/etc/gitconfig", true
	case runtime.GOOS != "windows" && git == "/usr/local/bin/git":
		return "/usr/local/etc/gitconfig", true
	case git == "/opt/homebrew/bin/git":
		return "/opt/homebrew/etc/gitconfig", true
	}
	return "", false
}

func includes(es []ConfigEntry) bool {
	for _, e := range es {
		if strings.HasPrefix(e.Key, "include.") || strings.HasPrefix(e.Key, "includeif.") {
			return true
		}
	}
	return false
}

// CanonicalKey lower-cases the section and the name, not the subsection.
func CanonicalKey(key string) string {
	i, j := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if i < 0 {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:i]) + key[i:j] + strings.ToLower(key[j:])
}

// Get returns the last value of a key.
func (c *Config) Get(key string) (string, bool) {
	i, ok := c.last[CanonicalKey(key)]
	if !ok {
		return "", false
	}
	return c.entries[i].Value, true
}

// GetAll returns all values of a key, in the order git reads them.
func (c *Config) GetAll(key string) []string {
	key = CanonicalKey(key)
	if _, ok := c.last[key]; !ok {
		return nil
	}
	var vs []string
	for _, e := range c.entries {
		if e.Key == key {
			vs = append(vs, e.Value)
		}
	}
	return vs
}

// Bool returns the last value of a key as git_config_bool reads it, def if
// there is none or it is not a boolean.
func (c *Config) Bool(key string, def bool) bool {
	if i, ok := c.last[CanonicalKey(key)]; ok {
		if v, ok := c.entries[i].bool(); ok {
			return v
		}
	}
	return def
}

// Int returns the last value of a key as an integer, with git's suffixes k, m
// and g (base 1024); def if there is none or it is not a number.
func (c *Config) Int(key string, def int64) int64 {
	if v, ok := c.Get(key); ok {
		if n, ok := parseConfigInt(v); ok {
			return n
		}
	}
	return def
}

// Entries yields all entries in the order git reads them.
func (c *Config) Entries() iter.Seq[ConfigEntry] {
	return func(yield func(ConfigEntry) bool) {
		for _, e := range c.entries {
			if !yield(e) {
				return
			}
		}
	}
}

// Subsections returns the distinct x of all section.x.name, in the order they
// first appear.
func (c *Config) Subsections(section string) []string {
	prefix := strings.ToLower(section) + "."
	seen := map[string]bool{}
	var out []string
	for _, e := range c.entries {
		rest, ok := strings.CutPrefix(e.Key, prefix)
		if !ok {
			continue
		}
		i := strings.LastIndexByte(rest, '.')
		if i < 0 || seen[rest[:i]] {
			continue
		}
		seen[rest[:i]] = true
		out = append(out, rest[:i])
	}
	return out
}
