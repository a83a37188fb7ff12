package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// ReportSourceNotReadyHere reports why Xylem does not create the claim from its source in this member.
func ReportSourceNotReadyHere(s *Observed) *mirror.Refusal {
	from := s.ObservedSource()
	if from == nil {
		return nil
	}
	if from.At.Refusal != nil {
		return from.At.Refusal
	}
	return mirror.NewRefusal(v1alpha1.ReasonSourceElsewhere, "the data source of the claim, %s, is not in member %q. Run the Pod in the member that has the source", from.Of, s.Member.Registration)
}

// ReportSourceRefused reports why this member cannot create the claim from its source, or nil.
func ReportSourceRefused(s *Observed) *mirror.Refusal {
	from := s.ObservedSource()
	if from == nil || !from.Of.IsInOneMember() || s.SourceNotReadyHere() {
		return nil
	}
	if from.UnreadableCause != nil {
		return reportSourceNotReady(s, "%[2]s", from.UnreadableCause.Message)
	}
	switch leaf, found := from.LeafObject(); {
	case !found || from.Origin.UID != from.At.UID:
		return reportSourceNotReady(s, "the source does not exist in member %q")
	case leaf.GetDeletionTimestamp() != nil:
		return reportSourceNotReady(s, "the source's counterpart in member %q is being deleted")
	case from.Of.IsSnapshot():
		return reportSourceSnapshot(s)
	}
	return reportSourceClaim(s)
}

// reportSourceClaim is ReportSourceRefused for a clone.
func reportSourceClaim(s *Observed) *mirror.Refusal {
	from := s.ObservedSource()
	if from.Claim.Status.Phase != corev1.ClaimBound || from.Claim.Spec.VolumeName != from.At.LeafVolume || from.Volume == nil || from.Volume.UID != from.At.LeafUID {
		return reportSourceNotReady(s, "the source's counterpart in member %q is not bound to its volume")
	}
	driver, _ := mirror.VolumeSourceOf(from.Volume)
	return reportOtherDriver(s, driver)
}

// reportSourceSnapshot is ReportSourceRefused for a restore.
func reportSourceSnapshot(s *Observed) *mirror.Refusal {
	from := s.ObservedSource()
	origin := mirror.Origin{HostID: s.Member.HostID, Root: types.NamespacedName{Namespace: s.Root.Namespace, Name: from.Of.Name}, UID: from.At.UID}
	if how := from.At.Unready(origin, from.Snapshot, from.Content); how != "" {
		return reportSourceNotReady(s, "the source's counterpart in member %q %s", how)
	}
	return reportOtherDriver(s, from.Content.Spec.Driver)
}

// reportOtherDriver returns a refusal if the claim's class in the member does not use the source's
// driver.
func reportOtherDriver(s *Observed, driver string) *mirror.Refusal {
	from := s.ObservedSource()
	if from.Class == nil || from.Class.Provisioner == driver {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonSourceMismatch, "the data source of the claim, %s, uses driver %q in member %q, but the claim's StorageClass in that member, %q, uses driver %q: a driver can copy only its own volumes. Delete the claim and create it again with a StorageClass that uses the driver of the source",
		from.Of, driver, s.Member.Registration, from.Class.Name, from.Class.Provisioner)
}

func reportSourceNotReady(s *Observed, format string, args ...any) *mirror.Refusal {
	cause := fmt.Sprintf(format, append([]any{s.Member.Registration}, args...)...)
	return mirror.NewRefusal(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s, because %s", s.ObservedSource().Of, cause)
}

// ReportDataSourceDiffers reports that the member's volume is not a copy of the claim's source.
func ReportDataSourceDiffers(s *Observed) *mirror.Refusal {
	of, _ := mirror.DataSourceOf(s.Root)
	return mirror.NewRefusal(v1alpha1.ReasonSourceMismatch, "the data source of the claim is %s, but the claim's counterpart \"%s/%s\" in member %q was not created from that source: the counterpart names another source or none, or the source was replaced while it was being copied. Xylem does not use the counterpart's volume. Delete the claim and create it again",
		of, s.LeafClaim.Namespace, s.LeafClaim.Name, s.Member.Registration)
}
