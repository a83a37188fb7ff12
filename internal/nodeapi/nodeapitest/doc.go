// Package nodeapitest has what the tests of package nodeapi, and of those beneath it, share.
package nodeapitest
