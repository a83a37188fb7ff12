package orphan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const retains, deletes = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete

var (
	here = mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "host-id"}
	key  = types.NamespacedName{Namespace: "shop", Name: "data"}
	made = mirror.Origin{HostID: here.HostID, Root: key, UID: "root-uid"}
)

func root(uid types.UID, placed, volume string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}
	if placed != "" {
		claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: placed}
	}
	claim.Spec.VolumeName = volume
	return claim
}

func TestJudge(t *testing.T) {
	stamped := leafVolume{name: "pv-1", uid: "leaf-uid", origin: made, stamped: true}
	bare := leafVolume{name: "pv-1", uid: "leaf-uid", origin: made}
	late := leafVolume{name: "pv-1", uid: "leaf-uid", origin: mirror.Origin{HostID: here.HostID, Root: key}, createdForWithdrawnClaim: true}
	bound := hostVolumeRecord{name: "pv-1", claimUID: "root-uid"}
	released := hostVolumeRecord{name: "pv-1", claimUID: "root-uid", released: true}
	for name, tc := range map[string]struct {
		volume    leafVolume
		mirror    *hostVolumeRecord
		root      *corev1.PersistentVolumeClaim
		suspended bool
		// promised means that the claim has a promise here without a disk. other is a host PV
		// that represents another leaf PV.
		promised bool
		other    *hostVolumeRecord
		// lost is a promise that the host lacks.
		lost string
		want string
	}{
		"mirrored": {volume: stamped, mirror: &bound},
		"mirrored, and its claim was deleted: kept as released":                                     {volume: stamped, mirror: &released},
		"mirrored, and released from an earlier claim with the same name":                           {volume: stamped, mirror: &released, root: root("new-uid", here.ClusterID, "pv-9")},
		"mirrored by the second host PV of an existing claim (I3)":                                  {volume: stamped, mirror: &released, root: root("root-uid", here.ClusterID, "pv-9"), want: account.SurplusVolume},
		"just released by the host's PV controller":                                                 {volume: stamped, mirror: &released, root: root("root-uid", here.ClusterID, "pv-1")},
		"just provisioned, and without a host PV yet":                                               {volume: stamped, root: root("root-uid", here.ClusterID, "")},
		"just provisioned, not stamped yet":                                                         {volume: bare, root: root("root-uid", here.ClusterID, "")},
		"the host PV was deleted and is being re-created":                                           {volume: stamped, root: root("root-uid", here.ClusterID, "pv-1")},
		"the host PV with the suffix was deleted and is being re-created":                           {volume: stamped, root: root("root-uid", here.ClusterID, hostpv.HostVolumeName("pv-1", here.ClusterID, true))},
		"about to fulfill the claim's promise":                                                      {volume: stamped, root: root("root-uid", here.ClusterID, hostpv.PromiseName("root-uid"))},
		"the claim's promise has another volume (I3)":                                               {volume: stamped, other: &hostVolumeRecord{name: hostpv.PromiseName("root-uid"), claimUID: "root-uid"}, root: root("root-uid", here.ClusterID, hostpv.PromiseName("root-uid")), want: account.SurplusVolume},
		"the claim's promise has an earlier volume with the same name":                              {volume: stamped, other: &hostVolumeRecord{name: hostpv.PromiseName("root-uid"), leafName: "pv-1", claimUID: "root-uid"}, root: root("root-uid", here.ClusterID, hostpv.PromiseName("root-uid"))},
		"the claim reused another claim's promise, which was lost":                                  {volume: stamped, lost: hostpv.PromiseName("other"), root: root("root-uid", here.ClusterID, hostpv.PromiseName("other"))},
		"the claim is bound to another claim's promise (I3)":                                        {volume: stamped, root: root("root-uid", here.ClusterID, hostpv.PromiseName("other")), want: account.SurplusVolume},
		"the claim was deleted, and the promise must be deleted too":                                {volume: stamped, promised: true},
		"the claim was deleted, the promise must be deleted too, and a new claim has the same name": {volume: stamped, promised: true, root: root("new-uid", "", "")},
		"promised, and not stamped yet: withdrawn with the leaf claim":                              {volume: bare, promised: true},
		"the claim was restored to a state before the placement":                                    {volume: stamped, root: root("root-uid", "", "")},
		"the claim is placed in another member (I3)":                                                {volume: stamped, root: root("root-uid", "id39", ""), want: account.SurplusVolume},
		"the claim is bound to another volume (I3)":                                                 {volume: stamped, root: root("root-uid", here.ClusterID, "pv-9"), want: account.SurplusVolume},
		"not mirrored, and the claim is placed in another member (I3)":                              {volume: bare, root: root("root-uid", "id39", ""), want: account.SurplusVolume},
		"the host has no object for the volume (I1)":                                                {volume: stamped, want: account.RootGone},
		"another claim now has the claim's name (I1)":                                               {volume: stamped, root: root("new-uid", here.ClusterID, ""), want: account.RootReplaced},
		"a new claim with the same name requests the volume: not adopted yet":                       {volume: stamped, root: root("new-uid", "", "pv-1"), want: account.RootReplaced},
		"never mirrored, and the claim was deleted: being withdrawn":                                {volume: bare},
		"never mirrored, the claim was deleted, and destruction is suspended":                       {volume: bare, suspended: true, want: account.RootGone},
		"provisioned for a withdrawn leaf claim (I1)":                                               {volume: late, want: account.WithdrawnLate},
		"provisioned for a withdrawn leaf claim that was re-created":                                {volume: late, root: root("new-uid", here.ClusterID, ""), want: account.WithdrawnLate},
	} {
		t.Run(name, func(t *testing.T) {
			e := evidence{member: here, lostPromises: map[string]bool{tc.lost: tc.lost != ""}, hostVolumes: map[types.UID]hostVolumeRecord{"another": bound}, rootClaims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, destructionSuspended: tc.suspended}
			if tc.mirror != nil {
				e.hostVolumes[tc.volume.uid] = *tc.mirror
			}
			if tc.other != nil {
				e.hostVolumes["other-leaf-uid"] = *tc.other
			}
			if tc.promised {
				e.promisedClaims = map[types.UID]bool{"root-uid": true}
			}
			if tc.root != nil {
				e.rootClaims[key] = tc.root
			}
			got := ""
			if found := e.orphansAmong([]leafVolume{tc.volume}); len(found) > 0 {
				got = found[0].Reason
				if found[0].Root != key || found[0].Volume != "pv-1" || found[0].UID != "leaf-uid" || found[0].Message == "" {
					t.Errorf("orphan is %+v, want volume pv-1 with its UID, its root and a message", found[0])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVolume(t *testing.T) {
	o := rootFinder{
		hostID:    here.HostID,
		claims:    map[types.UID]mirror.Origin{"leaf-claim": made},
		withdrawn: map[types.UID]account.WithdrawnClaim{"withdrawn-claim": {Root: "shop/data"}, "of-a-full-record": {}},
	}
	now := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	type result struct{ Ours, Stamped, Withdrawn bool }
	for name, tc := range map[string]struct {
		stamp, deleting bool
		claim           types.UID
		policy          corev1.PersistentVolumeReclaimPolicy
		want            result
	}{
		"stamped":                                 {stamp: true, claim: "any", policy: retains, want: result{Ours: true, Stamped: true}},
		"stamped, without a claim":                {stamp: true, policy: retains, want: result{Ours: true, Stamped: true}},
		"stamped, and being deleted":              {stamp: true, deleting: true, claim: "leaf-claim", policy: deletes},
		"the volume of a leaf claim of this host": {claim: "leaf-claim", policy: deletes, want: result{Ours: true}},
		"the volume of a withdrawn leaf claim":    {claim: "withdrawn-claim", policy: retains, want: result{Ours: true, Withdrawn: true}},
		"the volume of a withdrawn leaf claim whose name is not recorded":      {claim: "of-a-full-record", policy: retains, want: result{Ours: true, Withdrawn: true}},
		"the volume of a withdrawn leaf claim, which its provisioner destroys": {claim: "withdrawn-claim", policy: deletes},
		"the volume of the member's own claim (I4)":                            {claim: "own-claim", policy: retains},
		"a foreign volume of the member (I4)":                                  {policy: retains},
		"a volume whose claimRef has a leaf claim's name, but a different UID": {claim: "of-the-same-name", policy: retains},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"}}
			pv.Spec.PersistentVolumeReclaimPolicy = tc.policy
			if tc.claim != "" {
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: key.Namespace, Name: key.Name, UID: tc.claim}
			}
			if tc.deleting {
				pv.DeletionTimestamp = &now
			}
			if tc.stamp {
				made.StampLeaf(pv)
			}
			v, ours := o.factsOfVolume(pv)
			if diff := cmp.Diff(tc.want, result{ours, ours && v.stamped, ours && v.createdForWithdrawnClaim}); diff != "" {
				t.Error(diff)
			}
			if ours && v.origin.Root != key {
				t.Errorf("root is %s, want %s", v.origin.Root, key)
			}
		})
	}
}
