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

// Object is an object of a cluster.
type Object struct {
	Cluster string
	unstructured.Unstructured
}

// dropped are fields that differ from run to run and mean nothing: paths without
// the indices of lists.
var dropped = []string{
	"resourceVersion", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.uid",
	// Which life of a provisioner it was; and what the host's PV controller adds to
	// a claim only if it sees it before the claim is bound.
	"kubernetes.io/csiProvisionerIdentity", "kubernetes.io/storage-provisioner",
	// Put on to wake the member's PV controller, and only if it sleeps.
	"xylem.io/volume-uid",
	// Only a volume that is stamped while its root is there gets it.
	"xylem.io/root-namespace-uid",
	// Whether the member's PV controller or Xylem was the first to point a volume that no claim had
	// at the leaf claim that names it.
	"kubernetes.io/bound-by-controller",
	// How often a status was written is no part of what it says.
	"observedGeneration",
	// Put on a VolumeSnapshot by its controller at the next occasion after it is bound.
	"metadata.finalizers[snapshot.storage.kubernetes.io/volumesnapshot-bound-protection]",
	// Of a content that is a number, which no pattern finds.
	"status.creationTime",
	// Of the host's and the members' own CAs, and of tokens.
	"data.ca.crt", "kubernetes.io/config.",
}

var (
	uuid      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	address   = regexp.MustCompile(`\b(10|172)\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	loopback  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	random    = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)
	revision  = regexp.MustCompile(`-[0-9a-f]{8,10}\b`)
	// collision: the digest that tells volumes apart whose leaves have one name.
	collision = regexp.MustCompile(`-[0-9a-f]{16}\b`)
)

// Normalise writes objects down so that two runs can be compared: a line for each
// field, without what differs from run to run, with UIDs as what they represent.
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

// identity names an item of a list: by its type or name where it has one, for
// conditions and the like are sets.
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
