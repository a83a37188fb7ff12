package inspect

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ConnectionWay defines how to connect to members.
type ConnectionWay struct {
	// Member selects the user's own credentials for one member, if any.
	command.Member
	// Live uses the registrations' own kubeconfigs.
	Live bool
}

// ReadMembers reads the objects of the members that the ConnectionWay gives access to.
func (g *Gathering) ReadMembers(ctx context.Context, env *command.Env, w ConnectionWay) error {
	own := ""
	if w.Given() {
		var err error
		if own, err = g.readOwnMember(ctx, env, w); err != nil {
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
		config, _, err := g.host.RegistrationConfig(ctx, registration, env.Namespace, "read the kubeconfig from Secret %q (--xylem-namespace)")
		if err != nil {
			g.host.RecordMissing(what, err)
			continue
		}
		g.readMember(ctx, env, config, id)
	}
	return nil
}

// readOwnMember reads the member that the user's own kubeconfig points to, and returns its cluster ID.
func (g *Gathering) readOwnMember(ctx context.Context, env *command.Env, w ConnectionWay) (string, error) {
	config, err := w.Config(env)
	if err != nil {
		return "", err
	}
	_, id, err := ConnectMember(ctx, env, config, "", g.host.Misses, patience, patience)
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
	g.host.RecordMissing(what, fmt.Errorf("your kubeconfig points to cluster %s (%s), which contains none of these objects", id, g.NameOfMember(id, nil)))
	return id, nil
}

// patienceWith returns how long to wait for a member's first response. The time is shorter if the
// manager is not connected to the member.
func (g *Gathering) patienceWith(id string) time.Duration {
	if r := g.Registration(id); r != nil && !IsConnected(r) {
		return patienceAway
	}
	return patience
}

// readMember reads one member's counterparts of all gathered objects.
func (g *Gathering) readMember(ctx context.Context, env *command.Env, config *rest.Config, id string) {
	name := g.NameOfMember(id, nil)
	r, is, err := ConnectMember(ctx, env, config, name, g.host.Misses, g.patienceWith(id), patience)
	if err == nil && is != id {
		err = fmt.Errorf(access.OtherClusterFormat, "the kubeconfig", is, fmt.Sprintf("registration %q", name), id)
	}
	if err != nil {
		g.host.RecordMissing("member "+name, err)
		return
	}
	g.Members[id] = true
	if g.Pod != nil && g.MemberOfPod(g.Pod) == id {
		r.readLeafPod(ctx, g.Pod)
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		for j := range c.Pods {
			if g.MemberOfPod(&c.Pods[j]) == id {
				r.readLeafPod(ctx, &c.Pods[j])
			}
		}
		if g.MemberOfClaim(c) == id {
			r.readLeafClaim(ctx, c)
		}
	}
}

func (r *Reader) readLeafPod(ctx context.Context, p *PodFacts) {
	leaf := ReadNamed[corev1.Pod](ctx, r, KindPod, client.ObjectKeyFromObject(p.Pod))
	p.Leaf, p.LeafKnown = leaf.Item, leaf.Read
	if p.Leaf != nil {
		p.LeafEvents = r.ReadEvents(ctx, KindPod, p.Leaf)
	}
}

func (r *Reader) readLeafClaim(ctx context.Context, c *ClaimFacts) {
	leaf := ReadNamed[corev1.PersistentVolumeClaim](ctx, r, KindClaim, c.Key)
	c.Leaf, c.LeafKnown = leaf.Item, leaf.Read
	name := ""
	if c.Leaf != nil {
		c.LeafEvents = r.ReadEvents(ctx, KindClaim, c.Leaf)
		name = c.Leaf.Spec.VolumeName
	}
	if c.Volume != nil {
		if _, represented, _, ours := hostpv.LeafOfHostVolume(c.Volume); ours {
			name = represented // the leaf claim may no longer refer to this volume
		}
	}
	volume := ReadNamed[corev1.PersistentVolume](ctx, r, KindVolume, types.NamespacedName{Name: name})
	c.LeafVolume, c.LeafVolumeKnown = volume.Item, volume.Read
	if c.LeafVolume != nil {
		c.LeafVolumeEvents = r.ReadEvents(ctx, KindVolume, c.LeafVolume)
	}
}
