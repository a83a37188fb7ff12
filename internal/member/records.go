package member

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// recordedMost is how many lines of what was let go are kept for a member; the
// oldest go first. With names of 253 characters they stay far below the 256 KiB
// that an object's annotations may have.
const recordedMost = 200

// Records keeps what an admin made Xylem let go of, with the host's record of the
// member's fence, which outlives the volume, the registration and their events.
type Records struct {
	// Live reads from the host, bypassing its cache.
	Live client.Reader
	// Namespace of the records.
	Namespace string
	// Clock is the wall clock.
	Clock clock.PassiveClock
}

// LetGo records what is about to be let go of in a member. What has been recorded
// already, by an attempt that was cut off, is not again.
func (r *Records) LetGo(ctx context.Context, to *guarded.Root, clusterID, what string) error {
	record, err := getLease(ctx, r.Live, r.Namespace, recordPrefix+clusterID)
	if err != nil {
		return fmt.Errorf("read the record of cluster %s: %w", clusterID, err)
	}
	after := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: recordPrefix + clusterID}}
	if record != nil {
		after = record.DeepCopy()
	}
	lines := after.Annotations[v1alpha1.AnnotationLetGo]
	added := withLine(lines, r.Clock.Now(), what)
	if added == lines {
		return nil
	}
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationLetGo, added)
	metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
	if record == nil {
		err = to.Create(ctx, recorder, after)
	} else {
		err = to.Patch(ctx, recorder, record, after)
	}
	if err != nil {
		return fmt.Errorf("record what is let go of in cluster %s: %w", clusterID, err)
	}
	return nil
}

const recorder = guarded.Actor("records")

// withLine adds a line "<time> <what>", unless there is one of the same what.
func withLine(lines string, at time.Time, what string) string {
	var kept []string
	if lines != "" {
		kept = strings.Split(lines, "\n")
	}
	if slices.ContainsFunc(kept, func(line string) bool { _, said, _ := strings.Cut(line, " "); return said == what }) {
		return lines
	}
	kept = append(kept, at.UTC().Format(time.RFC3339)+" "+what)
	return strings.Join(kept[max(0, len(kept)-recordedMost):], "\n")
}
