package pods

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/test/model/api"
)

const (
	namespace = "shop"
	podName   = "app"
	claimName = "data"
	class     = "fast"
	volume    = "pvc-leaf"
)

var (
	here  = mirror.Member{Registration: "one", ClusterID: "id-one", NodeName: "kosmos-one", HostID: "id-host"}
	other = mirror.Member{Registration: "two", ClusterID: "id-two", NodeName: "kosmos-two", HostID: "id-host"}

	created = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	deleted = metav1.NewTime(created.Add(time.Hour))

	rootUIDs  = []types.UID{"r1", "r2", "r3", "r4"}
	leafUIDs  = []types.UID{"l1", "l2", "l3", "l4"}
	claimUIDs = []types.UID{"c1", "c2", "c3"}
)

// kind is a kind of object, each in one cluster.
type kind uint8

const (
	none kind = iota
	root
	claim
	hostVolume
	leaf
	leafClaim
	kinds
)

func (k kind) String() string {
	return [...]string{"none", "Pod", "claim", "host PV", "leaf Pod", "leaf claim"}[k]
}

// id identifies an object in a certain state, and is its resourceVersion. 0 means no object.
type id int32

// state has the object of each kind.
type state [kinds]id

// world is the complete state. It is comparable, so that equal worlds are visited only once.
type world struct {
	state
	// stale is the object of the lagging kind that the cache shows.
	lagging kind
	stale   id
	// waits means that the member's class waits for the leaf Pod before it binds the leaf claim.
	waits bool
	// started is the root whose leaf's containers have started, or 0: an index of rootUIDs plus 1.
	started uint8
	// recorded means that this root has, or had, the record of that leaf.
	recorded bool
	budget   uint8
}

// seen returns the state that the caches show.
func (w world) seen() state {
	s := w.state
	if w.lagging != none {
		s[w.lagging] = w.stale
	}
	return s
}

// objects contains all objects that ever existed. They never change.
type objects struct {
	ids  map[string]id
	byID []client.Object
}

func newObjects() *objects { return &objects{ids: map[string]id{}, byID: []client.Object{nil}} }

type encoded interface {
	client.Object
	Marshal() ([]byte, error)
}

// keep stores an object, which the caller must not modify afterwards.
func (o *objects) keep(obj client.Object) id {
	obj.SetResourceVersion("")
	bytes, err := api.As[encoded](obj).Marshal() // sorts map keys
	if err != nil {
		panic(err)
	}
	key := fmt.Sprintf("%T%s", obj, bytes)
	if known, ok := o.ids[key]; ok {
		return known
	}
	made := id(len(o.byID)) //nolint:gosec // memory ends before
	obj.SetResourceVersion(strconv.Itoa(int(made)))
	o.ids[key], o.byID = made, append(o.byID, obj)
	return made
}

func get[T client.Object](m *Model, s state, k kind) (obj T, there bool) {
	if s[k] == 0 {
		return obj, false
	}
	return api.As[T](m.objects.byID[s[k]]), true
}

// change applies a change to a copy of an object.
func change[T client.Object](m *Model, to *world, k kind, edit func(T)) {
	obj := api.Copy(api.As[T](m.objects.byID[to.state[k]]))
	edit(obj)
	to.state[k] = m.objects.keep(obj)
}

// unused returns the first UID that no object of a world has or refers to, or "".
func (m *Model) unused(w world, uids []types.UID) types.UID {
	var all strings.Builder
	for _, i := range append(w.state[:], w.stale) {
		if obj := m.objects.byID[i]; obj != nil {
			fmt.Fprintf(&all, "%s %v ", obj.GetUID(), obj.GetAnnotations())
		}
	}
	if w.started > 0 {
		all.WriteString(string(rootUIDs[w.started-1]) + " ")
	}
	for _, uid := range uids {
		if !strings.Contains(all.String(), string(uid)) {
			return uid
		}
	}
	return ""
}

func newPod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, UID: uid, CreationTimestamp: created},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "app"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}}}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func newClaim(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claimName, UID: uid, CreationTimestamp: created},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(class), VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

// newHostVolume returns the host PV of a claim's volume in this member.
func newHostVolume(of *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	made := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume, UID: "leaf-volume"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: of.Spec.AccessModes, VolumeMode: of.Spec.VolumeMode, StorageClassName: class, Capacity: of.Spec.Resources.Requests,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "disk"}},
		},
	}
	pv := hostpv.TranslateVolume(made, of, corev1.PersistentVolumeReclaimRetain, here)
	pv.UID, pv.Status.Phase = "host-volume", corev1.VolumeBound
	return pv
}

func newNode(of mirror.Member) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: of.NodeName, UID: types.UID(of.NodeName), Labels: map[string]string{v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelClusterID: of.ClusterID}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func newClass(provisioner string, waits bool) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingImmediate
	if waits {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

// describe describes a world in a trace.
func (m *Model) describe(w world) string {
	var parts []string
	for k := root; k < kinds; k++ {
		obj := m.objects.byID[w.state[k]]
		if obj == nil {
			continue
		}
		var annotations []string
		for key, value := range obj.GetAnnotations() {
			if len(value) < 80 { // not the push record
				annotations = append(annotations, key[strings.Index(key, "/")+1:]+"="+value)
			}
		}
		slices.Sort(annotations)
		what := fmt.Sprintf("%s %s (%s)", k, obj.GetName(), obj.GetUID())
		switch obj := obj.(type) {
		case *corev1.Pod:
			what += fmt.Sprintf(": node %q, nominated %q, %s", obj.Spec.NodeName, obj.Status.NominatedNodeName, obj.Status.Phase)
			for _, c := range obj.Status.Conditions {
				what += fmt.Sprintf(", %s=%s %s", c.Type, c.Status, c.Reason)
			}
		case *corev1.PersistentVolumeClaim:
			what += fmt.Sprintf(": volume %q", obj.Spec.VolumeName)
		}
		if obj.GetDeletionTimestamp() != nil {
			what += ", deleting"
		}
		parts = append(parts, what+" "+strings.Join(annotations, " "))
	}
	if w.lagging != none {
		parts = append(parts, "the cache of the "+w.lagging.String()+" is stale")
	}
	if w.started > 0 {
		parts = append(parts, "the containers of Pod "+string(rootUIDs[w.started-1])+" have started")
	}
	return strings.Join(parts, "\n    ")
}
