#!/usr/bin/env bash
# Compares git-meta with the Rust git-meta on the same machine in the same run.
#
#   GIT_META_PEER=/path/to/rust/git-meta bash testdata/bench/compare.sh [options] [COMMITS...]
#
#   -n PAIRS   pairs measured of each job (default 5); the table has medians
#   -d DIR     work in DIR (default: a temporary directory), about 0.1 MB per commit
#   -j JOBS    only these jobs, separated by commas: first,edit,idle,prune,check,get,set,
#              push,add,load
#
# COMMITS (default 2000) is the size: five keys a commit, see makestore/main.go. In each
# pair both programs do the same job on their own copy of the same store, one right after
# the other, and take turns in going first. The ratio is the median of the pairs' ratios.
# Needs Go, git, bash; peak memory needs GNU time. Without GIT_META_PEER it says so
# and ends with 0.
set -eu -o pipefail
export LC_ALL=C

usage() { sed -n '2,/^set/{/^#/!d; s/^# \{0,1\}//; p;}' "$0" >&2; exit 2; }
pairs=5 dir='' jobs=first,edit,idle,prune,check,get,set,push,add,load
while getopts n:d:j: o; do
	case $o in
	n) pairs=$OPTARG ;;
	d) dir=$OPTARG ;;
	j) jobs=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 2000

peer=${GIT_META_PEER:-}
if [ -z "$peer" ]; then
	echo 'compare.sh: skipped: GIT_META_PEER does not name the Rust git-meta'
	exit 0
fi
[ -x "$peer" ] || { echo "compare.sh: $peer cannot be run" >&2; exit 1; }

here=$(cd "$(dirname "$0")" && pwd)
temp=$(mktemp -d ${dir:+"$dir/git-meta-bench.XXXXXX"})
trap 'rm -rf "$temp"' EXIT
unset GIT_DIR GIT_WORK_TREE
(cd "$here/../.." && CGO_ENABLED=0 go build -o "$temp/ours" ./cmd/git-meta && go build -o "$temp/makestore" ./testdata/bench/makestore)
ours=$temp/ours
export HOME=$temp
unset XDG_CONFIG_HOME ${!GIT_CONFIG*} ${!GIT_AUTHOR*} ${!GIT_COMMITTER*}
printf '[user]\n\tname = Bench\n\temail = bench@example.com\n' >"$temp/.gitconfig"
memory=
if /usr/bin/time -v true >/dev/null 2>&1; then memory=1; fi
TIMEFORMAT=%R

# quiet shows what a command says only if it fails.
quiet() { "$@" >"$temp/said" 2>&1 || { echo "compare.sh: failed: $*" >&2; cat "$temp/said" >&2; return 1; }; }

# clock FILE DIR COMMAND... runs a command in DIR and appends its seconds to FILE, and the
# peak of its memory in kB to FILE.kb.
clock() {
	local file=$1 in=$2
	shift 2
	[ -z "$memory" ] || set -- /usr/bin/time -o "$temp/usage" -f %M "$@"
	(cd "$in" && { time "$@" >"$temp/said" 2>&1; } 2>"$temp/clock") || { cat "$temp/said" >&2; return 1; }
	tail -n 1 "$temp/clock" >>"$file"
	[ -z "$memory" ] || tail -n 1 "$temp/usage" >>"$file.kb"
}

# many N COMMAND... runs a command N times, with {} replaced by the number.
many() {
	local n=$1 i
	shift
	for ((i = 0; i < n; i++)); do "${@//\{\}/$i}" >/dev/null || return; done
}
export -f many

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { if (NR) printf "%s\n", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# row TITLE JOB [N] prints a line of the table from what was measured: JOB.peer, JOB.ours.
# With N the job ran N times in each measurement.
row() {
	local title=$1 p=$temp/m/$2.peer o=$temp/m/$2.ours n=${3:-1} mem=-
	paste "$p" "$o" | awk '$2 > 0 { print $1 / $2 }' >"$temp/ratio"
	if [ -s "$p.kb" ] && [ "$n" = 1 ]; then
		mem=$(awk -v a="$(median "$p.kb")" -v b="$(median "$o.kb")" 'BEGIN { printf "%d / %d MB", a / 1024, b / 1024 }')
	fi
	awk -v t="$title" -v a="$(median "$p")" -v b="$(median "$o")" -v r="$(median "$temp/ratio")" -v n="$n" -v m="$mem" '
		function s(x) { return x < 0.1 ? sprintf("%.1f ms", x * 1000) : sprintf("%.2f s", x) }
		BEGIN { printf "| %s | %s | %s | %.1f | %s |\n", t, s(a / n), s(b / n), r, m }'
}

wants() { case ",$jobs," in *",$1,"*) ;; *) return 1 ;; esac; }

