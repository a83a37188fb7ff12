package doctor

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// ConnectionWay defines how to connect to members.
type ConnectionWay struct {
	// Member selects the user's own credentials for one member, if any.
	command.Member
	// HostOnly skips all members that would be read with their registrations' kubeconfigs.
	HostOnly bool
}

// collectFacts reads the host, and then all members concurrently. It fails if the host does not respond.
func collectFacts(ctx context.Context, env *command.Env, way ConnectionWay) (*Facts, error) {
	m := &inspect.Misses{}
	host, id, err := openHostReader(ctx, env, m)
	if err != nil {
		return nil, err
	}
	f := &Facts{}
	readHostFacts(ctx, host, id, env.Namespace, f)
	own, err := ownMemberConfig(env, way)
	if err != nil {
		return nil, err
	}
	f.Members = readMembers(ctx, env, host, &f.Host, own, way)
	f.Missing = m.SortedMissing()
	return f, nil
}

// ownMemberConfig returns the user's own kubeconfig for a member, or nil.
func ownMemberConfig(env *command.Env, way ConnectionWay) (*rest.Config, error) {
	if !way.Given() {
		return nil, nil
	}
	return way.Config(env)
}

// readMembers reads the members of all registrations, and the one that the user's own kubeconfig
// points to.
func readMembers(ctx context.Context, env *command.Env, host *inspect.Reader, h *HostFacts, own *rest.Config, way ConnectionWay) []Member {
	v := &visit{env: env, host: host, of: h}
	var mine *Member
	if own != nil {
		mine = v.readOwnMember(ctx, own)
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
			m := v.readRegisteredMember(ctx, registration)
			mu.Lock()
			defer mu.Unlock()
			members = append(members, m)
		})
	}
	inspect.RunReadsAtOnce(connecting, reads)
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Registration, b.Registration) })
	return members
}

// visit reads the members of a host.
type visit struct {
	env  *command.Env
	host *inspect.Reader
	of   *HostFacts
}

// readOwnMember reads the member that the user's own kubeconfig points to.
func (v *visit) readOwnMember(ctx context.Context, config *rest.Config) *Member {
	m := &Member{Own: true, host: v.of}
	r, err := v.connectMember(ctx, config, m)
	if err != nil {
		m.Away = inspect.Plain(err.Error())
		return m
	}
	if m.Registration = registrationWithID(v.of.Registrations.Items, m.ID); m.Registration != "" {
		m.Recorded = m.ID
	}
	r.Cluster = cmp.Or(m.Registration, "the member of your own kubeconfig")
	ctx, cancel := context.WithTimeout(ctx, memberTotal)
	defer cancel()
	m.Account = v.accountIn(ctx, r)
	v.readChecks(ctx, r, m)
	return m
}

// readRegisteredMember reads the member of a registration with the registration's kubeconfig.
func (v *visit) readRegisteredMember(ctx context.Context, registration *v1alpha1.ClusterRegistration) Member {
	m := Member{host: v.of, Registration: registration.Name, Recorded: registration.Status.ClusterID}
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
	if token, ok := access.ParseAccountToken(access.KubeconfigToken(raw)); ok {
		m.Issued, m.Account = token.Issued, Account{Namespace: token.Namespace, Name: token.Account}
	}
	r, err := v.connectMember(ctx, config, &m)
	if err != nil {
		return away(err)
	}
	if m.Recorded != "" && m.ID != m.Recorded {
		return away(otherClusterError(m.ID, m.Recorded))
	}
	ctx, cancel := context.WithTimeout(ctx, memberTotal)
	defer cancel()
	v.readChecks(ctx, r, &m)
	return m
}

// connectMember creates the reader of a member, and reads the member's identity.
func (v *visit) connectMember(ctx context.Context, config *rest.Config, m *Member) (r *inspect.Reader, err error) {
	r, m.ID, err = inspect.ConnectMember(ctx, v.env, config, m.Registration, v.host.Misses, firstAnswer, memberTimeout)
	if r != nil {
		r.MostObjects = objectsMost
	}
	return r, err
}

// readChecks reads what the checks of a member need.
func (v *visit) readChecks(ctx context.Context, r *inspect.Reader, m *Member) {
	m.Version = readVersion(r)
	readFacts(ctx, r, memberChecks, m)
	m.At, m.Clock = v.env.Clock.Now(), r.Dates.Measurement()
}

// accountIn returns the manager's account in a member: the one for this host alone if it exists,
// otherwise the one that hosts share.
func (v *visit) accountIn(ctx context.Context, r *inspect.Reader) Account {
	own := client.ObjectKey{Namespace: v.env.Namespace, Name: command.HostAccount(v.of.ID)}
	if account := inspect.ReadObject[corev1.ServiceAccount](ctx, r, "ServiceAccount "+own.String(), own); account.Item != nil {
		return Account{Namespace: own.Namespace, Name: own.Name}
	}
	return Account{Namespace: v.env.Namespace, Name: command.MemberAccount}
}
