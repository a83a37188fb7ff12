package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/internal/cli/command"
)

func newVersion(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the plugin version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := command.Version
			if info, ok := debug.ReadBuildInfo(); ok && version == "" {
				version = info.Main.Version
			}
			fmt.Fprintf(env.Out, "%s %s, %s\n", name, cmp.Or(version, "unknown"), runtime.Version())
			return nil
		},
	}
}
