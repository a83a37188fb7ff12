package main

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// suite is the Debian release. In later releases, systemd refuses to start on machines that have
// only cgroups v1.
const suite = "bookworm"

// mirrorEnv is the environment variable with a Debian mirror, for machines that cannot reach
// the default one.
const mirrorEnv = "DEBIAN_MIRROR"

// packages lists the packages of kind's base image, runc (which must be linked with a C library),
// and a shell for local-path's helper.
var packages = []string{
	"bash", "busybox-static", "ca-certificates", "conntrack", "curl", "dbus", "e2fsprogs", "ethtool", "fuse-overlayfs",
	"hostname", "iproute2", "iptables", "jq", "kmod", "libseccomp2", "mount", "nftables", "pigz", "procps", "runc",
	"socat", "systemd", "systemd-sysv", "tar", "util-linux",
}

// unwanted lists the paths that kind's base image removes: units that are useless in a container,
// and large unused files.
var unwanted = []string{
	"lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
	"lib/systemd/system/multi-user.target.wants/*",
	"etc/systemd/system/*.wants/*",
	"lib/systemd/system/local-fs.target.wants/*",
	"lib/systemd/system/sockets.target.wants/*udev*",
	"lib/systemd/system/sockets.target.wants/*initctl*",
	"lib/systemd/system/basic.target.wants/*",
	"var/cache/apt/archives/*.deb", "var/lib/apt/lists/*", "var/log/*.log",
	"usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*", "usr/share/info/*",
}

// bootstrap returns a directory with a node's operating system. It creates the directory once,
// and keeps it in the user's cache directory.
func bootstrap(ctx context.Context) (string, error) {
	cache, err := kubebin.CacheDir()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, suite, packages, unwanted)
	dir := filepath.Join(cache, "node-system-"+hex.EncodeToString(h.Sum(nil))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	progress("node image: installing Debian %s with %d packages (a minute or two)", suite, len(packages))
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("remove the leftovers of a killed run: %w", err)
	}
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages, ","), suite, unfinished}
	if mirror := os.Getenv(mirrorEnv); mirror != "" {
		args = append(args, mirror)
	}
	cmd := exec.CommandContext(ctx, "debootstrap", args...) //nolint:gosec // Our own packages.
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install Debian %s: %w\n%s", suite, err, lastLines(out, 20))
	}
	if err := trim(unfinished); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return "", fmt.Errorf("install Debian %s: %w", suite, err)
	}
	return dir, nil
}

func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func trim(system string) error {
	for _, pattern := range unwanted {
		found, err := filepath.Glob(filepath.Join(system, pattern))
		if err != nil {
			return fmt.Errorf("find %s: %w", pattern, err)
		}
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("remove %s: %w", path, err)
			}
		}
	}
	return nil
}

// libraries returns the programs at the given paths below the system's root, and all libraries
// that they load, by path below that root.
func libraries(system string, programs ...string) ([]string, error) {
	var dirs []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib"} {
		found, err := filepath.Glob(filepath.Join(system, pattern))
		if err != nil {
			return nil, fmt.Errorf("find libraries: %w", err)
		}
		dirs = append(dirs, found...)
	}
	var list []string
	seen := map[string]bool{}
	for queue := programs; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if seen[path] {
			continue
		}
		seen[path], list = true, append(list, path)
		needed, err := imported(filepath.Join(system, path))
		if err != nil {
			return nil, err
		}
		for _, name := range needed {
			if filepath.IsAbs(name) {
				queue = append(queue, name)
				continue
			}
			found, err := locate(dirs, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			queue = append(queue, strings.TrimPrefix(found, system))
		}
	}
	return list, nil
}

func locate(dirs []string, name string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find library %s: %w", name, err)
		}
	}
	return "", fmt.Errorf("library %s not found in the operating system", name)
}

// imported returns the libraries that a program or library needs, including the loader.
func imported(path string) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	names, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read the libraries of %s: %w", path, err)
	}
	if loader := file.Section(".interp"); loader != nil {
		content, err := loader.Data()
		if err != nil {
			return nil, fmt.Errorf("read the loader of %s: %w", path, err)
		}
		names = append(names, strings.TrimRight(string(content), "\x00"))
	}
	return names, nil
}
