package wording

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"xylem.io/member-class", "xylem.io/provisioning", "xylem.io/release", "xylem.io/release-grace"}
	for word, want := range map[string]string{
		"xylem.io/memberclass": "xylem.io/member-class", "xylem.io/Release": "xylem.io/release", "xylem.io/provisionning": "xylem.io/provisioning",
		"xylem.io/size": "", "": "",
	} {
		if got := NearestWord(word, known); got != want {
			t.Errorf("nearest to %q: %q, want %q", word, got, want)
		}
	}
}
