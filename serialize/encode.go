package serialize

import (
	"unsafe"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

const (
	blobObject   = plumbing.BlobObject
	treeObject   = plumbing.TreeObject
	commitObject = plumbing.CommitObject
)

const markerName = "__target__"

var emptyBlob = gitdb.HashObject(blobObject, nil)

// appendClears adds the edits that take every path of the key out of a tree: those of
// its value, its tombstone and its members' and entries' tombstones. k is the key's
// path, base its target's.
func appendClears(ops []op, base, k, key string, i int32) []op {
	return append(ops,
		op{path: meta.ValuePath(k), kind: opDelete, value: true, key: i},
		op{path: meta.ListPath(k) + "/", kind: opClear, class: clearEntries, value: true, key: i},
		op{path: meta.ListTombstonesPath(k) + "/", kind: opClear, class: clearEntries, key: i},
		op{path: meta.SetPath(k) + "/", kind: opClear, class: clearAll, value: true, key: i},
		op{path: meta.MemberTombstonesPath(k) + "/", kind: opClear, class: clearIDs, key: i},
		op{path: meta.TombstonePath(base, key), kind: opDelete, key: i},
	)
}

// bytesOf returns the bytes of s without copying them; they are only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func putBlob(ops []op, path, content string, value bool, i int32) []op {
	data := bytesOf(content)
	return append(ops, op{
		path: path, kind: opPut, mode: modeBlob, value: value, key: i,
		id: gitdb.HashObject(blobObject, data), data: data,
	})
}

// appendValue adds the blobs of v.
func appendValue(ops []op, k string, v meta.Value, i int32) []op {
	switch v.Type {
	case meta.String:
		return putBlob(ops, meta.ValuePath(k), v.String, true, i)
	case meta.List:
		dir := meta.ListPath(k) + "/"
		from := len(ops)
		for _, e := range v.Entries {
			ops = putBlob(ops, dir+e.Name(), e.Value, true, i)
		}
		return dropRepeats(ops, from)
	default:
		dir := meta.SetPath(k) + "/"
		for _, m := range v.Members {
			data := bytesOf(m)
			id := gitdb.HashObject(blobObject, data)
			ops = append(ops, op{path: dir + id.String(), kind: opPut, mode: modeBlob, value: true, key: i, id: id, data: data})
		}
		return ops
	}
}

// dropRepeats keeps the last of the entries with one name: equal time and equal first
// digits of the hash give one blob (format.md §3).
func dropRepeats(ops []op, from int) []op {
	if len(ops)-from < 2 {
		return ops
	}
	repeated := false
	if len(ops)-from <= 8 {
		for i := from; i < len(ops) && !repeated; i++ {
			for j := from; j < i; j++ {
				repeated = repeated || ops[j].path == ops[i].path
			}
		}
		if !repeated {
			return ops
		}
	}
	seen := make(map[string]int, len(ops)-from)
	out := ops[:from]
	for _, o := range ops[from:] {
		if at, ok := seen[o.path]; ok {
			out[at] = o
			continue
		}
		seen[o.path] = len(out)
		out = append(out, o)
	}
	return out
}

// appendTombstones adds the blobs of ts, the key's tombstones. A key tombstone is left
// out where the key has a value.
func appendTombstones(ops []op, base, k string, ts []meta.Tombstone, hasRow bool, i int32) []op {
	for _, t := range ts {
		switch t.Kind {
		case meta.KeyTombstone:
			if !hasRow {
				ops = putBlob(ops, meta.TombstonePath(base, t.Key), string(meta.EncodeTombstone(t.Time, t.Email, t.Explicit)), false, i)
			}
		case meta.EntryTombstone:
			if meta.IsEntryName(t.Name) {
				ops = putBlob(ops, meta.ListTombstonesPath(k)+"/"+t.Name, string(meta.EncodeTombstone(t.Time, t.Email, false)), false, i)
			}
		case meta.MemberTombstone:
			if meta.IsMemberID(t.Name) {
				ops = putBlob(ops, meta.MemberTombstonesPath(k)+"/"+t.Name, t.Member, false, i)
			}
		}
	}
	return ops
}

// appendMarker adds the blob that says where t's value ends, for the targets that need it.
func appendMarker(ops []op, t meta.Target) []op {
	if t.NeedsMarker() {
		ops = append(ops, op{path: t.MarkerPath(), kind: opPut, mode: modeBlob, key: -1, id: emptyBlob})
	}
	return ops
}
