package rootpvc

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/volume/desired"
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
	leaf, refusal := desired.LeafClaim(o.Observed)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if got := ptr.Deref(leaf.Spec.VolumeAttributesClassName, ""); got != "m-gold" {
		t.Errorf("class is %q, want m-gold", got)
	}
	leaf.Status.Phase = corev1.ClaimBound
	if got := pvc.AttributesOf(o.Root, leaf); got != pvc.AttributesKept {
		t.Errorf("the class would be changed immediately: %v", got)
	}
}
