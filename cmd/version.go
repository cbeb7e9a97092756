package cmd

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X …/cmd.version=1.2.3".
var version string

// Version returns the version of this program: the linker's, else the module's, else
// the commit it was built from.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	v := "devel"
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += "-" + s.Value[:min(12, len(s.Value))]
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			v += "-dirty"
		}
	}
	return v
}

// compatible names the version of the Rust program whose trees and stores are ours.
const compatible = "0.1.13"

// versionLine is what version prints, in git's manner: "git version 2.39.5 (…)".
func versionLine() string {
	return "git-meta " + Version() + " (trees and store of git-meta " + compatible + ")"
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version",
		Long: `Show the version of this program. --version and -V do the same.

` + exitStatus,
		Example: `  git meta version
  git-meta --version`,
		Args: takes(0),
		RunE: func(*cobra.Command, []string) error {
			a.Out.Println(versionLine())
			return nil
		},
	}
}
