package leafpod

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
)

// reads is a reader that returns the same claim for every name.
type reads struct {
	client.Reader
	claim *corev1.PersistentVolumeClaim
}

func (r reads) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if claim, ok := into.(*corev1.PersistentVolumeClaim); ok {
		r.claim.DeepCopyInto(claim)
	}
	return nil
}

func TestUnbound(t *testing.T) {
	for name, tc := range map[string]struct {
		host   string // HostID in the leaf's stamp; empty for a foreign claim
		uid    types.UID
		volume string
		want   bool
	}{
		"the claim's leaf has a volume":         {here.HostID, "claim-uid", "pv-1", false},
		"the claim's leaf has no volume":        {here.HostID, "claim-uid", "", true},
		"the member's own claim has that name":  {"", "", "pv-1", true},
		"another host's leaf has that name":     {"other-host", "claim-uid", "pv-1", true},
		"an earlier claim's leaf has that name": {here.HostID, "earlier-uid", "pv-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: tc.volume}}
			if tc.host != "" {
				mirror.Origin{HostID: tc.host, Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: tc.uid}.StampLeaf(leaf)
			}
			r := &reconciler{Link: &member.Link{Member: here, Live: reads{claim: leaf}}}
			unbound, err := r.NewProver().ProveLeafUnbound(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-uid"}})
			if err != nil || unbound != tc.want {
				t.Errorf("unbound is %v (%v), want %v", unbound, err, tc.want)
			}
		})
	}
}

// The backoff between failed Pods grows, whichever members the scheduler selects.
func TestTriedPauses(t *testing.T) {
	const timeout = 10 * time.Second
	for name, tc := range map[string]struct {
		others []string
		pauses []time.Duration // the backoff after each Pod; 0 means none
	}{
		"another member is left but is not selected": {[]string{"id39"}, []time.Duration{0, timeout, 0, 2 * timeout, 0, 4 * timeout}},
		"no other member is left":                    {nil, []time.Duration{timeout, 2 * timeout, 4 * timeout}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{}}}
			at := now.Time
			for i, want := range tc.pauses {
				u := &unmetPromise{claim: claim, problem: &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "no"}, timeout: timeout, otherClusterIDs: tc.others}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at)}}
				at = laterTime(at.Add(timeout+truncationMargin), time.Unix(report.AttemptedMembersOf(claim).Until, 0))
				record, news := u.attemptRecord(pod, here, at)
				var pause time.Duration
				if record.Until != 0 {
					pause = time.Unix(record.Until, 0).Sub(at)
				}
				if !news || pause != want {
					t.Fatalf("Pod %d: a new record is %v, the backoff is %s, want %s", i, news, pause, want)
				}
				text, err := record.AnnotationValue()
				if err != nil {
					t.Fatal(err)
				}
				claim.Annotations[v1alpha1.AnnotationTried] = text
				if _, news := u.attemptRecord(pod, here, at.Add(time.Second)); news {
					t.Fatalf("Pod %d is recorded twice", i)
				}
			}
		})
	}
}

// host is the host's cache.
type host struct {
	client.Reader
	objects []client.Object
}

func (h host) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, obj := range h.objects {
		if reflect.TypeOf(obj) == reflect.TypeOf(into) && client.ObjectKeyFromObject(obj) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (h host) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	registrations, ok := list.(*v1alpha1.ClusterRegistrationList)
	if !ok {
		return fmt.Errorf("list of %T", list)
	}
	for _, obj := range h.objects {
		if registration, ok := obj.(*v1alpha1.ClusterRegistration); ok {
			registrations.Items = append(registrations.Items, *registration)
		}
	}
	return nil
}

// TestElsewhere checks which of three members could run a Pod with two claims. A promise has
// to provide the disk of "data", and "logs" is bound to the volume of the test case.
func TestElsewhere(t *testing.T) {
	const promises = "promises"
	pinned := func(cluster string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-logs"}, Spec: corev1.PersistentVolumeSpec{
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{cluster}}}}}}}}}
	}
	allows := func(cluster string) func(*storagev1.StorageClass) {
		return func(class *storagev1.StorageClass) {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: v1alpha1.LabelClusterID, Values: []string{cluster}}}}}
		}
	}
	for name, tc := range map[string]struct {
		logs  *corev1.PersistentVolume
		class func(*storagev1.StorageClass)
		denies,
		cordoned string
		want []string
	}{
		"every other member":                                {want: []string{"id39", "id40"}},
		"a cordoned member is excluded":                     {cordoned: "cluster39", want: []string{"id40"}},
		"a member outside the class's topology is excluded": {class: allows("id40"), want: []string{"id40"}},
		"the class allows no other member":                  {class: allows(here.ClusterID)},
		"a member that denies the namespace is excluded":    {denies: "cluster40", want: []string{"id39"}},
		"the other claim's volume is in this member":        {logs: pinned(here.ClusterID)},
		"the other claim's volume is in another member":     {logs: pinned("id40"), want: []string{"id40"}},
		"the other claim's volume is reachable everywhere":  {logs: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-logs"}}, want: []string{"id39", "id40"}},
	} {
		t.Run(name, func(t *testing.T) {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: promises}, Provisioner: v1alpha1.ProvisionerName,
				Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}}
			data := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "data-uid"}}
			promise := hostpv.NewPromiseFor(data, class)
			data.Spec.VolumeName = promise.Name
			if tc.class != nil {
				tc.class(class)
			}
			objects := []client.Object{class, data, promise}
			root := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: here.NodeName, Volumes: []corev1.Volume{using("data")}}}
			if tc.logs != nil {
				root.Spec.Volumes = append(root.Spec.Volumes, using("logs"))
				objects = append(objects, tc.logs, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs"},
					Spec: corev1.PersistentVolumeClaimSpec{VolumeName: tc.logs.Name}})
			}
			for registration, id := range map[string]string{here.Registration: here.ClusterID, "cluster39": "id39", "cluster40": "id40"} {
				cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: registration}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: id}}
				if registration == tc.denies {
					cr.Spec.Namespaces.Deny = &[]string{"shop"}
				}
				objects = append(objects, cr, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: cr.NodeName(), Labels: map[string]string{v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
						v1alpha1.LabelCluster: registration, v1alpha1.LabelClusterID: id}},
					Spec:   corev1.NodeSpec{Unschedulable: registration == tc.cordoned},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				})
			}
			r := &reconciler{Link: &member.Link{Member: here, Host: host{objects: objects}}}
			others, err := r.otherUsableMembers(t.Context(), root)
			slices.Sort(others)
			if err != nil || !slices.Equal(others, tc.want) {
				t.Errorf("got %v (%v), want %v", others, err, tc.want)
			}
		})
	}
}

func using(claim string) corev1.Volume {
	source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	return corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}
}
