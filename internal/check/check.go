package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	// retryInterval is the delay before a failed check is repeated.
	retryInterval = time.Second
	// requestTimeout bounds one request, so that Checker reports an API server that hangs.
	requestTimeout = 10 * time.Second
)

// Checker checks a cluster.
type Checker struct {
	// Client reads live from the host.
	Client client.Client
	// Namespace is the manager's namespace.
	Namespace string
	// Out receives a line for each check.
	Out io.Writer
}

// New creates a Checker for the host with the given client configuration.
func New(config *rest.Config, namespace string, out io.Writer) (*Checker, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, appsv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	config.UserAgent = "xylem-check"
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for the host: %w", err)
	}
	return &Checker{Client: c, Namespace: namespace, Out: out}, nil
}

// namedCheck is one check. Its function returns an error that describes what is wrong, and what to do
// about it.
type namedCheck struct {
	name string
	run  func(context.Context) error
}

// runChecks repeats each check until it succeeds or the context ends, and prints each result.
func (c *Checker) runChecks(ctx context.Context, questions []namedCheck) error {
	var failed []error
	for _, q := range questions {
		err := retryUntilSuccess(ctx, q.run)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", q.name, err))
			fmt.Fprintf(c.Out, "FAILED  %s: %v\n", q.name, err)
			continue
		}
		fmt.Fprintf(c.Out, "ok      %s\n", q.name)
	}
	return errors.Join(failed...)
}

// retryUntilSuccess calls ask until it returns no error. When the context ends, it returns the last
// error. It calls ask at least once.
func retryUntilSuccess(ctx context.Context, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		// A call that has begun is not interrupted when the context ends.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		last = ask(ctx)
		return last == nil, nil
	})
	if last != nil {
		return last
	}
	return err
}
