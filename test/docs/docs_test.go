package docs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// order is the order of the pages. The first page installs Xylem, and the last one removes it.
var order = []string{
	"README.md",
	"charts/xylem-member/README.md",
	"config/samples/README.md",
	"charts/xylem/README.md",
	"charts/xylem/NODES.md",
	"charts/xylem/OPERATIONS.md",
	".github/CONTRIBUTING.md",
}

// engine lists the pages that require a Docker engine. `make test-e2e` covers them.
var engine = []string{"test/e2e/README.md"}

// elsewhere maps the beginning of each block that this test skips to the test that runs the block.
// The list prevents accidental omissions.
var elsewhere = map[string]string{
	"make demo": ".ci/run",
	"git clone https://github.com/xylem-io/xylem": ".ci/run",
	"go test ./internal/controller/rootpvc":       ".ci/run",
	"make docker-build":                           "make test-e2e",
	"make image IMG=":                             "make test-e2e",
	"helm test":                                   "test/charts",
	"helm upgrade xylem charts/xylem --namespace xylem-system --reset-then-reuse-values \\\n": "test/charts",
	"helm uninstall xylem ":                "test/charts",
	"kubectl xylem adopt cluster38 disk-7": "test/integration/stories",
	"kubectl patch clusterregistration cluster38 --type merge -p '{\"spec\":{\"nodes\"":            "test/integration/stories",
	"kubectl xylem move pvc orders-db":                                                             "test/integration/move",
	"kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig --api-server":     "test/integration/register",
	"kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig --node-identity":  "test/integration/register",
	"kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig --priority-class": "test/integration/register",
	"kubectl --context cluster39 drain NODE":                                                       "make test-e2e",
	"host=$(kubectl get namespace kube-system -o jsonpath='{.metadata.uid}')\nmember=":             "test/integration/stories",
	"revision=$(helm history xylem":                                                                "make test-e2e",
	"kubectl delete customresourcedefinition":                                                      "test/charts",
}

// limit is the timeout for all pages together.
const limit = 30 * time.Minute

func TestEveryBlockRuns(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range engine {
		delete(pages, page)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(order)), slices.Sorted(maps.Keys(pages))); diff != "" {
		t.Errorf("pages with commands, -run +found:\n%s", diff)
	}
	for _, blocks := range pages {
		for _, b := range blocks {
			if b.NotRun != "" && !known(b) {
				t.Errorf("%s is not run (%q): add it to elsewhere, with the test that runs it", b, b.NotRun)
			}
		}
	}
	if t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := start(ctx, t, root)
	for _, page := range order {
		if ok := t.Run(page, func(t *testing.T) { r.run(ctx, t, pages[page]) }); !ok {
			return // the next page continues where this page ended
		}
	}
}

func known(b Block) bool {
	for first := range elsewhere {
		if strings.HasPrefix(b.Commands, first) {
			return true
		}
	}
	return false
}

// reader is a user at a terminal, with a host and two members.
type reader struct {
	*harness.Xylem
	root string
	env  []string
	// manager guards Xylem.Manager.
	manager sync.Mutex
}

func start(ctx context.Context, t *testing.T, root string) *reader {
	t.Helper()
	x, err := harness.Start(ctx, harness.Options{
		Bare: true, Manager: filepath.Join(root, "bin", "manager"), Snapshots: true,
		Members: controlplane.Members("cluster38", "cluster39"), Progress: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	home := t.TempDir()
	for _, c := range x.Fleet.Members() {
		kubeconfig, err := c.Kubeconfig(controlplane.Direct)
		if err == nil {
			err = os.WriteFile(filepath.Join(home, c.Name()+".kubeconfig"), kubeconfig, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Fleet.WriteKubeconfig(filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
	r := &reader{Xylem: x, root: root, env: environment(ctx, t, x, root, home)}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.kubelet(ctx, t)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return r
}

// environment returns the environment for the commands, with the programs that the pages use on
// the PATH. HOME contains only the kubeconfigs, but the commands share the caches of Go and of the
// pinned tools.
func environment(ctx context.Context, t *testing.T, x *harness.Xylem, root, home string) []string {
	t.Helper()
	tools := filepath.Dir(os.Getenv("HELM"))
	if tools == "." {
		t.Fatal("HELM is not set: run this test with make test-integration, which builds Helm")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	goEnv, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	where := strings.Fields(string(goEnv))
	path := strings.Join([]string{filepath.Join(root, "bin"), filepath.Dir(x.Fleet.Kubectl()), tools, os.Getenv("PATH")}, string(os.PathListSeparator))
	return []string{
		"HOME=" + home, "PATH=" + path, "XDG_CACHE_HOME=" + cache, "GOCACHE=" + where[0], "GOMODCACHE=" + where[1],
		"GOFLAGS=" + os.Getenv("GOFLAGS"), "CGO_ENABLED=" + os.Getenv("CGO_ENABLED"), "GOPROXY=" + os.Getenv("GOPROXY"), "NO_COLOR=1",
	}
}

// run runs the blocks in one shell, as a reader would.
func (r *reader) run(ctx context.Context, t *testing.T, blocks []Block) {
	command := exec.CommandContext(ctx, "bash", "-c", Script(blocks))
	command.Dir, command.Env = r.root, r.env
	out, err := command.CombinedOutput()
	t.Logf("\n%s", out)
	if err != nil {
		t.Errorf("the last block above failed: %v", err)
		r.manager.Lock()
		defer r.manager.Unlock()
		if r.Manager != nil {
			t.Logf("the manager's log:\n%s", r.Manager.Log())
		}
	}
}

// kubelet runs the manager while its Deployment should have Pods.
func (r *reader) kubelet(ctx context.Context, t *testing.T) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := r.runManager(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("run the manager: %v", err)
			return
		}
	}
}

func (r *reader) runManager(ctx context.Context) error {
	r.manager.Lock()
	defer r.manager.Unlock()
	var d appsv1.Deployment
	err := r.Host.API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: "xylem-controller-manager"}, &d)
	switch {
	case err == nil && ptr.Deref(d.Spec.Replicas, 1) > 0:
		return r.RunManager(ctx)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read the manager's Deployment: %w", err)
	case r.Manager == nil:
		return nil
	}
	ended := r.Manager
	r.Manager = nil // the next manager may use another service account
	return ended.Stop()
}
