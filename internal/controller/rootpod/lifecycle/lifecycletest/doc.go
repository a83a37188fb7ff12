// Package lifecycletest has Pods with their claims, as tests of lifecycle and root_pod observe them.
package lifecycletest
