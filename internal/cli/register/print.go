package register

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// defaultClass marks a cluster's default class.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// report says what the manager found.
func (r *run) report(ctx context.Context, cr *v1alpha1.ClusterRegistration) error {
	cr.TypeMeta = r.registration().TypeMeta
	if r.output.Format != "" {
		return r.output.Print(r.env.Out, cr)
	}
	var node corev1.Node
	if err := r.host.Get(ctx, client.ObjectKey{Name: cr.NodeName()}, &node); err != nil {
		return fmt.Errorf("read node %s: %w", cr.NodeName(), err)
	}
	var classes storagev1.StorageClassList
	if err := r.member.List(ctx, &classes); err != nil {
		return fmt.Errorf("list the member's classes: %w", err)
	}
	paint := r.env.PaintOf(r.env.Out)
	fmt.Fprintf(r.env.Out, "%s is a member: %s\n", paint.Strong(cr.Name), paint.Good("Connected"))
	w := printers.GetNewTabWriter(r.env.Out)
	fmt.Fprintf(w, "  cluster\t%s\n  version\t%s\n  node\t%s\n", cr.Status.ClusterID, cr.Status.KubernetesVersion, cr.NodeName())
	fmt.Fprintf(w, "  free\t%s\n", amounts(node.Status.Allocatable))
	fmt.Fprintf(w, "  on deregistering\t%s\n", cr.Spec.Deregistration)
	if cr.Status.TokenExpires != nil {
		fmt.Fprintf(w, "  token\texpires %s, renewed by the manager before\n", cr.Status.TokenExpires.UTC().Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return printClasses(r.env.Out, classes.Items)
}

// amounts of the resources that people ask for first.
func amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if q, ok := list[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", name, q.String()))
		}
	}
	if len(parts) == 0 {
		return "unknown yet"
	}
	return strings.Join(parts, ", ")
}

func printClasses(out io.Writer, classes []storagev1.StorageClass) error {
	if len(classes) == 0 {
		fmt.Fprintln(out, "It has no storage classes: no disk can be made there yet")
		return nil
	}
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "CLASS THERE\tPROVISIONER\tBINDING\tRECLAIM\tGROWS")
	for i := range classes {
		class := &classes[i]
		name := class.Name
		if class.Annotations[defaultClass] == "true" {
			name += " (default)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\n", name, class.Provisioner,
			ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate),
			ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete), ptr.Deref(class.AllowVolumeExpansion, false))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printPlan prints what would be made, for each of the clusters.
func (r *run) printPlan(kubeconfig []byte) error {
	var there []runtime.Object
	for _, obj := range r.objects {
		there = append(there, obj)
	}
	here := []runtime.Object{r.filled(kubeconfig), r.registration()}
	if r.output.Format == "" {
		for _, obj := range append(there, here...) {
			if o, ok := obj.(client.Object); ok {
				fmt.Fprintf(r.env.Out, "%s (dry run)\n", named(o))
			}
		}
		return nil
	}
	if r.output.Format != "json" { // which knows no comments
		fmt.Fprintln(r.env.Out, "# In the member:")
	}
	if err := r.output.Print(r.env.Out, there...); err != nil {
		return err
	}
	if r.output.Format != "json" {
		fmt.Fprintln(r.env.Out, "---\n# In the host. The token is asked for in the member: kubectl -n "+r.env.Namespace+" create token "+r.account)
	}
	return r.output.Print(r.env.Out, here...)
}
