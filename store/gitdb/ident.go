package gitdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ident is a person and a moment, as in the author line of a commit. An Ident
// read from a commit remembers its exact bytes, so that odd ones survive.
type Ident struct {
	Name, Email string
	When        time.Time // with its zone

	raw    string // what it was parsed from
	parsed bool
}

// Unknown is the name and address of somebody git knows nothing about.
const Unknown = "unknown"

// Equal says whether both show the same name, address, moment and zone.
func (a Ident) Equal(b Ident) bool {
	return a.Name == b.Name && a.Email == b.Email && a.When.Equal(b.When) && zone(a.When) == zone(b.When)
}

// String is the form git writes: "Name <email> 1700000000 +0100".
func (a Ident) String() string { return string(a.append(nil)) }

func (a Ident) append(dst []byte) []byte {
	if a.parsed {
		if p := parseIdent(a.raw); p.Equal(a) {
			return append(dst, a.raw...)
		}
	}
	dst = append(dst, legalIdent(a.Name)...)
	dst = append(dst, " <"...)
	dst = append(dst, legalIdent(a.Email)...)
	dst = append(dst, "> "...)
	dst = strconv.AppendInt(dst, a.When.Unix(), 10)
	dst = append(dst, ' ')
	return append(dst, zone(a.When)...)
}

// zone writes the offset as +hhmm.
func zone(t time.Time) string {
	_, sec := t.Zone()
	sign := '+'
	if sec < 0 {
		sign, sec = '-', -sec
	}
	return fmt.Sprintf("%c%02d%02d", sign, sec/3600, sec/60%60)
}

// ParseIdent reads the value of an author, committer or tagger line, without
// ever failing: what cannot be read stays empty or zero, and is written back
// as it was.
func ParseIdent(s string) Ident { return parseIdent(s) }

func parseIdent(s string) Ident {
	id := Ident{raw: s, parsed: true, When: time.Unix(0, 0).UTC()}
	open, end := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		id.Name = s
		return id
	}
	id.Name = strings.TrimSuffix(s[:open], " ")
	id.Email = s[open+1 : end]
	f := strings.Fields(s[end+1:])
	if len(f) == 0 {
		return id
	}
	sec, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || sec > 1<<55 || sec < -1<<55 {
		return id
	}
	off := 0
	if len(f) > 1 {
		off, _ = parseZone(f[1])
	}
	id.When = time.Unix(sec, 0).In(fixedZone(off))
	return id
}

func fixedZone(off int) *time.Location {
	if off == 0 {
		return time.UTC
	}
	return time.FixedZone("", off)
}

func parseZone(s string) (seconds int, ok bool) {
	if len(s) != 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:], 10, 16)
	if err != nil || n%100 > 59 {
		return 0, false
	}
	sec := int(n/100)*3600 + int(n%100)*60
	if s[0] == '-' {
		sec = -sec
	}
	return sec, true
}

// isCrud is crud of git's ident.c.
func isCrud(c byte) bool {
	return c <= 32 || strings.IndexByte(".,:;<>\"\\'", c) >= 0
}

