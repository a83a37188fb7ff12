package doctor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// readHostFacts reads the host.
func readHostFacts(ctx context.Context, r *inspect.Reader, id, namespace string, f *Facts) {
	h := &f.Host
	h.ID, h.Namespace, h.Version = id, namespace, readVersion(r)
	h.Account = Account{Namespace: namespace, Name: command.DefaultManagerAccount}
	readManager(ctx, r, h)
	h.At = r.Dates.Now()
	inspect.RunReadsTogether(
		func() {
			h.Registrations = inspect.ReadList(ctx, r, "ClusterRegistrations", &v1alpha1.ClusterRegistrationList{},
				func(l *v1alpha1.ClusterRegistrationList) []v1alpha1.ClusterRegistration { return l.Items })
		},
		func() {
			h.Nodes = inspect.ReadList(ctx, r, "virtual nodes", &corev1.NodeList{}, func(l *corev1.NodeList) []corev1.Node { return l.Items },
				client.MatchingLabels{v1alpha1.LabelVirtualNode: "true"})
		},
	)
	readFacts(ctx, r, hostChecks, f)
	h.Clock = r.Dates.Measurement()
}

// created selects the objects that Xylem created.
var created = client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}

// podsOfList returns the Pods of a list.
func podsOfList(l *corev1.PodList) []corev1.Pod { return l.Items }
