package weigh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

const plenty = 1 << 40

// wrap wraps a raw object in a document, as API servers do.
func wrap(kind string, raw []byte) []byte {
	typeMeta := protowire.AppendTag(nil, typeMetaVersion, protowire.BytesType)
	typeMeta = protowire.AppendString(typeMeta, "v1")
	typeMeta = protowire.AppendTag(typeMeta, typeMetaKind, protowire.BytesType)
	typeMeta = protowire.AppendString(typeMeta, kind)
	if kind == "" {
		typeMeta = nil
	}
	return append(bytes.Clone(protobufMagic), message2(unknownTypeMeta, typeMeta, unknownRaw, raw)...)
}

// message2 returns a message with two length-delimited fields.
func message2(first protowire.Number, a []byte, second protowire.Number, b []byte) []byte {
	return append(nested(first, a), nested(second, b)...)
}

func nested(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func repeat(what []byte, times int) []byte { return bytes.Repeat(what, times) }

// pod returns a typical Pod in a member.
func pod(name string) *corev1.Pod {
	quantity := resource.MustParse("100m")
	list := corev1.ResourceList{corev1.ResourceCPU: quantity, corev1.ResourceMemory: resource.MustParse("128Mi")}
	container := corev1.Container{
		Name: "main", Image: "registry.example.com/team/app:v1.2.3", Command: []string{"/app", "--serve"},
		Env:          []corev1.EnvVar{{Name: "HOME", Value: "/home"}, {Name: "LANG", Value: "C.UTF-8"}},
		Resources:    corev1.ResourceRequirements{Requests: list, Limits: list},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11", ResourceVersion: "123456",
			CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			Labels:            map[string]string{"app": "web", "xylem.io/host": "3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11"},
			Annotations:       map[string]string{"xylem.io/root": "shop/" + name},
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container, container}, NodeName: "node-1",
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Image: container.Image, AllocatedResources: list}},
		},
	}
}

func encoded(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	var to bytes.Buffer
	if err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(object, &to); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func decode(data []byte) (runtime.Object, error) {
	object, _, err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Decode(data, nil, nil)
	return object, err
}

// documents returns responses, some of which take far more bytes in memory than on the wire.
func documents(t *testing.T) map[string][]byte {
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for i := range 500 {
		pods.Items = append(pods.Items, *pod(fmt.Sprintf("web-%d", i)))
	}
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"a": make([]byte, 1<<20)}}
	const items, spec, metadata, status = 2, 2, 1, 3
	many := func(number protowire.Number) []byte { return repeat(nested(number, nil), 20_000) }
	keys := func(number protowire.Number) []byte {
		var all []byte
		for i := range 10_000 {
			all = append(all, nested(number, nested(1, fmt.Appendf(nil, "%x", i)))...)
		}
		return all
	}
	return map[string][]byte{
		"a Pod":                                 encoded(t, pod("web")),
		"a list of Pods":                        encoded(t, pods),
		"a Secret of 1 MiB":                     encoded(t, secret),
		"empty items":                           wrap("PersistentVolumeList", many(items)),
		"empty Pods":                            wrap("PodList", many(items)),
		"empty containers in a Pod":             wrap("Pod", nested(spec, many(2))),
		"empty volumes in a Pod":                wrap("Pod", nested(spec, many(1))),
		"empty ports in a container":            wrap("Pod", nested(spec, nested(2, many(6)))),
		"empty conditions":                      wrap("Pod", nested(status, many(2))),
		"empty container statuses":              wrap("Pod", nested(status, many(8))),
		"empty addresses":                       wrap("Pod", nested(status, many(12))),
		"empty owners":                          wrap("Pod", nested(metadata, many(13))),
		"empty finalizers":                      wrap("Pod", nested(metadata, many(14))),
		"empty managed fields":                  wrap("Pod", nested(metadata, many(17))),
		"many labels":                           wrap("Pod", nested(metadata, keys(11))),
		"many annotations":                      wrap("Pod", nested(metadata, keys(12))),
		"many resources":                        wrap("Node", nested(status, keys(1))),
		"many keys in a Secret":                 wrap("Secret", keys(2)),
		"empty images in a node":                wrap("Node", nested(status, many(8))),
		"empty names in an image":               wrap("Node", nested(status, nested(8, many(1)))),
		"empty specs in items":                  wrap("PodList", repeat(nested(items, nested(spec, nil)), 10_000)),
		"empty security contexts in containers": wrap("Pod", nested(spec, repeat(nested(2, nested(15, nil)), 10_000))),
	}
}

