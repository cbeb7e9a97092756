package store
import "testing"
func TestZZPlan(t *testing.T) {
	db := openNew(t)
	for _, q := range []string{`SELECT m.target_type, m.target_value, m.key FROM metadata m
		WHERE (m.target_type, m.target_value, m.key) > (?, ?, ?) AND m.target_type <> 'project' AND (0 or m.key=? or m.key>=? and m.key<?) AND NOT EXISTS (SELECT 1 FROM x_created x
			WHERE x.target_type = m.target_type AND x.target_value = m.target_value AND x.key = m.key)
		ORDER BY m.target_type, m.target_value, m.key LIMIT ?`, silentSQL, liveRowSQL, oldestSQL, futureSQL, retainedRowsSQL, madeSQL, noteRetained, sweepSQL[0], sweepSQL[1],sweepSQL[2],sweepSQL[3],sweepTombstonesSQL[0],sweepTombstonesSQL[1],
		"SELECT target_type, target_value, key, collection, created, bytes FROM x_created WHERE (target_type, target_value, key) > (?, ?, ?) ORDER BY target_type, target_value, key LIMIT ?",
		"SELECT count(*) FROM x_created WHERE collection = ? AND created < ?",hasGuardSQL,
		"SELECT count(*), coalesce(sum(bytes), 0) FROM (SELECT x.bytes FROM x_created x WHERE x.collection = ? AND x.created < ? ORDER BY x.created, x.target_type DESC, x.target_value DESC, x.key DESC LIMIT ?)",
		} {
		t.Logf("%s\n%s\n", q, dumpPlan(t, db, q))
	}
}
