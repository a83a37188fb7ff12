package register

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// TestSecretOfSomebodyElse checks that each rejection of a Secret names a way on, and that
// --overwrite-secret is one, including for the Secret that a deregistration left.
func TestSecretOfSomebodyElse(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "xylem-system", Name: "a-kubeconfig"}}
	own := foreign.DeepCopy()
	own.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	registered := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for name, tc := range map[string]struct {
		run  run
		says []string
	}{
		"the command's own Secret":             {run: run{secretBefore: own}},
		"left by a deregistration":             {run: run{secretBefore: foreign}, says: []string{"`kubectl -n xylem-system delete secret a-kubeconfig`", "--overwrite-secret"}},
		"left by a deregistration, overwrite":  {run: run{secretBefore: foreign, overwrite: true}},
		"used by this registration":            {run: run{secretBefore: foreign, before: registered}, says: []string{`registration "a"`, "--overwrite-secret"}},
		"used by this registration, overwrite": {run: run{secretBefore: foreign, before: registered, overwrite: true}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.run.name = "a"
			err := tc.run.mayOverwrite()
			if (err != nil) != (tc.says != nil) {
				t.Fatalf("got error %v, want one that contains %q", err, tc.says)
			}
			for _, want := range tc.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
		})
	}
}
