// Package sanitize makes what a member reports fit for the host: plain text of bounded
// length, short lists, amounts that are none below zero, addresses that lead to Pods and
// nodes alone. What an honest member reports stays as it is. It is pure.
package sanitize
