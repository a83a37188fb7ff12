// Package observing is what root_pvc observes of a claim: the volume of package observe, the member's
// classes and namespace, the claim's Pods and data source, and the provisioner's events.
package observing
