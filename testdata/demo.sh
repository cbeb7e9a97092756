#!/bin/sh
# Builds and installs git-meta, then shows its main job on a real repository:
# set values, publish them, pass the maximum, see the tree cut back by itself.
#
#   sh testdata/demo.sh         in a temporary repository
#   sh testdata/demo.sh DIR     in the new directory DIR, which stays
#
# It needs Go and git. It ends with an error if anything is not as it should be.
set -eu

cd "$(dirname "$0")/.."

say() { printf '\n# %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# run prints a piece of shell and runs it.
run() {
	printf '%s\n' "$1" | sed '1s/^/$ /; 2,$s/^/> /'
	eval "$1"
}

# must CHECK GOT WANT
must() { [ "$2" = "$3" ] || die "$1: got \"$2\", want \"$3\""; }

temp=$(mktemp -d "${TMPDIR:-/tmp}/git-meta-demo.XXXXXX")
trap 'rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM

# ------------------------------------------------------------ build and install
if [ -z "${HOME:-}" ]; then
	HOME=$temp/home GOFLAGS="${GOFLAGS:-} -modcacherw"
	export HOME GOFLAGS
	say "HOME is not set: what is installed goes away with the demo"
fi
for tool in go git; do
	command -v $tool >/dev/null || die "$tool is not installed"
done
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY
unset GIT_NAMESPACE GIT_AUTHOR_DATE GIT_COMMITTER_DATE
# Where git does not trust this directory, Go cannot ask it for the version.
git rev-parse HEAD >/dev/null 2>&1 || export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

say "Build and install"
run 'CGO_ENABLED=0 go install ./cmd/git-meta'
bin=$(go env GOBIN)
[ -n "$bin" ] || bin=$(go env GOPATH | sed 's/[:;].*//')/bin
[ -x "$bin/git-meta" ] || [ -x "$bin/git-meta.exe" ] || die "go install put nothing into $bin"
case ":$PATH:" in
*":$bin:"*) found=$(command -v git-meta) ;;
*)
	printf 'Installed in %s, which is not on your PATH. To use it later:\n' "$bin"
	printf '  export PATH="%s:$PATH"\n' "$bin"
	found=$bin/git-meta
	;;
esac
[ "$found" = "$bin/git-meta" ] || printf 'Note: PATH finds %s first; the demo uses %s/git-meta.\n' "$found" "$bin"
PATH=$bin:$PATH
export PATH
run 'git meta version'

# ------------------------------------------------------------------ a repository
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat
export GIT_AUTHOR_NAME='Ada Demo' GIT_AUTHOR_EMAIL=ada@example.com
export GIT_COMMITTER_NAME='Ada Demo' GIT_COMMITTER_EMAIL=ada@example.com

repo=${1:-$temp/repo}
[ ! -e "$repo" ] || die "$repo exists"

# history writes 600 commits on main and 20 on feature/login as a fast-import stream.
history() {
	awk 'function commit(ref, from, n, file,   text) {
		text = sprintf("Change %d: work on %s", n, file)
		printf "commit refs/heads/%s\nmark :%d\n", ref, n
		printf "committer Ada Demo <ada@example.com> %d +0000\n", 1700000000 + n * 3600
		printf "data %d\n%s\n", length(text), text
		if (from) printf "from :%d\n", from
		text = sprintf("// %s\npackage app\n\nconst revision = %d\n", file, n)
		printf "M 100644 inline %s\ndata %d\n%s\n", file, length(text), text
	}
	BEGIN {
		for (n = 1; n <= 600; n++) commit("main", 0, n, "src/part" n % 40 ".go")
		for (n = 601; n <= 620; n++) commit("feature/login", n == 601 ? 600 : 0, n, "src/login.go")
	}'
}

say "A repository with 600 commits on main and a branch"
git init -q -b main "$repo" 2>/dev/null || { git init -q "$repo" && git -C "$repo" symbolic-ref HEAD refs/heads/main; }
cd "$repo"
history | git fast-import --quiet
git reset -q --hard
run 'git rev-list --count main; git branch --format="%(refname:short)"'
must commits "$(git rev-list --count main)" 600

# --------------------------------------------------------------------- the job
say "The published tree may hold 60 keys; a prune cuts it back to 30"
run 'git meta config meta:prune:max-keys 60
git meta config meta:prune:min-keys 30
git meta config --list'

say "Strings, lists and sets on 16 commits"
run 'for c in $(git rev-list --reverse -n 16 --skip=10 main); do
  git meta -q set       commit:$c agent:model claude-4.6
  git meta -q list:push commit:$c agent:transcript "user: please fix it"
  git meta -q list:push commit:$c agent:transcript "agent: done, see the diff"
  git meta -q set:add   commit:$c review:owners ada@example.com
done
git meta set project label demo
git meta serialize'

ref=refs/meta/local/main
# keys REV counts the keys of a published tree.
keys() {
	echo $(($(git ls-tree -r --name-only "$1" |
		sed -n '/__tombstones/d; s,/__value$,,p; s,/__list/.*,,p; s,/__set/.*,,p' | sort -u | wc -l)))
}
must 'first serialize' "$(git log --format=%s $ref)" 'git-meta: serialize (51 changes)'
must 'keys published' "$(keys $ref)" 51
old=commit:$(git rev-list --reverse main | sed -n 575p)
must 'a value' "$(git meta get "$old" agent:model)" claude-4.6

say "The last ten commits, two files and a branch: past the maximum"
run 'for c in $(git rev-list --reverse -n 10 main); do
  git meta -q set       commit:$c agent:model claude-4.6
  git meta -q list:push commit:$c agent:transcript "user: and the tests?"
  git meta -q set:add   commit:$c review:owners grace@example.com
done
git meta set     path:src/part7.go owner ada
git meta set:add path:src/part8.go reviewers grace
git meta set     branch:feature/login review:status approved
git meta set     commit:HEAD review:status approved
git meta serialize'

say "Two commits: what was published, and the prune on top of it"
run 'git log --format=%s refs/meta/local/main'
run 'git log -1 --format=%B refs/meta/local/main'
must 'the prune' "$(git log -1 --format=%s $ref)" 'git-meta: auto-prune'
must 'commits on the ref' "$(($(git rev-list --count $ref)))" 3
must 'keys before' "$(keys $ref~1)" 85
must 'keys after' "$(keys $ref)" 33 # 30 and the three of the project
must 'keys-dropped' "$(git log -1 --format=%B $ref | sed -n 's/^keys-dropped: //p')" 52
printf 'keys in the tree: %s before, %s after (the 3 of the project always stay)\n' "$(keys $ref~1)" "$(keys $ref)"

say "What it kept: the newest keys, each of them whole"
run 'git meta get commit:HEAD'
run 'git ls-tree -r --name-only refs/meta/local/main | grep -v ^commit/ | cut -c1-78'
must 'kept list' "$(git ls-tree -r --name-only "$ref" | grep -c "$(git rev-parse HEAD)/agent/transcript/__list/")" 1

say "What it dropped stays in the store; nothing is published again by itself"
run "git meta get $old agent:model"
run 'git meta serialize'
must 'still there' "$(git meta get "$old" agent:model)" claude-4.6
must 'idle serialize' "$(($(git rev-list --count $ref)))" 3
git fsck --strict --no-progress >"$temp/fsck" 2>&1 || { cat "$temp/fsck" >&2; die "git fsck --strict found an error"; }

say "All as it should be: 85 keys set, 33 of them published."
[ $# -eq 0 ] || printf 'Look around in %s\n' "$repo"
