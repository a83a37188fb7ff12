package rootconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/internal/route"
)

var copies = mirror.ConfigCopies{HostID: here.HostID, NamespaceUID: "shop-uid"}

var here = mirror.Member{Registration: "cluster38", ClusterID: "m1", NodeName: "kosmos-cluster38", HostID: "h1"}

func root(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "config", UID: "u1"}, Data: map[string]string{"a": "1"}}
	for _, c := range change {
		c(cm)
	}
	return cm
}

// translated returns the copy of a root.
func translated(root *corev1.ConfigMap, copies mirror.ConfigCopies) *corev1.ConfigMap {
	leaf, err := refs.TranslateConfigMap(root, copies)
	if err != nil {
		panic(err)
	}
	return leaf
}

func leaf(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := translated(root(), copies)
	cm.UID, cm.ResourceVersion = "l1", "5"
	for _, c := range change {
		c(cm)
	}
	return cm
}

func deleted(cm *corev1.ConfigMap) { cm.DeletionTimestamp = &metav1.Time{} }

func TestDecide(t *testing.T) {
	users := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "p1"}}}
	want := translated(root(), copies)
	recreated := translated(root(func(cm *corev1.ConfigMap) { cm.UID = "u2" }), copies)
	earlier := leaf(func(cm *corev1.ConfigMap) { cm.Name = "config" })
	refusal := &mirror.Refusal{Reason: v1alpha1.ReasonSecretUnsupported, Message: "no"}
	large := &mirror.Refusal{Reason: v1alpha1.ReasonReferenceTooLarge, Message: "no"}
	conflict := observed{member: here, kind: refs.KindConfigMap, key: client.ObjectKeyFromObject(root()), copies: copies}.nameTakenRefusal()
	for name, tc := range map[string]struct {
		observed
		want decision
	}{
		"no Pod needs the root, and there is no copy":                                     {observed{}, doNothing{}},
		"a Pod needs the root, and there is no copy":                                      {observed{users: users, rootRead: true, want: want}, createCopy{want}},
		"a Pod needs the root, but the member's namespace is not usable":                  {observed{users: users}, doNothing{}},
		"a Pod needs the root, but it does not exist":                                     {observed{users: users, rootRead: true}, doNothing{}},
		"the copy is current":                                                             {observed{users: users, rootRead: true, want: want, leaf: leaf(), drift: refs.ConfigCurrent}, doNothing{}},
		"a read of the root is not due":                                                   {observed{users: users, leaf: leaf()}, doNothing{}},
		"the root has changed":                                                            {observed{users: users, rootRead: true, want: want, leaf: leaf(), drift: refs.ConfigChanged}, updateCopy{leaf()}},
		"the root was re-created with the same contents":                                  {observed{users: users, rootRead: true, want: recreated, leaf: leaf(), drift: refs.ConfigCurrent}, updateCopy{leaf()}},
		"the root was re-created, and the copy is immutable":                              {observed{users: users, rootRead: true, want: recreated, leaf: leaf(), drift: refs.ConfigImmutable}, deleteCopy{leaf()}},
		"the root was re-created, the copy is immutable, and deletions are suspended":     {observed{users: users, rootRead: true, want: recreated, leaf: leaf(), drift: refs.ConfigImmutable, deletionSuspended: true}, doNothing{}},
		"the root is gone":                                                                {observed{users: users, rootRead: true, leaf: leaf()}, deleteCopy{leaf()}},
		"the root is gone, and deletions are suspended":                                   {observed{users: users, rootRead: true, leaf: leaf(), deletionSuspended: true}, doNothing{}},
		"the copy is being deleted":                                                       {observed{users: users, rootRead: true, want: want, leaf: leaf(deleted), drift: refs.ConfigChanged}, doNothing{}},
		"a foreign object has the copy's name":                                            {observed{users: users, rootRead: true, want: want, nameTaken: true}, reportRefusal{conflict}},
		"a foreign object has the copy's name, and the root does not exist":               {observed{users: users, rootRead: true, nameTaken: true}, doNothing{}},
		"a foreign object has the copy's name, and no Pod needs the root":                 {observed{nameTaken: true}, doNothing{}},
		"the root must not be copied":                                                     {observed{users: users, rootRead: true, refusal: refusal}, reportRefusal{refusal}},
		"the root must no longer be copied":                                               {observed{users: users, rootRead: true, refusal: refusal, leaf: leaf()}, deleteCopy{leaf()}},
		"the root has become too large":                                                   {observed{users: users, rootRead: true, refusal: large, leaf: leaf()}, reportRefusal{large}},
		"no Pod needs the copy":                                                           {observed{leaf: leaf()}, deleteCopy{leaf()}},
		"no Pod uses a former copy":                                                       {observed{users: users, rootRead: true, want: want, former: []formerCopy{{leaf: earlier}}}, deleteCopy{earlier}},
		"no Pod uses a former copy, but deletions are suspended":                          {observed{users: users, rootRead: true, want: want, deletionSuspended: true, former: []formerCopy{{leaf: earlier}}}, createCopy{want}},
		"no Pod uses a former copy, which is already being deleted":                       {observed{users: users, rootRead: true, want: want, former: []formerCopy{{leaf: leaf(deleted)}}}, createCopy{want}},
		"a Pod uses a former copy":                                                        {observed{users: users, rootRead: true, want: want, leaf: leaf(), former: []formerCopy{{leaf: earlier, referredByLeafPod: true}}}, doNothing{}},
		"a Pod uses a former copy, which has drifted":                                     {observed{users: users, rootRead: true, want: want, leaf: leaf(), former: []formerCopy{{leaf: earlier, referredByLeafPod: true, drift: refs.ConfigChanged}}}, updateCopy{earlier}},
		"a Pod uses a former copy whose root is gone: the copy stays to reserve the name": {observed{users: users, rootRead: true, former: []formerCopy{{leaf: earlier, referredByLeafPod: true}}}, doNothing{}},
		"no host Pod needs the copy, but a leaf Pod uses it":                              {observed{leaf: leaf(), referredByLeafPod: true}, doNothing{}},
		"no Pod needs the copy, but deletions are suspended":                              {observed{leaf: leaf(), deletionSuspended: true}, doNothing{}},
		"no Pod needs the copy, which is already being deleted":                           {observed{leaf: leaf(deleted)}, doNothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.member, tc.kind, tc.key, tc.copies = here, refs.KindConfigMap, client.ObjectKeyFromObject(root()), copies
			if diff := cmp.Diff(tc.want, decideCopyAction(tc.observed), cmp.AllowUnexported(createCopy{}, reportRefusal{}, updateCopy{}, deleteCopy{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   bool
	}{
		"a copy":                                 {func(*corev1.ConfigMap) {}, true},
		"a copy of another host":                 {func(cm *corev1.ConfigMap) { cm.Labels[v1alpha1.LabelHost] = "h2" }, false},
		"an object with only the label":          {func(cm *corev1.ConfigMap) { cm.Annotations = nil }, false},
		"a copy that an earlier version created": {func(cm *corev1.ConfigMap) { cm.Name = "config" }, true},
		"a copy of another root": {func(cm *corev1.ConfigMap) {
			cm.Annotations[v1alpha1.AnnotationRoot] = "shop/other"
			cm.Name = copies.NameOfCopy("other")
		}, false},
		"a copy with another name":    {func(cm *corev1.ConfigMap) { cm.Name = "other" }, false},
		"a copy in another namespace": {func(cm *corev1.ConfigMap) { cm.Namespace = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isCopyOfRoot(leaf(tc.change), here.HostID, client.ObjectKeyFromObject(root())); got != tc.want {
				t.Errorf("ours is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUseOf(t *testing.T) {
	bound := corev1.PodSpec{NodeName: here.NodeName}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want podUse
	}{
		"pending":                         {corev1.Pod{}, copiesUsedEarly},
		"nominated":                       {corev1.Pod{Status: corev1.PodStatus{NominatedNodeName: here.NodeName}}, copiesUsedEarly},
		"nominated to another node":       {corev1.Pod{Status: corev1.PodStatus{NominatedNodeName: "other"}}, copiesUnused},
		"gated":                           {corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}}}, copiesUnused},
		"bound":                           {corev1.Pod{Spec: bound}, copiesUsed},
		"bound to another node":           {corev1.Pod{Spec: corev1.PodSpec{NodeName: "other"}, Status: corev1.PodStatus{NominatedNodeName: here.NodeName}}, copiesUnused},
		"running":                         {corev1.Pod{Spec: bound, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, copiesUsed},
		"succeeded":                       {corev1.Pod{Spec: bound, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, copiesUnused},
		"failed":                          {corev1.Pod{Spec: bound, Status: corev1.PodStatus{Phase: corev1.PodFailed}}, copiesUnused},
		"being deleted":                   {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Spec: bound}, copiesUnused},
		"bound, and owned by a DaemonSet": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}}, Spec: bound}, copiesUnused},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podUseOf(&tc.pod, here); got != tc.want {
				t.Errorf("useOf is %v, want %v", got, tc.want)
			}
			leaving := here
			leaving.Leaving = true
			if got := podUseOf(&tc.pod, leaving); got != tc.want && tc.want != copiesUsedEarly {
				t.Errorf("during a deregistration, podUseOf is %v, want %v", got, tc.want)
			} else if got == copiesUsedEarly {
				t.Error("a Pod is pushed early during a deregistration")
			}
		})
	}
}

func TestBringsEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"neither selected nor placed":            {},
		"selected only":                          {annotations: map[string]string{route.AnnSelectedNode: here.NodeName}},
		"placed only":                            {annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}},
		"selected and placed":                    {map[string]string{route.AnnSelectedNode: here.NodeName, v1alpha1.AnnotationPlacedIn: here.ClusterID}, true},
		"selected, but placed in another member": {annotations: map[string]string{route.AnnSelectedNode: here.NodeName, v1alpha1.AnnotationPlacedIn: "m2"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			if got := allowsEarlyPush(claim, here); got != tc.want {
				t.Errorf("bringsEarly is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Volumes:          []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}}},
	}}
	for name, tc := range map[string]struct {
		kind, name     string
		refers, needed bool
	}{
		"volume":       {refs.KindSecret, "tls", true, true},
		"pull secret":  {refs.KindSecret, "pull", true, false},
		"another kind": {refs.KindConfigMap, "tls", false, false},
		"another name": {refs.KindSecret, "other", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podRefersTo(pod, tc.kind, tc.name); got != tc.refers {
				t.Errorf("refers: %v, want %v", got, tc.refers)
			}
			if got := podRequires(pod, tc.kind, tc.name); got != tc.needed {
				t.Errorf("needed: %v, want %v", got, tc.needed)
			}
		})
	}
}

