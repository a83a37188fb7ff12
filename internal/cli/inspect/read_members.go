package inspect

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// Way defines how to connect to members.
type Way struct {
	// Member selects the user's own credentials for one member, if any.
	command.Member
	// Live uses the registrations' own kubeconfigs.
	Live bool
}

// ReadMembers reads the objects of the members that the Way gives access to.
func (g *Gathering) ReadMembers(ctx context.Context, env *command.Env, w Way) error {
	own := ""
	if w.Given() {
		var err error
		if own, err = g.readOwn(ctx, env, w); err != nil {
			return err
		}
	}
	if !w.Live {
		return nil
	}
	for _, id := range g.ClusterIDs() {
		registration := g.Registration(id)
		if registration == nil || id == own {
			continue
		}
		what := "member " + registration.Name
		config, err := g.configOf(ctx, registration, env.Namespace)
		if err != nil {
			g.host.miss(what, err)
			continue
		}
		g.readMember(ctx, env, config, id)
	}
	return nil
}

// readOwn reads the member that the user's own kubeconfig points to, and returns its cluster ID.
func (g *Gathering) readOwn(ctx context.Context, env *command.Env, w Way) (string, error) {
	config, err := w.Config(env)
	if err != nil {
		return "", err
	}
	id, _, err := connectMember(ctx, env, config, patience)
	if err != nil {
		return "", fmt.Errorf("connect with the member's kubeconfig (--member-kubeconfig, --member-context): %w", err)
	}
	for _, known := range g.ClusterIDs() {
		if known == id {
			g.readMember(ctx, env, config, id)
			return id, nil
		}
	}
	what := "the member of your kubeconfig"
	g.host.miss(what, fmt.Errorf("your kubeconfig points to cluster %s (%s), which contains none of these objects", id, g.NameOf(id, nil)))
	return id, nil
}

// configOf reads a registration's kubeconfig with the user's own permissions. Another user may have
// written the kubeconfig, so it must not make the plugin run a program or read a file.
func (g *Gathering) configOf(ctx context.Context, registration *v1alpha1.ClusterRegistration, namespace string) (*rest.Config, error) {
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: namespace, Name: registration.Spec.KubeconfigSecretRef.Name}
	if err := g.host.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("read the kubeconfig from Secret %q (--xylem-namespace): %w", key, err)
	}
	return access.ParseKubeconfig(secret.Data[v1alpha1.KubeconfigKey], false)
}

// patienceWith returns how long to wait for a member's first response. The time is shorter if the
// manager is not connected to the member.
func (g *Gathering) patienceWith(id string) time.Duration {
	if r := g.Registration(id); r != nil && !Connected(r) {
		return patienceAway
	}
	return patience
}

// connectMember creates a client for a member, and reads its cluster ID.
func connectMember(ctx context.Context, env *command.Env, config *rest.Config, timeout time.Duration) (string, client.Reader, error) {
	config = rest.CopyConfig(config)
	config.Timeout = patience
	cluster, err := env.NewCluster(config)
	if err != nil {
		return "", nil, err
	}
	first, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var system corev1.Namespace
	if err := cluster.Get(first, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", nil, fmt.Errorf("read the kube-system namespace, whose UID identifies the cluster: %w", err)
	}
	return string(system.UID), cluster, nil
}

// readMember reads one member's counterparts of all gathered objects.
func (g *Gathering) readMember(ctx context.Context, env *command.Env, config *rest.Config, id string) {
	name := g.NameOf(id, nil)
	is, there, err := connectMember(ctx, env, config, g.patienceWith(id))
	if err == nil && is != id {
		err = fmt.Errorf(access.OtherCluster, "the kubeconfig", is, fmt.Sprintf("registration %q", name), id)
	}
	if err != nil {
		g.host.miss("member "+name, err)
		return
	}
	g.Members[id] = true
	r := reader{Reader: there, cluster: name, missing: &g.Missing}
	if g.Pod != nil && g.MemberOfPod(g.Pod) == id {
		r.leafPod(ctx, g.Pod)
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		for j := range c.Pods {
			if g.MemberOfPod(&c.Pods[j]) == id {
				r.leafPod(ctx, &c.Pods[j])
			}
		}
		if g.MemberOf(c) == id {
			r.leafClaim(ctx, c)
		}
	}
}

func (r reader) leafPod(ctx context.Context, p *PodFacts) {
	var leaf corev1.Pod
	found, known := r.find(ctx, KindPod, client.ObjectKeyFromObject(p.Pod), &leaf)
	p.LeafKnown = known
	if found {
		p.Leaf = &leaf
		p.LeafEvents = r.events(ctx, KindPod, &leaf)
	}
}

func (r reader) leafClaim(ctx context.Context, c *ClaimFacts) {
	var leaf corev1.PersistentVolumeClaim
	found, known := r.find(ctx, KindClaim, c.Key, &leaf)
	c.LeafKnown = known
	volume := ""
	if found {
		c.Leaf = &leaf
		c.LeafEvents = r.events(ctx, KindClaim, &leaf)
		volume = leaf.Spec.VolumeName
	}
	if c.Volume != nil {
		if _, name, _, ours := hostpv.LeafOf(c.Volume); ours {
			volume = name // the leaf claim may no longer refer to this volume
		}
	}
	var pv corev1.PersistentVolume
	found, known = r.find(ctx, KindVolume, types.NamespacedName{Name: volume}, &pv)
	c.LeafVolumeKnown = known
	if found {
		c.LeafVolume = &pv
		c.LeafVolumeEvents = r.events(ctx, KindVolume, &pv)
	}
}
