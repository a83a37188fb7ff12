package pvc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

func TestTranslateClaim(t *testing.T) {
	root := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{
		AccessModes:               []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
		Resources:                 corev1.VolumeResourceRequirements{Requests: mirrortest.StorageAmount("5Gi")},
		VolumeName:                "pvc-1",
		StorageClassName:          mirrortest.PointerTo("virtual-disk-ssd"),
		VolumeMode:                mirrortest.PointerTo(corev1.PersistentVolumeBlock),
		VolumeAttributesClassName: mirrortest.PointerTo("gold"),
	})
	root.Labels = map[string]string{"app": "web", "xylem.io/cluster": "forged"}
	root.Annotations = map[string]string{
		"note":                                             "kept",
		"xylem.io/placed-in":                               "member-id",
		"pv.kubernetes.io/bound-by-controller":             "yes",
		"pv.kubernetes.io/bind-completed":                  "yes",
		"volume.kubernetes.io/selected-node":               "kosmos-cluster38",
		"volume.kubernetes.io/storage-provisioner":         "csi.xylem.io",
		"volume.beta.kubernetes.io/storage-provisioner":    "csi.xylem.io",
		"volume.beta.kubernetes.io/storage-class":          "old",
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
	}
	root.Finalizers = []string{"kubernetes.io/pvc-protection"}
	root.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web"}}

	got, err := TranslateClaim(root, mirrortest.PointerTo("gp3"), mirrortest.Member)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "shop",
			Name:        "disk",
			Labels:      map[string]string{"app": "web", "xylem.io/host": mirrortest.HostID, "app.kubernetes.io/managed-by": "xylem"},
			Annotations: map[string]string{"note": "kept", "xylem.io/root": "shop/disk", "xylem.io/root-uid": "claim-uid"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
			Resources:        corev1.VolumeResourceRequirements{Requests: mirrortest.StorageAmount("5Gi")},
			StorageClassName: mirrortest.PointerTo("gp3"),
			VolumeMode:       mirrortest.PointerTo(corev1.PersistentVolumeBlock),
		},
	}
	want.Annotations[v1alpha1.AnnotationPushed] = got.Annotations[v1alpha1.AnnotationPushed]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if drift := ClaimMetaDriftOf(root, got, mirrortest.Member); !drift.IsEmpty() {
		t.Errorf("a new leaf claim drifts: %v", drift)
	}

	named := ClaimWithVolumeName(got, "pv-7")
	if named.Spec.VolumeName != "pv-7" || got.Spec.VolumeName != "" {
		t.Errorf("WithVolume: copy has %q, original %q; want pv-7 in the copy only", named.Spec.VolumeName, got.Spec.VolumeName)
	}
}

func TestMetaDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		root, leaf func(*corev1.PersistentVolumeClaim)
		want       fields.MetaDrift
		// record reports whether Xylem must write the push record.
		record bool
	}{
		"keys added, changed and removed": {
			root: func(c *corev1.PersistentVolumeClaim) {
				c.Labels = map[string]string{"recurring-job.longhorn.io/source": "enabled"}
				c.Annotations = map[string]string{"note": "2", "volume.kubernetes.io/selected-node": "node"}
			},
			want: fields.MetaDrift{
				Labels:      map[string]*string{"recurring-job.longhorn.io/source": mirrortest.PointerTo("enabled"), "tier": nil},
				Annotations: map[string]*string{"note": mirrortest.PointerTo("2")},
			},
			record: true,
		},
		"keys that the member's admin or driver wrote": {
			leaf: func(c *corev1.PersistentVolumeClaim) {
				c.Labels["tier"], c.Labels["driver"], c.Annotations["driver"] = "silver", "a", "b"
			},
		},
		"a key that both changed": {
			root:   func(c *corev1.PersistentVolumeClaim) { c.Labels["tier"] = "bronze" },
			leaf:   func(c *corev1.PersistentVolumeClaim) { c.Labels["tier"] = "silver" },
			want:   fields.MetaDrift{Labels: map[string]*string{"tier": mirrortest.PointerTo("bronze")}},
			record: true,
		},
		"created by a version without the record": {
			root:   func(c *corev1.PersistentVolumeClaim) { c.Labels["new"] = "" },
			leaf:   func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationPushed) },
			want:   fields.MetaDrift{Labels: map[string]*string{"new": mirrortest.PointerTo("")}},
			record: true,
		},
		"a forged record that contains the stamp's keys": {
			leaf: func(c *corev1.PersistentVolumeClaim) {
				c.Annotations[v1alpha1.AnnotationPushed] = `{"labels":{"xylem.io/host":"1","app.kubernetes.io/managed-by":"2"},"annotations":{"xylem.io/root-uid":"3"}}`
			},
			record: true,
		},
		"a copy of a backup tool, which a patch would make look like Xylem's own": {
			root: func(c *corev1.PersistentVolumeClaim) { c.Labels["tier"] = "bronze" },
			leaf: func(c *corev1.PersistentVolumeClaim) { mirror.MarkLeafCreatedByOthers(c) },
		},
		"the leaf of an earlier root": {root: func(c *corev1.PersistentVolumeClaim) { c.UID, c.Labels["tier"] = "another", "bronze" }},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{})
			root.Labels, root.Annotations = map[string]string{"tier": "gold"}, map[string]string{"note": "1"}
			leaf, err := TranslateClaim(root, nil, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			if tc.root != nil {
				tc.root(root)
			}
			if tc.leaf != nil {
				tc.leaf(leaf)
			}
			got := ClaimMetaDriftOf(root, leaf, mirrortest.Member)
			if _, records := got.Annotations[v1alpha1.AnnotationPushed]; records != tc.record {
				t.Errorf("writes the record: %t, want %t", records, tc.record)
			}
			got.ApplyToMeta(&leaf.ObjectMeta)
			if again := ClaimMetaDriftOf(root, leaf, mirrortest.Member); !again.IsEmpty() {
				t.Errorf("still drifts after the change: %v", again)
			}
			delete(got.Annotations, v1alpha1.AnnotationPushed)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A claim of the host that must not be bound to an existing volume has a selector that no volume
// matches. Only that selector is omitted, because a provisioner would reject it.
func TestTranslateSelector(t *testing.T) {
	users := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	for name, tc := range map[string]struct{ root, leaf *metav1.LabelSelector }{
		"a user's":     {users, users},
		"selects none": {ContradictorySelector(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			leaf, err := TranslateClaim(mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{Selector: tc.root}), nil, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.leaf, leaf.Spec.Selector); diff != "" {
				t.Errorf("the leaf claim's selector (-want +got):\n%s", diff)
			}
		})
	}
	selector, err := metav1.LabelSelectorAsSelector(ContradictorySelector())
	if err != nil {
		t.Fatal(err)
	}
	for _, having := range []labels.Set{{}, {v1alpha1.MovePrefix + "none": "", "tier": "gold"}} {
		if selector.Matches(having) {
			t.Errorf("a volume with labels %v matches", having)
		}
	}
}

// Translation never removes a claim's data source.
func TestTranslateKeepsTheDataSource(t *testing.T) {
	for name, spec := range map[string]corev1.PersistentVolumeClaimSpec{
		"a claim":              {DataSource: &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "c"}},
		"a snapshot":           {DataSource: &corev1.TypedLocalObjectReference{APIGroup: mirrortest.PointerTo("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "s"}},
		"a populator's source": {DataSourceRef: &corev1.TypedObjectReference{APIGroup: mirrortest.PointerTo("example.com"), Kind: "Image", Name: "i"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootClaim(spec)
			leaf, err := TranslateClaim(root, nil, mirrortest.Member)
			if err != nil {
				t.Fatal(err)
			}
			if !mirror.SameDataSource(root, leaf) {
				t.Errorf("the leaf claim has data source %v, %v; want the root's", leaf.Spec.DataSource, leaf.Spec.DataSourceRef)
			}
			if got := mirror.DataSourceUIDOfLeaf(ClaimWithDataSourceUID(leaf, "uid-1")); got != "uid-1" {
				t.Errorf("the leaf claim records source %q, want uid-1", got)
			}
		})
	}
}

func TestTranslateClaimRefuses(t *testing.T) {
	leaf, err := TranslateClaim(mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{
		DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "c", Namespace: mirrortest.PointerTo("victim")},
	}), nil, mirrortest.Member)
	var refusal *mirror.Refusal
	if !errors.As(err, &refusal) || leaf != nil {
		t.Fatalf("want a refusal, got %v, %v", leaf, err)
	}
	if refusal.Reason != v1alpha1.ReasonDataSourceUnsupported || !strings.Contains(refusal.Message, "spec.dataSourceRef.namespace: ") {
		t.Errorf("got %s: %s; want DataSourceUnsupported for spec.dataSourceRef.namespace", refusal.Reason, refusal.Message)
	}
}

