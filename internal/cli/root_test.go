package cli_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli"
	"github.com/xylem-io/xylem/internal/cli/command"
)

// plugin runs the plugin without a cluster, and returns its output, including errors.
func plugin(t *testing.T, args ...string) (printed string, code int) {
	t.Helper()
	out := &bytes.Buffer{}
	env := command.NewEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out}, clock.RealClock{})
	code = cli.Run(t.Context(), env, args)
	return out.String(), code
}

func TestSuggestions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a misspelled command":                   {[]string{"tre"}, "Did you mean this?\n\ttree"},
		"a misspelled flag":                      {[]string{"deregister", "a", "--polcy=Drain"}, "Did you mean --policy?"},
		"a misspelled global flag":               {[]string{"tree", "pvc", "a", "--namspace=shop"}, "Did you mean --namespace?"},
		"the doctor command, misspelled":         {[]string{"docter"}, "Did you mean this?\n\tdoctor"},
		"the support-bundle command, misspelled": {[]string{"support-bundel"}, "Did you mean this?\n\tsupport-bundle"},
		"an invalid output format":               {[]string{"doctor", "-o", "xml"}, "-o xml is unknown: use one of json, yaml"},
		"an invalid duration":                    {[]string{"support-bundle", "--log-since=0s"}, "--log-since=0s is out of range: use a duration greater than 0"},
		"an invalid dry-run mode":                {[]string{"deregister", "a", "--dry-run=yes"}, "use none, client or server"},
	} {
		t.Run(name, func(t *testing.T) {
			printed, code := plugin(t, tc.args...)
			if code == 0 || !strings.Contains(printed, tc.want) {
				t.Errorf("exit code %d, printed %q, want %q", code, printed, tc.want)
			}
		})
	}
}

func TestInheritedFlagsAreInOptions(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"tree", "--help"}, {"register", "--help"}, {"deregister", "--help"}, {"doctor", "--help"}, {"support-bundle", "--help"}} {
		printed, code := plugin(t, args...)
		if code != 0 || strings.Contains(printed, "--certificate-authority") || !strings.Contains(printed, `"kubectl xylem options"`) {
			t.Errorf("%v: exit code %d, want the help with a reference to the global flags, but without them, got\n%s", args, code, printed)
		}
	}
	if printed, code := plugin(t, "options"); code != 0 || !strings.Contains(printed, "--certificate-authority") || !strings.Contains(printed, "--xylem-namespace") {
		t.Errorf("options: exit code %d, want all global flags, got\n%s", code, printed)
	}
}

// TestMemberContextIsEnough checks that the commands that write to a member use --member-context alone. The
// context points to the host itself, which each command rejects with the flag's name.
func TestMemberContextIsEnough(t *testing.T) {
	group := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: v1alpha1.GroupVersion.Version}
	answers := map[string]any{
		"/api":                            metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1":                         metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace"}}},
		"/api/v1/namespaces/kube-system":  corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "host"}},
		"/apis":                           metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: v1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{group}}}},
		"/apis/cluster.xylem.io/v1alpha1": metav1.APIResourceList{GroupVersion: group.GroupVersion, APIResources: []metav1.APIResource{{Name: "clusterregistrations", Kind: "ClusterRegistration"}}},
		"/apis/cluster.xylem.io/v1alpha1/clusterregistrations/a": v1alpha1.ClusterRegistration{Status: v1alpha1.ClusterRegistrationStatus{ClusterID: "member"}},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, found := answers[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	for _, name := range []string{"host", "member"} {
		config.Clusters[name], config.Contexts[name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: authority}, &clientcmdapi.Context{Cluster: name}
	}
	config.CurrentContext = "host"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"register", "a"}, {"deregister", "a"}, {"adopt", "a", "pv-1"}} {
		printed, code := plugin(t, append(args, "--kubeconfig", file, "--member-context", "member")...)
		if code == 0 || !strings.Contains(printed, "--member-context points to") {
			t.Errorf("%v: exit code %d, printed %q, want a message about --member-context", args, code, printed)
		}
	}
}
