package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
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

// finished is the last line of the error output of a script that succeeded.
const finished = "xylem: finished"

// acknowledged returns a script that ends only once its client has received its output. If the
// script succeeds, it writes mark to stdout and finished to stderr, and waits until its input is
// closed.
//
// Otherwise, output could be lost. When a command ends, the kubelet and the API servers in between
// close their connections. If a ping arrives at a closed connection, the kernel at the other end
// discards the data that has not been read yet, and the client receives a success status
// (https://github.com/kubernetes/kubectl/issues/1726).
func acknowledged(script, mark string) string {
	return script + "\nprintf %s '" + mark + "'\necho '" + finished + "' >&2\nread -r _ || :"
}

// input is the input of a script, which reads what is written to w.
type input struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newScriptInput() *input {
	r, w := io.Pipe()
	return &input{r, w}
}

// run runs a script in a Pod. in may be nil. run closes in once all output has been received. The
// error includes the end of the script's error output.
func (s Shell) run(ctx context.Context, pod, script string, in *input, out io.Writer, args ...string) error {
	set, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return fmt.Errorf("create a client for %s: %w", s.Config.Host, err)
	}
	if in == nil {
		in = newScriptInput()
	}
	defer func() { _ = in.w.Close() }() // never returns an error
	o := newOutput(out, func() { _ = in.w.Close() })
	url := set.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: Container, Command: append([]string{"sh", "-c", acknowledged(script, o.mark), "move"}, args...),
			Stdin: true, Stdout: true, Stderr: true,
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
	ctx = klog.NewContext(ctx, logr.Discard()) // the executor would also log broken streams
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: o, Stderr: &o.complaints})
	switch {
	case o.receivedOutput():
		return nil
	case err != nil:
		return fmt.Errorf("in Pod %q: %w%s", pod, err, o.complaints.textOfTail())
	}
	return fmt.Errorf("the connection was lost before the script in Pod %q finished%s", pod, o.complaints.textOfTail())
}

// output is the output of an acknowledged script. It writes everything before the mark to out.
type output struct {
	mark       string
	out        io.Writer
	complaints tail

	mu     sync.Mutex
	held   []byte // the end of the output, which may be the mark
	marked bool
}

// newOutput returns the output of a script. The output calls received once it is complete.
func newOutput(out io.Writer, received func()) *output {
	o := &output{mark: rand.Text(), out: out}
	o.complaints.written = func() {
		if o.receivedOutput() {
			received()
		}
	}
	return o
}

// receivedOutput reports whether the script has succeeded and all its output has arrived.
func (o *output) receivedOutput() bool {
	o.mu.Lock()
	marked := o.marked
	o.mu.Unlock()
	return marked && o.complaints.finishedLines()
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	// What precedes the last bytes cannot belong to the mark.
	over := max(0, len(o.held)+len(b)-len(o.mark))
	first := min(over, len(o.held))
	var err error
	for _, part := range [][]byte{o.held[:first], b[:over-first]} {
		if err == nil && len(part) > 0 {
			_, err = o.out.Write(part)
		}
	}
	o.held = append(bytes.Clone(o.held[first:]), b[over-first:]...)
	o.marked = string(o.held) == o.mark
	o.mu.Unlock()
	if err != nil {
		return 0, err //nolint:wrapcheck // the caller names the stream
	}
	o.complaints.written()
	return len(b), nil
}

// tailBytes is the maximum size of the error output that is kept.
const tailBytes = 2048

// tail keeps the end of an error output. It is safe for concurrent use.
type tail struct {
	// written is called after each write, if set.
	written func()

	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.end = append(t.end, b...)
	t.end = bytes.Clone(t.end[max(0, len(t.end)-tailBytes):])
	t.mu.Unlock()
	if t.written != nil {
		t.written()
	}
	return len(b), nil
}

// finishedLines reports whether the script succeeded.
func (t *tail) finishedLines() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.HasSuffix(t.end, []byte(finished+"\n"))
}

// progressOf matches progress output: tar's dots, and dd's numbers.
var progressOf = regexp.MustCompile(`^\.*|(^|[\r\n])[0-9]+ bytes [^\r\n]*|(^|[\r\n])[0-9]+\+[0-9]+ records [^\r\n]*`)

// textOfTail returns the error output as the suffix of a message.
func (t *tail) textOfTail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	output := strings.Join(strings.Fields(progressOf.ReplaceAllString(string(t.end), "")), " ")
	if output == "" {
		return ""
	}
	return ": " + output
}

// readNumber returns the number that a script prints.
func (s Shell) readNumber(ctx context.Context, pod, script string) (int64, error) {
	var out bytes.Buffer
	if err := s.run(ctx, pod, script, nil, &out); err != nil {
		return 0, err
	}
	fields := strings.Fields(out.String())
	if len(fields) == 0 {
		return 0, fmt.Errorf("the script in Pod %q printed nothing", pod)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the script in Pod %q did not print a number: %w", pod, err)
	}
	return n, nil
}
