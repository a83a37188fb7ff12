package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is an object in a cluster.
type Object struct {
	Cluster string
	unstructured.Unstructured
}

// dropped lists the paths, without list indices, of fields whose differences between runs do not
// matter.
var dropped = []string{
	"resourceVersion", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.uid",
	// The first is the ID of the provisioner's process. The host's PV controller adds the second
	// only if it observes the claim before the claim is bound.
	"kubernetes.io/csiProvisionerIdentity", "kubernetes.io/storage-provisioner",
	// Xylem adds this only if necessary, to make the member's PV controller enqueue the PV.
	"xylem.io/volume-uid",
	// Only a volume that is stamped while its root exists has this.
	"xylem.io/root-namespace-uid",
	// This depends on whether the member's PV controller or Xylem was first to bind an unbound
	// volume to the leaf claim that names it.
	"kubernetes.io/bound-by-controller",
	// The number of writes to a status does not matter.
	"observedGeneration",
	// The snapshot-controller adds this to a VolumeSnapshot some time after binding it.
	"metadata.finalizers[snapshot.storage.kubernetes.io/volumesnapshot-bound-protection]",
	// Only kube-controller-manager writes this, and only if it observes a change to a Pod.
	"status.conditions[Unused]",
	// In a content, this is a number, which the pattern for times does not match.
	"status.creationTime",
	// These contain the CAs of the host and the members, and tokens.
	"data.ca.crt", "kubernetes.io/config.",
}

var (
	uuid      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	address   = regexp.MustCompile(`\b(10|172)\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	loopback  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	random    = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)
	revision  = regexp.MustCompile(`-[0-9a-f]{8,10}\b`)
	// collision matches the digest in the name of a copy, and the digest that distinguishes volumes
	// whose leaves have the same name.
	collision = regexp.MustCompile(`-([0-9a-f]{32}|[0-9a-f]{16})\b`)
)

// Normalise formats objects so that two runs can be compared: one line for each field, without the
// parts that differ from run to run. It replaces UIDs with the objects that they identify.
func Normalise(objects []Object, namespace string, ids map[string]string) []string {
	n := normaliser{namespace: namespace, names: map[string]string{}}
	for name, id := range ids {
		n.names[id] = "id(" + name + ")"
	}
	for _, o := range objects {
		if uid := string(o.GetUID()); n.names[uid] == "" {
			n.names[uid] = fmt.Sprintf("uid(%s %s %s)", o.Cluster, o.GetKind(), uuid.ReplaceAllString(o.GetName(), "…"))
		}
	}
	var lines []string
	for _, o := range objects {
		prefix := fmt.Sprintf("%s %s %s", o.Cluster, o.GetKind(), n.text(o.GetName()))
		lines = append(lines, prefix)
		n.flatten(&lines, prefix+" ", "", o.Object)
	}
	slices.Sort(lines)
	return lines
}

type normaliser struct {
	namespace string
	names     map[string]string
}

func (n normaliser) text(s string) string {
	s = uuid.ReplaceAllStringFunc(s, func(id string) string {
		if name, ok := n.names[id]; ok {
			return name
		}
		return "uid(?)"
	})
	s = strings.ReplaceAll(s, n.namespace, "<namespace>")
	s = timestamp.ReplaceAllString(s, "<time>")
	s = address.ReplaceAllString(s, "<address>")
	s = loopback.ReplaceAllString(s, "<server>")
	s = random.ReplaceAllString(s, "<token volume>")
	s = collision.ReplaceAllString(s, "-<digest>")
	return revision.ReplaceAllString(s, "-<hash>")
}

func (n normaliser) flatten(lines *[]string, prefix, path string, value any) {
	for _, d := range dropped {
		if path == d || strings.HasSuffix(path, "."+d) {
			return
		}
	}
	if strings.HasPrefix(path, "data.token-") {
		return // each request for a token has another result
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.flatten(lines, prefix, strings.TrimPrefix(path+"."+key, "."), v[key])
		}
	case []any:
		for i, item := range v {
			n.flatten(lines, prefix, fmt.Sprintf("%s[%s]", path, identity(i, item)), item)
		}
	default:
		content, err := json.Marshal(v)
		if err != nil {
			content = []byte(err.Error())
		}
		*lines = append(*lines, prefix+n.text(path)+"="+n.text(string(content)))
	}
}

// identity returns the key of a list item, such as its type or name, because the order of
// conditions and similar lists has no meaning.
func identity(i int, item any) string {
	switch v := item.(type) {
	case string:
		return v
	case map[string]any:
		for _, key := range []string{"type", "name", "key"} {
			if s, ok := v[key].(string); ok {
				return s
			}
		}
	}
	return fmt.Sprint(i)
}
