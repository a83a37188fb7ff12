package diagnose

// toDoOfKubernetes contains the next steps for reasons that Kubernetes components report. The
// generated table contains those for Xylem's reasons.
var toDoOfKubernetes = map[string]string{
	// Container states (k8s.io/kubernetes/pkg/kubelet).
	"ErrImagePull":               "Check the image's name and the Pod's imagePullSecrets; the member's nodes pull it.",
	"ImagePullBackOff":           "Check the image's name and the Pod's imagePullSecrets; the member's nodes pull it.",
	"ErrImageNeverPull":          "Change imagePullPolicy, or load the image on the member's nodes.",
	"InvalidImageName":           "Correct the image's name.",
	"CreateContainerConfigError": "Correct what the message names, which is usually a missing key of a ConfigMap or Secret.",
	"CreateContainerError":       "Correct the container's command, mounts or security context, as the message describes.",
	"RunContainerError":          "Correct the container's command, mounts or security context, as the message describes.",
	"CrashLoopBackOff":           "Read the log of the previous run with `kubectl logs --previous`.",
	"ContainersNotReady":         "Read the containers' logs with `kubectl logs`, and check their readiness probes.",
	// The scheduler, in the host or in the member.
	"SchedulingGated": "Remove the Pod's spec.schedulingGates, or wait for the controller that removes them.",
	"Unschedulable":   "Add what the nodes lack, or reduce the Pod's requests.",
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
	"ClaimMisbound":            "Remove the other claim's reference to the volume.",
	"WaitForFirstConsumer":     "Create a Pod that uses the claim.",
	"DeletionByTaintManager":   "Nothing, if a controller owns the Pod: it creates another one.",
	"EvictionByEvictionAPI":    "Nothing, if a controller owns the Pod: it creates another one.",
	"PreemptionByScheduler":    "Nothing, if a controller owns the Pod: it creates another one.",
	"TerminationByKubelet":     "Nothing, if a controller owns the Pod: it creates another one.",
	"DeletionByPodGC":          "Nothing, if a controller owns the Pod: it creates another one.",
	"OOMKilled":                "Raise the container's memory limit.",
	"Error":                    "Read the log with `kubectl logs`.",
	"DeadlineExceeded":         "Raise the Pod's activeDeadlineSeconds.",
	"OutOfcpu":                 "Request less, or let the scheduler place the Pod.",
	"OutOfmemory":              "Request less, or let the scheduler place the Pod.",
	"UnexpectedAdmissionError": "Let the scheduler place the Pod.",
}
