package wording

import (
	"regexp"
	"slices"
)

// Obstacle is a kind of reason why a plugin of a scheduler rejects a Pod, or a node for a Pod. Its value
// is a regular expression that matches the plugin's message.
type Obstacle string

// Obstacles: the messages of the plugins of kube-scheduler 1.34 to 1.37
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins; for ephemeral volumes,
// k8s.io/component-helpers/storage/ephemeral). A Pod's condition PodScheduled lists them with the number
// of nodes (k8s.io/kubernetes/pkg/scheduler/framework: FitError). The messages about deferred resizes are
// missing, because they concern Pods that have a node.
const (
	// Messages about the Pod (PreFilter).
	EphemeralClaimAwaited Obstacle = `waiting for ephemeral volume controller to create the persistentvolumeclaim "`                                                            // volumebinding
	EphemeralClaimForeign Obstacle = `PVC \S+ was not created for pod \S+ \(pod is not owner\)`                                                                                 // volumebinding
	ClaimNotFound         Obstacle = `persistentvolumeclaims? "[^"]*" not found`                                                                                                // volumebinding, volumerestrictions, volumezone, nodevolumelimits
	ClaimWithoutVolume    Obstacle = `persistentvolumeclaim "[^"]*" bound to non-existent|pvc\(s\) bound to non-existent pv\(s\)`                                               // volumebinding
	ClaimDeleted          Obstacle = `persistentvolumeclaim "[^"]*" is being deleted`                                                                                           // volumebinding
	ClaimUnbound          Obstacle = `pod has unbound immediate PersistentVolumeClaims`                                                                                         // volumebinding
	ClaimInUse            Obstacle = `PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod`                                                    // volumerestrictions
	ClaimWithoutClass     Obstacle = `PersistentVolumeClaim had no |PersistentVolume had no name|VolumeBindingMode not set for`                                                 // volumezone
	AffinityConflict      Obstacle = `pod affinity terms conflict`                                                                                                              // nodeaffinity
	GroupIncomplete       Obstacle = `waiting for (pods's pod group|minCount pods|composite pod group)|minCount \(\d+\) cannot be satisfied|failed to build hierarchy snapshot` // gangscheduling
	PreemptionAwaited     Obstacle = `waiting for the preemption for this pod`                                                                                                  // defaultpreemption
	DeviceUnavailable     Obstacle = `(?i)resource ?claim|device class |cannot allocate all claims|pod level (request|limit) for `                                              // dynamicresources

	// Messages about nodes (Filter).
	VolumeElsewhere      Obstacle = `node\(s\) didn't match PersistentVolume's node affinity|had volume node affinity conflict` // volumebinding
	VolumeInOtherZone    Obstacle = `node\(s\) had no available volume zone`                                                    // volumezone
	PodAntiAffinity      Obstacle = `node\(s\) didn't match pod anti-affinity rules`                                            // interpodaffinity
	OthersAntiAffinity   Obstacle = `node\(s\) didn't satisfy existing pods anti-affinity rules`                                // interpodaffinity
	PodAffinity          Obstacle = `node\(s\) didn't match pod affinity rules`                                                 // interpodaffinity
	SpreadLabelMissing   Obstacle = `node\(s\) didn't match pod topology spread constraints \(missing required label\)`         // podtopologyspread
	TopologySpread       Obstacle = `node\(s\) didn't match pod topology spread constraints([^ ]| [^(]|$)`                      // podtopologyspread
	PortTaken            Obstacle = `node\(s\) didn't have free ports for the requested pod ports`                              // nodeports
	DiskInUse            Obstacle = `node\(s\) had no available disk`                                                           // volumerestrictions
	TooManyVolumes       Obstacle = `node\(s\) exceed max volume count`                                                         // nodevolumelimits
	TooManyPods          Obstacle = `\d Too many pods`                                                                          // noderesources
	Insufficient         Obstacle = `\d Insufficient `                                                                          // noderesources
	StorageInsufficient  Obstacle = `node\(s\) did not have enough free storage`                                                // volumebinding
	NodeFeatureMissing   Obstacle = `node\(s\) didn't match Pod's required features`                                            // nodedeclaredfeatures
	NodeNameDiffers      Obstacle = `node\(s\) didn't match the requested node name`                                            // nodename
	ProfileNodeAffinity  Obstacle = `node\(s\) didn't match scheduler-enforced node affinity`                                   // nodeaffinity
	NodeCordoned         Obstacle = `node\(s\) (were unschedulable|had unknown conditions)`                                     // nodeunschedulable
	NodeSelectorMismatch Obstacle = `node\(s\) didn't match Pod's node affinity/selector`                                       // nodeaffinity
	NoVolumeAvailable    Obstacle = `node\(s\) didn't find available persistent volumes to bind`                                // volumebinding
	TaintNotTolerated    Obstacle = `node\(s\) had (untolerated taint|taints that the pod didn't tolerate)`                     // tainttoleration
	DriverNotInstalled   Obstacle = `CSI driver is not installed on the node`                                                   // nodevolumelimits
)

var (
	// podObstacles are the obstacles of a particular Pod, in the order in which FindObstacles returns them.
	podObstacles = []Obstacle{
		EphemeralClaimAwaited, EphemeralClaimForeign, ClaimNotFound, ClaimWithoutVolume, ClaimDeleted, ClaimUnbound,
		ClaimInUse, ClaimWithoutClass, AffinityConflict, GroupIncomplete, PreemptionAwaited, DeviceUnavailable,
		VolumeInOtherZone, PodAntiAffinity, OthersAntiAffinity, PodAffinity, SpreadLabelMissing,
		TopologySpread, PortTaken, DiskInUse, TooManyVolumes, TooManyPods, Insufficient, StorageInsufficient,
		NodeFeatureMissing, NodeNameDiffers, ProfileNodeAffinity,
	}
	// elsewhereObstacles is the obstacle that each other member presents to a Pod with a volume. If the volume's own member
	// rejects the Pod as well, that is the cause.
	elsewhereObstacles = []Obstacle{VolumeElsewhere}
	// commonObstacles are the obstacles that some node of every fleet presents: the host's own nodes have no
	// volumes of members, and virtual nodes have taints.
	commonObstacles = []Obstacle{NodeCordoned, NodeSelectorMismatch, NoVolumeAvailable, TaintNotTolerated, DriverNotInstalled}
)

// AllObstacles returns all obstacles.
func AllObstacles() []Obstacle {
	return slices.Concat(podObstacles, elsewhereObstacles, commonObstacles)
}

var obstaclePatterns = map[Obstacle]*regexp.Regexp{}

func init() {
	for _, o := range AllObstacles() {
		obstaclePatterns[o] = regexp.MustCompile(string(o))
	}
}

// FindObstacles returns the reasons in the message of a Pod's condition PodScheduled why no node fits the
// Pod. It returns those that some node of every fleet presents only if there is no other. It omits the
// reasons of unknown plugins.
func FindObstacles(message string) (found []Obstacle) {
	for _, all := range [][]Obstacle{podObstacles, elsewhereObstacles, commonObstacles} {
		for _, o := range all {
			if obstaclePatterns[o].MatchString(message) {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}
