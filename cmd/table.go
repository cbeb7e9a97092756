package cmd

import (
	"slices"

	"github.com/spf13/cobra"
)

// group is where a command stands in the overview.
type group int

const (
	groupStrings group = iota
	groupLists
	groupSets
	groupExchange
	groupBrowse
	groupHelpers
	groupPlumbing
	groupSetup
	groupMore
)

// heading starts a part of the overview; label names one block in it.
type heading struct {
	title, label string
}

func (g group) heading() heading {
	switch g {
	case groupStrings:
		return heading{"read and write data", "(strings)"}
	case groupLists:
		return heading{"read and write data", "(lists)"}
	case groupSets:
		return heading{"read and write data", "(sets)"}
	case groupExchange, groupBrowse:
		return heading{title: "browse and exchange (porcelain)"}
	case groupHelpers:
		return heading{title: "example helpers"}
	case groupPlumbing:
		return heading{title: "low-level git ref operations (plumbing)"}
	case groupSetup:
		return heading{title: "setup and configuration"}
	}
	return heading{title: "about this program"}
}

// entry is one command: its place in the overview and how it is made.
type entry struct {
	name  string
	group group
	short string // imperative, no full stop, fits the overview's 80 columns
	kind  kind
	make  func(*app) *cobra.Command
}

// kind says how a command runs.
type kind int

const (
	// quick commands do one small thing at once: a transaction that is there or not.
	// They leave signals to the system, and their context cannot be cancelled, which
	// spares the store a goroutine per statement. An interrupt ends them as it ends git.
	quick kind = 1 << iota
	// hidden commands are not in the overview.
	hidden
)

func (e entry) build(a *app) *cobra.Command {
	c := e.make(a)
	c.Short, c.Hidden = e.short, e.kind&hidden != 0
	c.Flags().SortFlags = false
	c.DisableFlagsInUseLine = true
	return c
}

// table lists the commands in the order of the overview. It is a function, so that
// nothing is built at start-up.
func table() []entry {
	return []entry{
		{"set", groupStrings, "Set a string value", quick, newSetCmd},
		{"get", groupStrings, "Show values", quick, newGetCmd},
		{"rm", groupStrings, "Remove a key, whatever its type", quick, newRmCmd},
		{"clear", groupStrings, "Remove a key or namespace from every target", quick, newClearCmd},

		{"list:push", groupLists, "Append an entry to a list", quick, newListPushCmd},
		{"list:pop", groupLists, "Remove the last equal entry of a list", quick, newListPopCmd},
		{"list:rm", groupLists, "Show numbered entries, or remove one by number", quick, newListRmCmd},

		{"set:add", groupSets, "Add a member to a set", quick, newSetAddCmd},
		{"set:rm", groupSets, "Remove a member from a set", quick, newSetRmCmd},

		{"pull", groupExchange, "Fetch a metadata remote and read what it holds", 0, newPullCmd},
		{"push", groupExchange, "Publish the metadata on a remote", 0, newPushCmd},
		{"sync", groupExchange, "Pull from every metadata remote, then push", 0, newSyncCmd},
		{"changes", groupBrowse, "Show what has changed in the store, and wait for more", 0, newChangesCmd},
		{"serve", groupBrowse, "Serve retention and changes over HTTP on this machine", 0, newServeCmd},

		{"serialize", groupPlumbing, "Publish the changes as a commit on the local ref", 0, newSerializeCmd},
		{"materialize", groupPlumbing, "Bring fetched metadata into the store", 0, newMaterializeCmd},
		{"prune", groupPlumbing, "Drop old keys from the published tree", 0, newPruneCmd},
		{"local-prune", groupPlumbing, "Drop old published keys from the local store", 0, newLocalPruneCmd},
		{"retention", groupPlumbing, "Keep collections of keys at a size or an age", 0, newRetentionCmd},
		{"deepen", groupPlumbing, "Fetch more of a shallow metadata history", 0, newDeepenCmd},
		{"index-history", groupPlumbing, "Note which keys the history knows", hidden, newIndexHistoryCmd},
		{"promisor", groupPlumbing, "Index the history again and tell of each commit", hidden, newPromisorCmd},

		{"setup", groupSetup, "Connect with the remote that .git-meta names", 0, newSetupCmd},
		{"remote", groupSetup, "Add, list and remove remotes for metadata", 0, newRemoteCmd},
		{"config", groupSetup, "Show or change the project's meta: settings", quick, newConfigCmd},
		{"config:prune", groupSetup, "Ask for the auto-prune rules and save them", 0, newConfigPruneCmd},
		{"hooks", groupSetup, "Let git push and pull metadata with code", 0, newHooksCmd},
		{"teardown", groupSetup, "Remove the store and the refs of git-meta", 0, newTeardownCmd},

		{"help", groupMore, "Show the help of a command", quick, newHelpCmd},
		{"version", groupMore, "Show the version", quick, newVersionCmd},
		{"completion", groupMore, "Print a completion script for a shell", quick, newCompletionCmd},
	}
}

func find(name string) (entry, bool) {
	t := table()
	if i := slices.IndexFunc(t, func(e entry) bool { return e.name == name }); i >= 0 {
		return t[i], true
	}
	return entry{}, false
}
