package gitdb

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxAlternateDepth is git's limit for alternates of alternates.
const maxAlternateDepth = 5

// objectDirs returns the object folder and all its alternates, once each, in
// the order git looks into them.
func (r *Repo) objectDirs() []string {
	a := &alternates{seen: map[string]bool{}}
	a.add(r.ObjectDir, 0)
	for _, p := range splitAlternates(os.Getenv("GIT_ALTERNATE_OBJECT_DIRECTORIES"), os.PathListSeparator) {
		a.add(absFrom(r.dir, p), 1)
	}
	return a.dirs
}

type alternates struct {
	dirs []string
	seen map[string]bool
}

func (a *alternates) add(dir string, depth int) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || depth > maxAlternateDepth || a.seen[real] {
		return // git warns and goes on
	}
	if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
		return
	}
	a.seen[real] = true
	a.dirs = append(a.dirs, real)
	b, err := os.ReadFile(filepath.Join(real, "info", "alternates"))
	if err != nil {
		return
	}
	for _, p := range splitAlternates(string(b), '\n') {
		if !strings.HasPrefix(p, "#") {
			a.add(absFrom(real, p), depth+1)
		}
	}
}

// splitAlternates splits a list; an item in double quotes is unquoted as in C.
func splitAlternates(s string, sep rune) []string {
	var out []string
	for s != "" {
		if s[0] == '"' {
			if v, rest, ok := cutQuoted(s); ok && (rest == "" || rune(rest[0]) == sep) {
				out = append(out, v)
				s = strings.TrimPrefix(rest, string(sep))
				continue
			}
		}
		var item string
		item, s, _ = strings.Cut(s, string(sep))
		if item = strings.TrimSuffix(item, "\r"); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// cutQuoted unquotes the C string at the start of s. Git writes \ooo for odd
// bytes, which Go reads the same way.
func cutQuoted(s string) (value, rest string, ok bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			v, err := strconv.Unquote(s[:i+1])
			return v, s[i+1:], err == nil
		}
	}
	return "", "", false
}
