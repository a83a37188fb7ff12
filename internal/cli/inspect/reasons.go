package inspect

// SnapshotFailed is the reason of a snapshot's error that no event repeats.
const SnapshotFailed = "SnapshotFailed"

// ToDoOfKubernetes contains the next steps for reasons that Kubernetes components report. The
// generated table contains those for Xylem's reasons.
var ToDoOfKubernetes = map[string]string{
	// Container states (k8s.io/kubernetes/pkg/kubelet).
	"ErrImagePull":               "Check the image name and the Pod's imagePullSecrets. The member's nodes pull the image.",
	"ImagePullBackOff":           "Check the image name and the Pod's imagePullSecrets. The member's nodes pull the image.",
	"ErrImageNeverPull":          "Change imagePullPolicy, or load the image on the member's nodes.",
	"InvalidImageName":           "Correct the image name.",
	"CreateContainerConfigError": "Fix the problem that the message describes. Usually, a ConfigMap or Secret, or a key in one, is missing.",
	"CreateContainerError":       "Correct the container's command, mounts or security context, as the message describes.",
	"RunContainerError":          "Correct the container's command, mounts or security context, as the message describes.",
	"CrashLoopBackOff":           "Read the log of the previous run with `kubectl logs --previous`.",
	"ContainersNotReady":         "Read the containers' logs with `kubectl logs`, and check their readiness probes.",
	// The scheduler, in the host or in the member.
	"SchedulingGated": "Remove the Pod's spec.schedulingGates, or wait for the controller that removes them.",
	"Unschedulable":   "Change the Pod, its claims or the nodes, as the message describes.", // for messages without an obstacle
	// Workloads (k8s.io/kubernetes/pkg/controller).
	"FailedCreate":             "Change the Pod template, the quota or the policy, as the message describes.",
	"BackoffLimitExceeded":     "Read the logs of the Job's Pods with `kubectl logs`, and create the Job again.",
	"PodFailurePolicy":         "Read the logs of the Job's Pods with `kubectl logs`, and create the Job again.",
	"FailedIndexes":            "Read the logs of the Job's Pods with `kubectl logs`, and create the Job again.",
	"MaxFailedIndexesExceeded": "Read the logs of the Job's Pods with `kubectl logs`, and create the Job again.",
	"FailedDelete":             "Fix the problem that the message describes. The controller tries again.",
	"JobSuspended":             "Set the Job's spec.suspend to false, or wait for the controller that suspended it.",
	// Snapshots.
	SnapshotFailed: "Check the snapshot's class and claim as the message describes, or ask the member's admin to check the driver.",
	// Volumes (the attach-detach controller, kubelets, provisioners and resizers).
	"FailedAttachVolume":       "Ask the member's admin to check the driver and the node; the Pod starts once the volume is attached.",
	"FailedMount":              "Ask the member's admin to check the driver and the node; the Pod starts once the volume is mounted.",
	"ProvisioningFailed":       "Change the claim or its class as the driver requires, or ask the member's admin to check the driver.",
	"VolumeResizeFailed":       "Request a size that the driver supports, or ask the member's admin to check the driver.",
	"VolumeModifyFailed":       "Restore the previous spec.volumeAttributesClassName, or ask the member's admin to check the driver.",
	"ControllerResizeError":    "Request a size that the driver supports, or ask the member's admin to check the driver.",
	"NodeResizeError":          "Ask the member's admin to check the driver on the Pod's node.",
	"ModifyVolumeError":        "Restore the previous spec.volumeAttributesClassName, or ask the member's admin to check the driver.",
	"FailedBinding":            "Change the claim or its class as the message describes.",
	"ClaimLost":                "Restore the volume, or delete the claim.",
	"ClaimMisbound":            "Delete this claim, because another claim is bound to the volume.",
	"WaitForFirstConsumer":     "Create a Pod that uses the claim.",
	"DeletionByTaintManager":   "If a controller owns the Pod, wait for the controller to create another one. Otherwise, create the Pod again.",
	"EvictionByEvictionAPI":    "If a controller owns the Pod, wait for the controller to create another one. Otherwise, create the Pod again.",
	"PreemptionByScheduler":    "If a controller owns the Pod, wait for the controller to create another one. Otherwise, create the Pod again.",
	"TerminationByKubelet":     "If a controller owns the Pod, wait for the controller to create another one. Otherwise, create the Pod again.",
	"DeletionByPodGC":          "If a controller owns the Pod, wait for the controller to create another one. Otherwise, create the Pod again.",
	"OOMKilled":                "Raise the container's memory limit.",
	"Error":                    "Read the Pod's logs with `kubectl logs`.",
	"DeadlineExceeded":         "Raise activeDeadlineSeconds of the Pod, or of its Job, and create the Job again.",
	"OutOfcpu":                 "Request less CPU, or let the scheduler place the Pod.",
	"OutOfmemory":              "Request less memory, or let the scheduler place the Pod.",
	"UnexpectedAdmissionError": "Let the scheduler place the Pod.",
	// Resizes of Pods (k8s.io/kubernetes/pkg/kubelet/allocation).
	"Deferred":   "Wait until the Pod's node has enough free resources, or request less.",
	"Infeasible": "Request less, or re-create the Pod, so that the scheduler chooses another node.",
}
