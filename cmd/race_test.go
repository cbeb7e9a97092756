//go:build race

package cmd_test

const raceEnabled = true // programs need several times the memory
