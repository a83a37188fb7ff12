// Package observing reads the input of root_pvc's decision on a claim: the volume as observed by
// package observe, the member's classes and namespace, the claim's Pods and data source, and the
// provisioner's events.
package observing
