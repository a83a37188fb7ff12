package oracle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestBelieved(t *testing.T) {
	claim := boundTo(leafClaimOf(rootUID))
	claim.Annotations[AnnotationForged] = "true"
	volume := leafVolume(stamped, retain)
	volume.Annotations[AnnotationForged] = "true"
	forged := []Sighting{seen(host, 0, rootClaim()), seen(one, 1, volume), seen(one, 2, claim)}
	for name, tt := range map[string]struct {
		more []Sighting
		want []string
	}{
		"the host does not change":                  {nil, nil},
		"the claim is placed in another member":     {[]Sighting{seen(host, 4, placed("other"))}, nil},
		"the claim is placed in the forging member": {[]Sighting{seen(host, 4, placed(oneID))}, []string{"I8"}},
		"a host PV represents the forged volume":    {[]Sighting{seen(host, 4, hostVolume(corev1.VolumeBound))}, []string{"I8"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evidence{
				Namespace: run, Host: host, IDs: map[string]string{host: hostID, one: oneID}, Began: second(0),
				History: append(append([]Sighting{}, forged...), tt.more...), Live: append([]Sighting{seen("cluster39", 9, leafVolume(stamped))}, forged...),
			}
			var got []string
			for _, v := range Judge(e) {
				got = append(got, v.Invariant)
			}
			if len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
				t.Errorf("found %v, want %v", Judge(e), tt.want)
			}
		})
	}
	if isForged(leafClaimOf(rootUID)) || !isForged(claim) || claim.Labels[v1alpha1.LabelHost] == "" {
		t.Error("forged objects must have Xylem's stamp, and Xylem's objects must not count as forged")
	}
}
