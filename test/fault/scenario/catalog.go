package scenario

// All returns the scenarios in the order in which they run.
func All() []Scenario {
	var all []Scenario
	for _, group := range [][]Scenario{lifecycle(), retained(), static(), workloads(), resized(), withdrawn(), recovery(), conflicts(), accidents(), registrations(), duplicates(), replaced(), ended(), services(), grouped(), forged(), reflected(), promises(), releases(), modified(), attached(), shared(), snapshots(), hastened(), left(), givenUp(), restores()} {
		all = append(all, group...)
	}
	return all
}

// Find returns the scenario with that name.
func Find(name string) (Scenario, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
