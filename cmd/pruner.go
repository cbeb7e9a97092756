package cmd

import (
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize"
)

// autoPrune is what happens to a tree after it has been serialized.
func autoPrune() serialize.Pruner { return prune.Auto{} }
