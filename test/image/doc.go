// Package image builds container images from files, without a container engine, a registry or a
// clock. The same files always result in the same digest. It builds the manager's image, and
// images for the tests on kind if none can be pulled.
package image
