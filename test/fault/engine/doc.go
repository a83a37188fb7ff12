// Package engine runs scenarios under faults: it lets a scenario go through once
// without, counts the writes, and then again and again with a fault at one of
// them, or two, and has package oracle judge each end.
package engine
