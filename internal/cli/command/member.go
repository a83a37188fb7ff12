package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MemberAccount is the ServiceAccount that config/member makes, in the manager's
// namespace, for the manager.
const MemberAccount = "xylem"

// HostAccount is the ServiceAccount of one host in a member. The member's policies read
// the host's cluster ID from its name.
func HostAccount(hostID string) string { return MemberAccount + "-host-" + hostID }

// callTimeout bounds each call to a member: one that is out of reach is reported
// within the time that somebody waits at a terminal.
const callTimeout = 15 * time.Second

// Member has the flags by which a member's admin says who he is.
type Member struct {
	// Kubeconfig is a file; Context one of its contexts, the current one if empty.
	Kubeconfig, Context string
}

// AddFlags adds the flags.
func (m *Member) AddFlags(flags *pflag.FlagSet, purpose string) {
	flags.StringVar(&m.Kubeconfig, "member-kubeconfig", "", "File with a kubeconfig of an admin of the member: "+purpose)
	flags.StringVar(&m.Context, "member-context", "", "Context of --member-kubeconfig; its current one unless given.")
}

// Config is the configuration of a client, with what the kubeconfig has in files
// read.
func (m *Member) Config() (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: m.Kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: m.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the member's kubeconfig %q: %w", m.Kubeconfig, err)
	}
	config.Timeout = callTimeout
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the files that the member's kubeconfig %q refers to: %w", m.Kubeconfig, err)
	}
	return config, nil
}

// ID is the identity of a cluster: the UID of its namespace kube-system.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("read namespace kube-system, its identity: %w", err)
	}
	return string(system.UID), nil
}
