package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// userAgent identifies the plugin in all API requests.
const userAgent = "kubectl-xylem"

// Env contains the streams, clients and flags that all commands share. It removes from the output
// everything that a terminal would interpret.
type Env struct {
	genericiooptions.IOStreams
	// Host contains kubectl's flags for the host: kubeconfig, context, namespace and so on.
	Host *genericclioptions.ConfigFlags
	// Namespace of the manager in the host.
	Namespace string
	// Clock is the wall clock.
	Clock clock.Clock

	color string
}

// NewEnv creates an Env with the flags' defaults.
func NewEnv(streams genericiooptions.IOStreams, c clock.Clock) *Env {
	e := &Env{IOStreams: streams, Host: genericclioptions.NewConfigFlags(true), Namespace: v1alpha1.DefaultNamespace, Clock: c, color: colorAuto}
	e.Out, e.ErrOut = &plain{to: streams.Out, colored: e.isColored}, &plain{to: streams.ErrOut, colored: e.isColored}
	return e
}

// MachineOut returns the stream for objects that programs read. It writes them unchanged to files
// and pipes. For a terminal, it strips them like other output.
func (e *Env) MachineOut() io.Writer {
	if isTerminal(e.Out) {
		return e.Out
	}
	return streamBehindFilter(e.Out)
}

// AddFlags adds the flags that all commands have.
func (e *Env) AddFlags(flags *pflag.FlagSet) {
	e.Host.AddFlags(flags)
	flags.StringVar(&e.Namespace, "xylem-namespace", e.Namespace, "Namespace of Xylem's manager in the host.")
	flags.StringVar(&e.color, "color", e.color, "Whether to print in color: auto (on terminals, unless NO_COLOR is set), always or never.")
}

// Cluster is a cluster with a client that bypasses caches.
type Cluster struct {
	client.Client
	// Config is the client's configuration.
	Config *rest.Config
}

// HostCluster creates a client for the host.
func (e *Env) HostCluster() (*Cluster, error) {
	config, err := e.Host.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("load the host's kubeconfig (--kubeconfig, --context, KUBECONFIG): %w", err)
	}
	return e.NewCluster(config)
}

// NewCluster creates a client for a cluster. It prints the cluster's warnings.
func (e *Env) NewCluster(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.QPS = -1 // the server limits the rate (API Priority and Fairness)
	config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: e.isColored(e.ErrOut)})
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", config.Host, err)
	}
	return &Cluster{Client: c, Config: config}, nil
}

// Scheme returns a scheme with the kinds of Kubernetes, its snapshots and Xylem.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// Silent is an error that has already been reported.
type Silent struct{}

// Error implements error.
func (Silent) Error() string { return "failed" }

// Coded is an error with its own exit code. The plugin exits with 1 after any other error.
type Coded struct {
	Code int
	Err  error
}

// Error implements error.
func (c Coded) Error() string { return c.Err.Error() }

// Unwrap implements errors.Unwrap.
func (c Coded) Unwrap() error { return c.Err }

// Values of the flag --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// isColored reports whether the output to w should be colored.
func (e *Env) isColored(w io.Writer) bool {
	switch e.color {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	// https://no-color.org: set and not empty.
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// streamBehindFilter returns the stream that a plain stream writes to. It returns any other stream unchanged.
func streamBehindFilter(w io.Writer) io.Writer {
	if p, ok := w.(*plain); ok {
		return p.to
	}
	return w
}

func isTerminal(stream any) bool {
	if p, ok := stream.(*plain); ok {
		stream = p.to
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Interactive reports whether the plugin can prompt the user.
func (e *Env) Interactive() bool { return isTerminal(e.In) && isTerminal(e.ErrOut) }

// Confirm prompts the user to type the name of an object, and fails unless they do. kind is the
// kind of the object, and purpose completes "to ...".
func (e *Env) Confirm(kind, name, purpose string) error {
	if !e.Interactive() {
		return errors.New("nothing was changed: the command cannot prompt for confirmation without a terminal. Set --yes to continue")
	}
	fmt.Fprintf(e.ErrOut, "Type the name of the %s to %s:  ", kind, purpose)
	answer, err := bufio.NewReader(e.In).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != name {
		return fmt.Errorf("nothing was changed: the input was not the name of the %s", kind)
	}
	return nil
}
