// Package attacks tries to get in: each spec is one attack, named by what the
// attacker wants, made by users with the rights that they would have, on real
// API servers. Each asserts that it did not succeed, that nobody else was
// harmed, and that an operator sees why where there is something to see (I8).
package attacks
