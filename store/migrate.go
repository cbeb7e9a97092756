package store

import "context"

// migrate brings the file to schemaVersion inside one write transaction that reads the
// version again, so that any number of processes may open a new file together. Every
// step looks before it acts, which also repairs the file that two racing processes of
// the peer leave behind: all columns there, user_version 1. Tables of our own
// and indexes are created where they are missing.
func (c *conn) migrate(ctx context.Context) (err error) {
	if _, err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.exec(context.Background(), "ROLLBACK")
		}
	}()
	v, err := c.userVersion()
	if err != nil {
		return err
	}
	if v > schemaVersion {
		return ErrSchemaTooNew
	}
	if v < schemaVersion {
		if err := c.upgrade(); err != nil {
			return err
		}
	}
	if err := c.script(indexesSQL + ownSQL); err != nil {
		return err
	}
	_, err = c.exec(context.Background(), "COMMIT")
	return err
}

func (c *conn) upgrade() error {
	if err := c.script(tablesSQL); err != nil {
		return err
	}
	have, err := c.columns("metadata")
	if err != nil {
		return err
	}
	for _, col := range addedColumns {
		if have[col] {
			continue
		}
		if err := c.script("ALTER TABLE metadata ADD COLUMN " + col + " TEXT"); err != nil {
			return err
		}
	}
	return c.script("PRAGMA user_version = 6;")
}
