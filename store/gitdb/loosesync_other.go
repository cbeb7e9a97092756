//go:build !linux

package gitdb

import "os"

// oneJournal: elsewhere every file and folder is synced by itself.
func oneJournal(string) bool { return false }

func flushData(f *os.File) error { return f.Sync() }
