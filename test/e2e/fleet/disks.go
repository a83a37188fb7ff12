package fleet

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/image"
)

// Disks is a StorageClass in the second member. Unlike kind's provisioner, its driver supports
// snapshots and clones. The driver also has the VolumeSnapshotClass "snapshots".
const Disks = "disks"

// DisksDriver is the name of the driver that class Disks uses.
const DisksDriver = "disks.csi.e2e.xylem.io"

// disksDir is the directory with the driver's disks and snapshots on the node.
const disksDir = "/var/lib/xylem-disks"

// Files is a StorageClass in both members. Its driver, FilesDriver, stores volumes in a directory that
// the nodes of both members share. Only the second member provisions them.
const (
	Files       = "files"
	FilesDriver = "files.csi.e2e.xylem.io"
)

// filesDir is the shared directory on each node.
const filesDir = "/var/lib/xylem-files"

//go:embed files.yaml
var files string

//go:embed files-provisioner.yaml
var filesProvisioner string

//go:embed snapshot-controller.yaml
var snapshotController string

//go:embed disks.yaml
var disks string

// csiDriver is the name of the driver's program. The program's path contains a hash.
const csiDriver = "csidriver"

// programs lists the programs that each cluster's manifests and Pods run, each in its own image. The host
// needs only the snapshot-controller, because Xylem is the driver of the host's snapshots.
var programs = map[string][]string{
	HostName: {kubebin.SnapshotController},
	First:    {csiDriver, kubebin.Etcd},
	Second:   {kubebin.SnapshotController, kubebin.Provisioner, kubebin.Snapshotter, csiDriver, kubebin.Etcd},
}

// programImage returns the name of the image with a program.
func programImage(program string) string { return "xylem-e2e/" + program + ":dev" }

// DatabaseImage is the image with etcd, which the members' nodes have. Its entry point is the program.
var DatabaseImage = programImage(kubebin.Etcd)

// packPrograms packs the programs of all manifests into images, and returns the images by program.
func packPrograms(ctx context.Context, progress func(format string, args ...any)) (map[string]v1.Image, error) {
	root, err := kubebin.Root()
	if err != nil {
		return nil, err
	}
	dir, err := kubebin.Dir(root)
	if err != nil {
		return nil, err
	}
	driver, err := kubebin.CSIDriver(ctx, root, progress)
	if err != nil {
		return nil, err
	}
	packed := map[string]v1.Image{}
	for _, name := range programs[Second] {
		from := filepath.Join(dir, name)
		if name == csiDriver {
			from = driver
		} else if err := kubebin.Check(dir, []string{name}); err != nil {
			return nil, err
		}
		scratch, err := image.Scratch("linux", runtime.GOARCH)
		if err != nil {
			return nil, err
		}
		packed[name], err = image.Build(scratch, []image.File{{Path: "/" + name, Mode: 0o755, From: from}},
			func(c *v1.Config) { c.Entrypoint = []string{"/" + name} })
		if err != nil {
			return nil, err
		}
	}
	return packed, nil
}

// imagesOf returns the images for a cluster's nodes, by their tags.
func imagesOf(name string, workload, packed map[string]v1.Image) map[string]v1.Image {
	images := maps.Clone(workload)
	for _, program := range programs[name] {
		images[programImage(program)] = packed[program]
	}
	return images
}

// storage applies the manifests of a cluster's programs, and waits until the Deployments run.
func storage(ctx context.Context, c *Cluster) error {
	if c.Name == First {
		return applyAll(ctx, c, files)
	}
	if len(programs[c.Name]) == 0 {
		return nil
	}
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	crds, err := kubebin.SnapshotCRDs(ctx, root)
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{
		Paths: crds, ErrorIfPathMissing: true, MaxTime: patience, PollInterval: poll,
	})
	if err != nil {
		return fmt.Errorf("install the VolumeSnapshot CRDs in %s: %w", c.Name, err)
	}
	deployments, manifests := []string{"snapshot-controller"}, []string{snapshotController}
	if c.Name == Second {
		deployments, manifests = append(deployments, "disks", "files-provisioner"), append(manifests, disks, files, filesProvisioner)
	}
	if err := applyAll(ctx, c, strings.Join(manifests, "\n---\n")); err != nil {
		return err
	}
	for _, name := range deployments {
		if err := available(ctx, c, client.ObjectKey{Namespace: "kube-system", Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func applyAll(ctx context.Context, c *Cluster, manifests string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), len(manifests))
	for {
		var o unstructured.Unstructured
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a manifest for %s: %w", c.Name, err)
		}
		err = c.API.Apply(ctx, client.ApplyConfigurationFromUnstructured(&o), client.FieldOwner("xylem-e2e"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s to %s: %w", o.GetKind(), o.GetName(), c.Name, err)
		}
	}
}

// Disks lists the disks and snapshots of the second member's driver.
func (k *Kind) Disks(ctx context.Context) ([]string, error) {
	return k.list(ctx, Second, disksDir+"/volumes", disksDir+"/snapshots")
}

// Shared lists the volumes in the directory that both members share.
func (k *Kind) Shared(ctx context.Context) ([]string, error) {
	return k.list(ctx, Second, filesDir+"/volumes")
}
