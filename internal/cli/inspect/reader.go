package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
)

const (
	// pageSize is the maximum number of objects in a page of a list.
	pageSize = 500
	// readsAtOnce is the maximum number of concurrent requests to one cluster.
	readsAtOnce = 8
)

// Misses collects what could not be read, for all clusters, without duplicates.
type Misses struct {
	mu   sync.Mutex
	list []Missing
}

// AddMissing adds something that could not be read in a cluster, which is "" for the host.
func (m *Misses) AddMissing(cluster, what string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if missing := (Missing{What: what, Cluster: cluster, Why: Plain(err.Error())}); !slices.Contains(m.list, missing) {
		m.list = append(m.list, missing)
	}
}

// AllMissing returns what could not be read, in the order in which it was requested.
func (m *Misses) AllMissing() []Missing { return m.list }

// SortedMissing returns what could not be read, ordered by cluster, the host first.
func (m *Misses) SortedMissing() []Missing {
	slices.SortFunc(m.list, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.What, b.What)) })
	return m.list
}

// Reader reads one cluster, and records what it cannot read.
type Reader struct {
	client.Reader
	// Cluster is the registration, or "" for the host.
	Cluster string
	Misses  *Misses
	// MostObjects is the maximum number of objects in a list, or 0 for no limit.
	MostObjects int

	// Raw reads data that is not an object, such as logs. Dates measures the cluster's clock, and Token
	// is the client's credential. Only NewReader sets these.
	Raw   kubernetes.Interface
	Dates *ClockMeter
	Token string
}

// NewReader creates the clients of a cluster. timeout limits each request.
func NewReader(env *command.Env, config *rest.Config, cluster string, m *Misses, timeout time.Duration) (*Reader, error) {
	r := &Reader{Cluster: cluster, Misses: m, Token: config.BearerToken, Dates: &ClockMeter{PassiveClock: env.Clock}}
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	config.Wrap(r.Dates.Wrap)
	with, err := env.NewCluster(config)
	if err != nil {
		return nil, err
	}
	quiet := rest.CopyConfig(with.Config)
	quiet.WarningHandler = rest.NoWarnings{} // hide deprecation warnings, because the user did not request these kinds
	if r.Reader, err = client.New(quiet, client.Options{Scheme: with.Scheme()}); err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", config.Host, err)
	}
	if r.Raw, err = kubernetes.NewForConfig(quiet); err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", config.Host, err)
	}
	return r, nil
}

// ConnectMember creates the reader of a member, and reads its cluster ID. firstTimeout limits the first
// request, so that an unreachable member delays the command only by this time.
func ConnectMember(ctx context.Context, env *command.Env, config *rest.Config, cluster string, m *Misses, firstTimeout, timeout time.Duration) (*Reader, string, error) {
	r, err := NewReader(env, config, cluster, m, timeout)
	if err != nil {
		return nil, "", err
	}
	first, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	id, err := r.ReadID(first)
	if err != nil {
		return nil, "", err
	}
	return r, id, nil
}

// RegistrationConfig reads a registration's kubeconfig, if the user has permission. Another user may
// have written the kubeconfig, so it must not make the plugin run a program or read a file. failed is
// the format of the error if the Secret cannot be read.
func (r *Reader) RegistrationConfig(ctx context.Context, registration *v1alpha1.ClusterRegistration, namespace, failed string) (*rest.Config, []byte, error) {
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: namespace, Name: registration.Spec.KubeconfigSecretRef.Name}
	if err := r.Get(ctx, key, &secret); err != nil {
		return nil, nil, fmt.Errorf(failed+": %w", key, err)
	}
	raw := secret.Data[v1alpha1.KubeconfigKey]
	config, err := access.ParseKubeconfig(raw, false)
	return config, raw, err
}

// ReadID reads the cluster's ID: the UID of the kube-system namespace. Unlike a client.Reader, Raw
// discovers no kinds first, which would ignore the context's deadline.
func (r *Reader) ReadID(ctx context.Context) (string, error) {
	system, err := r.Raw.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the kube-system namespace, whose UID identifies the cluster: %w", err)
	}
	return string(system.UID), nil
}

// RecordMissing records that something could not be read.
func (r *Reader) RecordMissing(what string, err error) { r.Misses.AddMissing(r.Cluster, what, err) }

