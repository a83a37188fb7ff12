package command

import (
	"cmp"
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

// MemberAccount is the ServiceAccount for the manager that config/member creates, in the
// manager's namespace.
const MemberAccount = "xylem"

// HostAccount returns the name of one host's ServiceAccount in a member. The member's policies
// derive the host's cluster ID from it.
func HostAccount(hostID string) string { return MemberAccount + "-host-" + hostID }

// callTimeout limits each request to a member, so that the plugin reports an unreachable member
// while the user is still waiting.
const callTimeout = 15 * time.Second

// Member contains the flags for the user's own credentials for a member.
type Member struct {
	// Kubeconfig is the path of a file. Context is one of its contexts, by default its current one.
	Kubeconfig, Context string
}

// AddFlags adds the flags. usage describes the kubeconfig.
func (m *Member) AddFlags(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&m.Kubeconfig, "member-kubeconfig", "", usage)
	flags.StringVar(&m.Context, "member-context", "", "Context for the member in --member-kubeconfig or, if that is not set, in kubectl's own kubeconfig.")
}

// Given reports whether the flags select a member.
func (m *Member) Given() bool { return m.Kubeconfig != "" || m.Context != "" }

// ContextFlag returns the flag that selects the member, for messages.
func (m *Member) ContextFlag() string {
	if m.Kubeconfig == "" {
		return "--member-context"
	}
	return "--member-kubeconfig"
}

// Config returns the client configuration, with the contents of files that the kubeconfig
// refers to. Without --member-kubeconfig, the context is one of kubectl's own kubeconfig.
func (m *Member) Config(env *Env) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(m.Kubeconfig, *env.Host.KubeConfig)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: m.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the member's kubeconfig (--member-kubeconfig, --member-context): %w", err)
	}
	config.Timeout = callTimeout
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the files that the member's kubeconfig (--member-kubeconfig, --member-context) refers to: %w", err)
	}
	return config, nil
}

// ReadClusterID returns the ID of a cluster: the UID of its kube-system namespace.
func (c *Cluster) ReadClusterID(ctx context.Context) (string, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("read the kube-system namespace, whose UID identifies the cluster: %w", err)
	}
	return string(system.UID), nil
}