func TestGrowth(t *testing.T) {
	cases := map[string]struct {
		root, leaf, capacity string
		phase                corev1.PersistentVolumeClaimPhase
		want                 string
		changes              bool
	}{
		"equal":                                        {root: "5Gi", leaf: "5Gi", capacity: "5Gi", phase: corev1.ClaimBound, want: "5Gi"},
		"the same quantity in another notation":        {root: "5120Mi", leaf: "5Gi", capacity: "5Gi", phase: corev1.ClaimBound, want: "5Gi"},
		"grown":                                        {root: "8Gi", leaf: "5Gi", capacity: "5Gi", phase: corev1.ClaimBound, want: "8Gi", changes: true},
		"grown, but the leaf is not bound":             {root: "8Gi", leaf: "5Gi", phase: corev1.ClaimPending, want: "5Gi"},
		"grown, but the leaf is lost":                  {root: "8Gi", leaf: "5Gi", capacity: "5Gi", phase: corev1.ClaimLost, want: "5Gi"},
		"reduced, but above the current capacity":      {root: "6Gi", leaf: "8Gi", capacity: "5Gi", phase: corev1.ClaimBound, want: "6Gi", changes: true},
		"reduced to the current capacity":              {root: "5Gi", leaf: "8Gi", capacity: "5Gi", phase: corev1.ClaimBound, want: "8Gi"},
		"reduced below the current capacity":           {root: "4Gi", leaf: "8Gi", capacity: "5Gi", phase: corev1.ClaimBound, want: "8Gi"},
		"reduced, but the current capacity is unknown": {root: "6Gi", leaf: "8Gi", phase: corev1.ClaimBound, want: "8Gi"},
		"no request":                                   {root: "0", leaf: "8Gi", phase: corev1.ClaimBound, want: "8Gi"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: mirrortest.StorageAmount(c.root)}})
			leaf := mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: mirrortest.StorageAmount(c.leaf)}})
			leaf.Status.Phase = c.phase
			if c.capacity != "" {
				leaf.Status.Capacity = mirrortest.StorageAmount(c.capacity)
			}
			got, changes := LeafStorageRequest(root, leaf)
			if changes != c.changes || got.Cmp(resource.MustParse(c.want)) != 0 {
				t.Errorf("got %s, %v; want %s, %v", got.String(), changes, c.want, c.changes)
			}
		})
	}
}

func claimCond(t corev1.PersistentVolumeClaimConditionType, message string) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{Type: t, Status: "True", Message: message}
}

// resizing returns the status of a leaf claim during a resize.
func resizing() corev1.PersistentVolumeClaimStatus {
	return corev1.PersistentVolumeClaimStatus{
		Phase:       corev1.ClaimBound,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:    mirrortest.StorageAmount("5Gi"),
		Conditions: []corev1.PersistentVolumeClaimCondition{
			claimCond(corev1.PersistentVolumeClaimResizing, ""),
			claimCond(corev1.PersistentVolumeClaimUnused, "the member's"),
			claimCond(corev1.PersistentVolumeClaimFileSystemResizePending, "waiting for a Pod"),
		},
		AllocatedResources: mirrortest.StorageAmount("8Gi"),
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{
			corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending,
		},
		CurrentVolumeAttributesClassName: mirrortest.PointerTo("gold"),
	}
}

// asking returns the spec of a claim that requests the given size.
func asking(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: mirrortest.StorageAmount(size)}}
}

