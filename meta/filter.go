package meta

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// MainDestination is where keys go that no rule routes elsewhere.
const MainDestination = "main"

// Rule is one filter rule: "exclude PATTERN" or "route PATTERN DEST[,DEST…]".
type Rule struct {
	Text    string
	Pattern []string // segments; "*" and "**" are wildcards
	Dests   []string // nil: exclude
}

const ruleHint = "a rule is 'exclude PATTERN' or 'route PATTERN DEST[,DEST…]'"

// ParseRule reads a filter rule (format.md §5.5). For a rule that is malformed it
// returns, with an ErrInvalid, the rule that excludes what the pattern can be read to
// cover; its Pattern is nil if there is none.
func ParseRule(text string) (Rule, error) {
	words := strings.Fields(text)
	r := Rule{Text: text}
	bad := func(why string) (Rule, error) {
		return Rule{Text: text, Pattern: r.Pattern}, Invalid(fmt.Sprintf("filter rule %q", text), why, ruleHint)
	}
	if len(words) > 1 {
		r.Pattern = strings.Split(words[1], ":")
	}
	switch {
	case len(words) == 0:
		return bad("empty")
	case words[0] != "exclude" && words[0] != "route":
		return bad(fmt.Sprintf("unknown action %q", words[0]))
	case len(words) < 2:
		return bad("the pattern is missing")
	case words[0] == "exclude":
		return r, nil
	case len(words) < 3:
		return bad("the destination is missing")
	}
	for d := range strings.SplitSeq(words[2], ",") {
		if d == "" {
			continue
		}
		if !validDestination(d) {
			return bad(fmt.Sprintf("%q cannot be part of a ref name", d))
		}
		r.Dests = append(r.Dests, d)
	}
	if len(r.Dests) == 0 {
		return bad("the destination is missing")
	}
	return r, nil
}

// validDestination follows `git check-ref-format` for one component.
func validDestination(d string) bool {
	return !strings.HasPrefix(d, ".") && !strings.HasPrefix(d, "-") && !strings.HasSuffix(d, ".") && !strings.HasSuffix(d, ".lock") &&
		!strings.Contains(d, "..") && !strings.Contains(d, "@{") && d != "@" &&
		!strings.ContainsFunc(d, func(r rune) bool { return IsControl(r) || strings.ContainsRune(" /~^:?*[\\", r) })
}

func (r Rule) matches(segs []string) bool { return r.Pattern != nil && matchSegments(r.Pattern, segs) }

// matchSegments takes at most len(pat) × len(segs) steps: only the last "**" met is ever
// tried again.
func matchSegments(pat, segs []string) bool {
	if pat[len(pat)-1] == "**" { // at the end it takes one segment or more
		if len(segs) == 0 {
			return false
		}
		segs = segs[:len(segs)-1]
	}
	p, star, from := 0, -1, 0
	for s := 0; s < len(segs); {
		switch {
		case p < len(pat) && pat[p] == "**":
			star, from = p, s
			p++
		case p < len(pat) && (pat[p] == "*" || pat[p] == segs[s]):
			p, s = p+1, s+1
		case star >= 0:
			from++
			p, s = star+1, from
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == "**" {
		p++
	}
	return p == len(pat)
}

// Filter routes keys to destinations. The zero Filter sends every key that is not
// local to main.
type Filter struct {
	rules []Rule
	// Problems says what is wrong with rules that were read as exclusions.
	Problems []error
}

// NewFilter reads the rule texts: the members of local:meta:filter, then those of
// meta:filter, each in ascending order.
func NewFilter(texts []string) *Filter {
	f := &Filter{}
	for _, t := range texts {
		r, err := ParseRule(t)
		if err != nil {
			f.Problems = append(f.Problems, err)
		}
		f.rules = append(f.rules, r)
	}
	return f
}

// ID identifies the rules; filters with the same rules have the same ID.
func (f *Filter) ID() string {
	if len(f.rules) == 0 {
		return ""
	}
	h := sha1.New()
	for _, r := range f.rules {
		fmt.Fprintf(h, "%q\n", r.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Empty reports whether there are no rules.
func (f *Filter) Empty() bool { return len(f.rules) == 0 }

// Destinations returns every destination a rule names, and main, sorted.
func (f *Filter) Destinations() []string {
	out := []string{MainDestination}
	for _, r := range f.rules {
		out = append(out, r.Dests...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Route returns the destinations of key; none means that it stays in this repository.
func (f *Filter) Route(key string) []string {
	if IsLocal(key) {
		return nil
	}
	if len(f.rules) == 0 {
		return mainOnly
	}
	segs := strings.Split(key, ":")
	var dests []string
	for _, r := range f.rules {
		if !r.matches(segs) {
			continue
		}
		if r.Dests == nil {
			return nil
		}
		dests = append(dests, r.Dests...)
	}
	if dests == nil {
		return mainOnly
	}
	return dests
}

var mainOnly = []string{MainDestination}

// Sends reports whether key goes to dest.
func (f *Filter) Sends(key, dest string) bool { return slices.Contains(f.Route(key), dest) }
