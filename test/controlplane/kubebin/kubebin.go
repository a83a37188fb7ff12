package kubebin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// modulePath is the root module's path, which identifies its directory.
const modulePath = "github.com/xylem-io/xylem"

// RootEnv is the environment variable with the root of the repository, for programs that run
// outside it.
const RootEnv = "XYLEM_ROOT"

// Names of the programs, which are also their file names.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Provisioner       = "csi-provisioner"
	Resizer           = "csi-resizer"
	KWOK              = "kwok"
	// The following are extras (see All).
	SnapshotController = "snapshot-controller"
	Snapshotter        = "csi-snapshotter"
	Attacher           = "csi-attacher"
)

// ErrMissing is wrapped by errors about programs that have not been built.
var ErrMissing = errors.New("cluster programs are missing: run `make kube`")

// kubernetes is the path of the module that contains the control plane.
const kubernetes = "k8s.io/kubernetes"

// target is one program: its package, the module whose version it reports, and the variables into
// which the version is linked.
type target struct {
	name, pkg, module string
	versionVars       func(version string) []string
}

// core are the programs that every cluster needs, in build order: large programs first, because
// the others share their packages.
var core = []target{
	{Etcd, "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", func(string) []string { return nil }},
	{APIServer, "k8s.io/kubernetes/cmd/kube-apiserver", kubernetes, kubernetesVars},
	{ControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetes, kubernetesVars},
	{Scheduler, "k8s.io/kubernetes/cmd/kube-scheduler", kubernetes, kubernetesVars},
	{Kubectl, "k8s.io/kubernetes/cmd/kubectl", kubernetes, kubernetesVars},
	{
		Provisioner, "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
		"github.com/kubernetes-csi/external-provisioner/v6", mainVersion,
	},
	{
		Resizer, "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
		"github.com/kubernetes-csi/external-resizer/v2", mainVersion,
	},
	{
		KWOK, "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok",
		func(v string) []string {
			return []string{"sigs.k8s.io/kwok/pkg/consts.Version=" + strings.TrimPrefix(v, "v")}
		},
	},
}

// extras are programs that clusters need only for some options. Build builds them last.
var extras = []target{
	{
		SnapshotController, "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
		"github.com/kubernetes-csi/external-snapshotter/v8", mainVersion,
	},
	{
		Snapshotter, "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
		"github.com/kubernetes-csi/external-snapshotter/v8", mainVersion,
	},
	{
		Attacher, "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
		"github.com/kubernetes-csi/external-attacher/v4", mainVersion,
	},
}

// mainVersion is the variable with the version of a CSI sidecar.
func mainVersion(v string) []string { return []string{"main.version=" + v} }

// kubernetesVars are the variables that the official Kubernetes build sets. Without them, the
// apiserver reports v0.0.0, which misleads clients.
func kubernetesVars(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	var vars []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		vars = append(vars,
			pkg+".gitVersion="+version,
			pkg+".gitMajor="+parts[0],
			pkg+".gitMinor="+parts[1],
			pkg+".gitTreeState=clean",
		)
	}
	return vars
}

// buildFlags apply to every program. -s -w halves the size.
func buildFlags(t target, versions map[string]string) ([]string, error) {
	version, ok := versions[t.module]
	if !ok {
		return nil, fmt.Errorf("no module in test/kube requires %s", t.module)
	}
	ldflags := "-s -w"
	for _, v := range t.versionVars(version) {
		ldflags += " -X " + v
	}
	return []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", ldflags}, nil
}

// targets are all programs, in build order.
func targets() []target { return slices.Concat(core, extras) }

// Core returns the names of the programs that every cluster needs.
func Core() []string { return namesOf(core) }

// All returns the names of all programs: Core and the extras.
func All() []string { return namesOf(targets()) }

func namesOf(list []target) []string {
	names := make([]string, 0, len(list))
	for _, t := range list {
		names = append(names, t.name)
	}
	return names
}

// Root returns the directory of the root module: $XYLEM_ROOT, or the nearest parent of the
// working directory that contains it. It does not use the compiler's recorded paths, which
// -trimpath removes.
func Root() (string, error) {
	if root := os.Getenv(RootEnv); root != "" {
		return root, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the root of the repository: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // A go.mod above us.
		if err == nil && declares(string(content), modulePath) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the root of the repository: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod of %s in the working directory or above it: run from inside the repository or set %s",
				modulePath, RootEnv)
		}
		dir = parent
	}
}

func declares(gomod, path string) bool {
	for line := range strings.Lines(gomod) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "module" {
			return f[1] == path
		}
	}
	return false
}

// CacheDir returns the parent directory of built programs, and creates it if necessary.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	dir := filepath.Join(base, "xylem")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Programs, readable to all like any cache.
		return "", fmt.Errorf("create the cache directory: %w", err)
	}
	return dir, nil
}

// Dir returns the directory for the programs of the repository at root. The directory may be
// missing or incomplete (see Check).
func Dir(root string) (string, error) { return dirOf(defaultModule(root)) }

func dirOf(m module) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	key, err := key(m)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "kube-"+key), nil
}

// Check returns an error that wraps ErrMissing and names the programs that dir lacks.
func Check(dir string, programs []string) error {
	var missing []string
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w (%s not in %s)", ErrMissing, strings.Join(missing, ", "), dir)
	}
	return nil
}

// key hashes all dependencies of the programs except the version of Go, because a new toolchain
// does not justify a seven-minute rebuild.
func key(m module) (string, error) {
	versions, err := requirements(m)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(m.dir, name)) //nolint:gosec // Of this repository.
		if err != nil {
			return "", fmt.Errorf("read the module of the cluster programs: %w", err)
		}
		h.Write(fmt.Appendf(nil, "%s %d\n", name, len(content)))
		h.Write(content)
	}
	h.Write(fmt.Appendf(nil, "%s/%s\n", runtime.GOOS, runtime.GOARCH))
	for _, t := range m.targets() {
		flags, err := buildFlags(t, versions)
		if err != nil {
			return "", err
		}
		h.Write(fmt.Appendf(nil, "%s %s %q\n", t.name, t.pkg, flags))
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// requirements reads the versions in the go.mod of a module. It matches only "path version"
// lines, and not replace lines ("path => path version").
func requirements(m module) (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the module of the cluster programs: %w", err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "//")
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) == 2 && strings.HasPrefix(f[1], "v") {
			versions[f[0]] = f[1]
		}
	}
	return versions, nil
}