func TestDue(t *testing.T) {
	now := time.Unix(1000, 0)
	users := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "p1"}}}
	for name, tc := range map[string]struct {
		reading
		want bool
	}{
		"the root was never read":    {want: true},
		"the root was just read":     {reading: reading{next: now.Add(time.Second), users: sets.New[types.UID]("p1", "p2")}},
		"the interval has passed":    {reading{next: now, users: sets.New[types.UID]("p1")}, true},
		"another Pod needs the root": {reading{next: now.Add(time.Second), users: sets.New[types.UID]("p2")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.readDue(now, users); got != tc.want {
				t.Errorf("due is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestFillAndRestamp(t *testing.T) {
	changed := root(func(cm *corev1.ConfigMap) {
		cm.UID, cm.Data, cm.Immutable = "u2", map[string]string{"a": "2"}, new(true)
	})
	want := translated(changed, copies)
	after := leaf()
	configMapKind().fill(after, want)
	copyStamp(after, want)
	expected := leaf(func(cm *corev1.ConfigMap) {
		cm.Data, cm.Immutable = map[string]string{"a": "2"}, new(true)
		cm.Annotations[v1alpha1.AnnotationRootUID] = "u2"
	})
	if diff := cmp.Diff(expected, after); diff != "" {
		t.Error(diff)
	}
	if drift := configMapKind().drift(want, refs.ReduceConfigMap(after)); drift != refs.ConfigCurrent {
		t.Errorf("drift is %s after an update, want none", drift)
	}
}
