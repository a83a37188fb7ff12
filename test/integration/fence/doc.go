// Package fence tests the fence of a member against a real API server: one
// plays host and member at once, since lease and record have different names.
// Its clock is a fake one.
package fence
