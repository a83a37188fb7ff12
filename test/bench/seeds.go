package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	seedSpace = "seeded"
	// sowers is the number of members whose volumes are created at the same time.
	sowers = 4
	// putTogether is the number of objects that are written to a cluster at once.
	putTogether = 120
)

// seeds creates mirrored volumes in host and members, directly in their final state.
type seeds struct {
	r       *rig
	host    kubernetes.Interface
	members []seeded
	tenant  string // UID of the namespace in the host
	sown    int
}

// seeded is a member for which volumes are created.
type seeded struct {
	mirror.Member
	client kubernetes.Interface
	like   *planted // the first volume
}

// newSeeds creates the namespaces, the StorageClasses and a Node in each cluster. It disables the
// admission policies, because they allow only the manager to create these objects.
func newSeeds(ctx context.Context, r *rig) (*seeds, error) {
	s := &seeds{r: r, members: make([]seeded, r.members)}
	var err error
	if s.host, err = unlimited(r.x.Fleet.Host); err != nil {
		return nil, err
	}
	hostID, err := r.x.Fleet.Host.ID(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := lawless(ctx, r.x.Fleet.Host); err != nil {
		return nil, err
	}
	if err := r.classes(ctx); err != nil {
		return nil, err
	}
	space, err := s.host.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedSpace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", seedSpace, err)
	}
	s.tenant = string(space.UID)
	return s, r.inMembers(ctx, func(ctx context.Context, i int, c *controlplane.Cluster) error {
		id, err := c.ID(ctx)
		if err != nil {
			return err
		}
		m := seeded{Member: mirror.Member{Registration: memberName(i), NodeName: nodeName(i), ClusterID: id, HostID: hostID}}
		if m.client, err = unlimited(c); err != nil {
			return err
		}
		s.members[i] = m
		if err := ready(ctx, c); err != nil {
			return err
		}
		return m.prepare(ctx, c)
	})
}

func unlimited(c *controlplane.Cluster) (kubernetes.Interface, error) {
	config, err := c.RESTConfig(controlplane.Direct)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of %s: %w", c.Name(), err)
	}
	return client, nil
}

// laws are the bindings of a cluster's admission policies.
type laws struct {
	validating []admissionregistrationv1.ValidatingAdmissionPolicyBinding
	mutating   []admissionregistrationv1.MutatingAdmissionPolicyBinding
}

// lawless disables a cluster's admission policies, and waits until the API server no longer
// applies them. It returns their bindings.
func lawless(ctx context.Context, c *controlplane.Cluster) (laws, error) {
	var was laws
	client := c.Client().AdmissionregistrationV1()
	validating, err := client.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err == nil {
		was.validating = validating.Items
		err = client.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	if err == nil {
		var mutating *admissionregistrationv1.MutatingAdmissionPolicyBindingList
		if mutating, err = client.MutatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{}); err == nil {
			was.mutating = mutating.Items
			err = client.MutatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}
		if apierrors.IsNotFound(err) { // Kubernetes before 1.36 does not serve them
			err = nil
		}
	}
	if err != nil {
		return laws{}, fmt.Errorf("disable the policies of %s: %w", c.Name(), err)
	}
	return was, harness.Await(ctx, "disabled policies in "+c.Name(), func(ctx context.Context) error {
		kept, err := reserved(ctx, c)
		if err == nil && !kept {
			err = errors.New("a reserved annotation is removed")
		}
		return err
	})
}

// lawful reverts lawless, and waits until the API server applies the policies.
func lawful(ctx context.Context, c *controlplane.Cluster, was laws) error {
	client := c.Client().AdmissionregistrationV1()
	var failed error
	for _, binding := range was.validating {
		binding.ResourceVersion, binding.UID = "", ""
		_, err := client.ValidatingAdmissionPolicyBindings().Create(ctx, &binding, metav1.CreateOptions{})
		failed = errors.Join(failed, err)
	}
	for _, binding := range was.mutating {
		binding.ResourceVersion, binding.UID = "", ""
		_, err := client.MutatingAdmissionPolicyBindings().Create(ctx, &binding, metav1.CreateOptions{})
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("enable the policies of %s: %w", c.Name(), failed)
	}
	return harness.Await(ctx, "enabled policies in "+c.Name(), func(ctx context.Context) error {
		kept, err := reserved(ctx, c)
		switch {
		case kept:
			return errors.New("a reserved annotation is accepted")
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			return nil
		}
		return err
	})
}