// A decoded document never takes more memory than its weight. Otherwise, a member's objects
// could exceed its limit.
func TestProtobuf(t *testing.T) {
	for name, document := range documents(t) {
		t.Run(name, func(t *testing.T) {
			weight, err := WeighProtobuf(clientgoscheme.Scheme.New, document, plenty)
			if err != nil {
				t.Fatal(err)
			}
			object, err := decode(document)
			if err != nil {
				t.Fatal(err)
			}
			takes := WeighObject(object)
			if takes > weight {
				t.Errorf("the document of %d bytes has weight %d, but takes %d bytes in memory", len(document), weight, takes)
			}
			if weight > 8*takes+1<<10 {
				t.Errorf("the document of %d bytes has weight %d, but takes only %d bytes in memory", len(document), weight, takes)
			}
			if _, err := WeighProtobuf(clientgoscheme.Scheme.New, document, weight-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("with a limit below the weight, error is %v, want ErrTooLarge", err)
			}
			// Weigh the same document as the object of an event.
			frame := message2(1, []byte("ADDED"), 2, nested(1, document))
			if within, err := WeighEvent(clientgoscheme.Scheme.New, frame, plenty); err != nil || within < weight {
				t.Errorf("in an event, the weight is %d, error is %v; want at least %d", within, err, weight)
			}
		})
	}
}

// A document that cannot be weighed is rejected.
func TestMalformed(t *testing.T) {
	for name, document := range map[string][]byte{
		"nothing":                            {},
		"not protobuf":                       []byte("{}"),
		"a document without a kind":          wrap("", []byte{0x12, 0}),
		"an unknown kind":                    wrap("Surprise", nil),
		"a length that exceeds the document": append(bytes.Clone(protobufMagic), 0x12, 0x7f),
		"an incomplete field":                wrap("Pod", []byte{0x0a, 0x7f}),
		"an unterminated group":              wrap("Pod", []byte{0x0b}),
	} {
		t.Run(name, func(t *testing.T) {
			if weight, err := WeighProtobuf(clientgoscheme.Scheme.New, document, plenty); !errors.Is(err, ErrMalformed) {
				t.Errorf("weight is %d, error is %v, want ErrMalformed", weight, err)
			}
		})
	}
}

// A decoded JSON document never takes more memory than its weight either.
func TestJSON(t *testing.T) {
	marshalled, err := json.Marshal(pod("web"))
	if err != nil {
		t.Fatal(err)
	}
	list := func(kind, field, entry string) []byte {
		entries := bytes.TrimSuffix(bytes.Repeat([]byte(entry+","), 10_000), []byte(","))
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,%q:[%s]}`, kind, field, entries)
	}
	for name, document := range map[string][]byte{
		"a Pod":        marshalled,
		"empty items":  list("PodList", "items", "{}"),
		"nulls":        list("PodList", "items", "null"),
		"empty events": list("EventList", "items", "{}"),
		"addresses":    list("Endpoints", "subsets", `{"addresses":[{},{},{}]}`),
		"finalizers":   fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"finalizers":["a\"{"%s]}}`, repeat([]byte(`,""`), 10_000)),
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJSONWeigher(QuantityShapesOf(clientgoscheme.Scheme))
			for rest := document; len(rest) > 0; {
				taken, ended, err := j.WeighBytes(rest[:min(len(rest), 1000)])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[taken:]
				if ended != (len(rest) == 0) {
					t.Fatalf("Weigh returned ended %v with %d bytes left", ended, len(rest))
				}
			}
			object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if weight, length := j.WeightAndLength(); WeighObject(object) > weight || length != int64(len(document)) {
				t.Errorf("the document of %d bytes (%d of them read) has weight %d, but takes %d bytes in memory", len(document), length, weight, WeighObject(object))
			}
		})
	}
	deep, closed := NewJSONWeigher(QuantityShapesOf(clientgoscheme.Scheme)), NewJSONWeigher(QuantityShapesOf(clientgoscheme.Scheme))
	if _, _, err := deep.WeighBytes(bytes.Repeat([]byte("["), jsonDepth+1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("nesting that is too deep: error is %v, want ErrMalformed", err)
	}
	if _, _, err := closed.WeighBytes([]byte("]")); !errors.Is(err, ErrMalformed) {
		t.Errorf("an unmatched closing bracket: error is %v, want ErrMalformed", err)
	}
}

