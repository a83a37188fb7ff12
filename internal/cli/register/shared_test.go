package register

import (
	"strings"
	"testing"
)

func TestSharing(t *testing.T) {
	for name, tc := range map[string]struct {
		given sharing
		says  string
	}{
		"nothing":                       {},
		"a driver":                      {given: sharing{drivers: []string{"cephfs.csi.ceph.com"}}},
		"a driver in upper case":        {given: sharing{drivers: []string{"CSI.example.com"}}},
		"drivers and a Secret":          {given: sharing{drivers: []string{"a", "b"}, secrets: []string{"ceph-csi/csi-cephfs-secret"}}},
		"an empty name":                 {given: sharing{drivers: []string{""}}, says: "is not the name of a CSI driver"},
		"a wildcard":                    {given: sharing{drivers: []string{"*"}}, says: "is not the name of a CSI driver"},
		"a name that is too long":       {given: sharing{drivers: []string{strings.Repeat("a", 64)}}, says: "is not the name of a CSI driver"},
		"a Secret without a namespace":  {given: sharing{drivers: []string{"a"}, secrets: []string{"secret"}}, says: "use NAMESPACE/NAME"},
		"a Secret with a wildcard name": {given: sharing{drivers: []string{"a"}, secrets: []string{"b/*"}}, says: "use NAMESPACE/NAME"},
		"a Secret without a driver":     {given: sharing{secrets: []string{"a/b"}}, says: "has no effect without --with-shared-driver"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.given.validateSharing()
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got error %v, want %q", err, tc.says)
			}
		})
	}
}
