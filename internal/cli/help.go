package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xylem-io/xylem/internal/wording"
)

// usage is cobra's template without inherited flags. About thirty inherited kubectl flags would
// hide the command's own flags.
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Available Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if (and .HasParent .HasAvailableLocalFlags)}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}

Use "` + name + ` options" for the flags that every command takes.
`

// newOptions creates the command that prints the global flags.
func newOptions() *cobra.Command {
	c := &cobra.Command{
		Use:   "options",
		Short: "List the flags that every command takes",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintf(c.OutOrStdout(), "Every command takes these flags:\n\n%s", c.Root().PersistentFlags().FlagUsages())
			return nil
		},
	}
	return c
}

// flagError adds a suggestion and a reference to the help to an error about a command's flags.
func flagError(c *cobra.Command, err error) error {
	meant := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		for _, flags := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		}
		if nearest := wording.NearestWord(unknown.GetSpecifiedName(), known); nearest != "" {
			meant = fmt.Sprintf("\nDid you mean --%s?", nearest)
		}
	}
	return fmt.Errorf("%w%s\nSee '%s --help'", err, meant, strings.TrimSpace(c.CommandPath()))
}
