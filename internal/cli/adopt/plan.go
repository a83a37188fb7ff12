package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/wording"
)

// openClusters reads the registration and the volume, and checks that the kubeconfig points to that member.
func (r *run) openClusters(ctx context.Context) error {
	admin, err := r.admin.Config(r.env)
	if err != nil {
		return err
	}
	if r.host, err = r.env.HostCluster(); err != nil {
		return err
	}
	if r.member, err = r.env.NewCluster(admin); err != nil {
		return err
	}
	r.cr = &v1alpha1.ClusterRegistration{}
	if err := r.host.Get(ctx, client.ObjectKey{Name: r.registration}, r.cr); err != nil {
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("xylem is not installed in the host at %s: the cluster does not serve ClusterRegistrations. Choose another cluster with --context", r.host.Config.Host)
		}
		return command.Explain("the host", r.host.Config, fmt.Errorf("read registration %q: %w", r.registration, err))
	}
	r.there = placement.MemberOfRegistration(r.cr, nil).Member
	if r.there.HostID, err = r.host.ReadClusterID(ctx); err != nil {
		return command.Explain("the host", r.host.Config, err)
	}
	id, err := r.member.ReadClusterID(ctx)
	switch {
	case err != nil:
		return command.Explain("the member", r.member.Config, err)
	case r.there.ClusterID == "":
		return fmt.Errorf("the manager has not connected to member %q yet, so the member's cluster ID is unknown. `kubectl describe clusterregistration %s` shows why", r.registration, r.registration)
	case id != r.there.ClusterID:
		return fmt.Errorf(access.OtherClusterFormat+". Specify a kubeconfig for cluster %[4]s", r.admin.ContextFlag(), id, fmt.Sprintf("registration %q", r.registration), r.there.ClusterID)
	}
	r.leaf = &corev1.PersistentVolume{}
	if err := r.member.Get(ctx, client.ObjectKey{Name: r.leafName}, r.leaf); err != nil {
		return command.Explain("the member", r.member.Config, fmt.Errorf("read PersistentVolume %q: %w", r.leafName, err))
	}
	return nil
}

// planAdoption finds the host PV that already requests the volume, or plans a new one.
func (r *run) planAdoption(ctx context.Context, classGiven bool) error {
	if r.name == "" {
		r.name = r.leafName
	}
	if !classGiven {
		var err error
		if r.class, err = r.hostClass(ctx); err != nil {
			return err
		}
	}
	planned := r.plannedVolume()
	var existing corev1.PersistentVolume
	switch err := r.host.Get(ctx, client.ObjectKey{Name: r.name}, &existing); {
	case apierrors.IsNotFound(err):
		r.asks = planned
	case err != nil:
		return command.Explain("the host", r.host.Config, fmt.Errorf("read PersistentVolume %q: %w", r.name, err))
	case existing.Spec.CSI != nil && hostpv.RecordsLeaf(&existing, r.there.ClusterID, r.leafName):
		r.asks = &existing
	default:
		return fmt.Errorf("the host already has another PersistentVolume %q. Choose a different name with --name", r.name)
	}
	return nil
}

// plannedVolume returns a new host PV with the properties of the volume.
func (r *run) plannedVolume() *corev1.PersistentVolume {
	spec := corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: r.leaf.Spec.Capacity[corev1.ResourceStorage]},
		AccessModes:                   slices.Clone(r.leaf.Spec.AccessModes),
		VolumeMode:                    r.leaf.Spec.VolumeMode,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimPolicy(r.policy),
		StorageClassName:              r.class,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: v1alpha1.ProvisionerName, VolumeHandle: r.there.ClusterID + "/" + r.leafName,
		}},
		NodeAffinity: mirror.NodeAffinityToMember(r.there.ClusterID),
	}
	if csi := r.leaf.Spec.CSI; csi != nil {
		spec.CSI.ReadOnly, spec.CSI.FSType = csi.ReadOnly, csi.FSType
	}
	if namespace, name, ok := strings.Cut(r.claim, "/"); ok {
		spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
	}
	return &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: r.name},
		Spec:       spec,
	}
}

