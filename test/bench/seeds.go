package main

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	seedSpace = "seeded"
	// sowers is the number of workers that create volumes.
	sowers = 48
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

// lawless disables a cluster's admission policies, and waits until the API server no longer
// enforces them. It returns their bindings.
func lawless(ctx context.Context, c *controlplane.Cluster) ([]admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	client := c.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	bindings, err := client.List(ctx, metav1.ListOptions{})
	if err == nil {
		err = client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("disable the policies of %s: %w", c.Name(), err)
	}
	return bindings.Items, harness.Await(ctx, "disabled policies in "+c.Name(), func(ctx context.Context) error { return reserve(ctx, c) })
}

// reserve creates a claim with one of Xylem's annotations, as a dry run. The policies refuse it.
func reserve(ctx context.Context, c *controlplane.Cluster) error {
	claim := harness.Claim(metav1.NamespaceDefault, "reserved", classMember)
	claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: "anywhere"}
	_, err := c.Client().CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
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

// fill creates volumes in all members in turn until the given number exists.
func (s *seeds) fill(ctx context.Context, volumes int) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(sowers)
	var done atomic.Int64
	done.Store(int64(s.sown))
	told := time.Now()
	for i := s.sown; i < volumes && groupCtx.Err() == nil; i++ {
		group.Go(func() error {
			defer done.Add(1)
			return s.volume(groupCtx, i)
		})
		if time.Since(told) > tell {
			told = time.Now()
			s.r.b.say("   creating volumes: %d of %d", done.Load(), volumes)
		}
	}
	s.sown = volumes
	return group.Wait()
}

// volume creates the four objects of one mirrored, bound volume.
func (s *seeds) volume(ctx context.Context, i int) error {
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
		return err
	}
	class := classMember
	leaf, err := pvc.Translate(root, &class, m.Member)
	if err != nil {
		return fmt.Errorf("translate a claim: %w", err)
	}
	leaf.Spec.VolumeName = volume
	leaf.Annotations = withBinding(leaf.Annotations)
	if leaf, err = boundClaim(ctx, m.client, leaf); err != nil {
		return err
	}
	pv, err := boundVolume(ctx, m.client, s.leafVolume(m, volume, root, leaf))
	if err != nil {
		return err
	}
	_, err = boundVolume(ctx, s.host, hostpv.Mirror(pv, root, corev1.PersistentVolumeReclaimDelete, m.Member))
	return err
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
	mirror.OriginFor(m.HostID, root).Stamp(pv)
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
