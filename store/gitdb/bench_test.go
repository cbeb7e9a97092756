package gitdb

import (
	"testing"
)

func BenchmarkDiscover(b *testing.B) {
	dir := newRepo(b)
	for b.Loop() {
		r, err := Discover(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		r.AuthorEmail(b.Context())
	}
}

func BenchmarkResolveHead(b *testing.B) {
	dir := newRepo(b)
	for b.Loop() {
		r, err := Discover(b.Context(), dir)
		must(err)
		if _, ok, err := r.ResolveCommit(b.Context(), "HEAD"); !ok {
			b.Fatal(err)
		}
		r.Close()
	}
}

func BenchmarkHashObject(b *testing.B) {
	data := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		HashObject(BlobObject, data)
	}
}

// BenchmarkPack writes and walks 50,000 objects.
func BenchmarkPack(b *testing.B) {
	blobs := smallBlobs(50000)
	ids := make([]Hash, len(blobs))
	for i, d := range blobs {
		ids[i] = HashObject(BlobObject, d)
	}
	dir := newRepo(b)
	r := discover(b, dir)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w, err := r.NewWriter(b.Context())
			must(err)
			for i, d := range blobs {
				must(w.Put(BlobObject, ids[i], d))
			}
			must(w.Finish(b.Context()))
			must(w.Release())
		}
	})
	rd, err := r.Objects(b.Context())
	must(err)
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			_, _, err := rd.Read(b.Context(), ids[i%len(ids)])
			must(err)
			i++
		}
	})
	b.Run("header", func(b *testing.B) {
		i := 0
		for b.Loop() {
			_, _, err := rd.Header(b.Context(), ids[i%len(ids)])
			must(err)
			i++
		}
	})
}
