// Package attacks attacks Xylem. Each spec is one attack, named after the attacker's goal, with the
// permissions that such a user would have, on real API servers. Each asserts that the attack
// failed, that no other user was harmed and, if the attack leaves traces, that an operator can see
// the reason (I8).
package attacks
