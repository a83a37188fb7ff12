package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

const (
	// pageSize is the maximum number of objects in a page of a list, and most is the maximum in all
	// pages together.
	pageSize = 500
	most     = 20_000
	// asking is the maximum number of concurrent requests to one cluster.
	asking = 8
)

// misses collects what could not be read, for all clusters.
type misses struct {
	mu   sync.Mutex
	list []inspect.Missing
}

func (m *misses) add(cluster, what string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, inspect.Missing{What: what, Cluster: cluster, Why: inspect.Plain(err.Error())})
}

// reader reads one cluster.
type reader struct {
	client.Client
	raw     kubernetes.Interface
	cluster string // the registration, or "" for the host
	misses  *misses
	dates   *inspect.ClockMeter
	token   string
}

// newReader creates the clients of a cluster. timeout limits each request.
func newReader(env *command.Env, config *rest.Config, cluster string, m *misses, timeout time.Duration) (*reader, error) {
	r := &reader{cluster: cluster, misses: m, token: config.BearerToken, dates: &inspect.ClockMeter{PassiveClock: env.Clock}}
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	config.Wrap(r.dates.Wrap)
	with, err := env.NewCluster(config)
	if err != nil {
		return nil, err
	}
	quiet := rest.CopyConfig(with.Config)
	quiet.WarningHandler = rest.NoWarnings{} // hide deprecation warnings, because the user did not request these kinds
	if r.Client, err = client.New(quiet, client.Options{Scheme: with.Scheme()}); err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", config.Host, err)
	}
	if r.raw, err = kubernetes.NewForConfig(quiet); err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", config.Host, err)
	}
	return r, nil
}

func (r *reader) miss(what string, err error) { r.misses.add(r.cluster, what, err) }

// runReads runs independent reads, a few at a time. Each read records what it cannot read.
func runReads(reads ...func()) { runReadsAtOnce(asking, reads) }

func runReadsAtOnce(limit int, reads []func()) {
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

// identity returns the cluster's ID: the UID of the kube-system namespace.
func (r *reader) identity(ctx context.Context) (string, error) {
	system, err := r.raw.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the kube-system namespace, whose UID identifies the cluster: %w", err)
	}
	return string(system.UID), nil
}

func (r *reader) version() string {
	v, err := r.raw.Discovery().ServerVersion()
	if err != nil {
		r.miss("the Kubernetes version", err)
		return ""
	}
	return v.GitVersion
}

// absent reports whether an error means that an object or its kind does not exist.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// find reads an object.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *reader, what string, key client.ObjectKey) Object[T] {
	return findInto[T](ctx, r, what, key, P(new(T)))
}

// findInto reads an object into the given one, whose kind may already be set.
func findInto[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *reader, what string, key client.ObjectKey, into P) Object[T] {
	switch err := r.Get(ctx, key, into); {
	case absent(err):
		return Object[T]{Read: true}
	case err != nil:
		r.miss(what, err)
		return Object[T]{}
	}
	return Object[T]{Item: into, Read: true}
}

// errMany reports a list that is too long to read completely.
var errMany = errors.New("there are more than " + fmt.Sprint(most) + ", too many to read")

// list reads a list, page by page. items returns the items of a page.
func list[T any, P client.ObjectList](ctx context.Context, r *reader, what string, into P, items func(P) []T, opts ...client.ListOption) List[T] {
	var all List[T]
	next := ""
	for {
		if err := meta.SetList(into, nil); err != nil {
			r.miss(what, err)
			return all
		}
		err := r.List(ctx, into, append(opts, client.Limit(pageSize), client.Continue(next))...)
		switch {
		case absent(err): // the API server does not serve the kind
			return List[T]{Read: true}
		case err != nil:
			r.miss(what, err)
			return all
		}
		all.Items = append(all.Items, items(into)...)
		if next = into.GetContinue(); next == "" {
			all.Read = true
			return all
		}
		if len(all.Items) >= most {
			r.miss(what, errMany)
			return all
		}
	}
}

// metadata reads the metadata of all objects of a kind.
func (r *reader) metadata(ctx context.Context, what string, kind schema.GroupVersionKind, opts ...client.ListOption) List[metav1.PartialObjectMetadata] {
	into := &metav1.PartialObjectMetadataList{}
	into.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list(ctx, r, what, into, func(l *metav1.PartialObjectMetadataList) []metav1.PartialObjectMetadata {
		for i := range l.Items {
			l.Items[i].SetGroupVersionKind(kind)
		}
		return l.Items
	}, opts...)
}

// get requests a path from the API server. The code is 0 if there was no response.
func (r *reader) get(ctx context.Context, path ...string) (code int, err error) {
	err = r.raw.CoreV1().RESTClient().Get().AbsPath(path...).MaxRetries(0).Do(ctx).StatusCode(&code).Error()
	return code, err
}

// details returns the kind that an API server's error is about, or "".
func details(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	return status.Status().Details.Kind
}

// compare orders missing items by cluster, the host first.
func compare(a, b inspect.Missing) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.What, b.What))
}
