// Package transfer copies and compares the data of two volumes. It runs scripts in a Pod of each
// volume, and connects the scripts' exec streams.
package transfer
