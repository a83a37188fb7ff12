package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Names of the clusters. Seed 001's example requires the name of the first member.
const (
	HostName = "host"
	First    = "cluster38"
	Second   = "cluster39"
)

// WorkloadImage is the image of the tests' Pods, with the name that seed 001's example uses. The
// tests load it onto every node, so they need no registry.
const WorkloadImage = "registry.paas/cnp/nginx:1.14-alpine"

// Class is the class of seed 001's example. In the host, Xylem provisions it; in the members, a
// real provisioner does.
const Class = "openebs-hostpath"

// Cluster is one cluster with its admin's credentials.
type Cluster struct {
	Name string
	// Kubeconfig is the path of a kubeconfig that works on this machine.
	Kubeconfig string
	Config     *rest.Config
	// API is a client without a cache. Typed is for subresources and logs.
	API   client.WithWatch
	Typed kubernetes.Interface
}

// newCluster connects to the cluster of a kubeconfig.
func newCluster(name, kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1 // the server limits the rate (API Priority and Fairness)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build a scheme: %w", err)
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client of %s: %w", name, err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of %s: %w", name, err)
	}
	return &Cluster{Name: name, Kubeconfig: kubeconfig, Config: config, API: api, Typed: typed}, nil
}

// Fleet is a host with its members, and the disturbances that tests can cause.
type Fleet interface {
	// Host and Members are available after Up. Members are sorted by name.
	Host() *Cluster
	Member(name string) *Cluster
	Members() []*Cluster

	// Up starts missing clusters, and loads images. Down removes the clusters that Up created.
	Up(ctx context.Context) error
	Down(ctx context.Context) error

	// KillManager kills the leading manager without warning. Kubernetes restarts it.
	KillManager(ctx context.Context) error
	// Cut disconnects a member from the manager, and Mend reconnects it. The member continues to run.
	Cut(ctx context.Context, member string) error
	Mend(ctx context.Context, member string) error
	// Kill and Start stop and start a member's control plane and its node.
	Kill(ctx context.Context, member string) error
	Start(ctx context.Context, member string) error

	// Kubelets reports whether Pods really run and write.
	Kubelets() bool
	// Collect writes logs and objects of all clusters into a directory.
	Collect(ctx context.Context, dir string) error
}
