package refs

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
	"github.com/xylem-io/xylem/internal/weigh"
)

func configMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: "settings", UID: "config-uid", ResourceVersion: "7",
		Labels:          map[string]string{"app": "web"},
		Annotations:     map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "kept"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment"}},
	}
}

func leafConfigMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: mirrortest.ConfigCopies.NameOfCopy("settings"),
		Labels:      map[string]string{"app": "web", "xylem.io/host": mirrortest.HostID, "app.kubernetes.io/managed-by": "xylem"},
		Annotations: map[string]string{"note": "kept", "xylem.io/root": "shop/settings", "xylem.io/root-uid": "config-uid"},
	}
}

func TestTranslateConfigMap(t *testing.T) {
	root := &corev1.ConfigMap{
		ObjectMeta: configMeta(), Immutable: mirrortest.PointerTo(true),
		Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {1}},
	}
	before := root.DeepCopy()
	got, err := TranslateConfigMap(root, mirrortest.ConfigCopies)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.ConfigMap{
		ObjectMeta: leafConfigMeta(), Immutable: mirrortest.PointerTo(true),
		Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got.Data["a"], got.BinaryData["c"][0], *got.Immutable = "changed", 2, false
	if diff := cmp.Diff(before, root); diff != "" {
		t.Errorf("the root shares memory with its copy:\n%s", diff)
	}
}

func TestTranslateSecret(t *testing.T) {
	cases := map[string]struct {
		secretType corev1.SecretType
		refused    bool
	}{
		"Opaque":                  {secretType: corev1.SecretTypeOpaque},
		"an image pull secret":    {secretType: corev1.SecretTypeDockerConfigJson},
		"a certificate":           {secretType: corev1.SecretTypeTLS},
		"a custom type":           {secretType: "example.org/own"},
		"a service account token": {secretType: corev1.SecretTypeServiceAccountToken, refused: true},
		"a bootstrap token":       {secretType: corev1.SecretTypeBootstrapToken, refused: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := &corev1.Secret{ObjectMeta: configMeta(), Type: c.secretType, Data: map[string][]byte{"k": {1}}}
			before := root.DeepCopy()
			got, err := TranslateSecret(root, mirrortest.ConfigCopies)
			if c.refused {
				var refusal *mirror.Refusal
				if !errors.As(err, &refusal) || refusal.Reason != v1alpha1.ReasonSecretUnsupported || got != nil {
					t.Fatalf("want a refusal, got %v, %v", got, err)
				}
				return
			}
			want := &corev1.Secret{ObjectMeta: leafConfigMeta(), Type: c.secretType, Data: map[string][]byte{"k": {1}}}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("error %v, -want +got:\n%s", err, diff)
			}
			got.Data["k"][0] = 2
			if diff := cmp.Diff(before, root); diff != "" {
				t.Errorf("the root shares memory with its copy:\n%s", diff)
			}
		})
	}
}

func TestConfigDrift(t *testing.T) {
	cases := map[string]struct {
		want, leaf corev1.ConfigMap
		drift      ConfigDrift
	}{
		"equal":                   {corev1.ConfigMap{Data: map[string]string{"a": "b"}}, corev1.ConfigMap{Data: map[string]string{"a": "b"}}, ConfigCurrent},
		"immutable and equal":     {corev1.ConfigMap{Immutable: mirrortest.PointerTo(true)}, corev1.ConfigMap{Immutable: mirrortest.PointerTo(true)}, ConfigCurrent},
		"nil data and empty data": {corev1.ConfigMap{Data: map[string]string{}, Immutable: mirrortest.PointerTo(false)}, corev1.ConfigMap{}, ConfigCurrent},
		"other labels, which are not visible to Pods": {corev1.ConfigMap{ObjectMeta: configMeta()}, corev1.ConfigMap{}, ConfigCurrent},
		"the same value in data and in binary data":   {corev1.ConfigMap{Data: map[string]string{"a": "b"}}, corev1.ConfigMap{BinaryData: map[string][]byte{"a": []byte("b")}}, ConfigChanged},
		"another split between key and value":         {corev1.ConfigMap{Data: map[string]string{"a": "bc"}}, corev1.ConfigMap{Data: map[string]string{"ab": "c"}}, ConfigChanged},
		"another split between values":                {corev1.ConfigMap{Data: map[string]string{"a": "b", "c": "d"}}, corev1.ConfigMap{Data: map[string]string{"a": "bcd"}}, ConfigChanged},
		"a key that the root lacks":                   {corev1.ConfigMap{}, corev1.ConfigMap{Data: map[string]string{"a": ""}}, ConfigChanged},
		"other data":                                  {corev1.ConfigMap{Data: map[string]string{"a": "b"}}, corev1.ConfigMap{}, ConfigChanged},
		"other binary data":                           {corev1.ConfigMap{BinaryData: map[string][]byte{"a": {1}}}, corev1.ConfigMap{}, ConfigChanged},
		"the root became immutable":                   {corev1.ConfigMap{Immutable: mirrortest.PointerTo(true)}, corev1.ConfigMap{}, ConfigChanged},
		"other data, and the copy is immutable":       {corev1.ConfigMap{Data: map[string]string{"a": "b"}, Immutable: mirrortest.PointerTo(true)}, corev1.ConfigMap{Immutable: mirrortest.PointerTo(true)}, ConfigImmutable},
		"an immutable copy of a mutable root":         {corev1.ConfigMap{}, corev1.ConfigMap{Immutable: mirrortest.PointerTo(true)}, ConfigImmutable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ConfigMapDriftOf(&c.want, ReduceConfigMap(&c.leaf)); got != c.drift {
				t.Errorf("got %s, want %s", got, c.drift)
			}
		})
	}
	opaque := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": {1}}}
	changed, retyped := opaque.DeepCopy(), opaque.DeepCopy()
	changed.Data["a"][0] = 2
	retyped.Type = corev1.SecretTypeTLS
	for want, other := range map[ConfigDrift]*corev1.Secret{ConfigCurrent: opaque, ConfigChanged: changed, ConfigImmutable: retyped} {
		if got := SecretDriftOf(other, ReduceSecret(opaque)); got != want {
			t.Errorf("Secret: got %s, want %s", got, want)
		}
	}
}

