package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// modules is the path of the nested module that pins the programs, relative to the root.
const modules = "test/e2e/nodeimage/programs"

// programDirs are the directories of the built programs: one for the loopback clusters' programs,
// and one for programs that only a node needs.
type programDirs struct {
	loopback, node string
	// controlPlane contains the programs of the control plane, by name.
	controlPlane map[string]string
	// kubernetes is the version of the control plane and of the node.
	kubernetes string
}

func (d programDirs) of(name string) string {
	if path := d.controlPlane[name]; path != "" {
		return path
	}
	if slices.Contains(kubebin.Core(), name) && name != kubebin.Etcd {
		return filepath.Join(d.loopback, name)
	}
	return filepath.Join(d.node, name)
}

// program is a program to build from the nested module or, if module is empty, from this module.
type program struct {
	name, pkg, module, tags string
	// version is the variable that the linker sets to the module's version.
	version []string
}

const (
	containerd = "github.com/containerd/containerd/v2"
	cni        = "github.com/containernetworking/plugins"
	kubernetes = "k8s.io/kubernetes"
	// noSnapshotters excludes snapshotters that no kind node uses.
	noSnapshotters = "no_aufs no_zfs no_btrfs no_devmapper"
)

var (
	containerdVersion = []string{containerd + "/version.Version"}
	// kubeadm compares these versions and uses them to find images.
	kubernetesVersion = []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"}
	crictlVersion     = []string{"sigs.k8s.io/cri-tools/pkg/version.Version"}
)

// plugins are the CNI plugins of kind's base image.
var plugins = []string{"main/ptp", "main/loopback", "ipam/host-local", "meta/portmap"}

func nodePrograms() []program {
	list := []program{
		{name: "kubelet", pkg: kubernetes + "/cmd/kubelet", module: kubernetes, version: kubernetesVersion},
		{name: "kubeadm", pkg: kubernetes + "/cmd/kubeadm", module: kubernetes, version: kubernetesVersion},
		{name: "kube-proxy", pkg: kubernetes + "/cmd/kube-proxy", module: kubernetes, version: kubernetesVersion},
		{name: "containerd", pkg: containerd + "/cmd/containerd", module: containerd, tags: noSnapshotters, version: containerdVersion},
		{name: "ctr", pkg: containerd + "/cmd/ctr", module: containerd, tags: noSnapshotters, version: containerdVersion},
		{
			name: "containerd-shim-runc-v2", pkg: containerd + "/cmd/containerd-shim-runc-v2", module: containerd,
			tags: noSnapshotters, version: containerdVersion,
		},
		{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", module: "go.etcd.io/etcd/server/v3"},
		{name: "crictl", pkg: "sigs.k8s.io/cri-tools/cmd/crictl", module: "sigs.k8s.io/cri-tools", version: crictlVersion},
		{
			name: "local-path-provisioner", pkg: "github.com/rancher/local-path-provisioner",
			module: "github.com/rancher/local-path-provisioner", version: []string{"main.VERSION"},
		},
		{name: "coredns", pkg: "./coredns", module: "github.com/coredns/coredns"},
		{name: "podnet", pkg: "./podnet"},
		{name: "pause", pkg: "./pause"},
	}
	for _, plugin := range plugins {
		list = append(list, program{name: filepath.Base(plugin), pkg: cni + "/plugins/" + plugin, module: cni})
	}
	return list
}

// buildPrograms builds missing programs. It stores a node's programs next to those of the
// loopback clusters, under a hash of their sources.
func buildPrograms(ctx context.Context, root string) (programDirs, error) {
	loopback, err := kubebin.Build(ctx, root, kubebin.Core(), progress)
	if err != nil {
		return programDirs{}, err
	}
	key, err := hashOf(filepath.Join(root, modules))
	if err != nil {
		return programDirs{}, err
	}
	cache, err := kubebin.CacheDir()
	if err != nil {
		return programDirs{}, err
	}
	dirs := programDirs{loopback: loopback, node: filepath.Join(cache, "node-"+key)}
	if err := os.MkdirAll(dirs.node, 0o755); err != nil { //nolint:gosec // Programs, for all users.
		return programDirs{}, fmt.Errorf("create the directory of the programs: %w", err)
	}
	if dirs.kubernetes, err = moduleVersion(ctx, root, kubernetes); err != nil {
		return programDirs{}, err
	}
	if dirs.controlPlane, err = controlPlane(ctx, root, dirs.kubernetes); err != nil {
		return programDirs{}, err
	}
	list := nodePrograms()
	for i, p := range list {
		path := filepath.Join(dirs.node, p.name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		progress("[%d/%d] %s: building (the first programs take minutes, because they compile the shared packages)", i+1, len(list), p.name)
		start := time.Now()
		if err := build(ctx, root, path, p); err != nil {
			return programDirs{}, err
		}
		progress("[%d/%d] %s: %s", i+1, len(list), p.name, time.Since(start).Round(time.Second))
	}
	return dirs, nil
}

// controlPlane builds the control plane in the node's own version, which kubeadm requires.
// test/kube may have a newer one.
func controlPlane(ctx context.Context, root, release string) (map[string]string, error) {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	minor := strings.Join(parts[:min(len(parts), 2)], ".")
	has, err := kubebin.Release(root, minor)
	if err != nil {
		return nil, err
	}
	if has != release {
		return nil, fmt.Errorf("%s requires Kubernetes %s, but test/kube has %s", modules, release, has)
	}
	if _, err := kubebin.BuildVersion(ctx, root, minor, progress); err != nil {
		return nil, err
	}
	return kubebin.ControlPlane(root, minor)
}

func build(ctx context.Context, root, path string, p program) error {
	linked := "-s -w"
	if p.module != "" {
		version, err := moduleVersion(ctx, root, p.module)
		if err != nil {
			return err
		}
		for _, variable := range p.version {
			linked += " -X " + variable + "=" + version
		}
		if p.module == kubernetes {
			major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
			minor, _, _ = strings.Cut(minor, ".")
			linked += " -X k8s.io/component-base/version.gitMajor=" + major + " -X k8s.io/component-base/version.gitMinor=" + minor
		}
	}
	return kubebin.GoBuild(ctx, filepath.Join(root, modules), path, p.pkg,
		"-trimpath", "-buildvcs=false", "-tags", p.tags, "-ldflags", linked)
}

// hashOf returns a hash of all Go sources below dir, and of the toolchain.
func hashOf(dir string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOARCH)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // Sources of this repository.
		if err != nil {
			return err
		}
		fmt.Fprintln(h, filepath.Base(path), len(content))
		_, err = h.Write(content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the sources of the programs: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func moduleVersion(ctx context.Context, root, module string) (string, error) {
	return goList(ctx, filepath.Join(root, modules), module, "{{.Version}}")
}

// moduleDir returns the directory with the sources of a dependency of the root's module.
func moduleDir(ctx context.Context, root, module string) (string, error) {
	return goList(ctx, root, module, "{{.Dir}}")
}

func goList(ctx context.Context, dir, module, format string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", format, module) //nolint:gosec // Our own module names.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w\n%s", module, err, failure.String())
	}
	return strings.TrimSpace(string(out)), nil
}
