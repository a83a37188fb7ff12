// Package image makes container images out of files, without an engine, a
// registry or a clock: the same files give the same digest wherever and
// whenever they are packed. The manager's image is created by it, and those that
// the tests on kind need where nothing can be pulled.
package image
