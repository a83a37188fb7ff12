// Package states is the engine for the tables that describe the lifecycles of volumes and snapshots
// (packages volume/lifecycle and snapshot). A table maps an observation to a plan: the
// phase, the next step, the controller that takes it, the proofs that the step needs, and the
// message to the user. The first row that meets all its conditions, and those of its section,
// applies.
//
// A table is also documentation: Page writes it in Markdown. So every condition, step and wait must
// have a text, which FindProblems checks.
package states
