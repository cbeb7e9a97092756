// Package hooks lets git call git-meta: after a merge metadata is pulled, with a push of
// code metadata is pushed, and, where somebody asks for it, metadata of rewritten commits
// is carried over to what they became.
//
// A hook that is there already stays: git-meta adds a marked block behind its first line
// and takes just that block out again. The block leaves standard input, arguments and
// exit status to the rest of the hook. A hook that is no shell script is moved aside and
// called by the one that is written in its place.
package hooks
