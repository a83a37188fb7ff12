// Package model defines the output of `kubectl xylem tree`: its nodes, and their JSON and YAML.
package model
