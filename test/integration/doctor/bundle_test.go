package doctor_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// shop is a user's namespace.
const shop = "shop"

// lastApplied is the annotation in which kubectl apply stores the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secrets contains the planted random values, by their location.
type secrets map[string]string

// plant returns a new random value for a location.
func (s secrets) plant(where string) string {
	s[where] = strings.ToLower(rand.Text())
	return s[where]
}

// unpacked returns the files in an archive.
func unpacked(file string) map[string]string {
	GinkgoHelper()
	f, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(f)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(r)
		Expect(err).NotTo(HaveOccurred())
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(content)
	}
}

// workload creates a claim and a Pod with secrets in every possible field, and waits until both
// exist in the member.
func workload(ctx context.Context, s secrets) {
	GinkgoHelper()
	create(ctx, x.Host, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	Expect(x.Host.AwaitNamespace(ctx, shop)).To(Succeed())
	create(ctx, x.Host, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "db"}, StringData: map[string]string{"password": s.plant("Secret")}})
	create(ctx, x.Host, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}, Data: map[string]string{"dsn": s.plant("ConfigMap")}})
	class := controlplane.Class("secretive", storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	class.Provisioner = v1alpha1.ProvisionerName
	class.Parameters = map[string]string{v1alpha1.ParameterMemberClass: controlplane.ClassHostpath}
	create(ctx, x.Host, &class)
	foreign := controlplane.Class("foreign", storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete)
	foreign.Provisioner, foreign.Parameters = "disk.example.com", map[string]string{"accountKey": s.plant("parameter of a class")}
	create(ctx, x.Host, &foreign)

	claim := harness.Claim(shop, "data", class.Name)
	claim.Annotations = map[string]string{lastApplied: s.plant("last-applied of a claim"), "example.com/key": s.plant("annotation of a claim")}
	create(ctx, x.Host, claim)
	pod := harness.Pod(shop, "app", "data")
	pod.Annotations = map[string]string{lastApplied: s.plant("last-applied of a Pod")}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodeOne}
	main := &pod.Spec.Containers[0]
	main.Command, main.Args = []string{"serve", "--password=" + s.plant("command")}, []string{s.plant("argument")}
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: s.plant("variable")}, {Name: "FROM", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password"},
	}}}
	main.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	create(ctx, x.Host, pod)
	Eventually(func(g Gomega) {
		g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}).WithContext(ctx).Should(Succeed())
	create(ctx, x.Host, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "app.1"}, Type: corev1.EventTypeWarning, Reason: "Failed",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: shop, Name: "app", UID: pod.UID},
		Message:        "login failed: password=" + s.plant("message of an event"),
	})
}

