package mirror

import (
	"slices"
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
		"short":                        {"abc", 4, "abc"},
		"fits":                         {"abcd", 4, "abcd"},
		"long":                         {"abcdefgh", 6, "abc…"},
		"truncated within a character": {"abücdefg", 6, "ab…"},
		"line breaks and tabs":         {"a\n\tb", 9, "a\n\tb"},
		"an escape sequence that clears the screen": {"a\x1b[2Jb\r\x00\x7f\u009b", 99, "a[2Jb"},
		"text with right-to-left overrides":         {"a\u202egpj.exe\u2066", 99, "agpj.exe"},
		"invalid UTF-8":                             {"a\xff\xfeb", 99, "ab"},
		"other scripts":                             {"Größe 容量 👍🏽", 99, "Größe 容量 👍🏽"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PlainText(tc.text, tc.limit)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"empty":              {" \n", ""},
		"several lines":      {"one\n\ttwo  three ", "one two three"},
		"an escape sequence": {"one\r\n\x1b[2Jtwo", "one [2Jtwo"},
		"a sentence":         {"no. Never.\n", "no. Never"},
		"long":               {"0123456789\n01234", "0123456789 …"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PlainLine(tc.text, 14); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31m", 10)
	f.Add("ü\xff\u202e", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(limit%textLimit, len(ellipsis))
		got := PlainText(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x00\r\u202e") {
			t.Errorf("%q with limit %d became %q, which is too long or not plain", text, limit, got)
		}
		if PlainText(got, limit) != got {
			t.Errorf("sanitizing %q again changes it, so writes would never settle", got)
		}
	})
}

func TestAmounts(t *testing.T) {
	many := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), "no name!": resource.MustParse("1"), "example.com/x": resource.MustParse("-1"), "example.com/y": resource.MustParse("1e2000000001")}
	want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	if diff := cmp.Diff(want, ResourceAmounts(many)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(many) != 4 {
		t.Error("Amounts changed the member's list")
	}
	if ResourceAmounts(nil) != nil {
		t.Error("a nil list became non-nil")
	}
}

// A comparison with a quantity that is out of range would take minutes.
func TestCapped(t *testing.T) {
	reported := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceStorage: resource.MustParse("1e2000000001"),
		"example.com/x": resource.MustParse("1"),
	}
	asked := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourceStorage: resource.MustParse("1Gi")}
	want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	if diff := cmp.Diff(want, CapToRequested(reported, asked)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	if got, want := QuotedMemberNames([]string{"proxy", "a\x1b[2J"}), `"proxy", "a\x1b[2J"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := QuotedMemberNames(slices.Repeat([]string{"proxy"}, 1000)); len(got) > namesLimit {
		t.Errorf("%d bytes, want at most %d", len(got), namesLimit)
	}
	if got := QuotedMemberNames(nil); got != "" {
		t.Errorf("got %q for no names", got)
	}
}
