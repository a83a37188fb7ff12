// Package kubelet serves exec for the nodes of a cluster, in Pods that use disks of the cluster's
// CSI driver. It forwards all other requests to KWOK, whose own exec never ends a command's input
// and does not distinguish Pods.
package kubelet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
)

// Server serves as the kubelet of a cluster's nodes. A command runs on this machine, with the
// environment of this process and of the Pod's container. In the container's variables, the path of
// a mounted disk is replaced with the disk's path on this machine.
type Server struct {
	server  *httptest.Server
	cluster func() *controlplane.Cluster

	mu     sync.Mutex
	before func(Command) error
}

// Command is a command that runs in a Pod.
type Command struct {
	Pod *corev1.Pod
	// Args are the program and its arguments.
	Args []string
	// Disk is the directory or file on this machine that contains the data of the Pod's claim.
	Disk string
}

// ErrBroken breaks the connection without a status, if a function that Before has set returns it.
var ErrBroken = errors.New("the connection breaks")

// New starts a Server. Close it after use. The Server calls cluster for each request.
func New(cluster func() *controlplane.Cluster) *Server {
	s := &Server{cluster: cluster}
	s.server = httptest.NewUnstartedServer(s)
	s.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	s.server.StartTLS()
	return s
}

// Close stops the Server.
func (s *Server) Close() { s.server.Close() }

// Address returns the loopback address for controlplane.ClusterOptions.
func (s *Server) Address() string { return s.server.Listener.Addr().String() }

// Before makes the Server call f before each command. An error of f ends the command. nil calls
// nothing.
func (s *Server) Before(f func(Command) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// ServeHTTP serves /exec/<namespace>/<pod>/<container>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "exec" {
		s.forward(w, r)
		return
	}
	command, env, err := s.command(r.Context(), parts[1], parts[2], parts[3])
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case command == nil:
		s.forward(w, r)
	default:
		command.Args = r.URL.Query()["command"]
		s.exec(w, r, command, env)
	}
}

// forward forwards a request to KWOK.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) {
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.cluster().KWOKAddress()}).ServeHTTP(w, r)
}

// command returns the command without its arguments, and the variables of the container. It returns
// nil if no variable of the container contains the path of a disk.
func (s *Server) command(ctx context.Context, namespace, name, container string) (command *Command, env []string, err error) {
	pod, err := s.cluster().Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, c := range pod.Spec.Containers {
		if c.Name != container {
			continue
		}
		claims := mounts(pod, c)
		for _, v := range c.Env {
			if claim, found := claims[v.Value]; found {
				command = &Command{Pod: pod}
				if command.Disk, err = diskOf(ctx, s.cluster(), namespace, claim); err != nil {
					return nil, nil, err
				}
				v.Value = command.Disk
			}
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return command, env, nil
}

// mounts returns the claims of a container by the paths where their disks are mounted.
func mounts(pod *corev1.Pod, c corev1.Container) map[string]string {
	claims, paths := map[string]string{}, map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims[v.Name] = v.PersistentVolumeClaim.ClaimName
		}
	}
	for _, m := range c.VolumeMounts {
		if claim, found := claims[m.Name]; found {
			paths[m.MountPath] = claim
		}
	}
	for _, d := range c.VolumeDevices {
		if claim, found := claims[d.Name]; found {
			paths[d.DevicePath] = claim
		}
	}
	return paths
}

// diskOf returns the directory or file on this machine that contains the data of a claim.
func diskOf(ctx context.Context, cluster *controlplane.Cluster, namespace, name string) (string, error) {
	claim, err := cluster.Client().CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	pv, err := cluster.Client().CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return DiskOfVolume(cluster, pv)
}

// DiskOfVolume returns the directory or file on this machine that contains the data of a volume.
func DiskOfVolume(cluster *controlplane.Cluster, pv *corev1.PersistentVolume) (string, error) {
	path := csidriver.FilesPath
	if pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		path = csidriver.DevicePath
	}
	disk := path(cluster.DriverDir(), pv.Spec.CSI.VolumeHandle)
	if _, err := os.Stat(disk); err != nil {
		return "", fmt.Errorf("the disk does not exist: %w", err)
	}
	return disk, nil
}

// exec runs a command with the streams of a connection.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, command *Command, env []string) {
	expected := 1
	for _, name := range []string{"input", "output", "error"} {
		if r.URL.Query().Get(name) == "1" {
			expected++
		}
	}
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return
	}
	arrived := make(chan httpstream.Stream, expected)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		arrived <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	streams := map[string]httpstream.Stream{}
	for range expected {
		select {
		case s := <-arrived:
			streams[s.Headers().Get(corev1.StreamType)] = s
		case <-time.After(30 * time.Second):
			return
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // the connection is hijacked
	defer cancel()
	go func() {
		select {
		case <-conn.CloseChan():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.run(ctx, command, env, streams)
	if errors.Is(err, ErrBroken) {
		return
	}
	_ = json.NewEncoder(streams[corev1.StreamTypeError]).Encode(statusOf(err))
	in := streams[corev1.StreamTypeStdin]
	if err == nil || in == nil {
		return
	}
	// A connection that is closed with unread input may lose the status.
	go func() { _, _ = io.Copy(io.Discard, in) }()
	select {
	case <-conn.CloseChan():
	case <-time.After(5 * time.Second):
	}
}

// run runs a command until it ends.
func (s *Server) run(ctx context.Context, command *Command, env []string, streams map[string]httpstream.Stream) error {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(*command); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, command.Args[0], command.Args[1:]...) //nolint:gosec // As a kubelet does.
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	if out := streams[corev1.StreamTypeStdout]; out != nil {
		cmd.Stdout = out
	}
	if out := streams[corev1.StreamTypeStderr]; out != nil {
		cmd.Stderr = out
	}
	if from := streams[corev1.StreamTypeStdin]; from != nil {
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go feed(in, from)
	}
	// The command must not outlive this program.
	if err := controlplane.Spawn(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// statusOf returns the status that a kubelet sends at the end of a command.
func statusOf(err error) metav1.Status {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit):
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: err.Error(),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exit.ExitCode())}}},
		}
	}
	return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
}

// latest is how long feed keeps the latest data of an input.
const latest = 200 * time.Millisecond

// feed copies the input of a command. Like a container runtime, it loses the latest data when the
// client closes the input, unless the input was idle before.
func feed(to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	chunks := make(chan []byte)
	go func() {
		defer close(chunks)
		for {
			chunk := make([]byte, 32<<10)
			n, err := from.Read(chunk)
			if n > 0 {
				chunks <- chunk[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	var kept []byte
	write := func(next []byte) {
		if len(kept) > 0 {
			_, _ = to.Write(kept) // fails if the command has ended
		}
		kept = next
	}
	for {
		select {
		case next, open := <-chunks:
			if !open {
				return
			}
			write(next)
		case <-time.After(latest):
			write(nil)
		}
	}
}
