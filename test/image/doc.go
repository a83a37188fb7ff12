// Package image builds container images from files, without a container engine or a registry. The
// same files always result in the same digest, because the images do not contain times. The package
// builds the manager's image, and the images for tests on kind that cannot be pulled.
package image