# order I prints the two programs, in turns.
order() { if [ $(($1 % 2)) = 0 ]; then echo peer ours; else echo ours peer; fi; }

# gone removes a folder in which a program may still be at work, the index of the history.
gone() { local i; for i in 1 2 3 4 5 6 7 8 9; do ! rm -rf "$1" 2>/dev/null || return 0; sleep 0.3; done; rm -rf "$1"; }

copy() {
	gone "$2"
	cp -R "$1" "$2"
	sync -f "$2" 2>/dev/null || sync
}

tree() { git -C "$1" rev-parse 'refs/meta/local/main^{tree}'; }

for commits in "$@"; do
	keys=$((commits * 5))
	rm -rf "$temp/m" "$temp"/r.* "$temp/filled"
	mkdir -p "$temp/m"
	git init -q -b main "$temp/filled"
	git -C "$temp/filled" commit -q --allow-empty -m one
	# the peer makes the store, so that it is as the peer wants it
	(cd "$temp/filled" && quiet "$peer" set project label bench)
	"$temp/makestore" "$temp/filled" "$commits" >&2
	id=$("$temp/makestore" -id $((commits / 2)))

	printf '\n%d commits, %d keys, medians of %d pairs\n\n' "$commits" "$keys" "$pairs"
	echo '| job | Rust program | git-meta | times faster | peak memory |'
	echo '|---|---|---|---|---|'

	# ------------------------------------------------------------ first serialize
	if wants first; then
		for gc in default 0; do
			for ((i = 0; i < pairs; i++)); do
				for who in $(order $i); do
					copy "$temp/filled" "$temp/r.$who"
					[ $gc = default ] || git -C "$temp/r.$who" config gc.auto $gc
					clock "$temp/m/first$gc.$who" "$temp/r.$who" "${!who}" serialize
				done
				[ "$(tree "$temp/r.peer")" = "$(tree "$temp/r.ours")" ] || { echo 'compare.sh: the trees differ' >&2; exit 1; }
				if [ $gc = 0 ]; then
					[ $i -gt 0 ] || git -C "$temp/r.ours" fast-export refs/meta/local/main >"$temp/stream"
					git init -q -b main "$temp/r.import"
					clock "$temp/m/import.peer" "$temp/r.import" sh -c "exec git fast-import --quiet <'$temp/stream'"
					rm -rf "$temp/r.import"
				fi
			done
		done
		row 'first serialize, default gc.auto' firstdefault
		row 'first serialize, gc.auto=0' first0
		cp "$temp/m/first0.ours" "$temp/m/import.ours"
		[ ! -f "$temp/m/first0.ours.kb" ] || cp "$temp/m/first0.ours.kb" "$temp/m/import.ours.kb"
		row 'the same tree by git fast-import (left)' import
		[ -n "$(find "$temp/r.ours/.git/objects/pack" -name '*.pack')" ] || [ "$commits" -lt 20 ] ||
			{ echo 'compare.sh: no pack was written' >&2; exit 1; }
	fi

	# ----------------------------------- each program's own published repository
	for who in peer ours; do
		copy "$temp/filled" "$temp/published.$who"
		git -C "$temp/published.$who" config gc.auto 0
		(cd "$temp/published.$who" && quiet "${!who}" serialize && git repack -adq && git prune-packed -q)
	done

	if wants edit; then
		for who in peer ours; do copy "$temp/published.$who" "$temp/r.$who"; done
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				"$temp/makestore" -churn 10 "$temp/r.$who" "$commits"
				clock "$temp/m/edit.$who" "$temp/r.$who" "${!who}" serialize
			done
		done
		row 'serialize after 10 edited keys' edit
	fi

	# ------------------------------------------------- auto-prune, nothing changed
	if wants prune || wants idle; then
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				copy "$temp/published.$who" "$temp/r.$who"
				(cd "$temp/r.$who" && quiet "${!who}" config meta:prune:max-keys $((keys * 8 / 10)) &&
					quiet "${!who}" config meta:prune:min-keys $((keys * 4 / 10)))
				clock "$temp/m/prune.$who" "$temp/r.$who" "${!who}" serialize
				git -C "$temp/r.$who" log -1 --format=%s refs/meta/local/main | grep -q auto-prune ||
					{ echo "compare.sh: $who did not prune" >&2; exit 1; }
			done
		done
		! wants prune || row "auto-prune of $keys keys to $((keys * 4 / 10)), cold" prune
	fi
	if wants idle; then
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				clock "$temp/m/idle.$who" "$temp/r.$who" "${!who}" serialize
			done
		done
		row 'serialize, nothing changed' idle
	fi

	if wants check; then
		for who in peer ours; do
			copy "$temp/published.$who" "$temp/r.$who"
			(cd "$temp/r.$who" && quiet "${!who}" config meta:prune:max-keys $((keys * 2)) && quiet "${!who}" serialize)
		done
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				(cd "$temp/r.$who" && quiet "${!who}" set path:src/main.go owner "o$i")
				clock "$temp/m/check.$who" "$temp/r.$who" "${!who}" serialize
			done
		done
		row 'auto-prune check, warm, one edit' check
	fi

	# -------------------------------------------- a remote with what this program published
	if wants push || wants add || wants load; then
		remote=$temp/remote.git url=file://$temp/remote.git
		rm -rf "$remote"
		git init -q --bare "$remote"
		git -C "$temp/published.ours" push -q "$remote" refs/meta/local/main:refs/meta/main
	fi
	if wants push; then
		for who in peer ours; do # as serialize left it, not packed
			copy "$temp/filled" "$temp/serialized.$who"
			git -C "$temp/serialized.$who" config gc.auto 0
			(cd "$temp/serialized.$who" && quiet "${!who}" serialize)
		done
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				rm -rf "$temp/empty.git"
				git init -q --bare "$temp/empty.git"
				git -C "$temp/empty.git" config gc.auto 0
				copy "$temp/serialized.$who" "$temp/r.$who"
				git -C "$temp/r.$who" config remote.meta.url "file://$temp/empty.git"
				git -C "$temp/r.$who" config remote.meta.fetch +refs/meta/main:refs/meta/remotes/main
				git -C "$temp/r.$who" config remote.meta.meta true
				clock "$temp/m/push.$who" "$temp/r.$who" "${!who}" push
				[ "$(git -C "$temp/empty.git" rev-parse 'refs/meta/main^{tree}')" = "$(tree "$temp/r.$who")" ] ||
					{ echo "compare.sh: $who did not push everything" >&2; exit 1; }
			done
		done
		row 'first push, serialized before' push
	fi
	# fresh WHO makes a repository without metadata
	fresh() {
		gone "$temp/r.$1"
		git init -q -b main "$temp/r.$1"
		git -C "$temp/r.$1" commit -q --allow-empty -m one
		git -C "$temp/r.$1" config gc.auto 0
	}
	if wants add; then
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				fresh "$who" && sleep 1
				clock "$temp/m/add.$who" "$temp/r.$who" "${!who}" remote add "$url"
			done
		done
		row 'remote add' add
	fi
	if wants load; then
		# connected and fetched, nothing loaded
		fresh fetched
		(cd "$temp/r.fetched" && quiet "$ours" remote add "$url")
		sleep 1 # it may still be writing its index of the history
		rm -f "$temp"/r.fetched/.git/git-meta*
		git -C "$temp/r.fetched" update-ref -d refs/meta/local/main
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				copy "$temp/r.fetched" "$temp/r.$who"
				clock "$temp/m/load.$who" "$temp/r.$who" "${!who}" materialize
			done
		done
		row 'materialize, already fetched' load
	fi

	# ------------------------------------------------------------------- get, set
	for who in peer ours; do copy "$temp/published.$who" "$temp/r.$who"; done
	loops=40
	if wants get; then
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				clock "$temp/m/get.$who" "$temp/r.$who" bash -c "many $loops '${!who}' get 'commit:$id' agent:model"
			done
		done
		row 'get of one key' get $loops
	fi
	if wants set; then
		for ((i = 0; i < pairs; i++)); do
			for who in $(order $i); do
				clock "$temp/m/set.$who" "$temp/r.$who" bash -c "many $loops '${!who}' set path:src/main.go owner 'o$i-{}'"
			done
		done
		row 'set, each a durable write here, not there' set $loops
		# without the disk: what is left when fsync costs nothing
		if [ -w /dev/shm ] && [ -d /dev/shm ]; then
			shm=$(mktemp -d /dev/shm/git-meta-bench.XXXXXX)
			trap 'rm -rf "$temp" "$shm"' EXIT
			for who in peer ours; do
				git init -q -b main "$shm/$who"
				cp "$temp/filled/.git/git-meta.sqlite" "$shm/$who/.git/"
			done
			for ((i = 0; i < pairs; i++)); do
				for who in $(order $i); do
					clock "$temp/m/setmem.$who" "$shm/$who" bash -c "many $loops '${!who}' set path:src/main.go owner 'o$i-{}'"
				done
			done
			row 'set, in memory: no fsync for either' setmem $loops
			rm -rf "$shm"
		fi
	fi
	rm -rf "$temp"/published.*
done
