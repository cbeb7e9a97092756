package prune

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// The configuration keys, strings on the project target.
const (
	Namespace  = "meta:prune"
	KeyMaxKeys = "meta:prune:max-keys"
	KeyMinKeys = "meta:prune:min-keys"
	KeyMaxSize = "meta:prune:max-size"
	KeyMinSize = "meta:prune:min-size"
	KeySince   = "meta:prune:since"
)

// keyObjectMaxSize is a setting of the peer; here large values stay in the store.
const keyObjectMaxSize = "meta:sqlite:object-max-size"

// What setup writes when it has made a new metadata store.
const (
	DefaultMaxKeys = "10000"
	DefaultMinKeys = "5000"
)

// ruleKeys lists the keys in the order of `git meta config --list`.
var ruleKeys = []string{KeyMaxKeys, KeyMinKeys, KeyMaxSize, KeyMinSize, KeySince}

// Rules is a pruning policy. A zero maximum is none; a minimum is set with its maximum.
type Rules struct {
	MaxKeys, MinKeys int64
	MaxSize, MinSize int64 // bytes
}

// Active reports whether there is a maximum.
func (r Rules) Active() bool { return r.MaxKeys > 0 || r.MaxSize > 0 }

// ParseRules reads the policy from the project's strings. An error means that nothing
// must be pruned (design §6).
func ParseRules(get func(key string) (string, bool)) (Rules, error) {
	var r Rules
	var err error
	if r.MaxKeys, r.MinKeys, err = axis(get, KeyMaxKeys, KeyMinKeys, positiveCount); err != nil {
		return Rules{}, err
	}
	if r.MaxSize, r.MinSize, err = axis(get, KeyMaxSize, KeyMinSize, positiveSize); err != nil {
		return Rules{}, err
	}
	return r, nil
}

// axis reads a maximum and its minimum; half of the maximum, at least 1, without one.
func axis(get func(string) (string, bool), maxKey, minKey string, parse func(string) (int64, error)) (high, low int64, err error) {
	text, ok := get(maxKey)
	if !ok {
		return 0, 0, nil
	}
	if high, err = parse(text); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", maxKey, err)
	}
	low = max(high/2, 1)
	if text, ok = get(minKey); !ok {
		return high, low, nil
	}
	if low, err = parse(text); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", minKey, err)
	}
	if low >= high {
		return 0, 0, fmt.Errorf("%s (%s) is not below %s", minKey, text, maxKey)
	}
	return high, low, nil
}

func positive(n int64, err error, text string) (int64, error) {
	if err == nil && n == 0 {
		return 0, meta.Invalid(fmt.Sprintf("%q", text), "must be greater than zero", "")
	}
	return n, err
}

func positiveCount(s string) (int64, error) {
	n, err := meta.ParseCount(s)
	return positive(n, err, s)
}

func positiveSize(s string) (int64, error) {
	n, err := meta.ParseSize(s)
	return positive(n, err, s)
}

// readRules reads the policy from the store.
func readRules(tx *store.Tx) (Rules, error) {
	values := map[string]string{}
	for _, k := range ruleKeys {
		v, ok, err := tx.ProjectString(k)
		if err != nil {
			return Rules{}, err
		}
		if ok {
			values[k] = v
		}
	}
	return ParseRules(func(k string) (string, bool) { v, ok := values[k]; return v, ok })
}

