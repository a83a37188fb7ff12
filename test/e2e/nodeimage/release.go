package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/image"
)

// registry is the registry from which kubeadm expects images.
const registry = "registry.k8s.io"

// packRelease writes the server binaries of a Kubernetes release: kubelet, kubeadm and kubectl,
// and four archives with images. The archive kube-proxy.tar also contains all other images that a
// node needs, so that kind's builder does not pull any.
func packRelease(ctx context.Context, to, kind, work string, programs programDirs, system string) (err error) {
	bin := filepath.Join(work, "images")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return fmt.Errorf("create a work directory: %w", err)
	}
	files := map[string]string{"server/bin/kubectl": programs.of(kubebin.Kubectl)}
	for _, name := range []string{"kubelet", "kubeadm"} {
		files["server/bin/"+name] = programs.of(name)
	}
	for _, name := range []string{kubebin.APIServer, kubebin.ControllerManager, kubebin.Scheduler} {
		tag := registry + "/" + name + ":" + programs.kubernetes
		img, err := oneProgram(programs.of(name))
		if err != nil {
			return err
		}
		files["server/bin/"+name+".tar"] = filepath.Join(bin, name+".tar")
		if err := image.Save(filepath.Join(bin, name+".tar"), map[string]v1.Image{tag: img}); err != nil {
			return err
		}
	}
	others, err := otherImages(ctx, kind, programs, system)
	if err != nil {
		return err
	}
	files["server/bin/kube-proxy.tar"] = filepath.Join(bin, "kube-proxy.tar")
	if err := saveListed(filepath.Join(bin, "kube-proxy.tar"), others); err != nil {
		return err
	}
	version := filepath.Join(work, "version")
	if err := os.WriteFile(version, []byte(programs.kubernetes), 0o600); err != nil {
		return fmt.Errorf("pack Kubernetes: %w", err)
	}
	files["version"] = version
	if err := compress(to, "kubernetes", files); err != nil {
		return fmt.Errorf("pack Kubernetes: %w", err)
	}
	return nil
}

// otherImages returns kind's own images and kubeadm's images, except those of the control plane,
// by the names that kind uses.
func otherImages(ctx context.Context, kind string, programs programDirs, system string) (map[string]v1.Image, error) {
	builder := filepath.Join(kind, "pkg/build/nodeimage")
	wanted := map[string]string{ // the source of the name, and the program in the image
		`docker\.io/kindest/kindnetd:[\w.-]+`:               "podnet",
		`docker\.io/kindest/local-path-provisioner:[\w.-]+`: "local-path-provisioner",
	}
	images := map[string]v1.Image{}
	for pattern, name := range wanted {
		tag, err := named(pattern, builder, "*.go")
		if err != nil {
			return nil, err
		}
		if images[tag], err = oneProgram(programs.of(name)); err != nil {
			return nil, err
		}
	}
	helper, err := named(`docker\.io/kindest/local-path-helper:[\w.-]+`, builder, "*.go")
	if err != nil {
		return nil, err
	}
	if images[helper], err = shell(system); err != nil {
		return nil, err
	}
	pause, err := named(registry+`/pause:[\w.-]+`, filepath.Join(kind, "images/base/files/etc/containerd"), "config.toml")
	if err != nil {
		return nil, err
	}
	if images[pause], err = oneProgram(programs.of("pause")); err != nil {
		return nil, err
	}
	//nolint:gosec // That we built.
	out, err := exec.CommandContext(ctx, programs.of("kubeadm"), "config", "images", "list", "--kubernetes-version", programs.kubernetes).Output()
	if err != nil {
		return nil, fmt.Errorf("list the images that kubeadm needs: %w", err)
	}
	for _, tag := range strings.Fields(string(out)) {
		switch repository, _, _ := strings.Cut(tag, ":"); filepath.Base(repository) {
		case "etcd":
			images[tag], err = oneProgram(programs.of("etcd"))
		case "coredns":
			images[tag], err = oneProgram(programs.of("coredns"))
		case "kube-proxy":
			images[tag], err = proxy(system, programs)
		}
		if err != nil {
			return nil, err
		}
	}
	return images, nil
}

