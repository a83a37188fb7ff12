package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// CheckControlPlane is the name of this check.
const CheckControlPlane Check = "ControlPlane"

var controlPlaneCheck = checkOf[*Facts]{name: CheckControlPlane, read: readControlPlane, judge: infallible(judgeControlPlane)}

// controlPlaneFacts are the visible settings of the control plane, and claims that make it fail.
type controlPlaneFacts struct {
	// Control contains the Pods of kube-apiserver, kube-controller-manager and kube-scheduler, if they
	// are visible. FeatureGates are those of the API server that responded.
	Control      inspect.Objects[corev1.Pod]
	FeatureGates inspect.Object[map[string]bool]
	// Annotated are the claims without a volume whose class only the old annotation names.
	Annotated inspect.Objects[annotatedClaim]
}

// annotatedClaim is a claim, and the name of its class.
type annotatedClaim struct {
	Namespace, Name, Class string
}

// componentLabel is on the Pods of a control plane that runs in Pods, such as kubeadm's.
const componentLabel = "component"

// readControlPlane reads the visible settings of the control plane.
func readControlPlane(ctx context.Context, r *inspect.Reader, f *Facts) {
	h := &f.Host
	inspect.RunReadsTogether(
		func() {
			h.Control = inspect.ReadList(ctx, r, "the control plane's Pods", &corev1.PodList{}, podsOfList, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{componentLabel})
		},
		func() { h.Annotated = readClaimsNamedByAnnotation(ctx, r) },
		func() {
			found, err := readFeatureGates(ctx, r.Raw)
			if err != nil {
				r.RecordMissing("the API server's feature gates", err)
				return
			}
			h.FeatureGates = inspect.Object[map[string]bool]{Item: &found, Read: true}
		},
	)
}

// readClaimsNamedByAnnotation reads the claims without a volume whose class only the old annotation names.
func readClaimsNamedByAnnotation(ctx context.Context, r *inspect.Reader) inspect.Objects[annotatedClaim] {
	return inspect.ReadList(ctx, r, "PersistentVolumeClaims", &corev1.PersistentVolumeClaimList{}, func(l *corev1.PersistentVolumeClaimList) []annotatedClaim {
		var some []annotatedClaim
		for i := range l.Items {
			if c := &l.Items[i]; c.Spec.VolumeName == "" && hostpv.IsClassNamedOnlyByAnnotation(c) {
				some = append(some, annotatedClaim{Namespace: c.Namespace, Name: c.Name, Class: hostpv.ClassNameOf(c)})
			}
		}
		return some
	})
}

// neededFeatureFeatureGates are those that Xylem relies on, with the effect of turning each one off.
// All are on by default in every supported version that has them.
var neededFeatureGates = map[string]string{
	"ValidatingAdmissionPolicy":       "Xylem's admission policies are not in force",
	"NominatedNodeNameForExpectation": "the scheduler does not nominate a node before it binds volumes, so the manager doesn't create the leaf Pods that provisioners wait for",
	"VolumeAttributesClass":           "claims cannot have a VolumeAttributesClass",
	"AnyVolumeDataSource":             "the API server drops claims' data sources other than snapshots and claims",
	"HonorPVReclaimPolicy":            "a PersistentVolume may disappear before its disk is deleted",
}

// controllersNeeded are controllers of kube-controller-manager that Xylem relies on.
var controllersNeeded = []string{"persistentvolume-binder-controller", "persistentvolume-binder", "persistentvolumeclaim-protection-controller", "pvc-protection", "pod-garbage-collector-controller", "podgc"}

