package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// shell runs scripts in Pods of one namespace.
type shell struct {
	config    *rest.Config
	namespace string
}

// run runs a script in a Pod. Its error includes the end of the script's error output.
func (s shell) run(ctx context.Context, pod, script string, in io.Reader, out io.Writer, args ...string) error {
	set, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return fmt.Errorf("create a client for %s: %w", s.config.Host, err)
	}
	url := set.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: append([]string{"sh", "-c", script, "move"}, args...),
			Stdin: in != nil, Stdout: out != nil, Stderr: true,
		}, scheme.ParameterCodec).URL()
	older, err := remotecommand.NewSPDYExecutor(s.config, "POST", url)
	if err != nil {
		return fmt.Errorf("create a stream to Pod %q: %w", pod, err)
	}
	newer, err := remotecommand.NewWebSocketExecutor(s.config, "GET", url.String())
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

// tailBytes is the maximum size of the kept error output.
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

// pipe runs one script with the output of another as its input, and counts the bytes. It returns
// the first error, because that makes the other end fail too.
func (s shell) pipe(ctx context.Context, from, to side, count func(int), args ...string) error {
	reader, writer := io.Pipe()
	group, ctx := errgroup.WithContext(ctx)
	var (
		once  sync.Once
		first error
	)
	ended := func(what string, end side, err error) error {
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s in %s: %w", what, end.where, err)
		once.Do(func() { first = err })
		return err
	}
	group.Go(func() error {
		err := ended("read the disk", from, s.run(ctx, from.pod, from.script, nil, counted{writer, count}, args...))
		_ = writer.CloseWithError(err) // never returns an error
		return err
	})
	group.Go(func() error {
		err := ended("write the copy", to, s.run(ctx, to.pod, to.script, reader, io.Discard, args...))
		_ = reader.CloseWithError(errors.New("the other end has closed the stream")) // never returns an error
		return err
	})
	if err := group.Wait(); err != nil {
		return first
	}
	return nil
}

// side is one end of a pipe.
type side struct{ pod, script, where string }

type counted struct {
	io.Writer
	count func(int)
}

// Write implements io.Writer.
func (c counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.count(n)
	return n, err //nolint:wrapcheck // the caller names the stream
}

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// sum returns the checksum that a script prints.
func (s shell) sum(ctx context.Context, pod, script string, args ...string) (string, error) {
	var out bytes.Buffer
	if err := s.run(ctx, pod, script, nil, &out, args...); err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(out.String()), " ")
	if !checksum.MatchString(first) {
		return "", fmt.Errorf("in Pod %q: the output is not a checksum: %q", pod, first)
	}
	return first, nil
}

// number returns the number that a script prints.
func (s shell) number(ctx context.Context, pod, script string) (int64, error) {
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
