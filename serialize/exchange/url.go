package exchange

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
)

// URLContext says where a URL comes from.
type URLContext struct {
	// Dir is the directory that a relative path starts from.
	Dir string
	// Untrusted: the URL comes with somebody's commits, as the one in .git-meta does.
	// Then only the transports are accepted that git would use for a submodule, and
	// local paths outside of Inside.
	Untrusted bool
	// Inside lists directories whose content comes with somebody's commits. A bare
	// repository that is checked in there could bring hooks, and pushing to it would
	// run them.
	Inside []string
}

// submoduleSchemes are the transports that git uses for a submodule without being told
// to: "protocol.allow" in git-config(1). file:// and paths, which git allows to users
// only since 2.38.1 (CVE-2022-39253), are accepted as well: that attack reads objects
// through links in a local clone, and here nothing is cloned; see [URLContext.Inside]
// for the one that pushes.
var submoduleSchemes = []string{"http", "https", "ssh", "git", "git+ssh", "ssh+git", "file"}

// helper finds "transport::address", as transport_get of git's transport.c does.
var helper = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9+.-]*)?::`)

// schemed finds "scheme://rest", as is_url of git's url.c does.
var schemed = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9+.-]*)://(.*)$`)

// shorthand is OWNER/REPO on GitHub.
var shorthand = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+$`)

// ResolveURL checks a URL and returns it as git is to be given it: OWNER/REPO becomes
// git@github.com:OWNER/REPO.git unless there is such a directory, a relative path
// becomes absolute (git would read it from the top of the work tree). Everything else
// stays as it is. No process is started. The error is [meta.ErrInvalid].
func ResolveURL(text string, c URLContext) (string, error) {
	bad := func(why, hint string) (string, error) {
		return "", meta.Invalid(fmt.Sprintf("url %q", Redact(text)), why, hint)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return bad("empty", "")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, meta.IsControl):
		return bad("contains control characters", "")
	case text[0] == '-':
		return bad("starts with '-': git would take it for an option", "")
	}
	if m := helper.FindStringSubmatch(text); m != nil {
		if c.Untrusted || m[1] == "ext" || m[1] == "" {
			return bad(fmt.Sprintf("the transport %q can run any program and is not used for metadata", m[1]+"::"), "")
		}
		if m[1] == "fd" {
			return bad("\"fd::\" stands for files that git has been given open: there are none", "")
		}
		return text, nil
	}
	if m := schemed.FindStringSubmatch(text); m != nil {
		scheme := m[1]
		if c.Untrusted && !slices.Contains(submoduleSchemes, scheme) {
			return bad(fmt.Sprintf("git would not use the transport %q for a submodule", scheme), "")
		}
		if scheme == "file" {
			return checkFileURL(text, m[2], c, bad)
		}
		authority, _, _ := strings.Cut(m[2], "/")
		if plain, err := url.PathUnescape(authority); err != nil || badHost(plain) {
			return bad("not a host name", "")
		}
		return text, nil
	}
	if host, path, ok := cutSCP(text); ok {
		if badHost(host) || strings.HasPrefix(path, "-") {
			return bad("the host or path starts with '-': ssh would take it for an option", "")
		}
		return text, nil
	}
	local := text
	if !filepath.IsAbs(local) {
		local = filepath.Join(c.Dir, local)
		if shorthand.MatchString(text) && (c.Untrusted || !isDir(local)) {
			return "git@github.com:" + strings.TrimSuffix(text, ".git") + ".git", nil
		}
	}
	if local, err := filepath.Abs(local); err != nil {
		return bad(err.Error(), "")
	} else if c.Untrusted && c.holds(local) {
		return bad(insideWorkTree, "")
	} else if filepath.IsAbs(text) {
		return text, nil
	} else {
		return local, nil
	}
}

const insideWorkTree = "a repository inside of this one comes with somebody's commits and is not used for metadata"

func checkFileURL(text, rest string, c URLContext, bad func(why, hint string) (string, error)) (string, error) {
	path, err := url.PathUnescape(rest)
	switch {
	case err != nil || !strings.HasPrefix(path, "/") && filepath.VolumeName(path) == "":
		return bad("file:// needs an absolute path", "")
	case c.Untrusted && c.holds(path):
		return bad(insideWorkTree, "")
	}
	return text, nil
}

// cutSCP splits "[user@]host:path", which is what has a colon before the first slash and
// is not a drive letter: url_is_local_not_ssh of git's connect.c.
func cutSCP(s string) (host, path string, ok bool) {
	i := strings.IndexAny(s, ":/")
	if strings.HasPrefix(s, "[") || strings.Contains(s[:max(i, 0)], "@[") {
		if end := strings.Index(s, "]:"); end >= 0 {
			i = end + 1
		}
	}
	if i < 0 || s[i] != ':' || filepath.VolumeName(s) != "" {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// badHost reports whether an authority could be taken for an option by ssh.
func badHost(authority string) bool {
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	host = strings.TrimPrefix(host, "[")
	return host == "" || host[0] == '-' || authority[0] == '-' || strings.ContainsFunc(authority, meta.IsControl)
}

// holds reports whether path, symbolic links followed, lies in one of c.Inside.
func (c URLContext) holds(path string) bool {
	for p := realPrefix(path); ; p = filepath.Dir(p) {
		if at, err := os.Stat(p); err == nil {
			for _, dir := range c.Inside {
				if top, err := os.Stat(dir); err == nil && os.SameFile(at, top) {
					return true
				}
			}
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// realPrefix follows the symbolic links in the part of path that exists.
func realPrefix(path string) string {
	path = filepath.Clean(path)
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			rest, err := filepath.Rel(p, path)
			if err != nil {
				return real
			}
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) {
			return path
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsLocal reports whether a resolved URL is a path or file:// on this machine.
func IsLocal(text string) bool {
	if m := schemed.FindStringSubmatch(text); m != nil {
		return m[1] == "file"
	}
	_, _, scp := cutSCP(text)
	return !scp && !helper.MatchString(text)
}

const redacted = "<redacted>"

// Redact returns text with the password of a URL replaced; of http and https also a lone
// user name, which may be a token.
func Redact(text string) string { return userinfo(text, redacted) }

// StripUser returns text without the user name and password of an http or https URL, and
// without the password of any other: what may be shown to others.
func StripUser(text string) string { return userinfo(text, "") }

func userinfo(text, with string) string {
	m := schemed.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	scheme, rest := strings.ToLower(text[m[2]:m[3]]), text[m[4]:]
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return text
	}
	web := scheme == "http" || scheme == "https"
	user, _, hasPassword := strings.Cut(authority[:at], ":")
	switch {
	case web && with == "":
		user = ""
	case hasPassword && with == "":
	case hasPassword:
		user += ":" + with
	case web:
		user = with
	}
	if user != "" {
		user += "@"
	}
	return text[:m[4]] + user + rest[at+1:]
}

// redactedError hides the password of a URL in the text of an error.
type redactedError struct {
	err error
	url string
}

func (r *redactedError) Error() string {
	text := r.err.Error()
	if hidden := Redact(r.url); hidden != r.url {
		text = strings.ReplaceAll(text, r.url, hidden)
	}
	return text
}

func (r *redactedError) Unwrap() error { return r.err }
