package manifests_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

// virtualNode returns a Node as the manager creates it. The functions below return other objects
// that the manager may write, and similar objects that it may not write.
func virtualNode(change ...func(client.Object)) client.Object {
	return built(node(unique("virtual")), append([]func(client.Object){label(v1alpha1.LabelVirtualNode, "true"), managed}, change...)...)
}

func plainNode(change ...func(client.Object)) client.Object {
	return built(node(unique("plain")), change...)
}

func ownVolume(change ...func(client.Object)) client.Object {
	return built(volume(unique("own")), change...)
}

func promiseVolume(change ...func(client.Object)) client.Object {
	return ownVolume(append([]func(client.Object){drivenBy(v1alpha1.PromiseDriverName)}, change...)...)
}

func foreignVolume(change ...func(client.Object)) client.Object {
	return ownVolume(append([]func(client.Object){drivenBy("ebs.csi.aws.com")}, change...)...)
}

func hostPathVolume() client.Object {
	return ownVolume(func(o client.Object) {
		o.(*corev1.PersistentVolume).Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	})
}

func lease(namespace, name, holder string, change ...func(client.Object)) client.Object {
	return built(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}, change...)
}

func registrationSecret(change ...func(client.Object)) client.Object {
	return built(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: unique("kubeconfig")},
		StringData: map[string]string{v1alpha1.KubeconfigKey: "old", "other": "old"},
	}, append([]func(client.Object){managed, annotate(v1alpha1.AnnotationTokenLifetime, "24h")}, change...)...)
}

func capacityObject(change ...func(client.Object)) client.Object {
	return built(&storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: unique("capacity")},
		StorageClassName: "some-class", Capacity: ptr.To(resource.MustParse("1Gi")),
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterID: "some-member"}},
	}, change...)
}

// csiNode returns a CSINode as the manager creates it for a virtual node.
func csiNode(change ...func(client.Object)) client.Object {
	return built(&storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: unique("csinode")},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: v1alpha1.PromiseDriverName, NodeID: "some-node"}}},
	}, change...)
}

func naming(driver string) func(client.Object) {
	return func(o client.Object) {
		spec := &o.(*storagev1.CSINode).Spec
		spec.Drivers = append(spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: "some-node"})
	}
}

func driver(name string) client.Object {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
}

func someRegistration(change ...func(client.Object)) client.Object {
	return built(&v1alpha1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: unique("registration")},
		Spec:       v1alpha1.ClusterRegistrationSpec{KubeconfigSecretRef: v1alpha1.KubeconfigSecretReference{Name: "none"}},
	}, change...)
}

func built(o client.Object, change ...func(client.Object)) client.Object {
	for _, f := range change {
		f(o)
	}
	return o
}

func managed(o client.Object) { label(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)(o) }

func drivenBy(name string) func(client.Object) {
	return func(o client.Object) { o.(*corev1.PersistentVolume).Spec.CSI.Driver = name }
}

func reclaimed(policy corev1.PersistentVolumeReclaimPolicy) func(client.Object) {
	return func(o client.Object) { o.(*corev1.PersistentVolume).Spec.PersistentVolumeReclaimPolicy = policy }
}

func claimed(o client.Object) {
	o.(*corev1.PersistentVolume).Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "victim", Name: "claim"}
}

func provided(o client.Object) { o.(*corev1.Node).Spec.ProviderID = "aws:///eu-west-1a/i-0123" }

// tunnel is an annotation with which a network plugin routes a node's Pod range to an address.
const tunnel = "flannel.alpha.coreos.com/public-ip"

func routed(o client.Object) {
	spec := &o.(*corev1.Node).Spec
	spec.PodCIDR, spec.PodCIDRs = "10.244.1.0/24", []string{"10.244.1.0/24"}
}

func finalized(o client.Object) { o.SetFinalizers(append(o.GetFinalizers(), "example.com/hold")) }

func heldIn(name string) func(client.Object) {
	return func(o client.Object) { o.(*coordinationv1.Lease).Spec.HolderIdentity = &name }
}

func written(key string) func(client.Object) {
	return func(o client.Object) { o.(*corev1.Secret).Data[key] = []byte("new") }
}