// reserved creates a claim with one of Xylem's annotations, as a dry run, and reports whether the claim
// kept it. A policy rejects the claim or removes the annotation.
func reserved(ctx context.Context, c *controlplane.Cluster) (bool, error) {
	claim := harness.Claim(metav1.NamespaceDefault, "reserved", classMember)
	claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: "anywhere"}
	made, err := c.Client().CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && made.Annotations[v1alpha1.AnnotationPlacedIn] != "", err
}

func (m seeded) prepare(ctx context.Context, c *controlplane.Cluster) error {
	if _, err := lawless(ctx, c); err != nil {
		return err
	}
	class := controlplane.Class(classMember, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	class.Provisioner = controlplane.DefaultDriverName
	if _, err := m.client.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create StorageClass %s: %w", class.Name, err)
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedSpace, Labels: map[string]string{v1alpha1.LabelHost: m.HostID}}}
	if _, err := m.client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s in %s: %w", seedSpace, m.Registration, err)
	}
	return nil
}

// fill creates volumes in all members in turn until the given number exists: the first one of each member by
// requests to the API servers, and the others like it, directly in etcd.
func (s *seeds) fill(ctx context.Context, volumes int) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(sowers)
	var done atomic.Int64
	done.Store(int64(s.sown))
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(tell):
				s.r.b.say("   creating volumes: %d of %d", done.Load(), volumes)
			}
		}
	}()
	for n := range s.members {
		group.Go(func() error {
			var inHost, inMember []client.Object
			for i := n; i < volumes; i += len(s.members) {
				switch {
				case i < s.sown:
					continue
				case s.members[n].like == nil:
					like, err := s.volume(groupCtx, i)
					if err != nil {
						return err
					}
					s.members[n].like = like
				default:
					next := s.members[n].another(i)
					inHost, inMember = append(inHost, next.root, next.host), append(inMember, next.leafClaim, next.leaf)
				}
				done.Add(1)
				if len(inHost) < putTogether && i+len(s.members) < volumes {
					continue
				}
				if err := errors.Join(s.r.x.Fleet.Member(memberName(n)).Put(groupCtx, inMember...), s.r.x.Fleet.Host.Put(groupCtx, inHost...)); err != nil {
					return err
				}
				inHost, inMember = nil, nil
			}
			return nil
		})
	}
	err := group.Wait()
	s.sown = volumes
	return err
}

// planted are the objects of one mirrored, bound volume.
type planted struct {
	root, leafClaim *corev1.PersistentVolumeClaim
	host, leaf      *corev1.PersistentVolume
}

// volume creates the four objects of a volume.
func (s *seeds) volume(ctx context.Context, i int) (*planted, error) {
	m := s.members[i%len(s.members)]
	volume := "pvc-" + string(uuid.NewUUID())
	root := batch{namespace: seedSpace, class: classMirror}.claim(i)
	root.Spec.VolumeName = volume
	root.Annotations = withBinding(map[string]string{
		v1alpha1.AnnotationPlacedIn: m.ClusterID, "volume.kubernetes.io/selected-node": m.NodeName,
		"volume.kubernetes.io/storage-provisioner": v1alpha1.ProvisionerName, "volume.beta.kubernetes.io/storage-provisioner": v1alpha1.ProvisionerName,
	})
	root, err := boundClaim(ctx, s.host, root)
	if err != nil {
		return nil, err
	}
	class := classMember
	leafClaim, err := pvc.TranslateClaim(root, &class, m.Member)
	if err != nil {
		return nil, fmt.Errorf("translate a claim: %w", err)
	}
	leafClaim.Spec.VolumeName = volume
	leafClaim.Annotations = withBinding(leafClaim.Annotations)
	if leafClaim, err = boundClaim(ctx, m.client, leafClaim); err != nil {
		return nil, err
	}
	leaf, err := boundVolume(ctx, m.client, s.leafVolume(m, volume, root, leafClaim))
	if err != nil {
		return nil, err
	}
	host, err := boundVolume(ctx, s.host, hostpv.TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimDelete, m.Member))
	return &planted{root, leafClaim, host, leaf}, err
}

