// Package options defines the manager's flags, with their defaults and validation.
package options
