package doctor

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/member/access"
)

// Source is a cluster that responds.
type Source struct {
	client.Client
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

// Open connects to the host and its members in the same way as Facts.
func Open(ctx context.Context, env *command.Env, way Way) (*Sources, error) {
	m := &misses{}
	host, id, err := openHost(ctx, env, m)
	if err != nil {
		return nil, err
	}
	s := &Sources{Host: Source{Client: host.Client, Raw: host.raw, ID: id}, Secrets: [][]byte{[]byte(host.token)}}
	own, err := ownConfig(env, way)
	if err != nil {
		return nil, err
	}
	var registrations v1alpha1.ClusterRegistrationList
	if err := host.List(ctx, &registrations); err != nil {
		host.miss("ClusterRegistrations", err)
	}
	v := &visit{env: env, host: host}
	var mine string
	if own != nil {
		var member Member
		r, err := v.connect(ctx, own, &member)
		if err != nil {
			return nil, fmt.Errorf("connect with the member's kubeconfig (--member-kubeconfig, --member-context): %w", err)
		}
		mine, s.Secrets = member.ID, append(s.Secrets, []byte(r.token))
		s.Members = append(s.Members, Source{Client: r.Client, Raw: r.raw, Name: nameIn(registrations.Items, mine), ID: mine})
	}
	var mu sync.Mutex
	var opens []func()
	for i := range registrations.Items {
		registration := &registrations.Items[i]
		if way.HostOnly || mine != "" && registration.Status.ClusterID == mine {
			continue
		}
		opens = append(opens, func() {
			source, raw, err := v.open(ctx, registration)
			mu.Lock()
			defer mu.Unlock()
			s.Secrets = append(s.Secrets, raw)
			if err != nil {
				m.add(registration.Name, "the member", err)
				return
			}
			s.Members = append(s.Members, *source)
		})
	}
	runReadsAtOnce(connecting, opens)
	s.Missing = m.list
	return s, nil
}

// openHost connects to the host, and reads its ID.
func openHost(ctx context.Context, env *command.Env, m *misses) (*reader, string, error) {
	config, err := env.Host.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("load the host's kubeconfig (--kubeconfig, --context, KUBECONFIG): %w", err)
	}
	host, err := newReader(env, config, "", m, hostTimeout)
	if err != nil {
		return nil, "", err
	}
	id, err := host.identity(ctx)
	if err != nil {
		return nil, "", command.Explain("the host", config, err)
	}
	return host, id, nil
}

// open connects to a member with its registration's kubeconfig, which it returns even if the member
// does not respond.
func (v *visit) open(ctx context.Context, registration *v1alpha1.ClusterRegistration) (*Source, []byte, error) {
	config, raw, err := v.credentials(ctx, registration)
	if err != nil {
		return nil, raw, err
	}
	m := Member{Registration: registration.Name}
	r, err := v.connect(ctx, config, &m)
	if err != nil {
		return nil, raw, err
	}
	if recorded := registration.Status.ClusterID; recorded != "" && m.ID != recorded {
		return nil, raw, another(m.ID, recorded)
	}
	return &Source{Client: r.Client, Raw: r.raw, Name: registration.Name, ID: m.ID}, raw, nil
}

// credentials reads a registration's kubeconfig, if the user has permission. Another user may have
// written the kubeconfig, so it must not make the plugin run a program or read a file.
func (v *visit) credentials(ctx context.Context, registration *v1alpha1.ClusterRegistration) (*rest.Config, []byte, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: v.env.Namespace, Name: registration.Spec.KubeconfigSecretRef.Name}
	if err := v.host.Get(ctx, key, &secret); err != nil {
		return nil, nil, fmt.Errorf("read the registration's kubeconfig from Secret %q: %w", key, err)
	}
	raw := secret.Data[v1alpha1.KubeconfigKey]
	config, err := access.ParseKubeconfig(raw, false)
	return config, raw, err
}

func another(is, recorded string) error {
	return fmt.Errorf("the kubeconfig points to the cluster with ID %s, but the registration's status records ID %s", is, recorded)
}

// nameIn returns the name of the registration with the cluster ID, or "".
func nameIn(registrations []v1alpha1.ClusterRegistration, id string) string {
	for i := range registrations {
		if registrations[i].Status.ClusterID == id {
			return registrations[i].Name
		}
	}
	return ""
}
