// Command git-meta-man prints the manual page git-meta(1), for packages. It is a program
// of its own, so that git-meta does not carry it.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/git-meta/git-meta-go/cmd"
)

func main() {
	date := time.Now().UTC().Format(time.DateOnly)
	if len(os.Args) > 1 {
		date = os.Args[1]
	}
	if err := cmd.WriteManPage(os.Stdout, date); err != nil {
		fmt.Fprintln(os.Stderr, "git-meta-man:", err)
		os.Exit(1)
	}
}
