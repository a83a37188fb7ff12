package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// Container is the name of the container that runs the scripts.
const Container = "mover"

// Shell runs scripts in Pods of one namespace.
type Shell struct {
	// Config is the configuration of a client for the host.
	Config    *rest.Config
	Namespace string
}

// run runs a script in a Pod. Its error includes the end of the script's error output.
func (s Shell) run(ctx context.Context, pod, script string, in io.Reader, out io.Writer, args ...string) error {
	set, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return fmt.Errorf("create a client for %s: %w", s.Config.Host, err)
	}
	url := set.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: Container, Command: append([]string{"sh", "-c", script, "move"}, args...),
			Stdin: in != nil, Stdout: out != nil, Stderr: true,
		}, scheme.ParameterCodec).URL()
	older, err := remotecommand.NewSPDYExecutor(s.Config, "POST", url)
	if err != nil {
		return fmt.Errorf("create a stream to Pod %q: %w", pod, err)
	}
	newer, err := remotecommand.NewWebSocketExecutor(s.Config, "GET", url.String())
	if err != nil {
		return fmt.Errorf("create a stream to Pod %q: %w", pod, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(newer, older, httpstream.IsUpgradeFailure)
	if err != nil {
		return fmt.Errorf("create a stream to Pod %q: %w", pod, err)
	}
	complaints := &tail{}
	ctx = klog.NewContext(ctx, logr.Discard()) // the executor would also log broken streams
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: complaints})
	if err != nil {
		return fmt.Errorf("in Pod %q: %w%s", pod, err, complaints.text())
	}
	return nil
}

// tailBytes is the maximum size of the error output that is kept.
const tailBytes = 2048

// tail keeps the end of an error output. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	t.end = bytes.Clone(t.end[max(0, len(t.end)-tailBytes):])
	return len(b), nil
}

// progressOf matches progress output: tar's dots, and dd's numbers.
var progressOf = regexp.MustCompile(`^\.*|(^|[\r\n])[0-9]+ bytes [^\r\n]*|(^|[\r\n])[0-9]+\+[0-9]+ records [^\r\n]*`)

// text returns the error output as the suffix of a message.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := strings.Join(strings.Fields(progressOf.ReplaceAllString(string(t.end), "")), " ")
	if said == "" {
		return ""
	}
	return ": " + said
}

// number returns the number that a script prints.
func (s Shell) number(ctx context.Context, pod, script string) (int64, error) {
	var out bytes.Buffer
	if err := s.run(ctx, pod, script, nil, &out); err != nil {
		return 0, err
	}
	fields := strings.Fields(out.String())
	if len(fields) == 0 {
		return 0, fmt.Errorf("in Pod %q: no output", pod)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("in Pod %q: the output is not a number: %w", pod, err)
	}
	return n, nil
}
