package meta

import (
	"strings"
	"unicode/utf8"
)

// gitProtects reports whether git refuses name as a component of a tree path
// (".git" in any spelling that git knows, "." and ".."), as `git fsck` does with
// core.protectHFS and core.protectNTFS set. Such a name can't be published. Neither can
// one that NTFS, where a backslash separates, takes for a path to .git or .gitmodules.
func gitProtects(name string) bool {
	if plainName(name) {
		return false
	}
	if name == "." || name == ".." || isHFSDot(name, "git") || isNTFSDotGit(name) {
		return true
	}
	modules := protectedFiles[0]
	for _, rest, ok := strings.Cut(name, `\`); ok; _, rest, ok = strings.Cut(rest, `\`) {
		if isNTFSDotGit(rest) || isNTFSDot(rest, modules.name, modules.short) {
			return true
		}
	}
	return false
}

// protectedFiles are names that git gives a meaning wherever they stand in a
// tree, with the NTFS short-name prefix of each ("gi7eba~1"), as in git's
// is_ntfs_dot_generic.
var protectedFiles = []struct{ name, short string }{
	{"gitmodules", "gi7eba"},
	{"gitattributes", "gi7d29"},
	{"gitignore", "gi250a"},
	{"mailmap", "maba30"},
}

// gitGivesMeaning reports whether name is .gitmodules, .gitattributes,
// .gitignore or .mailmap in a spelling that git takes for it.
func gitGivesMeaning(name string) bool {
	if plainName(name) {
		return false
	}
	for _, f := range protectedFiles {
		if isHFSDot(name, f.name) || isNTFSDot(name, f.name, f.short) {
			return true
		}
	}
	return false
}

// plainName reports whether name is certainly none of git's: it is ASCII, starts with
// no dot and holds no '~' or backslash, as all spellings of those names do or don't. Most are
// plain.
func plainName(name string) bool {
	if name == "" || name[0] == '.' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c == '~' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isHFSDot reports whether name is "."+want once the code points that HFS+
// ignores are dropped and case is folded.
func isHFSDot(name, want string) bool {
	var b strings.Builder
	for _, r := range name {
		if hfsIgnores(r) {
			continue
		}
		if r >= utf8.RuneSelf {
			return false
		}
		b.WriteRune(r)
		if b.Len() > len(want)+1 {
			return false
		}
	}
	return strings.EqualFold(b.String(), "."+want)
}

func hfsIgnores(r rune) bool {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return true
	}
	return false
}

func isNTFSDotGit(name string) bool {
	for _, p := range []string{".git", "git~1"} {
		if len(name) < len(p) || !strings.EqualFold(name[:len(p)], p) {
			continue
		}
		if first, _, _ := strings.Cut(name[len(p):], `\`); ntfsEnds(first) {
			return true
		}
	}
	return false
}

// ntfsEnds reports whether NTFS ignores rest at the end of a name: blanks and
// dots, up to the end or a stream (':').
func ntfsEnds(rest string) bool {
	rest = strings.TrimLeft(rest, " .")
	return rest == "" || rest[0] == ':'
}

func isNTFSDot(name, want, short string) bool {
	if len(name) > len(want) && name[0] == '.' && strings.EqualFold(name[1:len(want)+1], want) && ntfsEnds(name[len(want)+1:]) {
		return true
	}
	// "GITMOD~1" … "GITMOD~4"
	if len(want) >= 6 && len(name) >= 8 && strings.EqualFold(name[:6], want[:6]) &&
		name[6] == '~' && name[7] >= '1' && name[7] <= '4' && ntfsEnds(name[8:]) {
		return true
	}
	// "GI7EBA~1", "GI7EB~10", … "~1000000": a prefix of the hashed short name, maybe
	// empty, '~', digits
	if len(name) < 8 {
		return false
	}
	i := 0
	for i < 6 && strings.EqualFold(name[i:i+1], short[i:i+1]) {
		i++
	}
	if name[i] != '~' {
		return false
	}
	j := i + 1
	if name[j] < '1' || name[j] > '9' {
		return false
	}
	for j++; j < 8; j++ {
		if name[j] < '0' || name[j] > '9' {
			return false
		}
	}
	return ntfsEnds(name[8:])
}
