// Command git-meta attaches structured metadata to a git repository. As git-meta on
// PATH it also runs as `git meta`.
package main

import (
	"os"

	"github.com/git-meta/git-meta-go/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
