package meta

import (
	"fmt"
	"strings"
	"testing"
)

// gitNames are spellings of the names that git protects, and near misses.
func gitNames() []string {
	names := []string{
		".git", ".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git.", ".git. .", "git~1 .", ".git:x", ".git::$INDEX_ALLOCATION",
		"git~1:x", `.git\x`, `x\.git`, `x\git~1`, `x\.gitmodules`, `x\y`, ".g\u200cit", "\u202e.git", ".git\ufeff", ".gi\u206at", ".g\u200bit",
		".gitx", ".git.x", "git~2", "git", "git~", ".gi", "git~10", " .git", "x.git", "\u212a", ".\u0131git", ".gitconfig", "...", "..x",
		"~1000000", "~1", "~12345678", "g~100000", "g~1", "gi~10000", "GI7EB~10", "GI7EBA~1", "GI7EBA~9", "GI7EBA~0", "gi7eba~1.", "gi7eba~1:x",
		"gi7eb~01", "gi7eba~12", "gi7d29~1", "gi250a~1", "maba30~1", "MABA3~10", "m~999999", "ma~99999", "gi7d2~99", "xi7eba~1", "gi7ebax~1",
		"gitmod~1", "GITMOD~4", "gitmod~5", "gitmod~0", "gitmod~1 ", "gitmod~11", "gitatt~1", "gitign~2", "mailma~3", "mailmap~1", "gitmodules",
	}
	for _, n := range []string{".gitmodules", ".gitattributes", ".gitignore", ".mailmap"} {
		u := strings.ToUpper(n)
		names = append(names, n, u, n+" ", n+".", n+". .", n+":x", n+"x", n+".x", "x"+n, n[:4]+"\u200d"+n[4:], "\ufeff"+n, n+"\u200f", n[:3], n[1:], n+`\x`)
	}
	return names
}

// What git fsck finds fault with is what is refused or escaped here. A symbolic link shows
// it: git complains about one under any of these names.
func TestGitNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(stdin string, args ...string) string {
		out, err := git(dir, stdin, args...)
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	run("", "init", "-q")
	blob := run("target", "hash-object", "-w", "--stdin")
	names := gitNames()
	// faults returns what git says about each of the names
	faults := func(names []string) []string {
		var trees strings.Builder
		for _, n := range names {
			fmt.Fprintf(&trees, "120000 blob %s\t%s\x00\x00", blob, n)
		}
		ids := strings.Fields(run(trees.String(), "mktree", "-z", "--batch"))
		out, _ := git(dir, "", "fsck", "--strict", "--no-dangling")
		said := map[string]string{}
		for line := range strings.Lines(out) {
			if _, rest, ok := strings.Cut(line, " in tree "); ok {
				id, what, _ := strings.Cut(rest, ": ")
				said[id] += what
			}
		}
		var found []string
		for _, id := range ids {
			found = append(found, said[id])
		}
		return found
	}
	var escaped []string
	for i, fault := range faults(names) {
		n := names[i]
		if got := gitProtects(n) || gitGivesMeaning(n); got != (fault != "") {
			t.Errorf("%q: got %v; git fsck says %q", n, got, fault)
		}
		if strings.Contains(fault, "hasDotgit") && !gitProtects(n) {
			t.Errorf("%q is not refused; git fsck says %q", n, fault)
		}
		if got := KeyPublishable(n); !strings.Contains(n, ":") && (got != nil) != (fault != "") {
			t.Errorf("key %q: got %v; git fsck says %q", n, got, fault)
		}
		if !gitProtects(n) {
			escaped = append(escaped, EscapeSegment(n))
		}
	}
	for i, fault := range faults(escaped) {
		if fault != "" {
			t.Errorf("escaped as %q: git fsck says %s", escaped[i], fault)
		}
	}
	for _, n := range []string{".", ".."} {
		if !gitProtects(n) {
			t.Errorf("%q is not refused", n)
		}
	}
}

// The index refuses the same names as path components.
func TestGitIndexNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := git(dir, "", "init", "-q"); err != nil {
		t.Fatal(out)
	}
	blob, _ := git(dir, "x", "hash-object", "-w", "--stdin")
	var in strings.Builder
	for _, n := range gitNames() {
		fmt.Fprintf(&in, "100644 %s\t%s/f\x00", blob, n)
	}
	if out, err := git(dir, in.String(), "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info"); err != nil {
		t.Fatal(out)
	}
	out, _ := git(dir, "", "ls-files", "-z")
	taken := map[string]bool{}
	for p := range strings.SplitSeq(out, "\x00") {
		taken[strings.TrimSuffix(p, "/f")] = true
	}
	for _, n := range gitNames() {
		// with protectNTFS the index refuses any backslash
		if got := gitProtects(n); !strings.Contains(n, `\`) && got != !taken[n] {
			t.Errorf("gitProtects(%q): got %v, git update-index takes it: %v", n, got, taken[n])
		}
	}
}
