package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/wording"
)

func newStatefulSet(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:     "statefulset NAME --to MEMBER",
		Aliases: []string{"sts"},
		Short:   "Move the data of all claims of a StatefulSet, or of one of its Pods",
		Long: "Move the claims of the StatefulSet NAME to the member MEMBER, one after another in the order of its Pods, each as\n" +
			"`kubectl xylem move pvc` does. First scale the StatefulSet to 0 or, with --ordinal, far enough down that it no longer\n" +
			"has the Pod with that ordinal. Otherwise, Kubernetes would create the Pod again during the move.",
		Example: "  kubectl scale statefulset db --replicas=0 -n shop\n" +
			"  kubectl xylem move statefulset db --to cluster39 -n shop --dry-run\n" +
			"  # Move only the claims of the Pod db-2 (the StatefulSet must have at most 2 replicas):\n" +
			"  kubectl xylem move statefulset db --ordinal 2 --to cluster39 -n shop",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("ordinal") && o.ordinal < 0 {
				return errors.New("--ordinal is out of range: use 0 or more")
			}
			if err := o.openHost(); err != nil {
				return err
			}
			claims, err := o.claimsToMove(c.Context(), args[0], c.Flags().Changed("ordinal"))
			if err != nil {
				return err
			}
			return o.moveClaims(c.Context(), claims)
		},
	}
	o.addMoveFlags(c)
	c.Flags().IntVar(&o.ordinal, "ordinal", 0, "Move only the claims of the Pod with this ordinal. Default: the claims of all Pods.")
	return c
}

// claimsToMove returns the names of a StatefulSet's existing claims, in the order of its Pods.
func (o *options) claimsToMove(ctx context.Context, name string, one bool) ([]string, error) {
	set, err := index.FindObject[appsv1.StatefulSet](ctx, o.host, client.ObjectKey{Namespace: o.host.Namespace, Name: name})
	switch {
	case err != nil:
		return nil, o.host.ExplainHostError(err)
	case set == nil:
		return nil, fmt.Errorf("no StatefulSet %q in namespace %q. `kubectl get statefulsets -n %s` lists the StatefulSets", name, o.host.Namespace, o.host.Namespace)
	}
	if err := scaledDown(set, o.ordinal, one); err != nil && !o.deleteOld {
		return nil, err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := o.host.List(ctx, &claims, client.InNamespace(o.host.Namespace)); err != nil {
		return nil, o.host.ExplainHostError(fmt.Errorf("list claims: %w", err))
	}
	names := claimsOfStatefulSet(set, claims.Items, o.ordinal, one)
	if len(names) == 0 {
		return nil, fmt.Errorf("StatefulSet %q has no claims to move in namespace %q", name, o.host.Namespace)
	}
	return names, nil
}

// scaledDown checks that a StatefulSet does not create the Pods whose claims the command moves.
func scaledDown(set *appsv1.StatefulSet, ordinal int, one bool) error {
	if p := set.Spec.PersistentVolumeClaimRetentionPolicy; p != nil && p.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return fmt.Errorf("StatefulSet %q has persistentVolumeClaimRetentionPolicy.whenScaled=Delete, so Kubernetes deletes the claims of Pods when the StatefulSet is scaled down. Set whenScaled to Retain, at least during the move", set.Name)
	}
	start := 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	end := start + int(ptr.Deref(set.Spec.Replicas, 1))
	switch {
	case !one && end > start:
		return fmt.Errorf("StatefulSet %[1]q has %[2]s, so its Pods use the claims. Run `kubectl scale statefulset %[1]s --replicas=0 -n %[3]s`, then run this command again", set.Name, wording.CountNoun(end-start, "replica"), set.Namespace)
	case one && ordinal >= start && ordinal < end:
		return fmt.Errorf("StatefulSet %[1]q has the Pod \"%[1]s-%[2]d\", which uses the claims. Run `kubectl scale statefulset %[1]s --replicas=%[3]d -n %[4]s`, then run this command again", set.Name, ordinal, ordinal-start, set.Namespace)
	}
	return nil
}

// claimsOfStatefulSet returns the names of a StatefulSet's claims, in the order of its Pods and templates.
// They include the claims of Pods that existed before the StatefulSet was scaled down.
func claimsOfStatefulSet(set *appsv1.StatefulSet, claims []corev1.PersistentVolumeClaim, ordinal int, one bool) []string {
	type member struct {
		ordinal, template int
		name              string
	}
	var found []member
	for i := range claims {
		for j := range set.Spec.VolumeClaimTemplates {
			prefix := set.Spec.VolumeClaimTemplates[j].Name + "-" + set.Name + "-"
			n, err := strconv.Atoi(strings.TrimPrefix(claims[i].Name, prefix))
			if err == nil && n >= 0 && claims[i].Name == prefix+strconv.Itoa(n) && (!one || n == ordinal) {
				found = append(found, member{n, j, claims[i].Name})
			}
		}
	}
	slices.SortFunc(found, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.template, b.template))
	})
	names := make([]string, 0, len(found))
	for _, m := range found {
		names = append(names, m.name)
	}
	return names
}