// The weight of an empty JSON object covers the largest type that a list can contain.
func TestJSONObjectCoversAllTypes(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(t2 reflect.Type) {
		if seen[t2] {
			return
		}
		seen[t2] = true
		switch t2.Kind() { //nolint:exhaustive // the rest hold nothing
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(t2.Elem())
		case reflect.Struct:
			if t2.Size() > jsonObject {
				t.Errorf("%s takes %d bytes, more than jsonObject", t2, t2.Size())
			}
			for i := range t2.NumField() {
				visit(t2.Field(i).Type)
			}
		}
	}
	for _, t2 := range clientgoscheme.Scheme.AllKnownTypes() {
		visit(t2)
	}
}

func FuzzProtobuf(f *testing.F) {
	f.Add([]byte{0x12, 0, 0x12, 2, 0x12, 0})
	f.Add(nested(1, nested(11, nested(1, []byte("a")))))
	for _, text := range endless { // a PersistentVolume's capacity
		f.Add(nested(2, nested(1, message2(1, []byte("storage"), 2, nested(1, []byte(text))))))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range []string{"Pod", "PodList", "Node", "PersistentVolume", "Secret", "Event", "Status"} {
			document := wrap(kind, raw)
			weight, err := WeighProtobuf(clientgoscheme.Scheme.New, document, plenty)
			if err != nil {
				continue // do not decode a quantity that is out of range
			}
			object, failed := decode(document)
			if failed == nil && WeighObject(object) > weight {
				t.Errorf("the %s has weight %d, but takes %d bytes in memory", kind, weight, WeighObject(object))
			}
		}
	})
}

// A document that passes the checks is decoded quickly, and its quantities are in range.
func FuzzJSON(f *testing.F) {
	for _, text := range append(harmless, endless...) {
		f.Add(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","status":{"capacity":{"cpu":%q}}}`, text))
		f.Add(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"PersistentVolume","spec":{"c\u0061pacity":{"storage": %s }}}`, text))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		if weighJSON(document, 3) != nil {
			return
		}
		object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return
		}
		var lists []corev1.ResourceList
		switch o := object.(type) {
		case *corev1.Node:
			lists = append(lists, o.Status.Capacity, o.Status.Allocatable)
		case *corev1.PersistentVolume:
			lists = append(lists, o.Spec.Capacity)
		}
		for _, list := range lists {
			for name, q := range list {
				if !IsInRange(q) {
					t.Errorf("the quantity of %q is out of range", name)
				}
			}
		}
	})
}

func BenchmarkProtobuf(b *testing.B) {
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for i := range 100 {
		pods.Items = append(pods.Items, *pod(fmt.Sprintf("web-%d", i)))
	}
	var to bytes.Buffer
	if err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(pods, &to); err != nil {
		b.Fatal(err)
	}
	var kinds NewObjectFunc = func(kind schema.GroupVersionKind) (runtime.Object, error) { return clientgoscheme.Scheme.New(kind) }
	b.Run("weigh", func(b *testing.B) {
		b.SetBytes(int64(to.Len()))
		for b.Loop() {
			if _, err := WeighProtobuf(kinds, to.Bytes(), plenty); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(to.Len()))
		for b.Loop() {
			if _, err := decode(to.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
