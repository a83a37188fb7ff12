package mirror_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

func TestCopyNames(t *testing.T) {
	// The name must never change, because running Pods refer to it.
	if got := mirrortest.ConfigCopies.NameOfCopy("settings"); got != "settings.xylem-"+digestOfSettings {
		t.Errorf("the copy's name is %s, want settings.xylem-%s", got, digestOfSettings)
	}
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength-1)
	names := []string{
		mirrortest.ConfigCopies.NameOfCopy("settings"), mirrortest.ConfigCopies.NameOfCopy("settings.xylem-" + digestOfSettings), mirrortest.ConfigCopies.NameOfCopy(long + "b"), mirrortest.ConfigCopies.NameOfCopy(long + "c"),
		mirrortest.ConfigCopies.NameOfCopy(strings.Repeat("a.", 126)), mirror.ConfigCopies{HostID: mirrortest.HostID, NamespaceUID: "newer-uid"}.NameOfCopy("settings"), mirror.ConfigCopies{HostID: "other", NamespaceUID: "shop-uid"}.NameOfCopy("settings"),
	}
	for i, name := range names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s is not a valid name: %v", name, problems)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("two copies have the name %s", name)
		}
	}
}

const digestOfSettings = "d2e138a8"

// The origin of a copy is its root and no other object.
func TestOriginOfCopies(t *testing.T) {
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength)
	for name, tc := range map[string]struct {
		root, leaf string
		pod        bool
		want       bool
	}{
		"copy of the root":                              {root: "settings", leaf: mirrortest.ConfigCopies.NameOfCopy("settings"), want: true},
		"copy from an earlier namespace":                {root: "settings", leaf: mirror.ConfigCopies{HostID: mirrortest.HostID, NamespaceUID: "older-uid"}.NameOfCopy("settings"), want: true},
		"copy with the name that earlier versions used": {root: "settings", leaf: "settings", want: true},
		"copy of a root with a long name":               {root: long, leaf: mirrortest.ConfigCopies.NameOfCopy(long), want: true},
		"copy of another root":                          {root: "settings", leaf: mirrortest.ConfigCopies.NameOfCopy("password")},
		"copy of a root with the same prefix":           {root: "settings", leaf: mirrortest.ConfigCopies.NameOfCopy("settings.more")},
		"copied to another name":                        {root: "settings", leaf: "settings-2"},
		"without a valid digest":                        {root: "settings", leaf: "settings.xylem-somebody"},
		"with a longer digest":                          {root: "settings", leaf: mirrortest.ConfigCopies.NameOfCopy("settings") + "00"},
		"a Pod with the name of a copy":                 {root: "settings", leaf: mirrortest.ConfigCopies.NameOfCopy("settings"), pod: true},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "shop", Name: tc.leaf}
			mirror.OriginForRoot(mirrortest.HostID, &metav1.ObjectMeta{Namespace: "shop", Name: tc.root, UID: "root-uid"}).StampLeaf(&meta)
			var leaf metav1.Object = &corev1.Secret{ObjectMeta: meta}
			if tc.pod {
				leaf = &corev1.Pod{ObjectMeta: meta}
			}
			if _, got := mirror.LeafOriginFromHost(mirrortest.HostID, leaf); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// The Secret with a Pod's tokens has a complete stamp, and no copy of a Secret has its name.
func TestTokenSecretName(t *testing.T) {
	leaf := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: mirror.TokenSecretName("4f0d-1"), UID: "4f0d-1"}}
	if problems := validation.IsDNS1123Subdomain(leaf.Name); len(problems) > 0 || leaf.Name != "4f0d-1.xylem-token" {
		t.Errorf("%q: %q", leaf.Name, problems)
	}
	if copied := mirrortest.ConfigCopies.NameOfCopy(leaf.Name); copied == leaf.Name {
		t.Errorf("the copy of a Secret has the same name, %q", copied)
	}
	mirror.OriginForRoot("h1", leaf).StampLeaf(leaf)
	origin, stamped := mirror.LeafOriginFromHost("h1", leaf)
	if pod, is := mirror.PodOfTokenSecret(origin.Root.Name); !stamped || !is || pod != leaf.UID {
		t.Errorf("stamped %t, tokens %t, Pod %q", stamped, is, pod)
	}
	for _, name := range []string{"", ".xylem-token", "settings", "4f0d-1.xylem-tokens"} {
		if _, is := mirror.PodOfTokenSecret(name); is {
			t.Errorf("%q is taken for a Pod's tokens", name)
		}
	}
}

func TestAPIServerOf(t *testing.T) {
	for address, want := range map[string]*mirror.APIServer{
		"https://10.0.0.1:6443":  {Host: "10.0.0.1", Port: "6443"},
		"https://api.example":    {Host: "api.example", Port: "443"},
		"https://[fd00::1]:6443": {Host: "fd00::1", Port: "6443"},
		"http://10.0.0.1":        nil,
		"10.0.0.1:6443":          nil,
		"https://":               nil,
		"https://a b":            nil,
	} {
		got, err := mirror.APIServerOf(address, nil)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", address, err, diff)
		}
	}
}
