package problem

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/volumesource"
	"github.com/xylem-io/xylem/internal/volume"
)

// ReportSourceAway reports why Xylem does not create the claim from its source in this member.
func ReportSourceAway(s *volume.Observed) *mirror.Refusal {
	from := s.From()
	if from == nil {
		return nil
	}
	if from.At.Refusal != nil {
		return from.At.Refusal
	}
	return mirror.Refuse(v1alpha1.ReasonSourceElsewhere, "the data source of the claim, %s, is not in member %q. Run the Pod in the member that has the source", from.Of, s.Member.Registration)
}

// ReportSource reports why this member cannot create the claim from its source, or nil.
func ReportSource(s *volume.Observed) *mirror.Refusal {
	from := s.From()
	if from == nil || !from.Of.Placed() || s.SourceAway() {
		return nil
	}
	if from.Unread != nil {
		return sourceNotReady(s, "%[2]s", from.Unread.Message)
	}
	switch leaf, found := from.Leaf(); {
	case !found || from.Origin.UID != from.At.UID:
		return sourceNotReady(s, "the source does not exist in member %q")
	case leaf.GetDeletionTimestamp() != nil:
		return sourceNotReady(s, "the source's counterpart in member %q is being deleted")
	case from.Of.IsSnapshot():
		return reportSnapshot(s)
	}
	return reportClaim(s)
}

// reportClaim is ReportSource for a clone.
func reportClaim(s *volume.Observed) *mirror.Refusal {
	from := s.From()
	if from.Claim.Status.Phase != corev1.ClaimBound || from.Claim.Spec.VolumeName != from.At.LeafVolume || from.Volume == nil || from.Volume.UID != from.At.LeafUID {
		return sourceNotReady(s, "the source's counterpart in member %q is not bound to its volume")
	}
	driver, _ := volumesource.Of(from.Volume)
	return otherDriver(s, driver)
}

// reportSnapshot is ReportSource for a restore.
func reportSnapshot(s *volume.Observed) *mirror.Refusal {
	from := s.From()
	origin := mirror.Origin{HostID: s.Member.HostID, Root: types.NamespacedName{Namespace: s.Root.Namespace, Name: from.Of.Name}, UID: from.At.UID}
	if how := from.At.Unready(origin, from.Snapshot, from.Content); how != "" {
		return sourceNotReady(s, "the source's counterpart in member %q %s", how)
	}
	return otherDriver(s, from.Content.Spec.Driver)
}

// otherDriver returns a refusal if the claim's class in the member does not use the source's
// driver.
func otherDriver(s *volume.Observed, driver string) *mirror.Refusal {
	from := s.From()
	if from.Class == nil || from.Class.Provisioner == driver {
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonSourceMismatch, "the data source of the claim, %s, uses driver %q in member %q, but the claim's StorageClass in that member, %q, uses driver %q: a driver can copy only its own volumes. Delete the claim and create it again with a StorageClass that uses the driver of the source",
		from.Of, driver, s.Member.Registration, from.Class.Name, from.Class.Provisioner)
}

func sourceNotReady(s *volume.Observed, format string, args ...any) *mirror.Refusal {
	cause := fmt.Sprintf(format, append([]any{s.Member.Registration}, args...)...)
	return mirror.Refuse(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s, because %s", s.From().Of, cause)
}

// ReportUnlike reports that the member's volume is not a copy of the claim's source.
func ReportUnlike(s *volume.Observed) *mirror.Refusal {
	of, _ := datasource.Of(s.Root)
	return mirror.Refuse(v1alpha1.ReasonSourceMismatch, "the data source of the claim is %s, but the claim's counterpart \"%s/%s\" in member %q was not created from that source: the counterpart names another source or none, or the source was replaced while it was being copied. Xylem does not use the counterpart's volume. Delete the claim and create it again",
		of, s.Claim.Namespace, s.Claim.Name, s.Member.Registration)
}
