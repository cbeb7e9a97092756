#!/usr/bin/env bash
# Records what the Rust git-meta publishes, for TestPeer in serialize/peer_test.go.
#
#   GIT_META_PEER=/path/to/git-meta bash testdata/peer/record.sh [SCENARIO...]
#
# Needs git and sqlite3. Each folder SCENARIO holds, for one step or two:
#
#   store.sql, 2.store.sql    the store before "serialize", as SQL with rowids
#   [2.]DEST.tree             the tree of refs/meta/local/DEST after it: its id, git ls-tree -r
#   [2.]DEST.message          the message of its commit, byte for byte
#   [2.]DEST~1.tree, .message the same of the commit below, where "serialize" made two
#
# Times come from a counter, so that recording twice gives the same files.
set -eu -o pipefail

if [ -z "${GIT_META_PEER:-}" ]; then
	echo 'record.sh: skipped: GIT_META_PEER does not name the Rust git-meta' >&2
	exit 0
fi
peer=$GIT_META_PEER
here=$(cd "$(dirname "$0")" && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export LC_ALL=C HOME=$temp GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null TZ=UTC
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
unset GIT_DIR GIT_WORK_TREE

sql() { sqlite3 .git/git-meta.sqlite "$1"; }

# quiet shows what a command says only if it fails.
quiet() { "$@" >"$temp/said" 2>&1 || { cat "$temp/said" >&2; return 1; }; }

# m runs the peer and gives what it wrote the next time of the counter.
m() {
	quiet "$peer" "$@"
	sql "UPDATE metadata SET last_timestamp = $now WHERE last_timestamp > 1750000000000;
		UPDATE list_values SET timestamp = $now WHERE timestamp > 1750000000000;
		UPDATE set_values SET timestamp = $now WHERE timestamp > 1750000000000;
		UPDATE tombstones SET timestamp = $now WHERE timestamp > 1750000000000;
		UPDATE metadata_log SET timestamp = $now WHERE timestamp > 1750000000000;"
	now=$((now + 1))
}

# publish records the store, serializes and records the refs. $1 is "" or "2.".
publish() {
	{
		sqlite3 .git/git-meta.sqlite '.dump --preserve-rowids'
		echo "PRAGMA user_version=$(sql 'PRAGMA user_version');"
	} >"$out/$1store.sql"
	git for-each-ref --format='%(refname) %(objectname)' refs/meta/local >"$temp/before"
	quiet "$peer" serialize
	sql "UPDATE sync_state SET last_materialized = $now"
	now=$((now + 1))
	git for-each-ref --format='%(refname)' refs/meta/local | while read -r ref; do
		dest=${ref#refs/meta/local/}
		commit "$ref" "$out/$1$dest"
		new=$(git rev-list --count "$ref" --not $(awk '{print $2}' "$temp/before"))
		[ "$new" -lt 2 ] || commit "$ref~1" "$out/$1$dest~1"
	done
}

commit() {
	{
		echo "tree $(git rev-parse "$1^{tree}")"
		git -c core.quotePath=true ls-tree -r "$1"
	} >"$2.tree"
	# what follows the first empty line; sed would end the last line, which has no end
	local head
	head=$(git cat-file commit "$1" | sed '/^$/q' | wc -c)
	git cat-file commit "$1" | tail -c "+$((head + 1))" >"$2.message"
}

# ------------------------------------------------------------------- scenarios

types() { # every value type on every target type
	local t
	for t in project branch:main change-id:I1234abcd path:src/main.go commit:HEAD; do
		m set "$t" review:status "approved by $t"
		m list:push "$t" agent:chat 'first
entry'
		m list:push "$t" agent:chat 'second'
		m set:add "$t" owners ada@example.com
		m set:add "$t" owners grace@example.com
	done
	publish ''
}

escaping() { # names that the tree has to escape or that sort oddly
	m set 'path:src/__gen/~t/f.rs' owner schacon
	m set path:src/__value owner a
	m set path:src owner b
	m set path:src.go owner c
	m set path:src-x owner d
	m set path:src0 owner e
	m set 'path:a b/ü/c' owner f
	m set branch:feature/x review:status ok
	m set branch:feature review:status ok
	m set branch:xyz review:~odd 1
	m set project a:b:c deep
	m set project a:b leaf
	m set project a 'leaf and prefix'
	publish ''
}

tombstones() { # removals of a key, a member, an entry, of each type
	m set branch:main s 1
	m set branch:main gone 1
	m list:push branch:main l one
	m list:push branch:main l two
	m list:push branch:main l three
	m set:add branch:main m a
	m set:add branch:main m b
	m list:push project lost x
	m set:add project lost2 y
	m set project never 1
	m rm branch:main gone
	m list:pop branch:main l three
	m list:rm branch:main l 0
	m set:rm branch:main m b
	m rm project lost
	m rm project lost2
	m set project never 'and back again'
	publish ''
}

filters() { # what goes elsewhere or nowhere
	m set:add project meta:filter 'exclude draft:**'
	m set:add project meta:filter 'route review:** side'
	m set:add project meta:filter 'route both:* main,side'
	m set:add project local:meta:filter 'exclude secret'
	m set branch:main draft:text no
	m set branch:main draft 'only below'
	m set branch:main secret no
	m set branch:main local:mine no
	m set branch:main review:status side
	m set:add branch:main review:owners ada@example.com
	m set branch:main both:x 'in both'
	m set branch:main other main
	m set branch:main review:gone 1
	m rm branch:main review:gone
	publish ''
}

autoprune() { # past max-keys, back to min-keys, newest first, keys whole
	local i
	m config meta:prune:max-keys 10
	m config meta:prune:min-keys 4
	for i in 1 2 3 4 5 6 7 8; do
		m set path:file$i owner "o$i"
	done
	m rm path:file2 owner
	m list:push branch:main chat one
	m list:push branch:main chat two
	m set:add branch:main tags a
	m rm path:file3 owner
	m set commit:HEAD review:status ok
	m set change-id:I1234abcd k v
	m set path:file1 owner again
	publish ''
}

incremental() { # a second serialize on the first one's tree
	m set path:a/b owner one
	m set path:a/c owner one
	m list:push path:a/c chat one
	m set:add path:a/d tags x
	m set:add path:a/d tags y
	m set branch:main s 1
	m set project p 1
	publish ''
	m set path:a/b owner two
	m list:push path:a/c chat two
	m set:rm path:a/d tags x
	m rm branch:main s
	m set path:a/e owner new
	m set:add commit:HEAD review:owners ada
	publish 2.
}

unicode() { # what JSON escapes, and what it does not
	git config user.email 'ü"q\\&@e.x'
	m set project quotes 'he"llo \ é'
	m set project controls "$(printf 'tab\tbell\aesc\033end')"
	m set project lines "$(printf 'one\ntwo\r\nthree\n.')"
	m set project wide "$(printf '\342\200\250\360\237\246\212')"
	m set project html '<a href="x">&amp;</a>'
	m set:add project members "$(printf '\342\200\250"\\')"
	m set:add project members 'ümlaut'
	m set:rm project members "$(printf '\342\200\250"\\')"
	m list:push project list "$(printf 'a"\\\tb\nc')"
	m list:push project list 'gone ü'
	m list:rm project list 1
	m set project removed x
	m rm project removed
	publish ''
}

vector() { # one of everything, with ids that the test knows by heart
	m set branch:feature/x review:status ok
	m set change-id:abcd1234 k v
	m set commit:HEAD agent:model claude-4.6
	m set path:src/__gen/~t/f.rs owner schacon
	m set project gone 1
	m set:add project label a
	m set:add project label b
	m set:add project label c
	now=1700000000000
	m list:push project notes hello
	m list:push project notes world
	m list:push project notes bye
	m set project p2 'he"llo\ é'
	m set:rm project label c
	m list:rm project notes 2
	m rm project gone
	local id=98afc48127dd62ab6e54b17aa86aac61885501e6
	sql "UPDATE metadata SET target_value = '$id' WHERE target_type = 'commit';
		UPDATE metadata_log SET target_value = '$id' WHERE target_type = 'commit';
		UPDATE tombstones SET timestamp = 1700000000005;
		UPDATE metadata SET last_timestamp = 1700000000000;"
	publish ''
}

[ $# -gt 0 ] || set -- types escaping tombstones filters autoprune incremental unicode vector
for scenario in "$@"; do
	out=$here/$scenario
	rm -rf "$out"
	mkdir -p "$out"
	git init -q -b main "$temp/$scenario"
	cd "$temp/$scenario"
	git config user.name 'T U'
	git config user.email t@e.x
	git commit -q --allow-empty -m one
	now=1700000000100
	"$scenario"
	printf '%-12s %s\n' "$scenario" "$(cd "$out" && echo *.tree)"
done
