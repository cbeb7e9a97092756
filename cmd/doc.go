// Package cmd is the command line: flags, output, exit codes. What a command does is
// done by the packages serialize, prune and store.
//
// One file per command: newXCmd binds flags to an options struct, and its run method
// does the work. The table in table.go names every command; [Main] builds only the
// one that is called, so that a plain `git meta get` starts fast.
//
// Exit codes: 0 done or nothing to do; 1 failed, or the answer is no; 2 usage; 130
// interrupted.
package cmd