// The cached form of a copy is small, whatever its root contains, and still shows its origin.
func TestReduce(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	meta := leafConfigMeta()
	meta.UID, meta.ResourceVersion, meta.DeletionTimestamp = "leaf-uid", "8", &metav1.Time{}
	meta.Labels["large"], meta.Annotations["large"], meta.Finalizers = large, large, []string{large}
	meta.OwnerReferences, meta.ManagedFields = []metav1.OwnerReference{{Name: large}}, []metav1.ManagedFieldsEntry{{Manager: large}}
	keys := map[string]string{}
	for i := range 100_000 {
		keys[strconv.Itoa(i)] = ""
	}
	cm := ReduceConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: keys, BinaryData: map[string][]byte{"a": []byte(large)}, Immutable: mirrortest.PointerTo(true)})
	secret := ReduceSecret(&corev1.Secret{ObjectMeta: meta, Type: corev1.SecretType(large), Data: map[string][]byte{"a": []byte(large)}, Immutable: mirrortest.PointerTo(true)})
	for name, reduced := range map[string]metav1.Object{"ConfigMap": cm, "Secret": secret} {
		if size := weigh.WeighObject(reduced); size > 4<<10 {
			t.Errorf("the reduced %s takes %d bytes, want at most 4 KiB", name, size)
		}
		if origin, ours := mirror.LeafOriginFromHost(mirrortest.HostID, reduced); !ours || origin.UID != "config-uid" || origin.Root.Name != "settings" {
			t.Errorf("the reduced %s has origin %v", name, origin)
		}
		if reduced.GetUID() != "leaf-uid" || reduced.GetResourceVersion() != "8" || reduced.GetDeletionTimestamp() == nil {
			t.Errorf("the reduced %s lacks what preconditions need", name)
		}
	}
	if !*cm.Immutable || !*secret.Immutable {
		t.Error("the reduced objects are not immutable")
	}
}

// An object with very many keys is refused. One with as much text as the API server admits is not.
func TestTooLarge(t *testing.T) {
	keys := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[strconv.Itoa(i)] = ""
		}
		return m
	}
	largest := map[string]string{"a": strings.Repeat("x", 1<<20)}
	for name, c := range map[string]struct {
		meta    metav1.ObjectMeta
		data    map[string]string
		refused bool
	}{
		"the most text":              {metav1.ObjectMeta{Annotations: map[string]string{"note": strings.Repeat("x", 256<<10)}}, largest, false},
		"a thousand keys":            {metav1.ObjectMeta{}, keys(1000), false},
		"very many keys":             {metav1.ObjectMeta{}, keys(150_000), true},
		"very many labels":           {metav1.ObjectMeta{Labels: keys(50_000)}, nil, true},
		"labels that are not copied": {metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("x", 5<<20)}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			bytes := map[string][]byte{}
			for key, value := range c.data {
				bytes[key] = []byte(value)
			}
			_, ofConfigMap := TranslateConfigMap(&corev1.ConfigMap{ObjectMeta: c.meta, Data: c.data}, mirrortest.ConfigCopies)
			_, ofSecret := TranslateSecret(&corev1.Secret{ObjectMeta: c.meta, Data: bytes}, mirrortest.ConfigCopies)
			for _, err := range []error{ofConfigMap, ofSecret} {
				var refusal *mirror.Refusal
				if refused := errors.As(err, &refusal) && refusal.Reason == v1alpha1.ReasonReferenceTooLarge; refused != c.refused || !refused && err != nil {
					t.Errorf("error is %v, want a refusal: %t", err, c.refused)
				}
			}
		})
	}
}
