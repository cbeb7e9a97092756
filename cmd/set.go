package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
	"unsafe"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type setOptions struct {
	target, key string
	value       string
	file        string // -F; "-" is the input stream
	fromFile    bool
	timestamp   string
	json        bool
}

func newSetCmd(a *app) *cobra.Command {
	var o setOptions
	c := &cobra.Command{
		Use: "set [options] <TARGET> <KEY> [<VALUE>]",
		Long: `Set a string value. It replaces whatever the key held before, lists and sets
included. TARGET is project, commit:REV, branch:NAME, change-id:ID or path:PATH;
a path is given from the top of the repository. The segments of KEY are joined
by ':'. Keys that start with local: are never published.

` + exitStatus,
		Example: `  git meta set commit:HEAD review:status approved
  git meta set path:src/main.go owner alice
  git meta set -F notes.md branch:main notes
  git meta set project offset -- -5`,
		Args: takes(2, "TARGET", "KEY", "VALUE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.target, o.key = args[0], args[1]
			o.fromFile = c.Flags().Changed("file")
			switch {
			case len(args) == 3 && o.fromFile:
				return usageOf(c, "a value and --file are given; which one is it?")
			case len(args) == 2 && !o.fromFile:
				return usageOf(c, "the value is missing: give <VALUE> or --file")
			case len(args) == 3:
				o.value = args[2]
			}
			return runSet(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "F", "", "read the value from `FILE`, from standard input if it is -")
	timestampFlag(f, &o.timestamp)
	f.BoolVar(&o.json, "json", false, "print what was done as JSON")
	return c
}

func runSet(ctx context.Context, a *app, o setOptions) error {
	ms, err := a.timestamp(o.timestamp)
	if err != nil {
		return err
	}
	k, err := a.keyRef(ctx, o.target, o.key)
	if err != nil {
		return err
	}
	if o.fromFile {
		if o.value, err = a.readValue(o.file); err != nil {
			return err
		}
	}
	if err := a.checkAlone(ctx, k, o.value); err != nil {
		return err
	}
	err = a.edit(ctx, ms, func(tx *store.Tx, e store.Edit) error {
		if err := a.checkSetting(ctx, tx, k, o.value); err != nil {
			return err
		}
		if err := a.notePast(ctx, tx, k, ms); err != nil {
			return err
		}
		value := o.value
		o.value = "" // a large one is let go as soon as it is stored
		if err := tx.Set(k, value, e); err != nil {
			return err
		}
		return a.noteShort(tx, k.Target)
	})
	if err != nil {
		return err
	}
	a.done(o.json, "set", k)
	return nil
}

// readValue reads a value from a file or, for "-", from the input stream.
func (a *app) readValue(name string) (string, error) {
	var data []byte
	var err error
	if name == "-" {
		name = "standard input"
		data, err = io.ReadAll(a.In)
	} else {
		data, err = os.ReadFile(a.path(name))
	}
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		hint := "name a file that can be read, or - for standard input; the path is relative to the current directory"
		return "", failf(hint, "value file %q: %w", name, err)
	}
	if !utf8.Valid(data) {
		return "", meta.Invalid(fmt.Sprintf("value file %q", name), "not valid UTF-8",
			"values are text; store other data encoded, for example: base64 FILE | git meta set -F - TARGET KEY")
	}
	return unsafe.String(unsafe.SliceData(data), len(data)), nil // nobody else has data; a copy of a large value costs
}

// done says what was done to a key.
func (a *app) done(asJSON bool, action string, k meta.KeyRef) {
	if asJSON {
		a.Out.Println(ui.JSON((&ui.Object{}).
			Add("action", action).Add("key", k.Key).
			Add("target_type", string(k.Target.Type)).Add("target_value", k.Target.Value)))
		return
	}
	a.confirm("%s key %s for %s", action, k.Key, k.Target.Label())
}
