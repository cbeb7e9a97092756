//go:build !unix

package ui

import "os"

func nobodyReads(*os.File) bool { return false }
