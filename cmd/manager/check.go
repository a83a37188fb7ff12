package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/check"
	"github.com/xylem-io/xylem/internal/manager"
)

// errCheckUsage explains the command to users who run it manually.
var errCheckUsage = errors.New(`usage: manager check installed|removable [flags]
installed: checks whether an installation works, for helm test
removable: checks that no object still waits for the manager, for helm uninstall`)

// errCheckFailed is returned after all failed checks have reported their own errors.
var errCheckFailed = errors.New("some checks FAILED: see above")

// runCheckCommand implements the command `manager check`. The charts' hooks run it, because the image
// contains no other program.
func runCheckCommand(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "installed" && args[0] != "removable" {
		return errCheckUsage
	}
	what := args[0]
	flags := flag.NewFlagSet("manager check "+what, flag.ContinueOnError)
	flags.SetOutput(out)
	namespace := flags.String("namespace", os.Getenv("POD_NAMESPACE"), "Namespace of the manager; "+v1alpha1.DefaultNamespace+" if neither this flag nor POD_NAMESPACE is set.")
	timeout := flags.Duration("timeout", 5*time.Second, "How long to retry failing checks.")
	rights := flags.String("rights", "", "File with the permissions that the manager's account must have: a list of {namespace, rules}.")
	installation := check.Installation{Lease: manager.LeaderElectionID}
	flags.StringVar(&installation.Deployment, "deployment", "xylem-controller-manager", "Name of the manager's Deployment.")
	flags.StringVar(&installation.ServiceAccount, "service-account", "xylem-controller-manager", "Name of the manager's ServiceAccount.")
	flags.StringVar(&installation.Policy, "policy", "xylem-reserved-keys", "Name of the admission policy that reserves Xylem's label and annotation keys.")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *namespace == "" {
		*namespace = v1alpha1.DefaultNamespace
	}
	if *rights != "" {
		content, err := os.ReadFile(*rights) //nolint:gosec // the caller's own choice
		if err != nil {
			return fmt.Errorf("read the permissions: %w", err)
		}
		if err := yaml.UnmarshalStrict(content, &installation.RequiredRules); err != nil {
			return fmt.Errorf("parse the permissions in %s: %w", *rights, err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the host's kubeconfig: %w", err)
	}
	checker, err := check.New(config, *namespace, out)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	ask := func() error { return checker.CheckInstalled(ctx, installation) }
	if what == "removable" {
		ask = func() error { return checker.CheckRemovable(ctx) }
	}
	if ask() != nil { // each check has already reported its error
		return errCheckFailed
	}
	return nil
}
