package rootpvc

import (
	"context"
	"errors"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/placement"
)

// classes serves live reads of VolumeAttributesClasses.
type classes struct {
	client.Reader
	drivers    map[string]string // the driver of each class, by class name
	parameters map[string]string // the parameters of all classes
	err        error
}

func (c classes) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	class, ok := into.(*storagev1.VolumeAttributesClass)
	switch driver, there := c.drivers[key.Name]; {
	case c.err != nil:
		return c.err
	case !ok || !there:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "volumeattributesclasses"}, key.Name)
	default:
		*class = storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, DriverName: driver, Parameters: c.parameters}
		return nil
	}
}

// The lookup returns the member's class for a claim, or a message that explains why there is none.
func TestLookUpAttributesClass(t *testing.T) {
	const disk = "disk.example.com"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "volumeattributesclasses"}, "gold", errors.New("no"))
	down := errors.New("connection refused")
	parameter := map[string]string{v1alpha1.ParameterMemberAttributesClass: "m-gold"}
	for name, tc := range map[string]struct {
		host, member classes
		want, reason string
		says         []string
		err          error
	}{
		"the host has no such class: the member's class has the same name": {member: classes{drivers: map[string]string{"gold": disk}}, want: "gold"},
		"a parameter of the host's class names the member's class":         {host: classes{drivers: map[string]string{"gold": "csi.xylem.io"}, parameters: parameter}, member: classes{drivers: map[string]string{"m-gold": disk}}, want: "m-gold"},
		"the host's class belongs to another driver":                       {host: classes{drivers: map[string]string{"gold": disk}}, member: classes{drivers: map[string]string{"gold": disk}}, reason: v1alpha1.ReasonAttributesClassMismatch, says: []string{`"gold" in the host`, disk, "csi.xylem.io"}},
		"the member lacks the class":                                       {host: classes{drivers: map[string]string{"gold": "csi.xylem.io"}}, reason: v1alpha1.ReasonAttributesClassNotFound, says: []string{`"gold" in member "cluster38"`, "(by name)", "spec.storage.attributesClasses"}},
		"both clusters lack the class: its name may be wrong":              {reason: v1alpha1.ReasonAttributesClassNotFound, says: []string{`the host has no VolumeAttributesClass "gold"`, `member "cluster38" has no class "gold" (by name)`, "Correct the claim's spec.volumeAttributesClassName"}},
		"the member's class belongs to another driver":                     {member: classes{drivers: map[string]string{"gold": "other.example.com"}}, reason: v1alpha1.ReasonAttributesClassMismatch, says: []string{"other.example.com", disk}},
		"the member does not let Xylem read the class":                     {member: classes{err: forbidden}, reason: v1alpha1.ReasonAttributesClassNotFound, says: []string{"does not let Xylem read", "apply Xylem's roles"}},
		"the member does not respond":                                      {member: classes{err: down}, err: down},
		"the host does not respond":                                        {host: classes{err: down}, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			rules := placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{})
			r := &reconciler{Link: &member.Link{Member: mirror.Member{Registration: "cluster38"}, Rules: rules, HostLive: tc.host, Live: tc.member}}
			got, problem, err := r.lookUpAttributesClass(t.Context(), "gold", disk)
			if !errors.Is(err, tc.err) || err == nil && tc.err != nil {
				t.Fatalf("error is %v, want %v", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if problem == nil {
				if tc.reason != "" {
					t.Errorf("nothing is reported, want %s", tc.reason)
				}
				return
			}
			if problem.Reason != tc.reason {
				t.Errorf("reason is %s, want %q", problem.Reason, tc.reason)
			}
			for _, part := range tc.says {
				if !strings.Contains(problem.Message, part) {
					t.Errorf("%q lacks %q", problem.Message, part)
				}
			}
		})
	}
}
