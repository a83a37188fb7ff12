package mirror

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPlain(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":                         {"abc", 4, "abc"},
		"fits":                          {"abcd", 4, "abcd"},
		"long":                          {"abcdefgh", 6, "abc…"},
		"long, in a character":          {"abücdefg", 6, "ab…"},
		"line breaks and tabs":          {"a\n\tb", 9, "a\n\tb"},
		"an escape that clears screens": {"a\x1b[2Jb\r\x00\x7f\u009b", 99, "a[2Jb"},
		"text that runs backwards":      {"a\u202egpj.exe\u2066", 99, "agpj.exe"},
		"no UTF-8":                      {"a\xff\xfeb", 99, "ab"},
		"other scripts":                 {"Größe 容量 👍🏽", 99, "Größe 容量 👍🏽"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Plain(tc.text, tc.limit)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31m", 10)
	f.Add("ü\xff\u202e", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(limit%textLimit, len(ellipsis))
		got := Plain(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x00\r\u202e") {
			t.Errorf("%q at %d became %q", text, limit, got)
		}
		if Plain(got, limit) != got {
			t.Errorf("%q is not the end of it: writes would never settle", got)
		}
	})
}

func TestAmounts(t *testing.T) {
	many := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), "no name!": resource.MustParse("1"), "example.com/x": resource.MustParse("-1")}
	want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	if diff := cmp.Diff(want, Amounts(many)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(many) != 3 {
		t.Error("the member's list was changed")
	}
	if Amounts(nil) != nil {
		t.Error("something of nothing")
	}
}

// A hostile member says anything, of any size: what the host shows is small,
// plain, and something that its API server takes (I8).
func TestHostilePodStatus(t *testing.T) {
	root := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	anyAddress := Member{PodCIDRs: AllPodCIDRs}
	huge := strings.Repeat("x", 1<<20) + "\x1b[31m\xff"
	leaf := root.DeepCopy()
	leaf.Status = corev1.PodStatus{
		Phase: "Pwned", Message: huge, Reason: huge, HostIP: huge,
		PodIPs: []corev1.PodIP{{IP: huge}, {IP: "10.0.0.1"}, {IP: "10.0.0.1"}},
	}
	mounts := make([]corev1.VolumeMountStatus, 10_000)
	for i := range mounts {
		mounts[i] = corev1.VolumeMountStatus{Name: huge, MountPath: "/" + strings.Repeat("m", i%500)}
	}
	for i := range 10_000 {
		if i == 1 {
			mounts = nil
		}
		leaf.Status.Conditions = append(leaf.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: huge})
		leaf.Status.ContainerStatuses = append(leaf.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: "main", Image: huge, ImageID: huge, ContainerID: huge, VolumeMounts: mounts,
			State:              corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: huge, Reason: huge}},
			AllocatedResources: corev1.ResourceList{corev1.ResourceName(huge): resource.MustParse("1")},
		})
	}
	got := RootPodStatus(root, leaf, anyAddress)
	if got.Phase != corev1.PodUnknown || len(got.Conditions) != 1 || len(got.ContainerStatuses) != 1 || len(got.PodIPs) != 1 {
		t.Errorf("phase %s, %d conditions, %d statuses, %d addresses", got.Phase, len(got.Conditions), len(got.ContainerStatuses), len(got.PodIPs))
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 2*statusLimit || got.Size() > statusLimit || strings.Contains(string(raw), `\u001b`) {
		t.Errorf("%d bytes", len(raw))
	}
	if len(got.ContainerStatuses[0].AllocatedResources) != 0 {
		t.Error("resources without a name")
	}
	if !PodStatusCurrent(&corev1.Pod{Spec: root.Spec, Status: got}, got) {
		t.Error("it would be written again and again")
	}
}