func TestRootClaimStatus(t *testing.T) {
	shown := resizing()
	shown.Phase, shown.AccessModes = "", nil
	shown.Conditions = []corev1.PersistentVolumeClaimCondition{shown.Conditions[0], shown.Conditions[2]}
	cases := map[string]struct {
		root, leaf corev1.PersistentVolumeClaimPhase
		want       corev1.PersistentVolumeClaimStatus
	}{
		"both bound":     {corev1.ClaimBound, corev1.ClaimBound, shown},
		"root not bound": {corev1.ClaimPending, corev1.ClaimBound, corev1.PersistentVolumeClaimStatus{}},
		"root lost":      {corev1.ClaimLost, corev1.ClaimBound, corev1.PersistentVolumeClaimStatus{}},
		"leaf not bound": {corev1.ClaimBound, corev1.ClaimPending, corev1.PersistentVolumeClaimStatus{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root, leaf := mirrortest.NewRootClaim(asking("8Gi")), mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{})
			leaf.Status = resizing()
			root.Status.Phase, leaf.Status.Phase = c.root, c.leaf
			if diff := cmp.Diff(c.want, TranslateClaimStatus(root, leaf)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClaimStatusCurrent(t *testing.T) {
	cases := map[string]struct {
		root func(*corev1.PersistentVolumeClaimStatus)
		want func(*corev1.PersistentVolumeClaimStatus)
		is   bool
	}{
		"equal": {is: true},
		"conditions in another order": {is: true, root: func(s *corev1.PersistentVolumeClaimStatus) {
			s.Conditions[0], s.Conditions[2] = s.Conditions[2], s.Conditions[0]
		}},
		"the same amount in another notation": {is: true, root: func(s *corev1.PersistentVolumeClaimStatus) { s.Capacity = mirrortest.StorageAmount("5120Mi") }},
		"capacity and class that only the host's PV controller has set": {is: true, want: func(s *corev1.PersistentVolumeClaimStatus) {
			s.Capacity, s.CurrentVolumeAttributesClassName = nil, nil
		}},
		"another capacity":    {want: func(s *corev1.PersistentVolumeClaimStatus) { s.Capacity = mirrortest.StorageAmount("8Gi") }},
		"a finished resize":   {want: func(s *corev1.PersistentVolumeClaimStatus) { s.AllocatedResourceStatuses = nil }},
		"a missing condition": {want: func(s *corev1.PersistentVolumeClaimStatus) { s.Conditions = s.Conditions[:1] }},
		"another message":     {want: func(s *corev1.PersistentVolumeClaimStatus) { s.Conditions[0].Message = "x" }},
		"another attributes class": {want: func(s *corev1.PersistentVolumeClaimStatus) {
			s.CurrentVolumeAttributesClassName = mirrortest.PointerTo("silver")
		}},
		"a change to the attributes class": {want: func(s *corev1.PersistentVolumeClaimStatus) { s.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{} }},
		"no status to mirror":              {want: func(s *corev1.PersistentVolumeClaimStatus) { *s = corev1.PersistentVolumeClaimStatus{} }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root, leaf := mirrortest.NewRootClaim(asking("8Gi")), mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{})
			root.Status, leaf.Status = resizing(), resizing()
			want := TranslateClaimStatus(root, leaf)
			if c.root != nil {
				c.root(&root.Status)
			}
			if c.want != nil {
				c.want(&want)
			}
			if got := IsClaimStatusCurrent(root, want); got != c.is {
				t.Errorf("got %v, want %v", got, c.is)
			}
		})
	}
}

func TestClaimStatusApply(t *testing.T) {
	got := ClaimStatusApplyBody(mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{}), corev1.PersistentVolumeClaimStatus{
		Capacity:   mirrortest.StorageAmount("5Gi"),
		Conditions: []corev1.PersistentVolumeClaimCondition{claimCond(corev1.PersistentVolumeClaimResizing, "")},
	})
	want := map[string]any{
		"apiVersion": "v1",
		"kind":       "PersistentVolumeClaim",
		"metadata":   map[string]any{"namespace": "shop", "name": "disk", "uid": "claim-uid"},
		"status": map[string]any{
			"capacity":   map[string]any{"storage": "5Gi"},
			"conditions": []any{map[string]any{"type": "Resizing", "status": "True"}},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// As for Pods, quotas count the larger of a claim's requested and allocated capacities.
func TestClaimStatusIsCapped(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	root, leaf := mirrortest.NewRootClaim(asking("1Gi")), mirrortest.NewRootClaim(corev1.PersistentVolumeClaimSpec{})
	root.Status.Phase = corev1.ClaimBound
	leaf.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, Capacity: mirrortest.ResourceAmounts("storage", "2Gi", "cpu", "1"), AllocatedResources: mirrortest.ResourceAmounts("storage", "4Ei", "cpu", "1"),
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending},
		ModifyVolumeStatus:        &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: long, Status: corev1.PersistentVolumeClaimModifyVolumeStatus(long)},
	}
	for i := range 1000 {
		leaf.Status.AllocatedResourceStatuses[corev1.ResourceName(fmt.Sprintf("example.com/x%d", i))] = corev1.ClaimResourceStatus(long)
	}
	for _, kind := range volumeConditions {
		leaf.Status.Conditions = append(leaf.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind, Status: "True", Reason: long, Message: long})
	}
	got := TranslateClaimStatus(root, leaf)
	if diff := cmp.Diff(mirrortest.ResourceAmounts("storage", "1Gi"), got.AllocatedResources); diff != "" {
		t.Errorf("allocated -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(mirrortest.ResourceAmounts("storage", "2Gi"), got.Capacity); diff != "" {
		t.Errorf("capacity -want +got:\n%s", diff)
	}
	if len(got.AllocatedResourceStatuses) != 1 || got.Size() > podstatus.StatusLimit {
		t.Errorf("%d resize states, %d bytes; want one state, and a size within the limit", len(got.AllocatedResourceStatuses), got.Size())
	}
	root.Status = got
	if !IsClaimStatusCurrent(root, got) {
		t.Error("the second result differs, so Xylem would write the status repeatedly")
	}
}

// A capacity that is out of range is not mirrored, because the host would take minutes to compare it.
func TestClaimStatusOutOfRange(t *testing.T) {
	root, leaf := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	root.Status.Phase, leaf.Status.Phase = corev1.ClaimBound, corev1.ClaimBound
	leaf.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1e2000000001")}
	leaf.Status.AllocatedResources = leaf.Status.Capacity
	if status := TranslateClaimStatus(root, leaf); len(status.Capacity) > 0 || len(status.AllocatedResources) > 0 {
		t.Error("the status has quantities, want none")
	}
}
