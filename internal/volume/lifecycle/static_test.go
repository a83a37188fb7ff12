package lifecycle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

// asking returns a host PV with which an admin requests the leaf PV.
func asking(name string) corev1.PersistentVolume {
	pv := *hostPV.DeepCopy()
	pv.ObjectMeta = metav1.ObjectMeta{Name: name, UID: types.UID(name)}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: member.ClusterID + "/pv-1"}
	pv.Spec.ClaimRef, pv.Spec.StorageClassName = nil, ""
	return pv
}

// wrongForImport returns what is wrong with a plan for a volume that is requested by host PVs of
// admins, or "".
func wrongForImport(s *volume.Observed, p Plan) string {
	used := s.Leaf != nil && s.Leaf.Status.Phase == corev1.VolumeBound && !s.HeldByLeafClaim() && s.Holder == nil
	switch {
	case p.Step == SetDelete, p.Step == DestroyUnmirrored && s.Leaf != nil && s.Leaf.Labels[v1alpha1.LabelHost] != "":
		return "a volume is destroyed because an admin created a host PV for it (I2)"
	case p.Step == Take:
		return "a volume is stamped before the object that requests it is recorded (I1)"
	case p.Step == None && p.Owner == "" && p.Phase != Foreign:
		return "no controller reports the state"
	}
	if p.Step != Import {
		if s.RootBoundToImport() && !volume.ImportAllowed(s) && (p.Owner != RootPVC || p.Report == nil) {
			return "a claim is bound to a host PV that does not get a volume, and no controller reports it (I6)"
		}
		return ""
	}
	switch leaf := s.Leaf; {
	case leaf == nil || leaf.DeletionTimestamp != nil || s.Host != nil || len(s.Imports) != 1 || s.Imports[0].DeletionTimestamp != nil:
		return "a host PV is recorded for a volume that does not exist, or that has another host PV (I3)"
	case leaf.Labels[v1alpha1.LabelHost] != member.HostID:
		return "a volume is recorded without consent (I4)"
	case used, leaf.Status.Phase == corev1.VolumeReleased && leaf.Spec.PersistentVolumeReclaimPolicy != retains:
		return "a volume is recorded although it is in use in the member, or being deleted (I4)"
	case s.StampRoot != nil && s.StampRoot.Spec.VolumeName != s.Imports[0].Name:
		return "a claim's volume is recorded for another claim (I3)"
	}
	return ""
}

// For every combination of objects, the plan for a volume that admins' host PVs request does not
// take the volume from another user.
func TestEveryImport(t *testing.T) {
	first, second, ending := asking("asks"), asking("asks-too"), asking("asks")
	ending.DeletionTimestamp = &deleted
	recorded := recordedFor("recorded")
	counted, seen, failures := map[Step]int{}, 0, 0
	leaves := append(leaves(), nil)
	stride, offset := 1, 0
	if !*all {
		stride = 41
	}
	for _, imports := range [][]corev1.PersistentVolume{{first}, {ending}, {first, second}} {
		for _, host := range []*corev1.PersistentVolume{nil, recorded} {
			for _, root := range append(roots(), rootOfImport("asks")) {
				for _, claim := range leafClaims() {
					offset = (offset + 1) % stride
					for i := offset; i < len(leaves); i += stride {
						leaf := leaves[i]
						s := combination(root, host, false, claim, leaf, noRestore)
						s.Imports = imports
						if root != nil && root.Spec.VolumeName == "asks" {
							s = boundObservation(s, root, claim, leaf, host)
						}
						p := NextPlan(s)
						counted[p.Step]++
						seen++
						if why := wrongForImport(s, p); why != "" && s.Host == nil {
							if failures++; failures <= 10 {
								t.Errorf("%d imports: %s: %s %s by %s: %s", len(imports), why, p.Phase, p.Step, p.Owner, describe(s))
							}
						}
					}
				}
			}
		}
	}
	if counted[Import] == 0 {
		t.Error("step Import is never taken")
	}
	t.Logf("%d observations, %d wrong; steps: %v", seen, failures, counted)
}

func recordedFor(name string) *corev1.PersistentVolume {
	pv := asking(name)
	return hostpv.RecordImport(&pv, leafPV(), member)
}

func rootOfImport(volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "root"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
}

// boundObservation returns root_pvc's observation of a claim that is bound to an admin's host PV.
func boundObservation(s *volume.Observed, root, claim *corev1.PersistentVolumeClaim, leaf, host *corev1.PersistentVolume) *volume.Observed {
	bound := &volume.Observed{Member: s.Member, Name: s.Name, UID: s.UID, Leaf: leaf, Stamp: s.Stamp, LeafStamped: s.LeafStamped, StampRoot: s.StampRoot, Imports: s.Imports, TakingHost: host, Root: root}
	if claim != nil {
		origin, _ := mirror.LeafOriginFromHost(member.HostID, claim)
		switch {
		case origin.UID == root.UID:
			bound.LeafClaim, bound.Origin = claim, origin
		case hostpv.ClaimRefHasUIDOf(leaf, claim) && claim.Spec.VolumeName == s.Name:
			bound.Holder, bound.HolderOrigin = claim, origin
		}
	}
	return bound
}

