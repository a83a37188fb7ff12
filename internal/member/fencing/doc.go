// Package fencing holds the fence in a member, which says which manager may write there,
// and notices by its epoch and its records that the member or the host was restored.
package fencing
