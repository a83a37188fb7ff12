// Package nodeapitest contains fixtures for the tests of package nodeapi and its subpackages.
package nodeapitest
