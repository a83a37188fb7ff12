package proof

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	deletes = corev1.PersistentVolumeReclaimDelete
	retains = corev1.PersistentVolumeReclaimRetain
)

var here = mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "h0", NodeName: "kosmos-cluster38"}

// copyProver returns a Prover for the given host.
func copyProver(host client.Reader) Prover {
	return Prover{Member: here, HostLive: host, Live: cluster{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
}

func stamp(m *metav1.ObjectMeta) {
	mirror.Origin{HostID: here.HostID, Root: client.ObjectKey{Namespace: "shop", Name: "data"}, UID: "root-uid"}.StampLeaf(m)
}

func leafClaimOfCopy() *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-uid"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
	stamp(&c.ObjectMeta)
	return c
}

func copyVolume(policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: policy, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim-uid"}}}
	stamp(&pv.ObjectMeta)
	return pv
}

func plain(pv *corev1.PersistentVolume) { pv.Labels, pv.Annotations = nil, nil }

// cluster is a reader of at most one PV and of claims.
type cluster struct {
	client.Reader
	pv     *corev1.PersistentVolume
	claims []*corev1.PersistentVolumeClaim
	fails  error
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.fails != nil {
		return c.fails
	}
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		if c.pv != nil && c.pv.Name == key.Name {
			c.pv.DeepCopyInto(into)
			return nil
		}
	case *corev1.PersistentVolumeClaim:
		for _, claim := range c.claims {
			if client.ObjectKeyFromObject(claim) == key {
				claim.DeepCopyInto(into)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c cluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*corev1.PersistentVolumeClaimList); ok {
		for _, claim := range c.claims {
			list.Items = append(list.Items, *claim)
		}
	}
	return c.fails
}

const copyName = "xylem-copy-1"

// sharedHost returns the bound host PV of a shared volume.
func sharedHost(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := hostpv.TranslateVolume(copyVolume(deletes), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}, deletes, here)
	pv.UID, pv.Status.Phase = "host-uid", corev1.VolumeBound
	for _, f := range change {
		f(pv)
	}
	return pv
}

func ended(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }

func stampCopy(obj metav1.Object) {
	mirror.VolumeCopy{HostID: here.HostID, Volume: "pv-1", VolumeUID: "host-uid", ClaimUID: "root-uid"}.StampCopy(obj)
}

func copyClaim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "copy-claim"}}
	stampCopy(c)
	for _, f := range change {
		f(c)
	}
	return c
}

func copyPV(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: copyName, UID: "copy-pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: retains, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "copy-claim"}}}
	stampCopy(pv)
	for _, f := range change {
		f(pv)
	}
	return pv
}

var errDown = errors.New("connection refused")

func TestClaimObsolete(t *testing.T) {
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	for name, tc := range map[string]struct {
		host  cluster
		claim *corev1.PersistentVolumeClaim
		want  bool
		err   error
	}{
		"the host's claim has the volume":    {cluster{pv: sharedHost()}, copyClaim(), false, nil},
		"the host PV is gone":                {cluster{}, copyClaim(), true, nil},
		"the host PV has ended":              {cluster{pv: sharedHost(ended)}, copyClaim(), true, nil},
		"the host PV was created again":      {cluster{pv: sharedHost(func(pv *corev1.PersistentVolume) { pv.UID = "another" })}, copyClaim(), true, nil},
		"another claim has the volume":       {cluster{pv: sharedHost(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })}, copyClaim(), true, nil},
		"an admin freed the host PV":         {cluster{pv: sharedHost(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })}, copyClaim(), true, nil},
		"an admin abandoned the volume":      {cluster{pv: sharedHost(func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationAbandon] = "true" })}, copyClaim(), true, nil},
		"the claim has lost its PV":          {cluster{pv: sharedHost()}, copyClaim(lost), true, nil},
		"the host is away":                   {cluster{fails: errDown}, copyClaim(), false, errDown},
		"a Lost claim, but the host is away": {cluster{fails: errDown}, copyClaim(lost), false, errDown},
		"a copy of another host":             {cluster{}, copyClaim(func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelHost] = "other" }), false, nil},
		"a leaf claim":                       {cluster{}, leafClaimOfCopy(), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, proven, err := ProveCopyClaimObsolete(t.Context(), copyProver(tc.host), tc.claim)
			if proven != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v; want %t, %v", proven, err, tc.want, tc.err)
			}
		})
	}
}

