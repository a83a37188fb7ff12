package command

import (
	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// CompleteRegistrations completes the first argument with the names of the host's
// registrations.
func (e *Env) CompleteRegistrations(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	host, err := e.HostCluster()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var list v1alpha1.ClusterRegistrationList
	if err := host.List(c.Context(), &list); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
