package doctor

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/member/access"
)

const (
	// hostTimeout limits each request to the host.
	hostTimeout = 15 * time.Second
	// firstAnswer is the timeout of the first request to a member, so that an unreachable member
	// delays the command only by this time. memberTimeout limits each later request, and memberTotal
	// limits all of them together.
	firstAnswer   = 2 * time.Second
	memberTimeout = 10 * time.Second
	memberTotal   = time.Minute
	// connecting is the maximum number of members that are read concurrently.
	connecting = 16
)

// Way defines how to connect to members.
type Way struct {
	// Member selects the user's own credentials for one member, if any.
	command.Member
	// HostOnly skips all members that would be read with their registrations' kubeconfigs.
	HostOnly bool
}

// Facts reads the host, and then all members concurrently. It fails if the host does not respond.
func collectFacts(ctx context.Context, env *command.Env, way Way) (*Facts, error) {
	m := &misses{}
	host, id, err := openHost(ctx, env, m)
	if err != nil {
		return nil, err
	}
	f := &Facts{Host: host.readHost(ctx, id, env.Namespace, env.Clock.Now())}
	own, err := ownConfig(env, way)
	if err != nil {
		return nil, err
	}
	f.Members = readMembers(ctx, env, host, &f.Host, own, way)
	f.Missing = m.list
	slices.SortFunc(f.Missing, compare)
	return f, nil
}

// ownConfig returns the user's own kubeconfig for a member, or nil.
func ownConfig(env *command.Env, way Way) (*rest.Config, error) {
	if !way.Given() {
		return nil, nil
	}
	return way.Config(env)
}

// readMembers reads the members of all registrations, and the one that the user's own kubeconfig
// points to.
func readMembers(ctx context.Context, env *command.Env, host *reader, h *Host, own *rest.Config, way Way) []Member {
	v := &visit{env: env, host: host, of: h}
	var mine *Member
	if own != nil {
		mine = v.own(ctx, own)
	}
	var mu sync.Mutex
	var members []Member
	if mine != nil {
		members = append(members, *mine)
	}
	var reads []func()
	for i := range h.Registrations.Items {
		registration := &h.Registrations.Items[i]
		if way.HostOnly || mine != nil && mine.Registration == registration.Name {
			continue
		}
		reads = append(reads, func() {
			m := v.registered(ctx, registration)
			mu.Lock()
			defer mu.Unlock()
			members = append(members, m)
		})
	}
	jobsAtOnce(connecting, reads)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Registration, b.Registration) })
	return members
}

// visit reads the members of a host.
type visit struct {
	env  *command.Env
	host *reader
	of   *Host
}

// own reads the member that the user's own kubeconfig points to.
func (v *visit) own(ctx context.Context, config *rest.Config) *Member {
	m := &Member{Own: true}
	r, err := v.connect(ctx, config, m)
	if err != nil {
		m.Away = inspect.Plain(err.Error())
		return m
	}
	if m.Registration = nameIn(v.of.Registrations.Items, m.ID); m.Registration != "" {
		m.Recorded = m.ID
	}
	r.cluster = cmp.Or(m.Registration, "the member of your own kubeconfig")
	ctx, cancel := context.WithTimeout(ctx, memberTotal)
	defer cancel()
	m.Account = v.accountIn(ctx, r)
	jobs(
		func() { r.policies(ctx, &m.Cluster) },
		func() {
			if needs, ok := r.memberNeeds(m.Account); ok {
				m.Rights = r.rights(rightsOfAccount(ctx, r.raw, m.Account, needs, Excess()))
			}
		},
		func() { r.leaves(ctx, v.of.ID, m) },
	)
	v.common(ctx, r, m)
	return m
}

// registered reads the member of a registration with the registration's kubeconfig.
func (v *visit) registered(ctx context.Context, registration *v1alpha1.ClusterRegistration) Member {
	m := Member{Registration: registration.Name, Recorded: registration.Status.ClusterID}
	away := func(err error) Member {
		m.Away = inspect.Plain(err.Error())
		return m
	}
	config, raw, err := v.credentials(ctx, registration)
	if err != nil {
		m.Secret = true
		return away(err)
	}
	m.Account = Account{Namespace: v.env.Namespace, Name: command.MemberAccount}
	if token, ok := access.ParseToken(access.TokenOf(raw)); ok {
		m.Issued, m.Account = token.Issued, Account{Namespace: token.Namespace, Name: token.Account}
	}
	r, err := v.connect(ctx, config, &m)
	if err != nil {
		return away(err)
	}
	if m.Recorded != "" && m.ID != m.Recorded {
		return away(another(m.ID, m.Recorded))
	}
	ctx, cancel := context.WithTimeout(ctx, memberTotal)
	defer cancel()
	if needs, ok := r.memberNeeds(m.Account); ok {
		m.Rights = r.rights(rightsOfClient(ctx, r.raw, needs, Excess()))
	}
	v.common(ctx, r, &m)
	return m
}

// connect creates a client for a member, and reads its identity. If the member is unreachable, this
// takes up to firstAnswer.
func (v *visit) connect(ctx context.Context, config *rest.Config, m *Member) (*reader, error) {
	r, err := newReader(v.env, config, m.Registration, v.host.misses, memberTimeout)
	if err != nil {
		return nil, err
	}
	first, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	if m.ID, err = r.identity(first); err != nil {
		return nil, err
	}
	return r, nil
}

// common reads what both the manager's account and the member's admin can read.
func (v *visit) common(ctx context.Context, r *reader, m *Member) {
	m.Version = r.version()
	m.Snapshots = r.snapshots()
	m.Fence = find[coordinationv1.Lease](ctx, r, "the fence Lease "+v.of.ID, client.ObjectKey{Namespace: v.env.Namespace, Name: v.of.ID})
	m.At, m.Clock = v.env.Clock.Now(), r.dates.Measurement()
}

// accountIn returns the manager's account in a member: the one for this host alone if it exists,
// otherwise the one that hosts share.
func (v *visit) accountIn(ctx context.Context, r *reader) Account {
	own := client.ObjectKey{Namespace: v.env.Namespace, Name: command.HostAccount(v.of.ID)}
	if account := find[corev1.ServiceAccount](ctx, r, "ServiceAccount "+own.String(), own); account.Item != nil {
		return Account{Namespace: own.Namespace, Name: own.Name}
	}
	return Account{Namespace: v.env.Namespace, Name: command.MemberAccount}
}

func (r *reader) memberNeeds(of Account) ([]authorizationv1.ResourceAttributes, bool) {
	needs, err := MemberRights(of)
	if err != nil {
		r.miss("the permissions of the manager's account", err)
		return nil, false
	}
	return needs, true
}

// leafKinds are the kinds of leaf objects.
var leafKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolume"), corev1.SchemeGroupVersion.WithKind("Namespace"),
}

// leaves counts this host's objects in a member that is not registered.
func (r *reader) leaves(ctx context.Context, hostID string, m *Member) {
	if m.Registration != "" {
		return
	}
	m.Leaves = map[string]int{}
	for _, kind := range leafKinds {
		found := r.metadata(ctx, "this host's "+kind.Kind+"s", kind, client.MatchingLabels{
			v1alpha1.LabelHost: hostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, // an admin can set the first label on their own objects
		})
		if len(found.Items) > 0 {
			m.Leaves[kind.Kind] = len(found.Items)
		}
	}
}
