package wording

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestObstacles contains a message of each plugin of kube-scheduler.
func TestObstacles(t *testing.T) {
	for message, want := range map[string][]Obstacle{
		`0/3 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "app-scratch".`:                                                              {EphemeralClaimAwaited},
		`0/3 nodes are available: PVC shop/app-scratch was not created for pod shop/app (pod is not owner).`:                                                                               {EphemeralClaimForeign},
		`0/3 nodes are available: persistentvolumeclaim "data" not found.`:                                                                                                                 {ClaimNotFound},
		`0/3 nodes are available: persistentvolumeclaim "data" bound to non-existent persistentvolume "pv".`:                                                                               {ClaimWithoutVolume},
		`0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).`:                                                                            {ClaimWithoutVolume},
		`0/3 nodes are available: persistentvolumeclaim "data" is being deleted.`:                                                                                                          {ClaimDeleted},
		`0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`:                      {ClaimUnbound},
		`0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.`: {ClaimInUse},
		`0/3 nodes are available: PersistentVolumeClaim had no pv name and storageClass name.`:                                                                                             {ClaimWithoutClass},
		`0/3 nodes are available: pod affinity terms conflict.`:                                                                                                                            {AffinityConflict},
		`waiting for minCount pods from a gang to appear in scheduling queue`:                                                                                                              {GroupIncomplete},
		`waiting for the preemption for this pod to be finished`:                                                                                                                           {PreemptionAwaited},
		`0/3 nodes are available: request gpu: device class fast does not exist.`:                                                                                                          {DeviceUnavailable},
		`0/3 nodes are available: 3 cannot allocate all claims.`:                                                                                                                           {DeviceUnavailable},

		`0/3 nodes are available: 1 csi.xylem.io CSI driver is not installed on the node, 2 node(s) didn't match pod anti-affinity rules.`:                                  {PodAntiAffinity},
		`0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity.`:                                                             {Insufficient},
		`0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match PersistentVolume's node affinity.`:                            {VolumeElsewhere},
		`0/2 nodes are available: 2 node(s) had volume node affinity conflict.`:                                                                                             {VolumeElsewhere},
		`0/2 nodes are available: 2 node(s) had no available volume zone.`:                                                                                                  {VolumeInOtherZone},
		`0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules.`:                                                                              {OthersAntiAffinity},
		`0/2 nodes are available: 2 node(s) didn't match pod affinity rules.`:                                                                                               {PodAffinity},
		`0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.`:                                                                                  {TopologySpread},
		`0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label).`:                                                         {SpreadLabelMissing},
		`0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 2 node(s) didn't match pod topology spread constraints (missing required label).`: {SpreadLabelMissing, TopologySpread},
		`0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.`:                                                                            {PortTaken},
		`0/2 nodes are available: 2 node(s) had no available disk.`:                                                                                                         {DiskInUse},
		`0/2 nodes are available: 2 node(s) exceed max volume count.`:                                                                                                       {TooManyVolumes},
		`0/2 nodes are available: 2 Too many pods.`:                                                                                                                         {TooManyPods},
		`0/2 nodes are available: 1 node(s) did not have enough free storage, 1 node(s) had untolerated taint {a: b}.`:                                                      {StorageInsufficient},
		`0/2 nodes are available: 2 node(s) didn't match Pod's required features.`:                                                                                          {NodeFeatureMissing},
		`0/2 nodes are available: 2 node(s) didn't match the requested node name.`:                                                                                          {NodeNameDiffers},
		`0/2 nodes are available: 2 node(s) didn't match scheduler-enforced node affinity.`:                                                                                 {ProfileNodeAffinity},
		`0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.`:                                                                        {NodeCordoned, TaintNotTolerated},
		`0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.`:                                                                                     {NodeSelectorMismatch},
		`0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.`:                                                                              {NoVolumeAvailable},
		`0/1 nodes are available: 1 csi.xylem.io CSI driver is not installed on the node.`:                                                                                  {DriverNotInstalled},
		`0/2 nodes are available: 2 node(s) have the wrong color.`:                                                                                                          nil,
	} {
		if diff := cmp.Diff(want, FindObstacles(message)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", message, diff)
		}
	}
}

// TestRemedies checks that each message has its own remedy, and that the remedies for virtual nodes are not
// given for the nodes of a member.
func TestRemedies(t *testing.T) {
	for _, o := range AllObstacles() {
		r := remedies[o]
		if r.host == "" {
			t.Errorf("%q has no remedy", o)
		}
		if strings.Contains(r.host, "member") && r.member == "" {
			t.Errorf("%q has only a remedy for the host, which mentions members: %s", o, r.host)
		}
		if strings.Contains(r.host, "ach member is one node") && r.rule == "" {
			t.Errorf("%q depends on how virtual nodes represent members, but names no rule: %s", o, r.host)
		}
	}
}
