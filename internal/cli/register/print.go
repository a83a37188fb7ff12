package register

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// defaultClass is the annotation that marks a cluster's default class.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// reportConnected prints the status of the registration, and what to do next.
func (r *run) reportConnected(ctx context.Context, cr *v1alpha1.ClusterRegistration) error {
	cr.TypeMeta = r.registration().TypeMeta
	if r.output.Format != "" {
		return r.output.Print(r.Env.MachineOut(), cr)
	}
	paint := r.Env.PaintOf(r.Env.Out)
	fmt.Fprintf(r.Env.Out, "%s is a member: %s\n", paint.Strong(cr.Name), paint.PaintGood("Connected"))
	w := printers.GetNewTabWriter(r.Env.Out)
	fmt.Fprintf(w, "  cluster\t%s\n  version\t%s\n  node\t%s\n", cr.Status.ClusterID, cr.Status.KubernetesVersion, cr.NodeName())
	var node corev1.Node
	var notes []error
	if len(cr.Spec.Nodes) > 0 {
		list, err := index.NodesOfMember(ctx, r.host, cr)
		if err != nil {
			notes = append(notes, err)
		}
		if len(list) > 0 {
			node = list[0]
		}
		fmt.Fprintf(w, "  virtual nodes\t%d\n", len(list))
	} else if err := r.host.Get(ctx, client.ObjectKey{Name: cr.NodeName()}, &node); err != nil {
		notes = append(notes, fmt.Errorf("read node %q: %w", cr.NodeName(), err))
	} else {
		fmt.Fprintf(w, "  free\t%s\n", describeAmounts(node.Status.Allocatable))
	}
	fmt.Fprintf(w, "  when deregistered\t%s\n  when away\t%s\n", cr.Spec.Deregistration, cr.WhenAway())
	if cr.Status.TokenExpires != nil {
		fmt.Fprintf(w, "  token\texpires %s; the manager renews it before then\n", cr.Status.TokenExpires.UTC().Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the registration: %w", err)
	}
	r.adviseOnPodCIDRs(ctx, cr)
	// The cluster is registered even if the user cannot list its classes.
	var classes storagev1.StorageClassList
	if err := r.Member.List(ctx, &classes); err != nil {
		notes = append(notes, fmt.Errorf("list the member's classes: %w", err))
	} else if err := printClasses(r.Env.Out, classes.Items); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(r.Env.ErrOut, "note: could not %v\n", note)
	}
	if r.needsIdentity() && len(cr.Spec.Nodes) > 0 {
		fmt.Fprintf(r.Env.Out, "ClusterRole xylem-node-%s names the member's virtual nodes. When other virtual nodes exist later, run this command again: it updates the ClusterRole\n", cr.Name)
	}
	r.printNext(ctx, &node)
	return nil
}

// printNext prints the next steps for users, with Xylem's classes in the host and the required
// tolerations.
func (r *run) printNext(ctx context.Context, node *corev1.Node) {
	fmt.Fprintln(r.Env.Out, "Next:")
	var classes storagev1.StorageClassList
	var own []string
	if r.host.List(ctx, &classes) == nil {
		for i := range classes.Items {
			if hostpv.IsXylemClass(&classes.Items[i]) {
				own = append(own, classes.Items[i].Name)
			}
		}
	}
	if len(own) > 0 {
		fmt.Fprintf(r.Env.Out, "  Create claims with one of these StorageClasses: %s\n", strings.Join(own, ", "))
	} else {
		fmt.Fprintf(r.Env.Out, "  Create a StorageClass in the host with provisioner %s, volumeBindingMode %s\n  and the parameter %s set to a class from the list above\n",
			v1alpha1.ProvisionerName, storagev1.VolumeBindingWaitForFirstConsumer, v1alpha1.ParameterMemberClass)
	}
	var tolerations []string
	for _, taint := range node.Spec.Taints {
		if taint.Key != v1alpha1.TaintMemberAway && !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			tolerations = append(tolerations, placement.TolerationYAML(taint))
		}
	}
	if len(tolerations) > 0 {
		fmt.Fprintf(r.Env.Out, "  Add this to the spec of each Pod that uses the claims:\n  tolerations: [%s]\n", strings.Join(tolerations, ", "))
	}
	fmt.Fprintf(r.Env.Out, "  Then run: kubectl xylem tree pvc/NAME -n NAMESPACE\n")
}

// describeAmounts returns the quantities of the most important resources.
func describeAmounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if q, ok := list[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", name, q.String()))
		}
	}
	if len(parts) == 0 {
		return "not known yet"
	}
	return strings.Join(parts, ", ")
}

func printClasses(out io.Writer, classes []storagev1.StorageClass) error {
	if len(classes) == 0 {
		fmt.Fprintln(out, "The member has no StorageClasses. Create one in the member before you create claims")
		return nil
	}
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "CLASS\tPROVISIONER\tBINDING\tRECLAIM\tEXPANDS")
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
		return fmt.Errorf("print the member's classes: %w", err)
	}
	return nil
}

// printPlan prints the objects that the command would create: one line for each, or the manifests
// for one of the clusters.
func (r *run) printPlan() error {
	var there []runtime.Object
	for _, obj := range r.Objects {
		there = append(there, obj)
	}
	here := []runtime.Object{r.plannedSecret(), r.plannedRegistration()}
	if r.needsIdentity() {
		role, binding, err := r.plannedIdentity(r.plannedRegistration(), nil, r.identity.secrets)
		if err != nil {
			return err
		}
		here = append(here, role, binding)
	}
	if r.output.Format == "" {
		for _, obj := range append(there, here...) {
			if o, ok := obj.(client.Object); ok {
				fmt.Fprintf(r.Env.Out, "%s (%s)\n", kindAndName(o), r.dry.DryRunSuffix())
			}
		}
		return nil
	}
	objects, note := there, "In the member:"
	if r.print == printHost {
		objects, note = here, "In the host. Add a kubeconfig to the Secret. To create the token for the kubeconfig, run this in the member: kubectl -n "+r.Env.Namespace+" create token "+r.Account
	}
	if r.output.Format != "json" { // JSON has no comments
		fmt.Fprintln(r.Env.Out, "# "+note)
	}
	return r.output.Print(r.Env.MachineOut(), objects...)
}

// plannedSecret returns the Secret to apply, without the data and the last-applied annotation of an
// existing Secret. Applying the result keeps the data.
func (r *run) plannedSecret() *corev1.Secret {
	secret := r.secret.DeepCopy()
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	secret.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	secret.Annotations = map[string]string{v1alpha1.AnnotationTokenLifetime: r.Lifetime.String()}
	return secret
}

func (r *run) plannedRegistration() *v1alpha1.ClusterRegistration {
	cr := r.registration()
	return &v1alpha1.ClusterRegistration{TypeMeta: cr.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: cr.Name}, Spec: cr.Spec}
}