// judgeControlPlane checks the settings of the control plane, as far as they are visible.
func judgeControlPlane(f *Facts) []Finding {
	h := &f.Host
	found := judgeAnnotatedClaims(h)
	off := map[string]string{}
	if h.FeatureGates.Item != nil {
		for name, on := range *h.FeatureGates.Item {
			if neededFeatureGates[name] != "" && !on {
				off[name] = "kube-apiserver"
			}
		}
	}
	seen := map[string]bool{}
	for i := range h.Control.Items {
		pod := &h.Control.Items[i]
		component := pod.Labels["component"]
		seen[component] = true
		flags := flagsOfContainer(pod)
		for name, on := range featureGatesInFlag(flags["feature-gates"]) {
			if neededFeatureGates[name] != "" && !on {
				off[name] = component
			}
		}
		for _, name := range strings.Split(flags["controllers"], ",") {
			if without, disabled := strings.CutPrefix(name, "-"); disabled && slices.Contains(controllersNeeded, without) {
				found = append(found, problem(Error, fmt.Sprintf("%s runs without controller %q (--controllers), which Xylem relies on to bind volumes, protect claims in use, or clean up Pods", component, without), fmt.Sprintf("Remove -%s from the flag --controllers of %s.", without, component)))
			}
		}
		if slices.Contains(strings.Split(flags["disable-admission-plugins"], ","), "ValidatingAdmissionPolicy") {
			found = append(found, problem(Error, component+" runs with --disable-admission-plugins=ValidatingAdmissionPolicy, so Xylem's admission policies are not in force", "Remove ValidatingAdmissionPolicy from the flag --disable-admission-plugins."))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(off)) {
		found = append(found, problem(Error, fmt.Sprintf("%s runs with feature gate %s=false: %s", off[name], name, neededFeatureGates[name]), fmt.Sprintf("Turn on feature gate %s in %s.", name, off[name])))
	}
	switch {
	case len(found) > 0:
	case !h.FeatureGates.Read && len(seen) == 0:
		return nil
	case !seen["kube-scheduler"]:
		found = append(found, passed("no feature gate that Xylem needs is off in the API server; the scheduler's settings are not visible"))
	default:
		found = append(found, passed("no feature gate or controller that Xylem needs is off"))
	}
	return found
}

// scores is the first version whose scheduler scores nodes by their storage capacity.
const scores = "1.37"

// judgeAnnotatedClaims reports claims of Xylem's classes that make the scheduler panic when it scores nodes.
func judgeAnnotatedClaims(h *HostFacts) []Finding {
	claims := slices.DeleteFunc(slices.Clone(h.Annotated.Items), func(c annotatedClaim) bool {
		return !slices.ContainsFunc(h.Classes.Items, func(class storagev1.StorageClass) bool { return class.Name == c.Class && hostpv.IsXylemClass(&class) })
	})
	if len(claims) == 0 {
		return nil
	}
	var names []string
	for _, c := range claims {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	level := Error
	if v, err := version.ParseGeneric(h.Version); err == nil && v.LessThan(version.MustParseGeneric(scores)) {
		level = Warning
	}
	return []Finding{problem(level, fmt.Sprintf("only the annotation %s names the class of %s, which makes kube-scheduler %s panic", corev1.BetaStorageClassAnnotation, enumerateNamed("claim", names), scores),
		fmt.Sprintf("Set spec.storageClassName of each claim, for example with `%s`.", hostpv.SetClassFieldCommand(claims[0].Namespace, claims[0].Name, claims[0].Class)))}
}

// flagsOfContainer returns the flags of a Pod's first container.
func flagsOfContainer(pod *corev1.Pod) map[string]string {
	flags := map[string]string{}
	if len(pod.Spec.Containers) == 0 {
		return flags
	}
	c := pod.Spec.Containers[0]
	for _, arg := range slices.Concat(c.Command, c.Args) {
		if name, value, set := strings.Cut(strings.TrimLeft(arg, "-"), "="); set {
			flags[name] = value
		}
	}
	return flags
}

func featureGatesInFlag(flag string) map[string]bool {
	featureGates := map[string]bool{}
	for _, entry := range strings.Split(flag, ",") {
		if name, value, set := strings.Cut(entry, "="); set {
			featureGates[name] = strings.EqualFold(value, "true")
		}
	}
	return featureGates
}
