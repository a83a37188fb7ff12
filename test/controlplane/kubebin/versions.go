package kubebin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is a Go module below test/kube, with the groups of programs that are built from it.
type module struct {
	dir    string
	groups [][]target
}

func (m module) targets() []target { return slices.Concat(m.groups...) }

func defaultModule(root string) module {
	return module{dir: filepath.Join(root, "test", "kube"), groups: [][]target{core, extras}}
}

// controlPlane are the programs that depend on a cluster's version. Clusters of all versions share
// the other programs.
var controlPlane = []string{APIServer, ControllerManager, Scheduler}

// ErrNoVersion is wrapped by errors about a version of Kubernetes that has no module.
var ErrNoVersion = errors.New("unknown version of Kubernetes")

// otherModule is the module of a minor version that is not the default.
func otherModule(root, version string) module {
	own := slices.DeleteFunc(slices.Clone(core), func(t target) bool { return !slices.Contains(controlPlane, t.name) })
	return module{dir: filepath.Join(root, "test", "kube", version), groups: [][]target{own}}
}

// Versions returns the minor versions of Kubernetes, such as "1.37", that can be built: first the
// default, then the others from newest to oldest.
func Versions(root string) ([]string, error) {
	first, err := defaultVersion(root)
	if err != nil {
		return nil, err
	}
	modules, err := filepath.Glob(filepath.Join(root, "test", "kube", "*", "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("find the versions of Kubernetes: %w", err)
	}
	others := make([]string, 0, len(modules))
	for _, file := range modules {
		others = append(others, filepath.Base(filepath.Dir(file)))
	}
	slices.SortFunc(others, func(a, b string) int { return CompareVersions(b, a) })
	return append([]string{first}, others...), nil
}

// CompareVersions compares minor versions such as "1.9" and "1.10", as cmp.Compare does.
func CompareVersions(a, b string) int {
	number := func(version string) int {
		_, minor, _ := strings.Cut(version, ".")
		n, err := strconv.Atoi(minor)
		if err != nil {
			return 0
		}
		return n
	}
	return cmp.Compare(number(a), number(b))
}

// Release returns the release that a minor version is built from, such as "v1.37.2".
func Release(root, version string) (string, error) {
	m, err := moduleOf(root, version)
	if err != nil {
		return "", err
	}
	return release(m)
}

func release(m module) (string, error) {
	versions, err := requirements(m)
	if err != nil {
		return "", err
	}
	if versions[kubernetes] == "" {
		return "", fmt.Errorf("%s does not require %s", filepath.Join(m.dir, "go.mod"), kubernetes)
	}
	return versions[kubernetes], nil
}

func defaultVersion(root string) (string, error) {
	full, err := release(defaultModule(root))
	if err != nil {
		return "", err
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(full, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor, nil
}

// moduleOf returns the module with the control plane of a minor version.
func moduleOf(root, version string) (module, error) {
	versions, err := Versions(root)
	switch {
	case err != nil:
		return module{}, err
	case version == "", version == versions[0]:
		return defaultModule(root), nil
	case !slices.Contains(versions, version):
		return module{}, fmt.Errorf("%w: %q; test/kube has %s", ErrNoVersion, version, strings.Join(versions, ", "))
	}
	return otherModule(root, version), nil
}

// ControlPlane returns the paths of a minor version's kube-apiserver, kube-controller-manager and
// kube-scheduler, by their names. The version "" is the default. The error wraps ErrMissing if
// they have not been built.
func ControlPlane(root, version string) (map[string]string, error) {
	m, err := moduleOf(root, version)
	if err != nil {
		return nil, err
	}
	dir, err := dirOf(m)
	if err != nil {
		return nil, err
	}
	if err := Check(dir, controlPlane); err != nil {
		return nil, fmt.Errorf("control plane of Kubernetes %s: %w, and `make kube-versions` for older versions", cmp.Or(version, "in test/kube"), err)
	}
	paths := map[string]string{}
	for _, name := range controlPlane {
		paths[name] = filepath.Join(dir, name)
	}
	return paths, nil
}

// BuildVersion builds the missing control plane of a minor version, and returns its directory.
func BuildVersion(
	ctx context.Context, root, version string, progress func(format string, args ...any),
) (string, error) {
	m, err := moduleOf(root, version)
	if err != nil {
		return "", err
	}
	full, err := release(m)
	if err != nil {
		return "", err
	}
	progress("cluster programs: Kubernetes %s", full)
	return build(ctx, m, controlPlane, progress)
}
