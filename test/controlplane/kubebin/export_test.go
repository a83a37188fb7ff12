package kubebin

// OwnSources returns the directories with the sources of the programs of this repository, by their
// packages.
func OwnSources() map[string][]string {
	return map[string][]string{csiDriver.pkg: csiDriver.sources, manager.pkg: manager.sources}
}