// hostClass returns the host class that the registration maps to the volume's class in the
// member. It returns "" if the volume has no class, or if no host class maps to that class.
func (r *run) hostClass(ctx context.Context) (string, error) {
	if r.leaf.Spec.StorageClassName == "" {
		return "", nil
	}
	var classes storagev1.StorageClassList
	if err := r.host.List(ctx, &classes); err != nil {
		return "", command.Explain("the host", r.host.Config, fmt.Errorf("list StorageClasses: %w", err))
	}
	there := placement.Member{Member: r.there, Rules: placement.RulesOfRegistration(r.cr)}
	var found []string
	for i := range classes.Items {
		class := &classes.Items[i]
		if mapped, _ := there.StorageClassFor(class); hostpv.IsMirrorClass(class) && mapped == r.leaf.Spec.StorageClassName {
			found = append(found, class.Name)
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("several classes in the host map to the volume's class %q in the member: %s. Choose one with --class", r.leaf.Spec.StorageClassName, wording.QuotedNames(found...))
	}
	return strings.Join(found, ""), nil
}

// checkVolume returns an error if the host cannot adopt the volume even with consent. It uses the
// controllers' rules.
func (r *run) checkVolume(ctx context.Context) error {
	if _, _, uid, recorded := hostpv.LeafOfHostVolume(r.asks); recorded && uid == r.leaf.UID {
		return nil
	}
	asks := r.asks.DeepCopy()
	if asks.UID == "" {
		asks.UID = "planned"
	}
	s := &volume.Observed{
		Member: r.there, Rules: placement.RulesOfRegistration(r.cr), Name: r.leafName, UID: r.leaf.UID, Leaf: r.leaf,
		Imports: []corev1.PersistentVolume{*asks},
	}
	if r.leaf.Labels[v1alpha1.LabelHost] == "" {
		s.Leaf = r.volumeWithConsent()
	}
	s.Stamp, s.LeafStamped = mirror.LeafOriginFromHost(r.there.HostID, s.Leaf)
	if err := r.observeVolume(ctx, s); err != nil {
		return err
	}
	if refusal := volume.ReportImportRefused(s); refusal != nil {
		return errors.New(refusal.Message)
	}
	return nil
}

// observeVolume reads the other objects that the check needs from both clusters.
func (r *run) observeVolume(ctx context.Context, s *volume.Observed) error {
	var list corev1.PersistentVolumeList
	err := index.ListPages(ctx, r.host, &list, func() {
		for i := range list.Items {
			if pv := &list.Items[i]; pv.Name != r.asks.Name && hostpv.RecordsLeaf(pv, r.there.ClusterID, r.leafName) {
				s.TakingHost = pv.DeepCopy()
			}
		}
	})
	if err != nil {
		return command.Explain("the host", r.host.Config, fmt.Errorf("list PersistentVolumes: %w", err))
	}
	if r.class != "" {
		if s.ImportClass, err = index.FindObject[storagev1.StorageClass](ctx, r.host, index.ClusterScopedKey(r.class)); err != nil {
			return command.Explain("the host", r.host.Config, err)
		}
	}
	if s.LeafStamped && s.Stamp.Root.Namespace != "" {
		root, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.host, s.Stamp.Root)
		if err != nil {
			return command.Explain("the host", r.host.Config, err)
		}
		if root != nil && root.UID == s.Stamp.UID {
			s.StampRoot = root
		}
	}
	return r.observeHolder(ctx, s)
}

// observeHolder reads the member's claim that uses the volume.
func (r *run) observeHolder(ctx context.Context, s *volume.Observed) error {
	ref := s.Leaf.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.member, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return command.Explain("the member", r.member.Config, err)
	}
	switch origin, ours := mirror.LeafOriginFromHost(r.there.HostID, s.Leaf); {
	case claim == nil || claim.UID != ref.UID:
	case ours:
		s.Holder, s.HolderOrigin = claim, origin
	case s.Leaf.Status.Phase == corev1.VolumeReleased:
		return fmt.Errorf("claim \"%s/%s\" in the member still uses volume %q. First set the volume's reclaim policy to Retain, and then delete that claim", ref.Namespace, ref.Name, r.leafName)
	}
	return nil
}

// printPlan prints both PersistentVolumes as text, or only the one in the host in other formats.
func (r *run) printPlan() error {
	if r.output.Format != "" {
		asks := r.asks.DeepCopy()
		asks.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}
		return r.output.Print(r.env.MachineOut(), asks)
	}
	w := printers.GetNewTabWriter(r.env.Out)
	for _, half := range []struct {
		where string
		pv    *corev1.PersistentVolume
	}{{fmt.Sprintf("member %q", r.registration), r.leaf}, {"the host", r.asks}} {
		pv := half.pv
		storage := pv.Spec.Capacity[corev1.ResourceStorage]
		driver, handle := mirror.VolumeSourceOf(pv)
		fmt.Fprintf(w, "In %s\t%s\n  source\t%s %s\n  capacity\t%s\n  access modes\t%s\n  class\t%s\n  policy\t%s\n",
			half.where, "PersistentVolume "+pv.Name, driver, handle, storage.String(), modesOfVolume(pv), textOrNone(pv.Spec.StorageClassName), pv.Spec.PersistentVolumeReclaimPolicy)
		if ref := pv.Spec.ClaimRef; ref != nil {
			fmt.Fprintf(w, "  claim\t%s\n", ref.Namespace+"/"+ref.Name)
		}
		switch {
		case pv == r.leaf && hostpv.ConsentsToAdoption(pv, r.there.HostID):
			fmt.Fprintf(w, "  consent\tgiven: label %s=%s\n", v1alpha1.LabelHost, r.there.HostID)
		case pv == r.leaf:
			fmt.Fprintf(w, "  consent\tto be given: label %s=%s\n", v1alpha1.LabelHost, r.there.HostID)
		case pv.UID != "":
			fmt.Fprintln(w, "  state\talready exists")
		default:
			fmt.Fprintln(w, "  state\tto be created")
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the PersistentVolumes: %w", err)
	}
	if r.asks.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && hostpv.MemberReclaimPolicy(r.leaf) == corev1.PersistentVolumeReclaimDelete {
		fmt.Fprintln(r.env.ErrOut, "note: both policies are Delete, so deleting the claim that uses the volume destroys the disk and its data")
	}
	return nil
}

func modesOfVolume(pv *corev1.PersistentVolume) string {
	names := make([]string, 0, len(pv.Spec.AccessModes))
	for _, mode := range pv.Spec.AccessModes {
		names = append(names, string(mode))
	}
	return strings.Join(names, ", ")
}

func textOrNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
