//go:build !unix

package cmd_test

import "os"

func peak() { os.Exit(2) }
