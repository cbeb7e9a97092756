package store

import "testing"

// BenchmarkPutNew loads 20,000 keys of all types, indexes included.
func BenchmarkPutNew(b *testing.B) {
	values := loadedValues(20_000)
	for b.Loop() {
		db := openNew(b)
		err := db.Load(b.Context(), len(values), func() error {
			return db.Update(b.Context(), func(tx *Tx) error { return tx.PutNew(values) })
		})
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}
