package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// Output is the flag -o.
type Output struct {
	// Format is json, yaml or kyaml, or empty for text.
	Format string
	flags  genericclioptions.JSONYamlPrintFlags
	// printer separates its documents, also those of several calls.
	printer printers.ResourcePrinter
}

// AddFlags adds the flag.
func (o *Output) AddFlags(c *cobra.Command) {
	formats := o.flags.AllowedFormats()
	c.Flags().StringVarP(&o.Format, "output", "o", "", "Output format, one of: "+strings.Join(formats, ", ")+". Default: text.")
	if err := c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // impossible: the flag was just added
	}
}

// Validate checks the format.
func (o *Output) Validate() error {
	if o.Format != "" && !slices.Contains(o.flags.AllowedFormats(), o.Format) {
		return fmt.Errorf("-o %s is unknown: use one of %s", o.Format, strings.Join(o.flags.AllowedFormats(), ", "))
	}
	return nil
}

// Print prints Kubernetes objects without managed fields. Several objects are printed as
// separate documents. Their kinds must be set.
func (o *Output) Print(w io.Writer, objects ...runtime.Object) error {
	if o.printer == nil {
		printer, err := o.flags.ToPrinter(o.Format)
		if err != nil {
			return fmt.Errorf("-o %s: %w", o.Format, err)
		}
		o.printer = printer
	}
	for _, obj := range objects {
		if err := o.printer.PrintObj(obj, w); err != nil {
			return fmt.Errorf("print an object as %s: %w", o.Format, err)
		}
	}
	return nil
}
