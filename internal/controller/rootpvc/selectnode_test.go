package rootpvc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// Xylem selects a node for a leaf claim only if the host's scheduler has no Pod of the claim to place: such
// a Pod's leaf is the consumer for which the member's class waits.
func TestNodeIsSelectedWithoutPod(t *testing.T) {
	pod := func(change func(*corev1.Pod)) []corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		change(&p)
		return []corev1.Pod{p}
	}
	late, immediate := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for name, tc := range map[string]struct {
		mode   storagev1.VolumeBindingMode
		pods   []corev1.Pod
		change func(*scene)
		want   lifecycle.Step
	}{
		"no Pod uses the claim":                       {mode: late, want: lifecycle.SelectNode},
		"a Pod is bound to the virtual node already":  {mode: late, pods: pod(func(p *corev1.Pod) { p.Spec.NodeName = here.NodeName }), want: lifecycle.SelectNode},
		"the only Pod has finished":                   {mode: late, pods: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), want: lifecycle.SelectNode},
		"a Pod waits for the scheduler":               {mode: late, pods: pod(func(*corev1.Pod) {})},
		"a Pod has a scheduling gate":                 {mode: late, pods: pod(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} })},
		"the member's class does not wait":            {mode: immediate},
		"the member's scheduler has selected a node":  {mode: late, change: func(s *scene) { set(s.leaf, route.AnnSelectedNode, "n1") }},
		"the host's claim selects no node any longer": {mode: late, change: func(s *scene) { delete(s.root.Annotations, route.AnnSelectedNode) }, want: lifecycle.Withdraw},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(pushed)
			s.leaf.Spec.StorageClassName, s.pods = ptr.To("disk"), tc.pods
			if tc.change != nil {
				tc.change(&s)
			}
			r := s.reconciler()
			r.SchedulerNominates = true
			r.Host.(*store).add(s.class)
			r.Cache.(*store).add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, VolumeBindingMode: &tc.mode})
			o, err := r.newClaimObserver().ObserveClaim(t.Context(), types.NamespacedName{Namespace: "shop", Name: "data"})
			if err != nil {
				t.Fatal(err)
			}
			if got := planForClaim(o).Step; got != tc.want {
				t.Errorf("step is %q, want %q", got, tc.want)
			}
		})
	}
}

// A claim whose Pod is bound to the virtual node gets a node that can reach the Pod's other volumes.
func TestNodeReachesOtherVolumes(t *testing.T) {
	nodes := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "n2"}}}
	for i := range nodes {
		nodes[i].Labels = map[string]string{corev1.LabelHostname: nodes[i].Name}
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "logs-volume"}}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}}}}}}
	consumer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for _, name := range []string{"data", "logs"} {
		consumer.Spec.Volumes = append(consumer.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	for name, tc := range map[string]struct {
		other func(*corev1.PersistentVolumeClaim)
		want  []string
	}{
		"the other claim has no leaf":          {want: []string{"n1", "n2"}},
		"the other claim awaits a node, too":   {other: func(*corev1.PersistentVolumeClaim) {}, want: []string{"n1", "n2"}},
		"a node was selected for the other":    {other: func(c *corev1.PersistentVolumeClaim) { set(c, route.AnnSelectedNode, "n1") }, want: []string{"n1"}},
		"the other claim's volume is on n2":    {other: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name }, want: []string{"n2"}},
		"the other claim's volume is not seen": {other: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "unknown" }, want: []string{"n1", "n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(pushed)
			r := s.reconciler()
			live := newStore(memberIndexes)
			live.add(volume)
			r.Live = live
			if tc.other != nil {
				root, other := s.root.DeepCopy(), s.leaf.DeepCopy()
				root.Name, other.Name = "logs", "logs"
				mirror.OriginForRoot(here.HostID, root).StampLeaf(other)
				tc.other(other)
				r.Cache.(*store).add(other)
			}
			reaches, err := r.reachesOtherVolumes(t.Context(), s.root, consumer)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, node := range nodes {
				if reaches(node) {
					got = append(got, node.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}