// named returns the name of an image as found in kind's sources, so that it always matches the
// name that kind uses.
func named(pattern, dir, glob string) (string, error) {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return "", fmt.Errorf("find an image's name: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, glob))
	if err != nil {
		return "", fmt.Errorf("find an image's name: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // kind's own.
		if err != nil {
			return "", fmt.Errorf("find an image's name: %w", err)
		}
		if found := expression.Find(content); found != nil {
			return string(found), nil
		}
	}
	return "", fmt.Errorf("no %s contains an image like %s: adapt nodeimage to this version of kind", filepath.Join(dir, glob), pattern)
}

// basics returns files that a Go program may need.
func basics() []image.File {
	return []image.File{
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")},
		{Path: "/etc/group", Mode: 0o644, Content: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: []byte("hosts: files dns\n")},
		{Path: "/tmp", Mode: 0o1777, Dir: true},
	}
}

// oneProgram returns an image with one static program.
func oneProgram(path string) (v1.Image, error) {
	to := "/usr/local/bin/" + filepath.Base(path)
	return pack(to, append(basics(), image.File{Path: to, Mode: 0o755, From: path}))
}

func pack(entrypoint string, files []image.File) (v1.Image, error) {
	scratch, err := image.Scratch("linux", runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return image.Build(scratch, files, func(c *v1.Config) {
		c.Env, c.Entrypoint = []string{searchPath}, []string{entrypoint}
	})
}

// shell returns an image with busybox, for scripts.
func shell(system string) (v1.Image, error) {
	files := append(basics(), image.File{Path: "/bin/busybox", Mode: 0o755, From: filepath.Join(system, "bin/busybox")})
	for _, applet := range []string{"sh", "mkdir", "rm", "chmod", "ls", "cat"} {
		files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	return pack("/bin/sh", files)
}

// proxy returns an image with kube-proxy and the programs that it runs, from the operating
// system.
func proxy(system string, programs programDirs) (v1.Image, error) {
	run := []string{"/usr/sbin/xtables-nft-multi", "/usr/sbin/conntrack", "/usr/sbin/nft", "/usr/bin/kmod"}
	// iptables loads extensions, which have their own libraries.
	extensions, err := filepath.Glob(filepath.Join(system, "usr/lib/*/xtables/*.so"))
	if err != nil || len(extensions) == 0 {
		return nil, errors.Join(fmt.Errorf("the operating system at %s lacks the extensions of iptables", system), err)
	}
	for _, path := range extensions {
		run = append(run, strings.TrimPrefix(path, system))
	}
	needed, err := libraries(system, run...)
	if err != nil {
		return nil, err
	}
	files := append(basics(), image.File{Path: "/usr/local/bin/kube-proxy", Mode: 0o755, From: programs.of("kube-proxy")})
	for _, path := range append(needed, "/etc/protocols", "/etc/services", "/etc/ethertypes") {
		from := filepath.Join(system, path)
		if _, err := os.Stat(from); err != nil && strings.HasPrefix(path, "/etc/") {
			continue
		}
		files = append(files, image.File{Path: path, Mode: 0o755, From: from})
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, name := range []string{family, family + "-save", family + "-restore"} {
			files = append(files, image.File{Path: "/usr/sbin/" + name, Link: "xtables-nft-multi"})
		}
	}
	files = append(files, image.File{Path: "/usr/sbin/modprobe", Link: "../bin/kmod"})
	return pack("/usr/local/bin/kube-proxy", files)
}

// saveListed writes an archive that begins with a list of its images, because kind's builder
// reads only the first entry otherwise.
func saveListed(to string, images map[string]v1.Image) (err error) {
	list := map[string]map[string]string{}
	for tag := range images {
		at := strings.LastIndex(tag, ":")
		list[tag[:at]] = map[string]string{tag[at+1:]: ""}
	}
	content, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("list the images of %s: %w", to, err)
	}
	out, err := os.Create(to) //nolint:gosec // In our work directory.
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// Flush the writer but do not close it, because more files follow in the archive.
	first := tar.NewWriter(out)
	if err := first.WriteHeader(&tar.Header{Name: "repositories", Mode: 0o644, Size: int64(len(content))}); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if _, err := first.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := first.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return image.Write(out, images)
}

// compress writes a compressed archive of files, with their names below prefix.
func compress(to, prefix string, files map[string]string) (err error) {
	out, err := os.Create(to) //nolint:gosec // In our work directory.
	if err != nil {
		return err
	}
	fast, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(fast)
	defer func() { err = errors.Join(err, archive.Close(), fast.Close(), out.Close()) }()
	for name, from := range files {
		if err := add(archive, filepath.Join(prefix, name), from); err != nil {
			return err
		}
	}
	return nil
}

func add(archive *tar.Writer, name, from string) error {
	in, err := os.Open(from) //nolint:gosec // That we made.
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // Only read.
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}
