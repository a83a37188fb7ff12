// Package hostrevision notices that the host was restored under this process: the
// revision of its storage goes back.
package hostrevision
