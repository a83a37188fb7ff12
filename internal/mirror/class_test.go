package mirror

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func class(parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ssd"}, Parameters: parameters}
}

func TestReadClass(t *testing.T) {
	cases := map[string]struct {
		parameters map[string]string
		want       Class
		refused    []string
	}{
		"defaults": {want: Class{Provisioning: "mirror", Release: "OnClaimDeletion", ReleaseGrace: 30 * time.Second, PlacementTimeout: time.Minute}},
		"another's parameters": {
			parameters: map[string]string{"type": "gp3", "csi.storage.k8s.io/fstype": "xfs"},
			want:       Class{Provisioning: "mirror", Release: "OnClaimDeletion", ReleaseGrace: 30 * time.Second, PlacementTimeout: time.Minute},
		},
		"all set": {
			parameters: map[string]string{
				"xylem.io/provisioning": "promise", "xylem.io/member-class": "gp3", "xylem.io/release": "WhenUnused",
				"xylem.io/release-grace": "0s", "xylem.io/placement-timeout": "2m30s",
			},
			want: Class{Provisioning: "promise", Release: "WhenUnused", PlacementTimeout: 150 * time.Second},
		},
		"wrong values and an unknown key": {
			parameters: map[string]string{
				"xylem.io/provisioning": "Mirror", "xylem.io/member-class": "", "xylem.io/release": "", "xylem.io/size": "x",
			},
			refused: []string{`xylem.io/provisioning is "Mirror"`, `xylem.io/member-class is ""`, `xylem.io/release is ""`, "xylem.io/size is no parameter", "StorageClass ssd"},
		},
		"a member class that cannot be": {
			parameters: map[string]string{"xylem.io/member-class": "GP3 fast"},
			refused:    []string{`xylem.io/member-class is "GP3 fast"; it is the name of a class`},
		},
		"release in mirror mode": {
			parameters: map[string]string{"xylem.io/release": "WhenUnused"},
			refused:    []string{"goes with xylem.io/provisioning promise only"},
		},
	}
	retained := class(map[string]string{"xylem.io/provisioning": "promise", "xylem.io/release": "WhenUnused"})
	retained.ReclaimPolicy = ptr(corev1.PersistentVolumeReclaimRetain)
	if _, err := ReadClass(retained); err == nil || !strings.Contains(err.Error(), "goes with reclaimPolicy Delete only") {
		t.Errorf("a disk that is released and retained: %v", err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ReadClass(class(c.parameters))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var refusal *Refusal
			if errors.As(err, &refusal) != (len(c.refused) > 0) {
				t.Fatalf("error: %v", err)
			}
			for _, part := range c.refused {
				if !strings.Contains(refusal.Message, part) {
					t.Errorf("the message lacks %q: %s", part, refusal.Message)
				}
			}
		})
	}
}

func TestPolicy(t *testing.T) {
	const retain, del, recycle = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	cases := map[string]struct {
		host       *storagev1.StorageClass
		leaf, want corev1.PersistentVolumeReclaimPolicy
	}{
		"both delete":                    {&storagev1.StorageClass{ReclaimPolicy: ptr(del)}, del, del},
		"the host's class says nothing":  {&storagev1.StorageClass{}, del, del},
		"the host retains":               {&storagev1.StorageClass{ReclaimPolicy: ptr(retain)}, del, retain},
		"the member retains":             {&storagev1.StorageClass{ReclaimPolicy: ptr(del)}, retain, retain},
		"the host's class is gone":       {nil, del, retain},
		"the member recycles":            {&storagev1.StorageClass{ReclaimPolicy: ptr(del)}, recycle, retain},
		"the host recycles":              {&storagev1.StorageClass{ReclaimPolicy: ptr(recycle)}, del, retain},
		"nobody knows what the leaf was": {&storagev1.StorageClass{ReclaimPolicy: ptr(del)}, "", retain},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Policy(c.host, c.leaf); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestClassName(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, field *string
		want              string
	}{
		"neither":             {},
		"the field":           {field: ptr("b"), want: "b"},
		"the annotation":      {annotation: ptr("a"), want: "a"},
		"the annotation wins": {annotation: ptr("a"), field: ptr("b"), want: "a"},
		"also an empty one":   {annotation: ptr(""), field: ptr("b"), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			claim.Spec.StorageClassName = c.field
			if c.annotation != nil {
				claim.Annotations["volume.beta.kubernetes.io/storage-class"] = *c.annotation
			}
			if got := ClassName(claim); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