// cleanIdent is strbuf_addstr_without_crud of git's ident.c.
func cleanIdent(s string) string {
	for s != "" && isCrud(s[0]) {
		s = s[1:]
	}
	for s != "" && isCrud(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return legalIdent(s)
}

// legalIdent drops the bytes that would end a name or an address.
func legalIdent(s string) string {
	if strings.ContainsAny(s, "\n<>\x00") {
		s = string(slices.DeleteFunc([]byte(s), func(c byte) bool {
			return c == '\n' || c == '<' || c == '>' || c == 0
		}))
	}
	return s
}

// versionDependent: newer versions of git keep a dot at the ends.
func versionDependent(s string) bool {
	t := strings.TrimFunc(s, func(r rune) bool { return r < 128 && r != '.' && isCrud(byte(r)) })
	return strings.HasPrefix(t, ".") || strings.HasSuffix(t, ".")
}

// AuthorEmail is the address in git var GIT_AUTHOR_IDENT, or [Unknown]. It
// starts no process if the environment or plain config files have it.
func (r *Repo) AuthorEmail(ctx context.Context) string {
	email, ok := r.plainIdent(ctx, "AUTHOR", "email")
	if !ok {
		id, err := r.gitIdent(ctx, "AUTHOR")
		if err != nil {
			return Unknown
		}
		email = id.Email
	}
	if email == "" {
		return Unknown
	}
	return email
}

// AuthorIdent is git var GIT_AUTHOR_IDENT. Without an identity it is
// "unknown <unknown>" and no error; an invalid GIT_AUTHOR_DATE is an error.
func (r *Repo) AuthorIdent(ctx context.Context) (Ident, error) { return r.ident(ctx, "AUTHOR") }

// CommitterIdent is git var GIT_COMMITTER_IDENT, GIT_COMMITTER_DATE included.
// Without an identity it is "unknown <unknown>" and no error.
func (r *Repo) CommitterIdent(ctx context.Context) (Ident, error) { return r.ident(ctx, "COMMITTER") }

func (r *Repo) ident(ctx context.Context, who string) (Ident, error) {
	name, ok1 := r.plainIdent(ctx, who, "name")
	email, ok2 := r.plainIdent(ctx, who, "email")
	if !ok1 || !ok2 || name == "" {
		return r.gitIdent(ctx, who)
	}
	date := os.Getenv("GIT_" + who + "_DATE")
	when := time.Now()
	if date != "" {
		var ok bool
		if when, ok = parseRawDate(date); !ok {
			return r.gitIdent(ctx, who)
		}
	}
	return Ident{Name: name, Email: email, When: when.Truncate(time.Second)}, nil
}

// plainIdent is the part of fmt_ident of git's ident.c that looks at the
// environment and the config; what (name or email) of who (AUTHOR, COMMITTER).
func (r *Repo) plainIdent(ctx context.Context, who, what string) (string, bool) {
	v, ok := r.rawIdent(ctx, who, what)
	if !ok || versionDependent(v) {
		return "", false
	}
	return cleanIdent(v), true
}

func (r *Repo) rawIdent(ctx context.Context, who, what string) (string, bool) {
	v, ok := os.LookupEnv("GIT_" + who + "_" + strings.ToUpper(what))
	if !ok {
		c, err := r.Config(ctx)
		if err != nil {
			return "", false
		}
		v, ok = c.Get(strings.ToLower(who) + "." + what)
		if ok && v == "" {
			ok = false
		}
		if !ok {
			v, ok = c.Get("user." + what)
		}
		if !ok && what == "email" && !c.Bool("user.useConfigOnly", false) {
			v = strings.TrimSpace(os.Getenv("EMAIL"))
			ok = v != ""
		}
	}
	return v, ok
}

// gitIdent asks git var, and again without what git misses.
func (r *Repo) gitIdent(ctx context.Context, who string) (Ident, error) {
	out, err := r.Git(ctx, "var", "GIT_"+who+"_IDENT").Text()
	if err == nil {
		return parseIdent(out), nil
	}
	var ge *GitError
	if !errors.As(err, &ge) {
		return Ident{}, err
	}
	cmd := r.Git(ctx, "var", "GIT_"+who+"_IDENT")
	for _, what := range []string{"name", "email"} {
		v, ok := r.rawIdent(ctx, who, what)
		if !ok || what == "name" && strings.Trim(cleanIdent(v), ".") == "" {
			v = Unknown
		}
		cmd.Env("GIT_" + who + "_" + strings.ToUpper(what) + "=" + v)
	}
	out, err = cmd.Text()
	if err != nil {
		return Ident{}, err
	}
	return parseIdent(out), nil
}

// parseRawDate reads "@seconds zone" and, from nine digits up, "seconds zone";
// anything else is left to git.
func parseRawDate(s string) (time.Time, bool) {
	at := strings.HasPrefix(s, "@")
	sec, z, ok := strings.Cut(strings.TrimPrefix(s, "@"), " ")
	if !ok || len(sec) > 12 || !at && len(sec) < 9 {
		return time.Time{}, false
	}
	n, err := strconv.ParseUint(sec, 10, 63)
	off, ok := parseZone(z)
	if err != nil || !ok || z == "-0000" {
		return time.Time{}, false
	}
	return time.Unix(int64(n), 0).In(fixedZone(off)), true
}
