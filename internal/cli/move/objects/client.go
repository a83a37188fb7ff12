package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	poll = 300 * time.Millisecond
	// quiet is how long the command waits before it reports what it waits for.
	quiet = 3 * time.Second
)

// Client is a client for the host that all moves of one run share.
type Client struct {
	*command.Cluster
	// Env provides the streams and the clock.
	Env *command.Env
	// Namespace is the namespace of the claims that the command moves.
	Namespace string
	// Timeout limits each Await.
	Timeout time.Duration
}

// ExplainHostError adds a remedy to an error of a request to the host.
func (c *Client) ExplainHostError(err error) error { return command.Explain("the host", c.Config, err) }

// ReportLine prints a line for the user.
func (c *Client) ReportLine(format string, args ...any) { fmt.Fprintf(c.Env.Out, format+"\n", args...) }

// ReadClaim reads a claim of the namespace, or returns nil.
func (c *Client) ReadClaim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, c, client.ObjectKey{Namespace: c.Namespace, Name: name})
	if err != nil {
		return nil, c.ExplainHostError(err)
	}
	return claim, nil
}

// ReadVolumeOf reads the volume that a claim is bound to, or returns nil.
func (c *Client) ReadVolumeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, c, client.ObjectKey{Name: claim.Spec.VolumeName})
	if err != nil {
		return nil, c.ExplainHostError(err)
	}
	if pv == nil || !hostpv.ClaimRefNamesClaim(pv, claim) {
		return nil, nil //nolint:nilnil // no volume, no error
	}
	return pv, nil
}

// AwaitCondition polls until waiting returns "". If that takes longer than quiet, it reports what waiting
// returns.
func (c *Client) AwaitCondition(ctx context.Context, what string, waiting func(context.Context) (string, error)) error {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	begin, last, shown := c.Env.Clock.Now(), "", ""
	err := wait.PollUntilContextCancel(limited, poll, true, func(ctx context.Context) (bool, error) {
		why, err := waiting(ctx)
		if err != nil {
			return false, err
		}
		if last = why; why != "" && why != shown && c.Env.Clock.Since(begin) > quiet {
			shown = why
			fmt.Fprintf(c.Env.ErrOut, "waiting for %s: %s\n", what, why)
		}
		return why == "", nil
	})
	switch {
	case err == nil || limited.Err() == nil || ctx.Err() != nil:
		return err //nolint:wrapcheck // waiting names the object
	case last == "":
		return fmt.Errorf("waited %s for %s: %w", c.Timeout, what, err)
	}
	return fmt.Errorf("waited %s for %s: %s", c.Timeout, what, strings.TrimSuffix(last, "."))
}
