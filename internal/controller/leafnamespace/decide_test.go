package leafnamespace

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

var here = mirror.Member{Registration: "cluster38", ClusterID: "m1", NodeName: "kosmos-cluster38", HostID: "h1"}

const enforce = "pod-security.kubernetes.io/enforce"

func host(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u1", Labels: labels}}
}

func named(name string) *corev1.Namespace {
	ns := host(nil)
	ns.Name = name
	return ns
}

func made(root *corev1.Namespace, change ...func(*corev1.Namespace)) *corev1.Namespace {
	leaf := mirror.LeafNamespace(root, here)
	leaf.UID, leaf.ResourceVersion = "l1", "5"
	for _, c := range change {
		c(leaf)
	}
	return leaf
}

func labelled(add map[string]string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) { maps.Copy(ns.Labels, add) }
}

func deleted(ns *corev1.Namespace) *corev1.Namespace {
	now := metav1.Unix(1, 0)
	ns.DeletionTimestamp = &now
	return ns
}

func TestDecide(t *testing.T) {
	plain := host(nil)
	strict := host(map[string]string{enforce: "restricted", "team": "a"})
	handed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelHost: here.HostID}}}
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	ofTeam := strict
	wantsTeam := placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{
		Namespaces: v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"team": "a"}}}})
	for name, tc := range map[string]struct {
		observed
		want decision
	}{
		"neither namespace exists": {observed{}, nothing{}},
		"not needed":               {observed{root: plain}, nothing{}},
		"needed":                   {observed{root: strict, needed: true}, createLeaf{mirror.LeafNamespace(strict, here)}},
		"needed, but the namespace is a system namespace (I8)":                         {observed{root: named("kube-public"), needed: true}, nothing{}},
		"needed, but the rules do not admit the namespace":                             {observed{root: named("istio-system"), needed: true}, nothing{}},
		"needed, but the namespace lacks the label that the rules require":             {observed{root: plain, needed: true, rules: wantsTeam}, nothing{}},
		"needed, and the namespace has the label that the rules require":               {observed{root: ofTeam, needed: true, rules: wantsTeam}, createLeaf{mirror.LeafNamespace(ofTeam, here)}},
		"occupied, but the namespace lacks the label that the rules require: it stays": {observed{root: plain, leaf: made(plain), occupied: true, rules: wantsTeam}, nothing{}},
		"needed, but the root is not in the cache yet":                                 {observed{needed: true}, nothing{}},
		"needed, but the root is terminating":                                          {observed{root: deleted(host(nil)), needed: true}, nothing{}},
		"needed, and the leaf exists":                                                  {observed{root: plain, leaf: made(plain), needed: true}, nothing{}},
		"occupied":                                                                     {observed{root: plain, leaf: made(plain), occupied: true, idle: time.Hour}, nothing{}},
		"needed, but the leaf is terminating":                                          {observed{root: plain, leaf: deleted(made(plain)), needed: true}, nothing{}},
		"idle, and the leaf is already terminating":                                    {observed{root: plain, leaf: deleted(made(plain)), idle: time.Hour}, nothing{}},
		"needed, but the member's namespace is foreign":                                {observed{root: strict, leaf: foreign, needed: true}, nothing{}},
		"idle, but the member's namespace is foreign":                                  {observed{root: strict, leaf: foreign, idle: time.Hour}, nothing{}},
		"needed, and the member's namespace was handed over":                           {observed{root: strict, leaf: handed, needed: true}, nothing{}},
		"idle, but the member's namespace was handed over":                             {observed{root: strict, leaf: handed, idle: time.Hour}, nothing{}},
		"idle, but the namespace belongs to another host":                              {observed{root: strict, leaf: made(strict, labelled(map[string]string{v1alpha1.LabelHost: "h2"})), idle: time.Hour}, nothing{}},
		"just became idle":                                                             {observed{root: plain, leaf: made(plain)}, waitForIdle{minIdleTime}},
		"idle for less than the quiet period":                                          {observed{root: plain, leaf: made(plain), idle: minIdleTime - time.Second}, waitForIdle{time.Second}},
		"idle for the quiet period":                                                    {observed{root: plain, leaf: made(plain), idle: minIdleTime}, removeLeaf{}},
		"idle for the quiet period, and the root is gone":                              {observed{leaf: made(plain), idle: minIdleTime}, removeLeaf{}},
		"idle for the quiet period, but deletions are suspended":                       {observed{leaf: made(plain), idle: minIdleTime, suspended: true}, nothing{}},
		"the host added a Pod Security label": {
			observed{root: strict, leaf: made(plain), needed: true},
			relabelLeaf{made(strict)},
		},
		"the host's Pod Security is stricter than the leaf's": {
			observed{root: strict, leaf: made(plain, labelled(map[string]string{enforce: "privileged"})), occupied: true},
			relabelLeaf{made(strict)},
		},
		"someone in the member set stricter Pod Security, which stays": {
			observed{root: host(map[string]string{enforce: "baseline"}), leaf: made(plain, labelled(map[string]string{enforce: "restricted"})), needed: true},
			nothing{},
		},
		"the host and the member both set Pod Security to privileged, which stays": {
			observed{root: host(map[string]string{enforce: "privileged"}), leaf: made(plain, labelled(map[string]string{enforce: "privileged"})), needed: true},
			nothing{},
		},
		"an earlier version set Pod Security to privileged: it is set to baseline": {
			observed{root: host(map[string]string{enforce: "privileged"}), leaf: made(plain, labelled(map[string]string{enforce: "privileged"})), needed: true, applied: sets.New(enforce)},
			relabelLeaf{made(plain)},
		},
		"an earlier version created the leaf without Pod Security": {
			observed{root: plain, leaf: made(plain, func(ns *corev1.Namespace) { delete(ns.Labels, enforce) }), needed: true},
			relabelLeaf{made(plain)},
		},
		"the host removed its Pod Security label": {
			observed{root: plain, leaf: made(strict), needed: true, applied: sets.New(enforce)},
			relabelLeaf{made(plain)},
		},
		"someone in the member set Pod Security, and the host does not: it stays": {
			observed{root: plain, leaf: made(plain, labelled(map[string]string{enforce: "restricted", "x": "y"})), needed: true, applied: sets.New(v1alpha1.LabelHost)},
			nothing{},
		},
		"the root was re-created": {
			observed{root: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u2"}}, leaf: made(plain), needed: true},
			relabelLeaf{made(plain, func(ns *corev1.Namespace) { ns.Annotations[v1alpha1.AnnotationRootUID] = "u2" })},
		},
		"occupied, and the root is terminating: the labels stay": {
			observed{root: deleted(host(nil)), leaf: made(strict), occupied: true, applied: sets.New(enforce)},
			nothing{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.member = here; !tc.rules.RestrictsNamespaces() {
				tc.rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{})
			}
			before := tc.leaf.DeepCopy()
			if diff := cmp.Diff(tc.want, decideNamespace(tc.observed), cmp.AllowUnexported(createLeaf{}, relabelLeaf{}, waitForIdle{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.leaf); diff != "" {
				t.Errorf("decide changed the leaf: %s", diff)
			}
		})
	}
}

func TestNeedsPod(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"pending":                           {pod: corev1.Pod{}},
		"bound":                             {corev1.Pod{Spec: corev1.PodSpec{NodeName: here.NodeName}}, true},
		"bound to another node":             {pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "other"}, Status: corev1.PodStatus{NominatedNodeName: here.NodeName}}},
		"nominated":                         {corev1.Pod{Status: corev1.PodStatus{NominatedNodeName: here.NodeName}}, true},
		"finished":                          {pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: here.NodeName}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}},
		"terminating":                       {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Spec: corev1.PodSpec{NodeName: here.NodeName}}},
		"bound, and owned by a DaemonSet":   {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}}, Spec: corev1.PodSpec{NodeName: here.NodeName}}},
		"bound, and owned by a StatefulSet": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Controller: new(true)}}}, Spec: corev1.PodSpec{NodeName: here.NodeName}}, true},
		"running on another node":           {pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "other"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podNeedsNamespace(&tc.pod, here); got != tc.want {
				t.Errorf("needsPod is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNeedsClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		volume      string
		deleted     bool
		want        bool
	}{
		"neither selected nor placed":                                               {},
		"this member's node is selected":                                            {annotations: map[string]string{route.AnnSelectedNode: here.NodeName}, want: true},
		"this member's node is selected, but the claim is being deleted":            {annotations: map[string]string{route.AnnSelectedNode: here.NodeName}, deleted: true},
		"this member's node is selected, but the claim has another volume":          {annotations: map[string]string{route.AnnSelectedNode: here.NodeName}, volume: "pv"},
		"another node is selected":                                                  {annotations: map[string]string{route.AnnSelectedNode: "other"}},
		"placed in this member":                                                     {annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}, volume: "pv", want: true},
		"placed in this member, and being deleted":                                  {annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}, deleted: true, want: true},
		"this member's node is selected, but the claim is placed in another member": {annotations: map[string]string{v1alpha1.AnnotationPlacedIn: "m2", route.AnnSelectedNode: here.NodeName}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: tc.volume}}
			if tc.deleted {
				claim.DeletionTimestamp = &metav1.Time{}
			}
			if got := claimNeedsNamespace(claim, here); got != tc.want {
				t.Errorf("needsClaim is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLabelKeys(t *testing.T) {
	fields := map[string]any{
		"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}, "f:" + enforce: map[string]any{}}, "f:annotations": map[string]any{"f:x": map[string]any{}}},
	}
	if diff := cmp.Diff(sets.New(enforce), labelKeysOfFields(fields)); diff != "" {
		t.Error(diff)
	}
	if keys := labelKeysOfFields(map[string]any{"f:spec": map[string]any{}}); keys.Len() != 0 {
		t.Errorf("got keys %v, want none", keys)
	}
}
