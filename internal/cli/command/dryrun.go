package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DryRun is the value of the flag --dry-run, which every command that writes takes alike.
type DryRun string

// Values of the flag.
const (
	DryRunNone DryRun = "none"
	// DryRunClient shows what would be written, and writes nothing.
	DryRunClient DryRun = "client"
	// DryRunServer has the clusters check the writes as well, and change nothing.
	DryRunServer DryRun = "server"
)

// AddFlag adds the flag. Without a value it means client.
func (d *DryRun) AddFlag(c *cobra.Command, client, server string) {
	*d = DryRunNone
	c.Flags().StringVar((*string)(d), "dry-run", string(DryRunNone), fmt.Sprintf("none, client or server. client: %s server: %s", client, server))
	c.Flags().Lookup("dry-run").NoOptDefVal = string(DryRunClient)
	values := []cobra.Completion{string(DryRunNone), string(DryRunClient), string(DryRunServer)}
	if err := c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is the one above
	}
}

// Mark reports that nothing was written, as kubectl does.
func (d DryRun) Mark() string {
	if d == DryRunServer {
		return "server dry run"
	}
	return "dry run"
}

// CreateOptions are those of an object that the plugin creates; if dry, the cluster checks the
// write only.
func CreateOptions(dry bool) []client.CreateOption {
	if dry {
		return []client.CreateOption{FieldOwner, client.DryRunAll}
	}
	return []client.CreateOption{FieldOwner}
}

// PatchOptions are those of an object that the plugin changes; if dry, the cluster checks the
// write only.
func PatchOptions(dry bool) []client.PatchOption {
	if dry {
		return []client.PatchOption{FieldOwner, client.DryRunAll}
	}
	return []client.PatchOption{FieldOwner}
}

// Validate rejects a value that is none of the three.
func (d *DryRun) Validate() error {
	switch *d {
	case DryRunNone, DryRunClient, DryRunServer:
		return nil
	}
	return fmt.Errorf("--dry-run=%s is unknown: use none, client or server", *d)
}
