// Package ui is how the program talks to people and scripts: streams that remember
// write errors, terminal detection, colour, progress, widths and JSON.
//
// Data goes to the output stream, everything else to the error stream. What goes
// into a pipe never depends on the terminal.
package ui
