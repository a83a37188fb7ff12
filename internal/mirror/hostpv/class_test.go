package hostpv

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func class(parameters map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ssd"}, Parameters: parameters}
}

func TestReadClass(t *testing.T) {
	cases := map[string]struct {
		parameters map[string]string
		want       ClassParameters
		refused    []string
	}{
		"defaults": {want: ClassParameters{Provisioning: "mirror", Release: "OnClaimDeletion", ReleaseGrace: 30 * time.Second, PlacementTimeout: time.Minute}},
		"parameters of another driver": {
			parameters: map[string]string{"type": "gp3", "csi.storage.k8s.io/fstype": "xfs"},
			want:       ClassParameters{Provisioning: "mirror", Release: "OnClaimDeletion", ReleaseGrace: 30 * time.Second, PlacementTimeout: time.Minute},
		},
		"all parameters": {
			parameters: map[string]string{
				"xylem.io/provisioning": "promise", "xylem.io/member-class": "gp3", "xylem.io/release": "WhenUnused",
				"xylem.io/release-grace": "0s", "xylem.io/placement-timeout": "2m30s",
			},
			want: ClassParameters{Provisioning: "promise", Release: "WhenUnused", PlacementTimeout: 150 * time.Second},
		},
		"invalid values and an unknown key": {
			parameters: map[string]string{
				"xylem.io/provisioning": "Mirror", "xylem.io/member-class": "", "xylem.io/release": "", "xylem.io/size": "x",
			},
			refused: []string{`xylem.io/provisioning is "Mirror"`, `xylem.io/member-class is ""`, `xylem.io/release is ""`, `"xylem.io/size" is unknown (the known parameters are`, `StorageClass "ssd"`},
		},
		"an invalid member class name": {
			parameters: map[string]string{"xylem.io/member-class": "GP3 fast"},
			refused:    []string{`xylem.io/member-class is "GP3 fast", but must be a valid class name`},
		},
		"release when unused in mirror mode": {
			parameters: map[string]string{"xylem.io/release": "WhenUnused"},
			refused:    []string{"requires xylem.io/provisioning promise"},
		},
	}
	retained := class(map[string]string{"xylem.io/provisioning": "promise", "xylem.io/release": "WhenUnused"})
	retained.ReclaimPolicy = mirrortest.PointerTo(corev1.PersistentVolumeReclaimRetain)
	if _, err := ReadClassParameters(retained); err == nil || !strings.Contains(err.Error(), "requires reclaimPolicy Delete") {
		t.Errorf("a class that releases and retains a disk: error is %v, want one about reclaimPolicy", err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ReadClassParameters(class(c.parameters))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var refusal *mirror.Refusal
			if errors.As(err, &refusal) != (len(c.refused) > 0) {
				t.Fatalf("error is %v, want a refusal: %t", err, len(c.refused) > 0)
			}
			for _, part := range c.refused {
				if !strings.Contains(refusal.Message, part) {
					t.Errorf("the message lacks %q: %s", part, refusal.Message)
				}
			}
		})
	}
}

func TestClassName(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, field *string
		want              string
	}{
		"neither the field nor the annotation":     {},
		"the field":                                {field: mirrortest.PointerTo("b"), want: "b"},
		"the annotation":                           {annotation: mirrortest.PointerTo("a"), want: "a"},
		"the annotation takes precedence":          {annotation: mirrortest.PointerTo("a"), field: mirrortest.PointerTo("b"), want: "a"},
		"an empty annotation takes precedence too": {annotation: mirrortest.PointerTo(""), field: mirrortest.PointerTo("b"), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			claim.Spec.StorageClassName = c.field
			if c.annotation != nil {
				claim.Annotations["volume.beta.kubernetes.io/storage-class"] = *c.annotation
			}
			if got := ClassNameOf(claim); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