// RunReadsTogether runs independent reads, a few at a time. Each read records what it cannot read.
func RunReadsTogether(reads ...func()) { RunReadsAtOnce(readsAtOnce, reads) }

// RunReadsAtOnce is like RunReads, with a limit for concurrent reads.
func RunReadsAtOnce(limit int, reads []func()) {
	var group errgroup.Group
	group.SetLimit(limit)
	for _, read := range reads {
		group.Go(func() error {
			read()
			return nil
		})
	}
	_ = group.Wait() // reads never return an error
}

// Object is one object. Item is nil if it does not exist, or if it was not read.
type Object[T any] struct {
	Item *T
	Read bool
}

// Absent reports whether the object is known not to exist.
func (o Object[T]) Absent() bool { return o.Read && o.Item == nil }

// Objects is a list of objects. Read is false if the list was not read completely.
type Objects[T any] struct {
	Items []T
	Read  bool
}

// isAbsentOrUnserved reports whether an error means that an object or its kind does not exist.
func isAbsentOrUnserved(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// ReadObject reads an object.
func ReadObject[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reader, what string, key client.ObjectKey) Object[T] {
	return ReadObjectInto[T](ctx, r, what, key, P(new(T)))
}

// ReadObjectInto reads an object into the given one, whose kind may already be set.
func ReadObjectInto[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reader, what string, key client.ObjectKey, into P) Object[T] {
	if key.Name == "" {
		return Object[T]{Read: true}
	}
	switch err := r.Get(ctx, key, into); {
	case isAbsentOrUnserved(err):
		return Object[T]{Read: true}
	case err != nil:
		r.RecordMissing(what, err)
		return Object[T]{}
	}
	return Object[T]{Item: into, Read: true}
}

// ReadNamed is like ReadObject, and describes the object by its kind and name.
func ReadNamed[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reader, kind string, key types.NamespacedName) Object[T] {
	return ReadObject[T, P](ctx, r, KindAndName(kind, key), key)
}

// ReadList reads a list, page by page. items returns the items of a page.
func ReadList[T any, P client.ObjectList](ctx context.Context, r *Reader, what string, into P, items func(P) []T, opts ...client.ListOption) Objects[T] {
	var all Objects[T]
	next := ""
	for {
		if err := meta.SetList(into, nil); err != nil {
			r.RecordMissing(what, err)
			return all
		}
		err := r.List(ctx, into, append(opts, client.Limit(pageSize), client.Continue(next))...)
		switch {
		case isAbsentOrUnserved(err): // the API server does not serve the kind
			return Objects[T]{Read: true}
		case err != nil:
			r.RecordMissing(what, err)
			return all
		}
		all.Items = append(all.Items, items(into)...)
		if next = into.GetContinue(); next == "" {
			all.Read = true
			return all
		}
		if r.MostObjects > 0 && len(all.Items) >= r.MostObjects {
			r.RecordMissing(what, errors.New("there are more than "+fmt.Sprint(r.MostObjects)+", too many to read"))
			return all
		}
	}
}

// ReadMetadata reads the metadata of all objects of a kind.
func (r *Reader) ReadMetadata(ctx context.Context, what string, kind schema.GroupVersionKind, opts ...client.ListOption) Objects[metav1.PartialObjectMetadata] {
	into := &metav1.PartialObjectMetadataList{}
	into.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return ReadList(ctx, r, what, into, func(l *metav1.PartialObjectMetadataList) []metav1.PartialObjectMetadata {
		for i := range l.Items {
			l.Items[i].SetGroupVersionKind(kind)
		}
		return l.Items
	}, opts...)
}

// ReadEvents reads the latest events about an object.
func (r *Reader) ReadEvents(ctx context.Context, kind string, obj client.Object) []corev1.Event {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	var list corev1.EventList
	err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(obj.GetUID())}, client.Limit(pageSize))
	if err != nil {
		r.RecordMissing("the events of "+KindAndName(kind, client.ObjectKeyFromObject(obj)), err)
	}
	return list.Items
}

// KindAndName returns an object's kind and name for messages.
func KindAndName(kind string, key types.NamespacedName) string {
	if key.Namespace == "" {
		return kind + " " + key.Name
	}
	return kind + " " + key.String()
}