// A claim is deleted only if the PV that it names outlives it, even if the host no longer needs it.
func TestClaimObsoleteKeepsTheVolume(t *testing.T) {
	policy := func(is corev1.PersistentVolumeReclaimPolicy) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = is }
	}
	heldBy := func(uid types.UID) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = uid }
	}
	for name, tc := range map[string]struct {
		member cluster
		want   bool
	}{
		"the PV is gone":                             {cluster{}, true},
		"the PV has policy Retain":                   {cluster{pv: copyPV()}, true},
		"somebody set the PV to Delete":              {cluster{pv: copyPV(policy(deletes))}, false},
		"somebody set the PV to Recycle":             {cluster{pv: copyPV(policy(corev1.PersistentVolumeReclaimRecycle))}, false},
		"somebody also removed the PV's stamp":       {cluster{pv: copyPV(policy(deletes), plain)}, false},
		"the PV may be bound to the claim":           {cluster{pv: copyPV(policy(deletes), heldBy(""))}, false},
		"the PV has policy Delete for another claim": {cluster{pv: copyPV(policy(deletes), heldBy("another"))}, true},
		"the member is away":                         {cluster{fails: errDown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := copyProver(cluster{})
			p.Live = tc.member
			_, proven, err := ProveCopyClaimObsolete(t.Context(), p, copyClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = copyName }))
			if proven != tc.want || (err == nil) != tc.want {
				t.Errorf("got %t, %v; want %t, and an error otherwise", proven, err, tc.want)
			}
		})
	}
}

func TestVolumeObsolete(t *testing.T) {
	for name, tc := range map[string]struct {
		member cluster
		pv     *corev1.PersistentVolume
		want   bool
		err    error
	}{
		"its claim is gone":                {cluster{}, copyPV(), true, nil},
		"its claim exists":                 {cluster{claims: []*corev1.PersistentVolumeClaim{copyClaim()}}, copyPV(), false, nil},
		"a later claim has that name":      {cluster{claims: []*corev1.PersistentVolumeClaim{copyClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "later" })}}, copyPV(), true, nil},
		"the PV has policy Delete":         {cluster{}, copyPV(func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = deletes }), false, nil},
		"somebody freed the PV":            {cluster{}, copyPV(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }), true, nil},
		"the PV is a copy of another host": {cluster{}, copyPV(func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelHost] = "other" }), false, nil},
		"a leaf PV":                        {cluster{}, copyVolume(retains), false, nil},
		"the member is away":               {cluster{fails: errDown}, copyPV(), false, errDown},
	} {
		t.Run(name, func(t *testing.T) {
			p := copyProver(cluster{})
			p.Live = tc.member
			_, proven, err := ProveCopyVolumeObsolete(t.Context(), p, tc.pv)
			if proven != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v; want %t, %v", proven, err, tc.want, tc.err)
			}
		})
	}
}

