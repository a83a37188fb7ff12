// Package results counts writes by their results in metrics, and explains their errors.
package results
