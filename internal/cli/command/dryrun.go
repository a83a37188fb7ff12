package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DryRun is the value of --dry-run, a flag of all commands that write.
type DryRun string

// Values of the flag.
const (
	DryRunNone DryRun = "none"
	// DryRunClient prints what would be written, and writes nothing.
	DryRunClient DryRun = "client"
	// DryRunServer also lets the clusters validate the writes, and changes nothing.
	DryRunServer DryRun = "server"
)

// AddFlag adds the flag. Without a value, the flag means client.
func (d *DryRun) AddFlag(c *cobra.Command, client, server string) {
	*d = DryRunNone
	c.Flags().StringVar((*string)(d), "dry-run", string(DryRunNone), fmt.Sprintf("One of none, client or server. With client, %s With server, %s", client, server))
	c.Flags().Lookup("dry-run").NoOptDefVal = string(DryRunClient)
	values := []cobra.Completion{string(DryRunNone), string(DryRunClient), string(DryRunServer)}
	if err := c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // impossible: the flag was just added
	}
}

// DryRunSuffix returns the suffix that kubectl adds to the output of a dry run.
func (d DryRun) DryRunSuffix() string {
	if d == DryRunServer {
		return "server dry run"
	}
	return "dry run"
}

// CreateOptions returns the options for creating an object. If dry is set, the cluster only
// validates it.
func CreateOptions(dry bool) []client.CreateOption {
	if dry {
		return []client.CreateOption{FieldOwner, client.DryRunAll}
	}
	return []client.CreateOption{FieldOwner}
}

// PatchOptions returns the options for patching an object. If dry is set, the cluster only
// validates it.
func PatchOptions(dry bool) []client.PatchOption {
	if dry {
		return []client.PatchOption{FieldOwner, client.DryRunAll}
	}
	return []client.PatchOption{FieldOwner}
}

// Validate rejects other values.
func (d *DryRun) Validate() error {
	switch *d {
	case DryRunNone, DryRunClient, DryRunServer:
		return nil
	}
	return fmt.Errorf("--dry-run=%s is unknown: use none, client or server", *d)
}
