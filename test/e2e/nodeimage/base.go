package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/xylem-io/xylem/test/image"
)

// enabled lists the units that kind's base image enables, all in multi-user.target.
var enabled = []string{"kubelet.service", "containerd.service", "undo-mount-hacks.service"}

// loadBase builds the image on which a node image is based, as kind's images/base/Dockerfile
// does, and loads it into the engine: the operating system, and a layer with additional files.
func loadBase(ctx context.Context, tag, kind, work string, programs programDirs, system string) error {
	files, err := baseFiles(ctx, kind, programs)
	if err != nil {
		return err
	}
	archive := filepath.Join(work, "system.tar")
	//nolint:gosec // Our own directories.
	out, err := exec.CommandContext(ctx, "tar", "-C", system, "--sort=name", "--numeric-owner", "-cf", archive, ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pack the operating system: %w\n%s", err, out)
	}
	layer, err := tarball.LayerFromFile(archive)
	if err != nil {
		return fmt.Errorf("pack the operating system: %w", err)
	}
	scratch, err := image.Scratch("linux", runtime.GOARCH)
	if err != nil {
		return err
	}
	base, err := mutate.AppendLayers(scratch, layer)
	if err != nil {
		return fmt.Errorf("pack the operating system: %w", err)
	}
	base, err = image.Build(base, files, func(c *v1.Config) {
		c.Env = []string{searchPath, "container=docker"} // systemd uses this variable to detect that it runs in a container.
		c.Entrypoint = []string{"/usr/local/bin/entrypoint", "/sbin/init"}
		c.StopSignal = "SIGRTMIN+3" // systemd shuts down when it receives this signal.
	})
	if err != nil {
		return err
	}
	return load(ctx, tag, base)
}

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// load loads an image into the engine.
func load(ctx context.Context, tag string, img v1.Image) error {
	progress("node image: loading %s", tag)
	cmd := exec.CommandContext(ctx, "docker", "load", "--quiet")
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("load %s: %w", tag, err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("load %s: %w", tag, err)
	}
	written := image.Write(in, map[string]v1.Image{tag: img})
	if err := in.Close(); written == nil {
		written = err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("load %s: %w\n%s", tag, err, out.String())
	}
	if written != nil {
		return fmt.Errorf("load %s: %w", tag, written)
	}
	return nil
}

func baseFiles(ctx context.Context, kind string, programs programDirs) ([]image.File, error) {
	files, err := kindFiles(filepath.Join(kind, "images/base/files"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"containerd", "ctr", "containerd-shim-runc-v2", "crictl"} {
		files = append(files, image.File{Path: "/usr/local/bin/" + name, Mode: 0o755, From: programs.of(name)})
	}
	for _, plugin := range plugins {
		name := filepath.Base(plugin)
		files = append(files, image.File{Path: "/opt/cni/bin/" + name, Mode: 0o755, From: programs.of(name)})
	}
	for _, unit := range enabled {
		files = append(files, image.File{
			Path: "/etc/systemd/system/multi-user.target.wants/" + unit, Link: "/etc/systemd/system/" + unit,
		})
	}
	spec, err := baseSpec(ctx, programs)
	if err != nil {
		return nil, err
	}
	return append(files,
		// This unit would register binary formats with the machine's kernel.
		image.File{Path: "/etc/systemd/system/systemd-binfmt.service", Link: "/dev/null"},
		image.File{Path: "/etc/systemd/journald.conf.d/kind.conf", Mode: 0o644, Content: []byte("[Journal]\nReadKMsg=no\n")},
		image.File{Path: "/etc/machine-id", Mode: 0o444},
		image.File{Path: "/etc/containerd/cri-base.json", Mode: 0o644, Content: spec},
		image.File{Path: "/etc/kubernetes/manifests", Mode: 0o755, Dir: true},
		image.File{Path: "/etc/cni/net.d", Mode: 0o755, Dir: true},
	), nil
}

// kindFiles returns kind's own files, with the modes from its Dockerfile.
func kindFiles(dir string) ([]image.File, error) {
	var files []image.File
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f := image.File{Path: strings.TrimPrefix(path, dir), Mode: 0o644, From: path}
		if strings.HasPrefix(f.Path, "/usr/local/bin/") || strings.HasPrefix(f.Path, "/kind/bin/") {
			f.Mode = 0o755
		}
		if f.Path == "/etc/containerd/config.toml" {
			f.From = ""
			f.Content, err = lenient(path)
		}
		files = append(files, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read kind's files: %w", err)
	}
	return files, nil
}

// lenient returns kind's containerd configuration with one setting changed. On machines without
// CAP_SYS_RESOURCE, a container's OOM score cannot be lowered, so no Pod would start with kind's
// setting.
func lenient(path string) ([]byte, error) {
	content, err := os.ReadFile(path) //nolint:gosec // kind's own.
	if err != nil {
		return nil, err
	}
	strict, lenient := []byte("restrict_oom_score_adj = false"), []byte("restrict_oom_score_adj = true")
	if !bytes.Contains(content, strict) {
		return nil, fmt.Errorf("kind's file %s no longer contains %q", path, strict)
	}
	return bytes.Replace(content, strict, lenient, 1), nil
}

// baseSpec returns the base specification of all containers: containerd's default, with the
// hook of kind's base image, and without limits.
func baseSpec(ctx context.Context, programs programDirs) ([]byte, error) {
	cmd := exec.CommandContext(ctx, programs.of("ctr"), "oci", "spec") //nolint:gosec // That we built.
	cmd.Stderr = io.Discard
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read the default specification from ctr: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(out, &spec); err != nil {
		return nil, fmt.Errorf("parse the default specification: %w", err)
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the default specification has no process:\n%s", out)
	}
	delete(process, "rlimits")
	spec["hooks"] = map[string]any{"createContainer": []any{map[string]any{"path": "/kind/bin/mount-product-files.sh"}}}
	return json.Marshal(spec)
}