// manages creates a manager Pod on a host node, with a log.
func manages(ctx context.Context, s secrets) {
	GinkgoHelper()
	at := time.Now().UTC().Format(time.RFC3339Nano)
	log := fmt.Sprintf("%[1]s stdout F the manager says something harmless\n%[1]s stderr F GET https://member/api Authorization: Bearer %[2]s\n%[1]s stdout F {\"token\":\"%[3]s\"}\n",
		at, s.plant("bearer token in a log"), s.plant("JSON in a log"))
	Expect(os.WriteFile(x.Fleet.Host.KubeletLogFile(), []byte(log), 0o600)).To(Succeed())
	DeferCleanup(func() {
		Expect(os.WriteFile(x.Fleet.Host.KubeletLogFile(), []byte(controlplane.KubeletLog), 0o600)).To(Succeed())
	})
	pod := harness.Pod(v1alpha1.DefaultNamespace, "xylem-controller-manager-1")
	pod.Labels = map[string]string{command.LabelName: command.LabelNameValue, "control-plane": "controller-manager"}
	pod.Spec.NodeName = x.Fleet.Host.NodeNames()[0]
	pod.Spec.Containers[0].Name = "manager"
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: s.plant("variable of the manager")}}
	// The namespace enforces the Pod Security level "restricted".
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	create(ctx, x.Host, pod)
	Eventually(func(g Gomega) {
		g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("kubectl xylem support-bundle", func() {
	It("contains the information about both clusters that a bug report needs, and no secrets", func(ctx SpecContext) {
		healthy(ctx)
		s := secrets{}
		workload(ctx, s)
		manages(ctx, s)
		// The plugin itself uses the kubeconfigs in these Secrets.
		for _, name := range []string{one, two} {
			var secret corev1.Secret
			Expect(x.Host.API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: harness.SecretName(name)}, &secret)).To(Succeed())
			s["token of "+name] = access.KubeconfigToken(secret.Data[v1alpha1.KubeconfigKey])
			// The annotation repeats the token, as it does when an admin applies the Secret's manifest.
			cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
			note := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,"example.com/copy":%q}}}`, lastApplied, s.plant("last-applied of "+name), s["token of "+name])
			Expect(x.Host.API.Patch(ctx, cr, client.RawPatch(types.MergePatchType, note))).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				none := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,"example.com/copy":null}}}`, lastApplied)
				Expect(x.Host.API.Patch(ctx, cr, client.RawPatch(types.MergePatchType, none))).To(Succeed())
			})
		}
		var file string
		var files map[string]string
		Eventually(func(g Gomega) {
			file = filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
			out, complaints, code := plugin(ctx, here, "support-bundle", "--file", file)
			g.Expect(code).To(BeZero(), complaints)
			files = unpacked(file)
			g.Expect(files["doctor.txt"]).To(ContainSubstring("0 errors"))
			AddReportEntry("kubectl xylem support-bundle", out)
		}).WithContext(ctx).Should(Succeed())

		Expect(s).To(HaveLen(17))
		for where, secret := range s {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				for name, content := range files {
					Expect(strings.Contains(content, form)).To(BeFalse(), "the secret %s (%s) must not be in %s:\n%s", where, form, name, content)
				}
			}
		}
		for name, parts := range map[string][]string{
			"README.txt": {"REDACTED"}, "doctor.txt": {"Host\n", "0 errors"}, "doctor.json": {`"kind": "Checkup"`},
			"versions.yaml":                                    {"kubernetes: v1.", "members/" + one, "members/" + two},
			"host/clusterregistrations.yaml":                   {"name: " + one, "type: Connected"},
			"host/nodes.yaml":                                  {"name: " + nodeOne},
			"host/storageclasses.yaml":                         {"name: secretive", v1alpha1.ParameterMemberClass + ": " + controlplane.ClassHostpath, "accountKey: REDACTED"},
			"host/persistentvolumeclaims.yaml":                 {"namespace: shop", "phase: Bound", v1alpha1.AnnotationPlacedIn},
			"host/persistentvolumes.yaml":                      {v1alpha1.AttributeHandle, "driver: " + v1alpha1.ProvisionerName},
			"host/pods.yaml":                                   {"name: app", "name: PASSWORD", "type: " + string(v1alpha1.PodPushed)},
			"host/events.yaml":                                 {"login failed: password=REDACTED"},
			"host/validatingadmissionpolicies.yaml":            {"name: xylem-reserved-keys"},
			"host/leases.yaml":                                 {"name: " + v1alpha1.LeaderLease},
			"members/" + one + "/pods.yaml":                    {"name: app", v1alpha1.AnnotationRootUID},
			"members/" + one + "/persistentvolumes.yaml":       {"volumeHandle:"},
			"members/" + one + "/leases.yaml":                  {"holderIdentity:"},
			"host/logs/xylem-controller-manager-1/manager.log": {"the manager says something harmless", "Authorization: REDACTED"},
		} {
			Expect(files).To(HaveKey(name))
			for _, part := range parts {
				Expect(files[name]).To(ContainSubstring(part), name)
			}
		}
		var bytes int
		for _, content := range files {
			bytes += len(content)
		}
		AddReportEntry("files in the archive", fmt.Sprintf("%d, %d bytes unpacked, %d secrets searched", len(files), bytes, len(s)))

		_, complaints, code := plugin(ctx, here, "support-bundle", "--file", file)
		Expect(code).To(Equal(1))
		Expect(complaints).To(ContainSubstring("already exists"))
	}, SpecTimeout(storyTime))

	It("lists what it could not read, and writes no archive if the host does not respond", func(ctx SpecContext) {
		Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Fleet.Member(two).Proxy().SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		})
		file := filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
		_, complaints, code := plugin(ctx, here, "support-bundle", "--file", file)
		Expect(code).To(BeZero(), complaints)
		files := unpacked(file)
		Expect(files["missing.yaml"]).To(ContainSubstring("cluster: " + two))
		Expect(files).To(HaveKey("members/" + one + "/nodes.yaml"))

		address, err := harness.FreeAddress(ctx)
		Expect(err).NotTo(HaveOccurred())
		other := filepath.Join(GinkgoT().TempDir(), "other.tar.gz")
		_, complaints, code = plugin(ctx, here, "support-bundle", "--file", other, "--server=https://"+address)
		Expect(code).To(Equal(1))
		Expect(complaints).To(ContainSubstring("the host at https://" + address + " is unreachable"))
		Expect(other).NotTo(BeAnExistingFile())
	}, SpecTimeout(storyTime))
})
