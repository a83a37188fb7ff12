package move_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/integration/harness"
)

// kubelet serves exec for the nodes of a member, because KWOK's exec never ends a command's input.
// A command runs on this machine, with $VOLUME as the directory or file that is the volume's disk.
type kubelet struct {
	server *httptest.Server
	member func() *harness.Cluster

	mu sync.Mutex
	// before, if set, is called before each command. Its error ends the command.
	before func(act) error
}

// act is a command that runs in a Pod.
type act struct {
	pod  *corev1.Pod
	what string
	// disk is the directory or file with the volume's data.
	disk string
}

// Kinds of commands.
const (
	sends    = "send"
	receives = "receive"
	sums     = "sum"
	measures = "measure"
)

func kindOf(script string) string {
	switch {
	case strings.Contains(script, "sha256sum"):
		return sums
	case strings.Contains(script, "--extract"), strings.Contains(script, "dd of="):
		return receives
	case strings.Contains(script, "--create"), strings.Contains(script, "dd if="):
		return sends
	}
	return measures
}

func newKubelet(member func() *harness.Cluster) *kubelet {
	k := &kubelet{member: member}
	k.server = httptest.NewUnstartedServer(k)
	k.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	k.server.StartTLS()
	return k
}

func (k *kubelet) address() string { return k.server.Listener.Addr().(*net.TCPAddr).String() }

// on sets the hook that runs before each command, and removes it at the end of the spec.
func (k *kubelet) on(before func(act) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.before = before
}

// ServeHTTP serves /exec/<namespace>/<pod>/<container>.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "exec" {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	expected := 1
	for _, name := range []string{"input", "output", "error"} {
		if query.Get(name) == "1" {
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
	status := k.run(ctx, parts[1], parts[2], query["command"], streams)
	_ = json.NewEncoder(streams[corev1.StreamTypeError]).Encode(status)
}

func (k *kubelet) run(ctx context.Context, namespace, name string, command []string, streams map[string]httpstream.Stream) metav1.Status {
	a, variable, err := k.act(ctx, namespace, name, command)
	if err == nil {
		k.mu.Lock()
		before := k.before
		k.mu.Unlock()
		if before != nil {
			err = before(a)
		}
	}
	if err != nil {
		return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), variable)
	cmd.WaitDelay = 5 * time.Second
	if s := streams[corev1.StreamTypeStdout]; s != nil {
		cmd.Stdout = s
	}
	if s := streams[corev1.StreamTypeStderr]; s != nil {
		cmd.Stderr = s
	}
	if s := streams[corev1.StreamTypeStdin]; s != nil {
		cmd.Stdin = s
	}
	err = cmd.Run()
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

// act returns the command with the disk of the Pod's container, and the environment variable that
// contains the disk's path.
func (k *kubelet) act(ctx context.Context, namespace, name string, command []string) (act, string, error) {
	m := k.member()
	pod := &corev1.Pod{}
	if err := m.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return act{}, "", err
	}
	disk, err := diskOf(ctx, m, namespace, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	if err != nil {
		return act{}, "", err
	}
	return act{pod, kindOf(strings.Join(command, " ")), disk}, pod.Spec.Containers[0].Env[0].Name + "=" + disk, nil
}

// diskOf returns the directory or file with the data of a member's claim.
func diskOf(ctx context.Context, m *harness.Cluster, namespace, name string) (string, error) {
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := m.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim); err != nil {
		return "", err
	}
	if err := m.API.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
		return "", err
	}
	return diskOfVolume(m, pv)
}

func diskOfVolume(m *harness.Cluster, pv *corev1.PersistentVolume) (string, error) {
	dir := filepath.Join(m.VolumesDir(), pv.Spec.CSI.VolumeHandle)
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("the disk is gone: %w", err)
	}
	if pv.Spec.VolumeMode == nil || *pv.Spec.VolumeMode == corev1.PersistentVolumeFilesystem {
		disk := filepath.Join(dir, "files")
		return disk, os.MkdirAll(disk, 0o755)
	}
	disk := filepath.Join(dir, "device")
	f, err := os.OpenFile(disk, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	size := pv.Spec.Capacity[corev1.ResourceStorage]
	return disk, errors.Join(f.Truncate(size.Value()), f.Close())
}
