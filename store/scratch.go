package store

import (
	"context"
	"strings"
)

// scratchTables are those that [DB.UpdateOwn] may write.
var scratchTables = []string{"x_created", "x_recount", "x_usage", "x_facts", "x_cursor"}

// UpdateOwn runs f in a transaction that may write what can be made again at any time:
// x_created, x_recount, x_usage, facts and cursors. On a store that is open for writing
// it is [DB.UpdateBatch]. On one that is open for reading those tables are copied into
// memory first, where this DB finds them from then on; nothing else sees what f writes.
func (db *DB) UpdateOwn(ctx context.Context, f func(*Tx) error) error {
	if !db.readOnly {
		_, err := db.UpdateBatch(ctx, f)
		return err
	}
	if err := db.makeScratch(ctx); err != nil {
		return err
	}
	return db.run(ctx, "BEGIN", false, f)
}

func (db *DB) makeScratch(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.scratch || db.c == nil {
		return nil
	}
	if _, err := db.c.exec(ctx, "PRAGMA temp_store = MEMORY"); err != nil {
		return db.wrap(ctx, err)
	}
	have, err := db.c.tables(ownTables)
	if err != nil {
		return db.wrap(ctx, err)
	}
	// Temporary tables come before those of the file where only a name is given.
	if err := db.c.script(scratchSQL(have)); err != nil {
		db.c.script("DROP TABLE IF EXISTS temp." + strings.Join(ownTables, "; DROP TABLE IF EXISTS temp."))
		return db.wrap(ctx, err)
	}
	for _, t := range ownTables {
		db.tables[t] = true
	}
	db.scratch = true
	return nil
}

// scratchSQL makes temporary tables of this program's: copies of those it may write, empty
// ones of those that the file lacks.
func scratchSQL(have map[string]bool) string {
	r := strings.NewReplacer("CREATE TABLE IF NOT EXISTS ", "CREATE TEMP TABLE ", "CREATE INDEX IF NOT EXISTS ", "CREATE INDEX temp.")
	var b strings.Builder
	copied := map[string]bool{}
	for _, t := range scratchTables {
		copied[t] = true
	}
	for _, s := range strings.SplitAfter(ownSQL, ";\n") {
		for _, t := range ownTables {
			isTable := strings.HasPrefix(s, "\nCREATE TABLE IF NOT EXISTS "+t+" ") || strings.HasPrefix(s, "CREATE TABLE IF NOT EXISTS "+t+" ")
			isIndex := strings.HasPrefix(s, "CREATE INDEX ") && strings.Contains(s, " ON "+t+"(")
			if !isTable && !isIndex || have[t] && !copied[t] {
				continue
			}
			b.WriteString(r.Replace(s))
			if isTable && have[t] {
				b.WriteString("INSERT INTO temp." + t + " SELECT * FROM main." + t + ";\n")
			}
		}
	}
	return b.String()
}
