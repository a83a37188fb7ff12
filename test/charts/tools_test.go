package charts_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// tool returns the path of a program: the value of the environment variable or, if it is not set,
// the program that it builds from a module under test/tools.
func tool(ctx context.Context, variable, name string, tags ...string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	arguments := append([]string{"-C", path("test", "tools", name), "tool"}, "-n", name)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -tags="+strings.Join(tags, ","))
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, &complaints)
	}
	return strings.TrimSpace(string(out)), nil
}

// path returns a path in the repository.
func path(elements ...string) string { return filepath.Join(append([]string{root}, elements...)...) }

// run runs a program and returns its output. An error contains the program's error output.
func run(ctx context.Context, stdin string, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdin = strings.NewReader(stdin)
	// Do not use the user's own configuration of Helm and kubectl.
	command.Env = append(os.Environ(), fleet.KubectlCache(), "KUBECONFIG="+fleet.Host.KubeconfigPath(), "HELM_CACHE_HOME="+helmHome,
		"HELM_CONFIG_HOME="+helmHome, "HELM_DATA_HOME="+helmHome)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s%s", filepath.Base(program), strings.Join(arguments, " "), err, &complaints, &out)
	}
	return out.String(), nil
}

func helm(ctx context.Context, arguments ...string) (string, error) {
	return run(ctx, "", helmPath, arguments...)
}

// kubectl runs kubectl as an admin of the host. It fails on errors, and on warnings such as those
// of Pod Security.
func kubectl(ctx context.Context, stdin string, arguments ...string) string {
	GinkgoHelper()
	out, err := run(ctx, stdin, fleet.Kubectl(), append([]string{"--warnings-as-errors"}, arguments...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// render returns the output of helm template for a chart with values in YAML.
func render(ctx context.Context, chart, namespace, values string) (string, error) {
	return run(ctx, values, helmPath, "template", "xylem", path("charts", chart), "--namespace", namespace, "--values", "-")
}
