package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
)

// metricsPort is the name of the manager's metrics port.
const metricsPort = "metrics"

// managers selects the manager's Pods.
var managers = client.MatchingLabels{command.LabelName: command.LabelNameValue, "control-plane": "controller-manager"}

// writeManagerLogs writes the logs of the manager's Pods, and their metrics if the API server can read them.
func (o *options) writeManagerLogs(ctx context.Context, c *cluster) error {
	var pods corev1.PodList
	if err := c.source.List(ctx, &pods, client.InNamespace(o.env.Namespace), managers, client.Limit(pageSize)); err != nil {
		c.recordMissing("", "the manager's Pods", err)
		return nil
	}
	if len(pods.Items) == 0 {
		c.recordMissing("", "the manager's logs", fmt.Errorf("namespace %q contains no manager Pods", o.env.Namespace))
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range pod.Spec.Containers {
			if err := o.writeContainerLog(ctx, c, pod, container.Name, false); err != nil {
				return err
			}
			if containerRestarted(pod, container.Name) {
				if err := o.writeContainerLog(ctx, c, pod, container.Name, true); err != nil {
					return err
				}
			}
		}
		if err := o.writeMetrics(ctx, c, pod); err != nil {
			return err
		}
	}
	return nil
}

func containerRestarted(pod *corev1.Pod, container string) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount > 0
		}
	}
	return false
}

// writeContainerLog writes the end of a container's log.
func (o *options) writeContainerLog(ctx context.Context, c *cluster, pod *corev1.Pod, container string, previous bool) error {
	name := container + ".log"
	if previous {
		name = container + "-previous.log"
	}
	stream, err := c.source.Raw.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true,
		SinceTime: &metav1.Time{Time: o.env.Clock.Now().Add(-o.logSince)},
	}).Stream(ctx)
	if err != nil {
		c.recordMissing("", fmt.Sprintf("the log of container %q of Pod %q", container, pod.Name), err)
		return nil
	}
	defer func() { _ = stream.Close() }()
	content, err := readLogTail(stream, o.logLimit)
	if err != nil {
		c.recordMissing("", fmt.Sprintf("the rest of the log of container %q of Pod %q", container, pod.Name), err)
	}
	return c.writeText(path.Join(c.folder, "logs", pod.Name, name), content)
}

// readLogTail reads a stream, and returns its end: the last whole lines, but no more than limit bytes.
func readLogTail(r io.Reader, limit int64) (string, error) {
	var kept []byte
	buffer := make([]byte, 64<<10)
	cut := false
	for {
		n, err := r.Read(buffer)
		kept = append(kept, buffer[:n]...)
		if int64(len(kept)) > 2*limit {
			kept, cut = append([]byte{}, kept[int64(len(kept))-limit:]...), true
		}
		if errors.Is(err, io.EOF) {
			return string(wholeLines(kept, limit, cut)), nil
		}
		if err != nil {
			return string(wholeLines(kept, limit, cut)), fmt.Errorf("read the log: %w", err)
		}
	}
}

// wholeLines returns the last whole lines.
func wholeLines(kept []byte, limit int64, cut bool) []byte {
	if over := int64(len(kept)) - limit; over > 0 {
		kept, cut = kept[over:], true
	}
	if !cut {
		return kept
	}
	for i, b := range kept {
		if b == '\n' {
			return kept[i+1:]
		}
	}
	return nil // the missing start of a line might contain the name that identifies a credential
}

// metricsTimeout limits how long reading the metrics of one Pod may take.
const metricsTimeout = 10 * time.Second

// writeMetrics writes the manager's metrics. The manager serves them over HTTPS to authorized users
// only, and the API server does not forward credentials. So the metrics are missing unless the
// manager runs with --metrics-secure=false.
func (o *options) writeMetrics(ctx context.Context, c *cluster, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	var last error
	for _, scheme := range []string{"https", "http"} {
		content, err := c.source.Raw.CoreV1().Pods(pod.Namespace).ProxyGet(scheme, pod.Name, ptr.Deref(metricsPortOf(pod), metricsPort), "metrics", nil).DoRaw(ctx)
		if err == nil {
			return c.writeText(path.Join(c.folder, "metrics", pod.Name+".txt"), string(content))
		}
		last = err
	}
	c.recordMissing("", fmt.Sprintf("the metrics of Pod %q", pod.Name), last)
	return nil
}

// metricsPortOf returns the number of the metrics port, because the API server's proxy does not resolve
// its name.
func metricsPortOf(pod *corev1.Pod) *string {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == metricsPort {
				return ptr.To(fmt.Sprint(port.ContainerPort))
			}
		}
	}
	return nil
}