// another returns the objects of another volume like the member's first one.
func (m seeded) another(i int) planted {
	volume := "pvc-" + string(uuid.NewUUID())
	next := planted{m.like.root.DeepCopy(), m.like.leafClaim.DeepCopy(), nil, m.like.leaf.DeepCopy()}
	for _, claim := range []*corev1.PersistentVolumeClaim{next.root, next.leafClaim} {
		claim.Name, claim.UID, claim.ResourceVersion, claim.Spec.VolumeName = claimName(i), uuid.NewUUID(), "", volume
	}
	mirror.OriginForRoot(m.HostID, next.root).StampLeaf(next.leafClaim)
	next.leaf.Name, next.leaf.UID, next.leaf.ResourceVersion = volume, uuid.NewUUID(), ""
	next.leaf.Spec.ClaimRef.Name, next.leaf.Spec.ClaimRef.UID, next.leaf.Spec.CSI.VolumeHandle = next.leafClaim.Name, next.leafClaim.UID, volume
	mirror.OriginForRoot(m.HostID, next.root).StampLeaf(next.leaf)
	next.host = hostpv.TranslateVolume(next.leaf, next.root, corev1.PersistentVolumeReclaimDelete, m.Member)
	like := m.like.host
	next.host.UID, next.host.CreationTimestamp, next.host.ManagedFields = uuid.NewUUID(), like.CreationTimestamp, like.ManagedFields
	next.host.Finalizers, next.host.Status = like.Finalizers, like.Status
	return next
}

// leafVolume returns a PV like one that csi-provisioner creates, but stamped and with policy
// Retain.
func (s *seeds) leafVolume(m seeded, name string, root, leaf *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"pv.kubernetes.io/provisioned-by":                            controlplane.DefaultDriverName,
			"volume.kubernetes.io/provisioner-deletion-secret-name":      "",
			"volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
			v1alpha1.AnnotationReclaimPolicy:                             string(corev1.PersistentVolumeReclaimDelete),
			v1alpha1.AnnotationNamespaceUID:                              s.tenant,
		}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: leaf.Spec.Resources.Requests, AccessModes: leaf.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: classMember,
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: leaf.Namespace, Name: leaf.Name, UID: leaf.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: controlplane.DefaultDriverName, VolumeHandle: name, FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1700000000000-1234-" + controlplane.DefaultDriverName},
			}},
		},
	}
	mirror.OriginForRoot(m.HostID, root).StampLeaf(pv)
	return pv
}

// withBinding adds the annotations that the PV controller adds to a bound claim.
func withBinding(annotations map[string]string) map[string]string {
	all := maps.Clone(annotations)
	all["pv.kubernetes.io/bind-completed"], all["pv.kubernetes.io/bound-by-controller"] = "yes", "yes"
	return all
}

func boundClaim(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	claims := client.CoreV1().PersistentVolumeClaims(claim.Namespace)
	made, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create claim %s: %w", claim.Name, err)
	}
	made.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: made.Spec.AccessModes, Capacity: made.Spec.Resources.Requests}
	if made, err = claims.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("set claim %s to Bound: %w", claim.Name, err)
	}
	return made, nil
}

func boundVolume(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	volumes := client.CoreV1().PersistentVolumes()
	made, err := volumes.Create(ctx, pv, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create volume %s: %w", pv.Name, err)
	}
	made.Status.Phase = corev1.VolumeBound
	if made, err = volumes.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("set volume %s to Bound: %w", pv.Name, err)
	}
	return made, nil
}
