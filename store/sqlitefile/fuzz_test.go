package sqlitefile

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzRoundTrip lets the input decide the size of a page, how many rows there are, how
// long their texts are and by how much that varies, and where and how far apart rowids and
// numbers are. Only numbers: go test would minimize each text that runs new code of SQLite.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(0), uint16(0), uint16(0), uint16(0), uint16(0), int64(0), uint8(0), uint8(0), uint64(0))
	f.Add(uint8(0), uint16(600), uint16(90), uint16(300), uint16(9), int64(-1<<63), uint8(20), uint8(40), uint64(1))
	f.Add(uint8(1), uint16(1000), uint16(0), uint16(0), uint16(0), int64(0), uint8(0), uint8(60), uint64(2))
	f.Add(uint8(3), uint16(50), uint16(1000), uint16(4000), uint16(200), int64(1<<62), uint8(62), uint8(0), uint64(3))
	f.Add(uint8(6), uint16(9), uint16(8170), uint16(65500), uint16(40), int64(-4), uint8(1), uint8(63), uint64(4))
	f.Fuzz(func(t *testing.T, page uint8, count, name, note, vary uint16, first int64, gap, shift uint8, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		size := pageSizes[int(page)%len(pageSizes)]
		longest := int(name) + int(note) + 2*int(vary)
		type unique struct {
			n    int64
			name string
		}
		seen := map[unique]bool{}
		var rows []row
		id := first
		for range min(int(count), 1000, 1<<20/(longest+1)+2) {
			v := row{
				id:   id,
				name: strings.Repeat(string(rune('a'+r.IntN(26))), int(name)+r.IntN(int(vary)+1)),
				n:    int64(r.Uint64()) >> (shift % 64),
			}
			if r.IntN(4) > 0 {
				v.note = text(strings.Repeat("z", int(note)+r.IntN(int(vary)+1)))
			}
			if key := (unique{v.n, v.name}); !seen[key] {
				seen[key] = true
				rows = append(rows, v)
			}
			next := id + 1 + r.Int64N(1<<(gap%63))
			if next <= id { // the rowids are at their end
				break
			}
			id = next
		}
		roundTrip(t, size, rows)
	})
}
