package doctor

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// Source is a cluster that responds.
type Source struct {
	client.Reader
	// Raw reads data that is not an object, such as logs.
	Raw kubernetes.Interface
	// Name is the name of the registration, or "" for the host.
	Name string
	// ID is the cluster ID.
	ID string
}

// Sources are the clusters of an installation that respond, and the reasons why others cannot be
// read.
type Sources struct {
	Host    Source
	Members []Source
	Missing []inspect.Missing
	// Secrets are the credentials that were used to connect to clusters: kubeconfigs or tokens.
	Secrets [][]byte
}

// OpenSources connects to the host and its members in the same way as Facts.
func OpenSources(ctx context.Context, env *command.Env, way ConnectionWay) (*Sources, error) {
	m := &inspect.Misses{}
	host, id, err := openHostReader(ctx, env, m)
	if err != nil {
		return nil, err
	}
	s := &Sources{Host: Source{Reader: host, Raw: host.Raw, ID: id}, Secrets: [][]byte{[]byte(host.Token)}}
	own, err := ownMemberConfig(env, way)
	if err != nil {
		return nil, err
	}
	var registrations v1alpha1.ClusterRegistrationList
	if err := host.List(ctx, &registrations); err != nil {
		host.RecordMissing("ClusterRegistrations", err)
	}
	v := &visit{env: env, host: host}
	var mine string
	if own != nil {
		var member Member
		r, err := v.connectMember(ctx, own, &member)
		if err != nil {
			return nil, fmt.Errorf("connect with the member's kubeconfig (--member-kubeconfig, --member-context): %w", err)
		}
		mine, s.Secrets = member.ID, append(s.Secrets, []byte(r.Token))
		s.Members = append(s.Members, Source{Reader: r, Raw: r.Raw, Name: registrationWithID(registrations.Items, mine), ID: mine})
	}
	var mu sync.Mutex
	var opens []func()
	for i := range registrations.Items {
		registration := &registrations.Items[i]
		if way.HostOnly || mine != "" && registration.Status.ClusterID == mine {
			continue
		}
		opens = append(opens, func() {
			source, raw, err := v.openMemberSource(ctx, registration)
			mu.Lock()
			defer mu.Unlock()
			s.Secrets = append(s.Secrets, raw)
			if err != nil {
				m.AddMissing(registration.Name, "the member", err)
				return
			}
			s.Members = append(s.Members, *source)
		})
	}
	inspect.RunReadsAtOnce(connecting, opens)
	s.Missing = m.AllMissing()
	return s, nil
}

// openHostReader connects to the host, and reads its ID.
func openHostReader(ctx context.Context, env *command.Env, m *inspect.Misses) (*inspect.Reader, string, error) {
	config, err := env.Host.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("load the host's kubeconfig (--kubeconfig, --context, KUBECONFIG): %w", err)
	}
	host, err := inspect.NewReader(env, config, "", m, hostTimeout)
	if err != nil {
		return nil, "", err
	}
	host.MostObjects = objectsMost
	id, err := host.ReadID(ctx)
	if err != nil {
		return nil, "", command.Explain("the host", config, err)
	}
	return host, id, nil
}

// openMemberSource connects to a member with its registration's kubeconfig, which it returns even if the member
// does not respond.
func (v *visit) openMemberSource(ctx context.Context, registration *v1alpha1.ClusterRegistration) (*Source, []byte, error) {
	config, raw, err := v.credentials(ctx, registration)
	if err != nil {
		return nil, raw, err
	}
	m := Member{Registration: registration.Name}
	r, err := v.connectMember(ctx, config, &m)
	if err != nil {
		return nil, raw, err
	}
	if recorded := registration.Status.ClusterID; recorded != "" && m.ID != recorded {
		return nil, raw, otherClusterError(m.ID, recorded)
	}
	return &Source{Reader: r, Raw: r.Raw, Name: registration.Name, ID: m.ID}, raw, nil
}

// credentials reads a registration's kubeconfig.
func (v *visit) credentials(ctx context.Context, registration *v1alpha1.ClusterRegistration) (*rest.Config, []byte, error) {
	return v.host.RegistrationConfig(ctx, registration, v.env.Namespace, "read the registration's kubeconfig from Secret %q")
}

func otherClusterError(is, recorded string) error {
	return fmt.Errorf("the kubeconfig points to the cluster with ID %s, but the registration's status records ID %s", is, recorded)
}

// registrationWithID returns the name of the registration with the cluster ID, or "".
func registrationWithID(registrations []v1alpha1.ClusterRegistration, id string) string {
	for i := range registrations {
		if registrations[i].Status.ClusterID == id {
			return registrations[i].Name
		}
	}
	return ""
}
