package weigh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// endless are quantities that the decoder, or a comparison after it, takes minutes to compute.
// Tests must not decode them.
var endless = []string{"1e-2147483647", "1000000000000000000000e900000000", "1e2000000001", "-1E+2000000001"}

// harmless are texts that an honest member may report, as quantities or elsewhere.
var harmless = []string{"0", "100m", "128Mi", "1.5", "1e3", "-1E-9", "8E", "8Ei"}

// placeholder is a quantity for which tests substitute others. It is a valid JSON number.
const placeholder = "7770777"

// quantified returns objects with the placeholder at each kind of place, by the place.
func quantified() map[string]runtime.Object {
	q := resource.MustParse(placeholder)
	list := corev1.ResourceList{"example.com/gpu": q}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		change(p)
		return p
	}
	return map[string]runtime.Object{
		"a container's requests": pod(func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{}, {Resources: corev1.ResourceRequirements{Requests: list}}}
		}),
		"a container's status": pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Resources: &corev1.ResourceRequirements{Limits: list}}}
		}),
		"a volume's size limit": pod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &q}}}}
		}),
		"a Pod's overhead": pod(func(p *corev1.Pod) { p.Spec.Overhead = list }),
		"a Node's capacity in a list": &corev1.NodeList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			Items:    []corev1.Node{{}, {Status: corev1.NodeStatus{Capacity: list}}},
		},
		"a PersistentVolume's capacity": &corev1.PersistentVolume{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, Spec: corev1.PersistentVolumeSpec{Capacity: list},
		},
		"a claim's status": &corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, Status: corev1.PersistentVolumeClaimStatus{AllocatedResources: list},
		},
	}
}

// weighJSON weighs a document in pieces.
func weighJSON(document []byte, piece int) error {
	j := NewJSONWeigher(QuantityShapesOf(clientgoscheme.Scheme))
	for len(document) > 0 {
		taken, _, err := j.WeighBytes(document[:min(len(document), piece)])
		if err != nil {
			return err
		}
		document = document[taken:]
	}
	return nil
}

// replaced returns a document with another quantity. The lengths of protobuf fields stay correct,
// because they are computed again.
func replaced(t *testing.T, object runtime.Object, text string) []byte {
	t.Helper()
	pad := func(n int) string { return strings.Repeat("7", n) }
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.ReplaceAll(content, []byte(`"`+placeholder+`"`), []byte(`"`+pad(len(text))+`"`))
	same := object.DeepCopyObject()
	if err := json.Unmarshal(content, same); err != nil {
		t.Fatal(err)
	}
	document := encoded(t, same)
	if !bytes.Contains(document, []byte(pad(len(text)))) {
		t.Fatal("the document does not contain the placeholder")
	}
	return bytes.ReplaceAll(document, []byte(pad(len(text))), []byte(text))
}

// A quantity that would stop the manager for minutes is rejected before it is decoded, wherever it
// is.
func TestQuantities(t *testing.T) {
	for place, object := range quantified() {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(harmless, endless...) {
			want := error(nil)
			if strings.Contains(text, "0000000") || strings.Contains(text, "2147483647") {
				want = ErrOutOfRange
			}
			check := func(how string, err error) {
				t.Helper()
				if !errors.Is(err, want) || want != nil && !errors.Is(err, ErrMalformed) {
					t.Errorf("%s is %s, %s: error is %v, want %v", place, text, how, err, want)
				}
			}
			quoted := []byte(`"` + placeholder + `"`)
			escape := func(document []byte) []byte { // escapes a character of each key
				for _, key := range []string{"capacity", "requests", "limits", "sizeLimit", "overhead", "allocatedResources"} {
					document = bytes.ReplaceAll(document, []byte(`"`+key), fmt.Appendf(nil, `"\u%04x%s`, key[0], key[1:]))
				}
				return document
			}
			late := func(document []byte) []byte { // moves the kind behind the quantity
				kind := object.GetObjectKind().GroupVersionKind().Kind
				document = bytes.Replace(document, fmt.Appendf(nil, `"kind":%q,`, kind), nil, 1)
				return append(bytes.TrimSuffix(document, []byte("}")), fmt.Appendf(nil, `,"kind":%q}`, kind)...)
			}
			event := func(document []byte) []byte { return fmt.Appendf(nil, `{"type":"ADDED","object":%s}`, document) }
			asText := bytes.ReplaceAll(content, quoted, []byte(`"`+text+`"`))
			for _, piece := range []int{1, 7, 1 << 20} {
				check("in JSON", weighJSON(asText, piece))
				check("in JSON with escapes", weighJSON(escape(asText), piece))
				check("in JSON with spaces", weighJSON(bytes.ReplaceAll(content, quoted, []byte(` " `+text+` " `)), piece))
				check("in JSON with the kind at the end", weighJSON(late(asText), piece))
				check("in a JSON event", weighJSON(event(asText), piece))
				check("as a JSON number", weighJSON(bytes.ReplaceAll(content, quoted, []byte(" "+text+"\n")), piece))
				check("as a JSON number in an event", weighJSON(event(late(bytes.ReplaceAll(content, quoted, []byte(text)))), piece))
			}
			document := replaced(t, object, text)
			_, err := WeighProtobuf(clientgoscheme.Scheme.New, document, plenty)
			check("in protobuf", err)
			_, err = WeighEvent(clientgoscheme.Scheme.New, message2(1, []byte("ADDED"), 2, nested(1, document)), plenty)
			check("in a protobuf event", err)
		}
	}
}

// Users may write any text elsewhere. It never closes the link.
func TestTextThatLooksLikeQuantities(t *testing.T) {
	for name, format := range map[string]string{
		"annotations": `{"kind":"Pod","metadata":{"annotations":{"a":%q,"capacity":%[1]q,"requests":%[1]q}},"spec":{"overhead":{"cpu":"1"}}}`,
		"a ConfigMap": `{"kind":"ConfigMap","data":{"a":%q,"capacity":%[1]q}}`,
		"arguments":   `{"kind":"Pod","spec":{"containers":[{"args":[%q],"env":[{"name":"limits","value":%[1]q}],"resources":{"limits":{"cpu":"1"}}}]}}`,
		"a message":   `{"kind":"Pod","status":{"message":%q,"containerStatuses":[{"resources":{"limits":{"cpu":"1"}},"image":%[1]q}]}}`,
	} {
		for _, text := range append(endless, strings.Repeat("1", LengthLimit+1)) {
			if err := weighJSON(fmt.Appendf(nil, format, text), 5); err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"capacity": endless[0]}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Args: endless}}},
	}
	if _, err := WeighProtobuf(clientgoscheme.Scheme.New, encoded(t, pod), plenty); err != nil {
		t.Error(err)
	}
}

// The key limit allows for each field name, even if each of its characters is escaped.
func TestKeyLimit(t *testing.T) {
	seen := map[*valueShape]bool{}
	var visit func(*valueShape)
	visit = func(s *valueShape) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for name, field := range s.fields {
			if len(name)*len(`\u0000`) >= keyLimit {
				t.Errorf("the field name %q is too long", name)
			}
			visit(field)
		}
		visit(s.others)
	}
	visit(QuantityShapesOf(clientgoscheme.Scheme).root)
	t.Logf("%d shapes", len(seen))
}
