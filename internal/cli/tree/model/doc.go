// Package model is what `kubectl xylem tree` prints: its nodes, as JSON and YAML have them.
package model
