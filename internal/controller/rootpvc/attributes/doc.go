// Package attributes gives a leaf claim the VolumeAttributesClass of the member to which its root's
// class maps, and reports on the root why there is none.
package attributes