func TestGone(t *testing.T) {
	freed := func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }
	elsewhere := copyClaim(func(c *corev1.PersistentVolumeClaim) { c.Name = "renamed" })
	ofAnother := copyClaim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationCopyOf] = "pv-2" })
	for name, tc := range map[string]struct {
		host   *corev1.PersistentVolume
		member cluster
		want   bool
		err    error
	}{
		"neither a PV nor a claim":                      {sharedHost(ended), cluster{}, true, nil},
		"a PV":                                          {sharedHost(ended), cluster{pv: copyPV()}, false, nil},
		"a PV for an earlier host PV":                   {sharedHost(ended), cluster{pv: copyPV(func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationCopyOfUID] = "earlier" })}, false, nil},
		"a foreign PV with that name":                   {sharedHost(ended), cluster{pv: copyPV(plain)}, true, nil},
		"a claim":                                       {sharedHost(ended), cluster{claims: []*corev1.PersistentVolumeClaim{copyClaim()}}, false, nil},
		"a foreign claim with that name":                {sharedHost(ended), cluster{claims: []*corev1.PersistentVolumeClaim{leafClaimOfCopy()}}, true, nil},
		"a claim that is a copy of another volume":      {sharedHost(ended), cluster{claims: []*corev1.PersistentVolumeClaim{ofAnother}}, true, nil},
		"freed: no claim is a copy":                     {sharedHost(freed), cluster{claims: []*corev1.PersistentVolumeClaim{leafClaimOfCopy(), ofAnother}}, true, nil},
		"freed: a claim with another name is a copy":    {sharedHost(freed), cluster{claims: []*corev1.PersistentVolumeClaim{leafClaimOfCopy(), elsewhere}}, false, nil},
		"freed: a PV":                                   {sharedHost(freed), cluster{pv: copyPV()}, false, nil},
		"the member is away":                            {sharedHost(ended), cluster{fails: errDown}, false, errDown},
		"the member is away, and the host PV was freed": {sharedHost(freed), cluster{fails: errDown}, false, errDown},
	} {
		t.Run(name, func(t *testing.T) {
			p := copyProver(cluster{})
			p.Live = tc.member
			e, gone, err := ProveCopyGone(t.Context(), p, tc.host, copyName)
			if gone != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v; want %t, %v", gone, err, tc.want, tc.err)
			}
			other := tc.host.DeepCopy()
			other.UID = "other-uid"
			for _, wrong := range []error{SpendEvidence(e, DropVolume, tc.host), SpendEvidence(e, DropCopyRecord, other)} {
				if !errors.Is(wrong, ErrUnproven) {
					t.Errorf("the evidence covers another write: %v", wrong)
				}
			}
			if err := SpendEvidence(e, DropCopyRecord, tc.host); (err == nil) != tc.want {
				t.Errorf("the evidence does not match the proof: %v", err)
			}
		})
	}
}

// The evidence covers one deletion of one object, for a limited time.
func TestCopyCovers(t *testing.T) {
	for name, tc := range map[string]struct {
		action Action
		object client.Object
		after  time.Duration
		none   bool
		covers bool
	}{
		"the claim":          {action: DeleteCopy, object: copyClaim(), covers: true},
		"just in time":       {action: DeleteCopy, object: copyClaim(), after: ProofLifetime, covers: true},
		"too late":           {action: DeleteCopy, object: copyClaim(), after: ProofLifetime + 1},
		"another claim":      {action: DeleteCopy, object: copyClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "another" })},
		"the PV":             {action: DeleteCopy, object: copyPV()},
		"another action":     {action: DeleteClaim, object: copyClaim()},
		"the policy of a PV": {action: SetDelete, object: copyPV()},
		"without evidence":   {action: DeleteCopy, object: copyClaim(), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
			p := copyProver(cluster{})
			p.Clock = clock
			e, proven, err := ProveCopyClaimObsolete(t.Context(), p, copyClaim())
			if err != nil || !proven {
				t.Fatalf("proven: %t, %v", proven, err)
			}
			if tc.none {
				e = CopyObsolete{}
			}
			clock.SetTime(clock.Now().Add(tc.after))
			if err := SpendEvidence(e, tc.action, tc.object); (err == nil) != tc.covers || err != nil && !errors.Is(err, ErrUnproven) {
				t.Errorf("Covers returned %v, want success: %t", err, tc.covers)
			}
			if err := SpendEvidence(e, tc.action, tc.object); !errors.Is(err, ErrUnproven) {
				t.Errorf("on the second use, error is %v, want ErrUnproven", err)
			}
		})
	}
}
