package mirror

// Refusal is the error for something that cannot be pushed to a member as it
// stands: trying again is useless until the root object is another.
type Refusal struct {
	// Reason is CamelCase, for events and conditions.
	Reason string
	// Message says what it is about and what to do.
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Reasons of refusals.
const (
	// ReasonPodUnsupported: the Pod sets fields that cannot be pushed.
	ReasonPodUnsupported = "PodUnsupported"
	// ReasonDataSourceUnsupported: the claim wants a volume made from another
	// volume, a snapshot or a populator.
	ReasonDataSourceUnsupported = "DataSourceUnsupported"
	// ReasonClassInvalid: parameters of the host's StorageClass that are
	// Xylem's have unknown keys or values.
	ReasonClassInvalid = "ClassInvalid"
	// ReasonSecretUnsupported: the Secret is worth nothing, or too much, in
	// another cluster.
	ReasonSecretUnsupported = "SecretUnsupported"
)

// ReasonVolumeLost says that the member has the claim's volume no more.
const ReasonVolumeLost = "VolumeLost"

// Reasons of Admit, as a kubelet gives them.
const (
	// ReasonNodeAffinity: node selector or required node affinity does not match.
	ReasonNodeAffinity = "NodeAffinity"
	// ReasonTaintToleration: the Pod does not tolerate a NoExecute taint.
	ReasonTaintToleration = "TaintToleration"
	// ReasonPodOSNotSupported: the Pod is for another operating system.
	ReasonPodOSNotSupported = "PodOSNotSupported"
)