func TestImports(t *testing.T) {
	storage := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	leaf := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		pv := leafPV()
		pv.Labels = map[string]string{v1alpha1.LabelHost: member.HostID}
		pv.Status.Phase = corev1.VolumeAvailable
		pv.Spec.Capacity, pv.Spec.AccessModes, pv.Spec.StorageClassName = storage("10Gi"), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, "gp3"
		pv.Spec.PersistentVolumeReclaimPolicy = retains
		if change != nil {
			change(pv)
		}
		return pv
	}
	host := func(change func(*corev1.PersistentVolume)) corev1.PersistentVolume {
		pv := asking("asks")
		pv.Spec.Capacity, pv.Spec.AccessModes = storage("10Gi"), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		if change != nil {
			change(&pv)
		}
		return pv
	}
	block := corev1.PersistentVolumeBlock
	tests := map[string]struct {
		leaf   *corev1.PersistentVolume
		asks   corev1.PersistentVolume
		reason string
	}{
		"Available, with consent": {leaf(nil), host(nil), ""},
		"Released and retained": {leaf(func(pv *corev1.PersistentVolume) {
			pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeReleased, refOf("another")
		}), host(nil), ""},
		"a smaller capacity":           {leaf(nil), host(func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = storage("5Gi") }), ""},
		"the class with the same name": {leaf(nil), host(func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "gp3" }), ""},
		"the volume's UID": {leaf(nil), host(func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes = map[string]string{v1alpha1.AttributeLeafUID: "leaf-1"}
		}), ""},
		"no volume":                {nil, host(nil), v1alpha1.ReasonAdoptionRefused},
		"no consent":               {leaf(func(pv *corev1.PersistentVolume) { pv.Labels = nil }), host(nil), v1alpha1.ReasonConsentMissing},
		"consent for another host": {leaf(func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelHost] = "other" }), host(nil), v1alpha1.ReasonAdoptionRefused},
		"bound in the member": {leaf(func(pv *corev1.PersistentVolume) {
			pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeBound, refOf("another")
		}), host(nil), v1alpha1.ReasonAdoptionRefused},
		"reserved in the member": {leaf(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = refOf("") }), host(nil), v1alpha1.ReasonAdoptionRefused},
		"Released, and about to be deleted": {leaf(func(pv *corev1.PersistentVolume) {
			pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, deletes
		}), host(nil), v1alpha1.ReasonAdoptionRefused},
		"Failed":        {leaf(func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeFailed }), host(nil), v1alpha1.ReasonAdoptionRefused},
		"being deleted": {leaf(func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &deleted }), host(nil), v1alpha1.ReasonAdoptionRefused},
		"a different policy was recorded earlier": {leaf(func(pv *corev1.PersistentVolume) {
			pv.Annotations = map[string]string{v1alpha1.AnnotationReclaimPolicy: "Delete"}
		}), host(nil), v1alpha1.ReasonAdoptionRefused},
		"a larger capacity": {leaf(nil), host(func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = storage("11Gi") }), v1alpha1.ReasonAdoptionRefused},
		"an access mode that the volume lacks": {leaf(nil), host(func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = append(pv.Spec.AccessModes, corev1.ReadWriteMany)
		}), v1alpha1.ReasonAdoptionRefused},
		"Block":         {leaf(nil), host(func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = &block }), v1alpha1.ReasonAdoptionRefused},
		"another class": {leaf(nil), host(func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "other" }), v1alpha1.ReasonAdoptionRefused},
		"another UID": {leaf(nil), host(func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes = map[string]string{v1alpha1.AttributeLeafUID: "leaf-0"}
		}), v1alpha1.ReasonAdoptionRefused},
		"a host PV that is being deleted": {leaf(nil), host(func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &deleted }), v1alpha1.ReasonAdoptionRefused},
	}
	parts := map[string][]string{ // of the messages
		"no volume":                            {"no such volume"},
		"a larger capacity":                    {"10Gi", "11Gi"},
		"an access mode that the volume lacks": {"ReadWriteMany"},
		"Block":                                {"Block", "Filesystem"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &volume.Observed{Member: member, Name: "pv-1", UID: "leaf-1", Leaf: test.leaf, Imports: []corev1.PersistentVolume{test.asks}}
			p, reason := NextPlan(s), ""
			if refusal := volume.ReportImportRefused(s); refusal != nil {
				reason = refusal.Reason
				for _, part := range append(parts[name], member.Registration) {
					if !strings.Contains(refusal.Message, part) {
						t.Errorf("message %q, want it to contain %q", refusal.Message, part)
					}
				}
			}
			if reason != test.reason || (p.StepOwnedBy(LeafPV) == Import) != (test.reason == "") {
				t.Errorf("refused because of %q, with step %q; want %q", reason, p.Step, test.reason)
			}
			if test.reason == "" {
				s.EarlierHosts = []corev1.PersistentVolume{*recordedFor("earlier")}
				if p := NextPlan(s); p.StepOwnedBy(LeafPV) == Import {
					t.Error("recorded although a host PV represents an earlier volume with that name")
				}
				s.EarlierHosts = nil
			}
			s.Root = rootOfImport("asks")
			if p := NextPlan(s); test.reason != "" && (p.Owner != RootPVC || p.Report == nil || p.Report.Reason != test.reason) {
				t.Errorf("the plan for the claim that is bound to the host PV is %+v, want root_pvc to report %s", p, test.reason)
			}
		})
	}
}
