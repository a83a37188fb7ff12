package bundle

import "github.com/xylem-io/xylem/api/v1alpha1"

var claimSpec = fields{
	"accessModes": whole{}, "resources": whole{}, "storageClassName": whole{}, "volumeName": whole{}, "volumeMode": whole{},
	"dataSource": whole{}, "dataSourceRef": whole{}, "selector": whole{}, "volumeAttributesClassName": whole{},
}

// container omits the command, its arguments, probes, and the values of environment variables.
var container = fields{
	"name": whole{}, "image": whole{}, "resources": whole{}, "ports": whole{}, "volumeMounts": whole{}, "volumeDevices": whole{},
	"env": fields{"name": whole{}}, "restartPolicy": whole{}, "imagePullPolicy": whole{},
}

var named = fields{"name": whole{}}

var podSpec = fields{
	"nodeName": whole{}, "nodeSelector": whole{}, "affinity": whole{}, "tolerations": whole{}, "topologySpreadConstraints": whole{},
	"schedulerName": whole{}, "schedulingGates": whole{}, "priorityClassName": whole{}, "priority": whole{}, "restartPolicy": whole{},
	"terminationGracePeriodSeconds": whole{}, "serviceAccountName": whole{}, "hostNetwork": whole{}, "os": whole{}, "runtimeClassName": whole{},
	"imagePullSecrets": named, "containers": container, "initContainers": container, "ephemeralContainers": container,
	"volumes": present{
		"name": whole{}, "persistentVolumeClaim": whole{}, "configMap": named, "secret": fields{"secretName": whole{}},
		"ephemeral": fields{"volumeClaimTemplate": fields{"spec": claimSpec}}, "csi": fields{"driver": whole{}},
	},
}

// containerStatus omits the termination message, because the container's program writes it.
var containerStatus = fields{
	"name": whole{}, "ready": whole{}, "started": whole{}, "restartCount": whole{}, "image": whole{},
	"state": containerState, "lastState": containerState,
}

var containerState = fields{
	"waiting": whole{}, "running": whole{},
	"terminated": fields{"exitCode": whole{}, "signal": whole{}, "reason": whole{}, "startedAt": whole{}, "finishedAt": whole{}},
}

var podStatus = fields{
	"phase": whole{}, "conditions": whole{}, "reason": whole{}, "message": whole{}, "nominatedNodeName": whole{}, "hostIP": whole{}, "podIP": whole{},
	"startTime": whole{}, "qosClass": whole{}, "observedGeneration": whole{}, "resize": whole{},
	"containerStatuses": containerStatus, "initContainerStatuses": containerStatus, "ephemeralContainerStatuses": containerStatus,
}

// manager keeps the flags of the manager's container, because they contain no credentials.
var manager = fields{
	"name": whole{}, "image": whole{}, "args": whole{}, "resources": whole{}, "ports": whole{}, "env": fields{"name": whole{}}, "imagePullPolicy": whole{},
}

var parameters = values{v1alpha1.Prefix, "csi.storage.k8s.io/fstype"}

// kinds lists the fields to keep for each kind, besides the metadata.
var kinds = map[string]fields{
	"ClusterRegistration":   {"spec": whole{}, "status": whole{}},
	"Pod":                   {"spec": podSpec, "status": podStatus},
	"PersistentVolumeClaim": {"spec": claimSpec, "status": whole{}},
	"PersistentVolume": {"status": whole{}, "spec": present{
		"accessModes": whole{}, "capacity": whole{}, "claimRef": whole{}, "nodeAffinity": whole{}, "persistentVolumeReclaimPolicy": whole{},
		"storageClassName": whole{}, "volumeMode": whole{}, "volumeAttributesClassName": whole{},
		"csi": fields{"driver": whole{}, "volumeHandle": whole{}, "fsType": whole{}, "readOnly": whole{}, "volumeAttributes": values{v1alpha1.Prefix}},
	}},
	"StorageClass": {
		"provisioner": whole{}, "reclaimPolicy": whole{}, "volumeBindingMode": whole{}, "allowVolumeExpansion": whole{}, "allowedTopologies": whole{},
		"parameters": parameters,
	},
	"Node": {
		"spec":   fields{"taints": whole{}, "unschedulable": whole{}},
		"status": fields{"conditions": whole{}, "addresses": whole{}, "capacity": whole{}, "allocatable": whole{}, "daemonEndpoints": whole{}, "nodeInfo": whole{}},
	},
	"Namespace":          {"status": whole{}},
	"CSIDriver":          {"spec": whole{}},
	"CSINode":            {"spec": whole{}},
	"CSIStorageCapacity": {"capacity": whole{}, "maximumVolumeSize": whole{}, "nodeTopology": whole{}, "storageClassName": whole{}},
	"Lease":              {"spec": whole{}},
	"Deployment": {
		"spec":   fields{"replicas": whole{}, "strategy": whole{}, "template": fields{"metadata": metadata, "spec": managerSpec()}},
		"status": whole{},
	},
	"ValidatingAdmissionPolicy":        {"spec": whole{}, "status": whole{}},
	"ValidatingAdmissionPolicyBinding": {"spec": whole{}},
	"Event": {
		"involvedObject": whole{}, "reason": whole{}, "message": whole{}, "type": whole{}, "count": whole{}, "firstTimestamp": whole{}, "lastTimestamp": whole{},
		"eventTime": whole{}, "series": whole{}, "reportingComponent": whole{}, "source": whole{},
	},
	"VolumeSnapshot": {"spec": whole{}, "status": whole{}},
	"VolumeSnapshotContent": {"status": whole{}, "spec": fields{
		"deletionPolicy": whole{}, "driver": whole{}, "source": whole{}, "volumeSnapshotClassName": whole{}, "volumeSnapshotRef": whole{}, "sourceVolumeMode": whole{},
	}},
	"VolumeSnapshotClass": {"driver": whole{}, "deletionPolicy": whole{}, "parameters": parameters},
}

// managerSpec is podSpec with the manager's flags.
func managerSpec() fields {
	spec := fields{}
	for key, k := range podSpec {
		spec[key] = k
	}
	spec["containers"] = manager
	return spec
}