// CheckConfig validates a value before it is stored as a project string; others holds the
// project's present meta: strings. Keys it does not know are accepted, those that look
// like a misspelled rule with a warning.
func CheckConfig(key, value string, others map[string]string) (warning string, err error) {
	refuse := func(why error, hint string) error {
		if h := meta.HintOf(why); hint == "" {
			hint = h
		}
		return &meta.Error{Op: key, Err: why, Hint: hint}
	}
	off := "to switch the rule off: git meta config --unset " + key
	switch key {
	case KeyMaxKeys, KeyMinKeys:
		n, err := positiveCount(value)
		if err != nil {
			return "", refuse(err, hintFor(value, off))
		}
		return "", checkPair(key, n, KeyMaxKeys, KeyMinKeys, others, positiveCount)
	case KeyMaxSize, KeyMinSize:
		n, err := positiveSize(value)
		if err != nil {
			return "", refuse(err, hintFor(value, off))
		}
		return "", checkPair(key, n, KeyMaxSize, KeyMinSize, others, positiveSize)
	case KeySince:
		now := time.Now()
		cutoff, err := meta.ParseWindow(value, now)
		if err == nil && !cutoff.Before(now) {
			err = meta.Invalid(fmt.Sprintf("window %q", value), "the cutoff is not in the past", meta.WindowHint)
		}
		if err != nil {
			return "", refuse(err, "")
		}
	case serialize.KeyShortTargets:
		if value != "true" && value != "false" {
			return "", refuse(meta.Invalid(fmt.Sprintf("%q", value), "neither true nor false", ""), "git meta config "+key+" true")
		}
	case keyObjectMaxSize, "local:" + keyObjectMaxSize:
		if _, err := meta.ParseSize(value); err != nil {
			return "", refuse(err, "")
		}
	default:
		if meta.InNamespace(key, Namespace) {
			return fmt.Sprintf("%s is no rule that git-meta knows; did you mean %s?", key, Nearest(key, ruleKeys)), nil
		}
	}
	return "", nil
}

// HoldsString reports whether key is a setting that [CheckConfig] reads as a string.
func HoldsString(key string) bool {
	return slices.Contains(ruleKeys, key) || key == serialize.KeyShortTargets ||
		key == keyObjectMaxSize || key == "local:"+keyObjectMaxSize
}

// hintFor says how to switch a rule off where somebody tried a zero, else nothing.
func hintFor(value, off string) string {
	if strings.Trim(value, "0kKmMgG +") == "" {
		return off
	}
	return ""
}

// checkPair refuses a minimum that is not below its maximum, with commands that work.
func checkPair(key string, n int64, maxKey, minKey string, others map[string]string, parse func(string) (int64, error)) error {
	other := minKey
	if key == minKey {
		other = maxKey
	}
	text, ok := others[other]
	if !ok {
		return nil
	}
	m, err := parse(text)
	if err != nil {
		return nil // the other one is broken already; this one need not wait for it
	}
	high, low := n, m
	if key == minKey {
		high, low = m, n
	}
	if low < high {
		return nil
	}
	set := "git meta config %s %s && git meta config %s %s"
	var hint string
	switch {
	case n == math.MaxInt64:
		hint = "use a smaller number: no maximum is above this one"
	case key == minKey:
		twice := int64(math.MaxInt64)
		if n <= math.MaxInt64/2 {
			twice = 2 * n
		}
		hint = fmt.Sprintf(set, maxKey, plain(twice, maxKey), minKey, plain(n, maxKey))
	case n > 1:
		hint = fmt.Sprintf(set, minKey, plain(n/2, maxKey), maxKey, plain(n, maxKey))
	default:
		hint = fmt.Sprintf("git meta config --unset %s && git meta config %s %s", minKey, maxKey, plain(n, maxKey))
	}
	return meta.Invalid(fmt.Sprintf("%s %s", key, plain(n, maxKey)), fmt.Sprintf("%s is %s, and a minimum must be below its maximum", other, text), hint)
}

// plain writes a count as digits and a size with the suffix that keeps it exact.
func plain(n int64, maxKey string) string {
	if maxKey == KeyMaxSize {
		for _, u := range []struct {
			shift  int
			suffix string
		}{{30, "g"}, {20, "m"}, {10, "k"}} {
			if n >= 1<<u.shift && n&(1<<u.shift-1) == 0 {
				return fmt.Sprint(n>>u.shift) + u.suffix
			}
		}
	}
	return fmt.Sprint(n)
}

// ConfigOrder sorts configuration keys for a listing: the rules, each maximum before its
// minimum, keys before size, then since; the others after them by name.
func ConfigOrder(keys []string) {
	rank := func(k string) int {
		if i := slices.Index(ruleKeys, k); i >= 0 {
			return i
		}
		return len(ruleKeys)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if c := rank(a) - rank(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
}

// Nearest returns the name with the smallest edit distance to s.
func Nearest(s string, names []string) string {
	best, at := "", -1
	for _, n := range names {
		if d := distance(s, n); at < 0 || d < at {
			best, at = n, d
		}
	}
	return best
}

// distance is the number of letters to insert, drop or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