var _ = Describe("The policy on the manager's account", Ordered, func() {
	var (
		manager   client.Client
		namespace string
	)
	const denied = "Xylem's account may"

	BeforeAll(func(ctx SpecContext) {
		manager = as(managerAccount)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique("account")}}
		Expect(admin.Create(ctx, ns)).To(Succeed())
		namespace = ns.Name
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, ns)).To(Succeed()) }, NodeTimeout(settle))
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		By("waiting until the policy is in force")
		Eventually(ctx, func(ctx context.Context) error {
			return manager.Create(ctx, node("forged"), client.DryRunAll)
		}).Should(MatchError(ContainSubstring(denied)))
	}, NodeTimeout(settle))

	// made creates the object as an admin, or as the manager if only the manager may create it.
	made := func(ctx context.Context, o client.Object) client.Object {
		GinkgoHelper()
		creator := admin
		if o.GetLabels()[v1alpha1.LabelVirtualNode] != "" {
			creator = manager
		}
		Expect(creator.Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, o, client.GracePeriodSeconds(0)))).To(Succeed())
			Expect(client.IgnoreNotFound(changed(ctx, admin, false, o, func(o client.Object) { o.SetFinalizers(nil) }))).To(Succeed())
		}, NodeTimeout(settle))
		return o
	}
	here := func(change ...func(client.Object)) func() client.Object {
		return func() client.Object { return built(claim(namespace), change...) }
	}
	podHere := func() client.Object {
		p := pod(namespace)
		p.Spec.NodeName = "some-node"
		return p
	}
	judge := func(err error, allowed bool) {
		GinkgoHelper()
		if allowed {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(And(ContainSubstring("'xylem-manager'"), ContainSubstring(denied))))
	}
	entry := func(what string, args ...any) TableEntry {
		return Entry(what, append([]any{SpecTimeout(settle)}, args...)...)
	}
	of := func(build func(...func(client.Object)) client.Object, change ...func(client.Object)) func() client.Object {
		return func() client.Object { return build(change...) }
	}
	held := func(namespace, name, holder string, change ...func(client.Object)) func() client.Object {
		return func() client.Object { return lease(namespace, name, holder, change...) }
	}
	const (
		may, mayNot  = true, false
		whole, state = false, true
	)

	DescribeTable("limits what the manager may create", func(ctx SpecContext, allowed bool, object func() client.Object) {
		judge(manager.Create(ctx, object(), client.DryRunAll), allowed)
		if !allowed {
			Expect(admin.Create(ctx, object(), client.DryRunAll)).To(Succeed(), "the policy must not limit other accounts")
		}
	},
		entry("a virtual node", may, of(virtualNode)),
		entry("a plain node", mayNot, of(plainNode)),
		entry("a node with only the common label", mayNot, of(plainNode, managed)),
		entry("a volume of a member", may, of(ownVolume)),
		entry("a promise", may, of(promiseVolume)),
		entry("a volume of another driver", mayNot, of(foreignVolume)),
		entry("a hostPath volume", mayNot, hostPathVolume),
		entry("a virtual node's Lease", may, held(corev1.NamespaceNodeLease, "virtual", "manager", managed)),
		entry("a kubelet's Lease", mayNot, held(corev1.NamespaceNodeLease, "plain", "plain")),
		entry("the host's record of a fence", may, held(v1alpha1.DefaultNamespace, "fence-some-member", "manager", managed)),
		entry("the Lease of the leader election", may, held(v1alpha1.DefaultNamespace, "xylem-manager", "manager")),
		entry("a Lease in the manager's namespace without the label", mayNot, held(v1alpha1.DefaultNamespace, "other", "manager")),
		entry("a Lease in another namespace", mayNot, held("kube-system", "kube-scheduler-forged", "manager", managed)),
		entry("a capacity that Xylem publishes", may, of(capacityObject, managed)),
		entry("a capacity of another provisioner", mayNot, of(capacityObject)),
		entry("a capacity of the host's own nodes", mayNot, of(capacityObject, managed, func(o client.Object) {
			o.(*storagev1.CSIStorageCapacity).NodeTopology.MatchLabels = map[string]string{corev1.LabelHostname: "worker-1"}
		})),
		entry("another CSIDriver", mayNot, func() client.Object { return driver("ebs.csi.aws.com") }),
		entry("a virtual node's CSINode", may, of(csiNode, managed)),
		entry("a CSINode without the common label", mayNot, of(csiNode)),
		entry("a CSINode that lists another driver", mayNot, of(csiNode, managed, naming("ebs.csi.aws.com"))),
	)

	DescribeTable("does not let network plugins route traffic to a virtual node that the manager creates", func(ctx SpecContext, change func(client.Object)) {
		judge(manager.Create(ctx, virtualNode(change), client.DryRunAll), mayNot)
	},
		entry("with a Pod range", routed),
		entry("with another node's instance", provided),
		entry("with a network plugin's annotation", annotate(tunnel, "192.0.2.1")),
	)

	It("lets the manager change a virtual node to which the controller manager assigned a Pod range", func(ctx SpecContext) {
		n := made(ctx, virtualNode())
		Expect(changed(ctx, admin, whole, n, routed)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
		judge(changed(ctx, manager, whole, n, label("example.com/a", "b")), may)
		judge(changed(ctx, manager, state, n, ready), may)
	}, SpecTimeout(settle))

	It("lets the manager remove the annotation of the attach-detach controller from a virtual node, but no other annotation", func(ctx SpecContext) {
		const attached = "volumes.kubernetes.io/controller-managed-attach-detach"
		n := made(ctx, virtualNode())
		Expect(changed(ctx, admin, whole, n, func(o client.Object) {
			annotate(attached, "true")(o)
			annotate(tunnel, "192.0.2.1")(o)
		})).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
		judge(changed(ctx, manager, whole, n, annotate(attached, "")), may)
		judge(changed(ctx, manager, whole, n, annotate(tunnel, "")), mayNot)
	}, SpecTimeout(settle))

	DescribeTable("limits what the manager may change", func(ctx SpecContext, allowed, status bool, object func() client.Object, change func(client.Object)) {
		judge(changed(ctx, manager, status, made(ctx, object()), change), allowed)
	},
		entry("a virtual node's labels", may, whole, of(virtualNode), label("example.com/a", "b")),
		entry("a virtual node's status", may, state, of(virtualNode), ready),
		entry("a virtual node into one of the control plane", mayNot, whole, of(virtualNode), label("node-role.kubernetes.io/control-plane", "true")),
		entry("a virtual node's hostname", mayNot, whole, of(virtualNode), label(corev1.LabelHostname, "worker-1")),
		entry("the label of virtual nodes", mayNot, whole, of(virtualNode), label(v1alpha1.LabelVirtualNode, "")),
		entry("the label of virtual nodes through the status", mayNot, state, of(virtualNode), label(v1alpha1.LabelVirtualNode, "")),
		entry("a virtual node's annotations under xylem.io/ and the path of its metrics", may, whole, of(virtualNode), func(o client.Object) {
			annotate(v1alpha1.AnnotationNodeSpec, "{}")(o)
			annotate(nodes.AnnMetricsPath, "/metrics")(o)
		}),
		entry("a virtual node's other annotations", mayNot, whole, of(virtualNode), annotate(tunnel, "192.0.2.1")),
		entry("a virtual node's other annotations through the status", mayNot, state, of(virtualNode), annotate(tunnel, "192.0.2.1")),
		entry("the Pod range of a virtual node", mayNot, whole, of(virtualNode), routed),
		entry("the instance of a virtual node", mayNot, whole, of(virtualNode), provided),
		entry("a plain node", mayNot, whole, of(plainNode), label("example.com/a", "b")),
		entry("a plain node into a virtual one", mayNot, whole, of(plainNode), label(v1alpha1.LabelVirtualNode, "true")),
		entry("a plain node's status", mayNot, state, of(plainNode), ready),
		entry("a volume's annotations and finalizers", may, whole, of(ownVolume), func(o client.Object) {
			annotate(v1alpha1.AnnotationReleasing, "true")(o)
			o.SetFinalizers(append(o.GetFinalizers(), v1alpha1.FinalizerLeafVolume))
		}),
		entry("the capacity and policy of a promise, to fulfill it", may, whole, of(promiseVolume, reclaimed(corev1.PersistentVolumeReclaimDelete)), func(o client.Object) {
			reclaimed(corev1.PersistentVolumeReclaimRetain)(o)
			o.(*corev1.PersistentVolume).Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}),
		entry("a volume's policy, from Retain to Delete", mayNot, whole, of(ownVolume), reclaimed(corev1.PersistentVolumeReclaimDelete)),
		entry("a volume's claimRef", mayNot, whole, of(ownVolume), claimed),
		entry("a volume's status", mayNot, state, of(ownVolume), func(o client.Object) {
			o.(*corev1.PersistentVolume).Status.Phase = corev1.VolumeReleased
		}),
		entry("a volume of another driver", mayNot, whole, of(foreignVolume), annotate("example.com/a", "b")),
		entry("a claim's placement", may, whole, here(), annotate(v1alpha1.AnnotationPlacedIn, "member")),
		entry("a claim's selected node", may, whole, here(annotate("volume.kubernetes.io/storage-provisioner", v1alpha1.ProvisionerName)), func(o client.Object) {
			annotate(v1alpha1.AnnotationSteeredTo, "some-node")(o)
			annotate("volume.kubernetes.io/selected-node", "some-node")(o)
		}),
		entry("the selected node of another provisioner's claim", mayNot, whole, here(annotate("volume.kubernetes.io/storage-provisioner", "ebs.csi.aws.com")),
			annotate("volume.kubernetes.io/selected-node", "some-node")),
		entry("the selected node of a claim without a provisioner", mayNot, whole, here(), annotate("volume.kubernetes.io/selected-node", "some-node")),
		entry("the selected node and the recorded source of a claim with a data source", may, whole, here(copying), toSource("some-node", "some-node")),
		entry("the selected node and the recorded source of a claim without a data source", mayNot, whole, here(), toSource("some-node", "some-node")),
		entry("the selected node and the recorded source of a claim, if the selected node is not the recorded one", mayNot, whole, here(copying), toSource("some-node", "another-node")),
		entry("the selected node of a claim with a data source, without recording the source", mayNot, whole, here(copying), annotate("volume.kubernetes.io/selected-node", "some-node")),
		entry("a claim's selected node, by removing it", may, whole, here(annotate("volume.kubernetes.io/selected-node", "n")), annotate("volume.kubernetes.io/selected-node", "")),
		entry("a claim's other annotations", mayNot, whole, here(), annotate("example.com/a", "b")),
		entry("a claim's other annotations, by removing them", mayNot, whole, here(annotate("example.com/a", "b")), annotate("example.com/a", "")),
		entry("a claim's labels", mayNot, whole, here(), label("example.com/a", "b")),
		entry("a claim's labels through its status", mayNot, state, here(), label("example.com/a", "b")),
		entry("a claim's finalizers", mayNot, whole, here(), finalized),
		entry("a claim's annotations through its status", mayNot, state, here(), annotate(v1alpha1.AnnotationPlacedIn, "member")),
		entry("a claim's volume", mayNot, whole, here(), func(o client.Object) { o.(*corev1.PersistentVolumeClaim).Spec.VolumeName = "v" }),
		entry("a claim's phase", mayNot, state, here(), func(o client.Object) { o.(*corev1.PersistentVolumeClaim).Status.Phase = corev1.ClaimLost }),
		entry("a claim's conditions", may, state, here(), func(o client.Object) {
			c := o.(*corev1.PersistentVolumeClaim)
			c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse})
		}),
		entry("a claim's conditions, with the annotation reported-by", may, state, here(), func(o client.Object) {
			c := o.(*corev1.PersistentVolumeClaim)
			c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse})
			annotate(v1alpha1.AnnotationReportedBy, "member-id")(o)
		}),
		entry("a Pod's annotation reported-by", may, state, podHere, annotate(v1alpha1.AnnotationReportedBy, "member-id")),
		entry("a Pod's annotation reported-by, with other annotations", mayNot, state, podHere, func(o client.Object) {
			annotate(v1alpha1.AnnotationReportedBy, "member-id")(o)
			annotate("example.com/a", "b")(o)
		}),
		entry("a Pod's status", may, state, podHere, func(o client.Object) { o.(*corev1.Pod).Status.Message = "a" }),
		entry("a Pod's labels through its status", mayNot, state, podHere, label("app", "victim")),
		entry("a Pod's annotations through its status", mayNot, state, podHere, annotate("example.com/a", "b")),
		entry("a virtual node's Lease", may, whole, held(corev1.NamespaceNodeLease, "virtual", "manager", managed), heldIn("another")),
		entry("a virtual node's Lease that has lost the common label", may, whole, held(corev1.NamespaceNodeLease, "virtual", "manager"), managed),
		entry("a kubelet's Lease", mayNot, whole, held(corev1.NamespaceNodeLease, "plain", "plain"), func(o client.Object) {
			managed(o)
			heldIn("manager")(o)
		}),
		entry("the host's record of a fence", may, whole, held(v1alpha1.DefaultNamespace, "fence-some-member", "manager", managed), heldIn("another")),
		entry("a foreign Lease in the manager's namespace", mayNot, whole, held(v1alpha1.DefaultNamespace, "other", "other"), managed),
		entry("a foreign Lease in another namespace", mayNot, whole, held("kube-system", unique("other"), "other"), managed),
		entry("the kubeconfig in a Secret with Xylem's label", may, whole, of(registrationSecret), written(v1alpha1.KubeconfigKey)),
		entry("another key of a Secret with Xylem's label", mayNot, whole, of(registrationSecret), written("other")),
		entry("the kubeconfig in a Secret, for the last time", mayNot, whole, of(registrationSecret), func(o client.Object) {
			o.(*corev1.Secret).Immutable = ptr.To(true)
		}),
		entry("the labels of a Secret with Xylem's label", mayNot, whole, of(registrationSecret), label("example.com/a", "b")),
		entry("the kubeconfig in a Secret that does not request renewal", mayNot, whole, of(registrationSecret, annotate(v1alpha1.AnnotationTokenLifetime, "")), written(v1alpha1.KubeconfigKey)),
		entry("the kubeconfig in a Secret in another namespace", mayNot, whole, func() client.Object {
			return registrationSecret(func(o client.Object) { o.SetNamespace(namespace) })
		}, written(v1alpha1.KubeconfigKey)),
		entry("a capacity of another provisioner", mayNot, whole, of(capacityObject), managed),
		entry("a virtual node's CSINode", may, whole, of(csiNode, managed), naming(v1alpha1.ProvisionerName)),
		entry("a virtual node's CSINode with an entry of another driver", may, whole, of(csiNode, managed, naming("ebs.csi.aws.com")), naming(v1alpha1.ProvisionerName)),
		entry("a virtual node's CSINode without any entry", may, whole, of(csiNode, managed, func(o client.Object) {
			o.(*storagev1.CSINode).Spec.Drivers = []storagev1.CSINodeDriver{}
		}), naming(v1alpha1.ProvisionerName)),
		entry("a virtual node's CSINode, by adding another driver", mayNot, whole, of(csiNode, managed), naming("ebs.csi.aws.com")),
		entry("a kubelet's CSINode", mayNot, whole, of(csiNode), managed),
		entry("a registration's finalizer", may, whole, of(someRegistration), func(o client.Object) {
			o.SetFinalizers([]string{v1alpha1.FinalizerRegistration})
		}),
		entry("a registration's foreign finalizer", mayNot, whole, of(someRegistration), finalized),
		entry("a registration's kubeconfig Secret", mayNot, whole, of(someRegistration), func(o client.Object) {
			o.(*v1alpha1.ClusterRegistration).Spec.KubeconfigSecretRef.Name = "another"
		}),
		entry("an admin's annotation on a registration", mayNot, whole, of(someRegistration), annotate(v1alpha1.AnnotationForceDeregister, "true")),
		entry("a registration's status", may, state, of(someRegistration), func(o client.Object) {
			o.(*v1alpha1.ClusterRegistration).Status.ClusterID = "some-id"
		}),
	)

	It("does not let the manager change a recorded cluster ID", func(ctx SpecContext) {
		recorded := func(id string) func(client.Object) {
			return func(o client.Object) { o.(*v1alpha1.ClusterRegistration).Status.ClusterID = id }
		}
		cr := made(ctx, someRegistration())
		Expect(changed(ctx, manager, true, cr, recorded("some-id"))).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
		judge(changed(ctx, manager, true, cr, recorded("another")), false)
		judge(changed(ctx, manager, true, cr, recorded("")), false)
	}, SpecTimeout(settle))

	DescribeTable("limits what the manager may delete", func(ctx SpecContext, allowed bool, object func() client.Object) {
		judge(manager.Delete(ctx, made(ctx, object()), client.DryRunAll, client.GracePeriodSeconds(0)), allowed)
	},
		entry("a virtual node", may, of(virtualNode)),
		entry("a plain node", mayNot, of(plainNode)),
		entry("a volume of a member", may, of(ownVolume)),
		entry("a volume of another driver", mayNot, of(foreignVolume)),
		entry("a Pod that its owner has not deleted", mayNot, podHere),
		entry("a Lease", mayNot, held(v1alpha1.DefaultNamespace, "fence-some-member", "manager", managed)),
		entry("a capacity that Xylem publishes", may, of(capacityObject, managed)),
		entry("a capacity of another provisioner", mayNot, of(capacityObject)),
		entry("another CSIDriver", mayNot, func() client.Object { return driver(unique("driver")) }),
		entry("a virtual node's CSINode", mayNot, of(csiNode, managed)),
	)

	It("lets the manager finish the deletion of a Pod that its owner has deleted, as a kubelet would", func(ctx SpecContext) {
		p := made(ctx, podHere())
		Expect(admin.Delete(ctx, p)).To(Succeed())
		Expect(manager.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKeyFromObject(p), p))).To(Succeed())
	}, SpecTimeout(settle))
})

func ready(o client.Object) {
	n := o.(*corev1.Node)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

// copying adds a data source to the claim.
func copying(o client.Object) {
	o.(*corev1.PersistentVolumeClaim).Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
}

// toSource writes the same annotations as the source controller.
func toSource(selected, steered string) func(client.Object) {
	return func(o client.Object) {
		annotate(v1alpha1.AnnotationSource, "member/uid")(o)
		annotate(v1alpha1.AnnotationSteeredTo, steered)(o)
		annotate("volume.kubernetes.io/selected-node", selected)(o)
	}
}
