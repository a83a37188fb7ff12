package rootpvc

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/volume"
)

// A leaf claim for an existing volume names the volume's class. With any other class, the member
// would not bind it.
func TestLeafClaimOfAVolumeHasItsClass(t *testing.T) {
	o := seen(bound, func(o *scene) {
		class := "gold"
		o.leafVolume.Spec.VolumeAttributesClassName = orNil("m-gold")
		o.root.Spec.VolumeAttributesClassName = &class
		for i := range o.hosts {
			o.hosts[i].Spec.VolumeAttributesClassName = &class
		}
	})
	leaf, refusal := volume.LeafClaim(o.Observed)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if got := ptr.Deref(leaf.Spec.VolumeAttributesClassName, ""); got != "m-gold" {
		t.Errorf("class is %q, want m-gold", got)
	}
	leaf.Status.Phase = corev1.ClaimBound
	if got := pvc.AttributesClassChangeOf(o.Root, leaf); got != pvc.AttributesKept {
		t.Errorf("the class would be changed immediately: %v", got)
	}
}

// The volume of an earlier claim, which is adopted with another class, gets the class of its new claim. A host
// PV that is older than the claim, because an admin freed it, has the volume's own class.
func TestLeafClaimOfAnAdoptedVolumeIsModified(t *testing.T) {
	verifyEarlierVolume(t, -time.Hour, pvc.AttributesChange)
	verifyEarlierVolume(t, time.Hour, pvc.AttributesKept)
}

// verifyEarlierVolume checks the change of a volume that an earlier claim used. The claim is created at a
// time relative to the host PV's creation.
func verifyEarlierVolume(t *testing.T, created time.Duration, want pvc.AttributesClassChange) {
	t.Helper()
	o := seen(bound, func(o *scene) {
		class := "silver"
		o.root.CreationTimestamp = metav1.NewTime(now.Add(created))
		o.leafVolume.Spec.VolumeAttributesClassName, o.root.Spec.VolumeAttributesClassName = orNil("m-gold"), &class
		earlier := mirror.OriginForRoot(here.HostID, o.root)
		earlier.UID = "earlier"
		earlier.StampLeaf(o.leafVolume)
		for i := range o.hosts {
			o.hosts[i].Spec.VolumeAttributesClassName, o.hosts[i].CreationTimestamp = &class, now
		}
	})
	leaf, refusal := volume.LeafClaim(o.Observed)
	if refusal != nil {
		t.Fatal(refusal)
	}
	leaf.Status.Phase = corev1.ClaimBound
	if got := pvc.AttributesClassChangeOf(o.Root, leaf); ptr.Deref(leaf.Spec.VolumeAttributesClassName, "") != "m-gold" || got != want {
		t.Errorf("class is %q, and the change is %v", ptr.Deref(leaf.Spec.VolumeAttributesClassName, ""), got)
	}
}
