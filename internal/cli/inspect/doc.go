// Package inspect contains what tree, why, status and doctor share: it reads objects from the host and
// from members, explains conditions and reasons, and prints text within the width of a terminal.
package inspect
