package store

// The facts that this program keeps about a store (x_facts).
const (
	FactStoreID   = "store-id"  // random, made with the table: tells a store from another
	FactWatermark = "watermark" // number of the newest retention pass that deleted anything
)

// Fact returns a fact; ok is false where it is not known, also in a store that this
// program has not written to yet.
func (tx *Tx) Fact(name string) (value string, ok bool, err error) {
	if has, err := tx.has("x_facts"); !has || err != nil {
		return "", false, err
	}
	ok, err = tx.c.one(bg, "SELECT value FROM x_facts WHERE name = ?", []any{name}, func(r *rows) { value = r.str(0) })
	return value, ok, err
}

// PutFact stores a fact in place of the one of that name.
func (tx *Tx) PutFact(name, value string) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	return tx.run("INSERT OR REPLACE INTO x_facts(name, value) VALUES (?, ?)", name, value)
}

// DeleteFact forgets a fact.
func (tx *Tx) DeleteFact(name string) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	return tx.run("DELETE FROM x_facts WHERE name = ?", name)
}
