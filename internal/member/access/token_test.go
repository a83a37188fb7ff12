package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/membertest"
)

func TestParseToken(t *testing.T) {
	const account = `"iss":"https://member","sub":"system:serviceaccount:xylem-system:xylem"`
	for name, tc := range map[string]struct {
		raw  string
		want access.Token
	}{
		"a service account token":                          {membertest.JWT(`{` + account + `,"iat":100,"exp":700}`), access.Token{Issuer: "https://member", Namespace: "xylem-system", Account: "xylem", Issued: time.Unix(100, 0), Expires: time.Unix(700, 0)}},
		"a token without an expiry":                        {membertest.JWT(`{` + account + `,"iat":100}`), access.Token{}},
		"a token that expires before it was issued":        {membertest.JWT(`{` + account + `,"iat":700,"exp":100}`), access.Token{}},
		"an expiry that metav1.Time cannot represent (I8)": {membertest.JWT(`{` + account + `,"iat":100,"exp":9223372036854775807}`), access.Token{}},
		"a user's token":                                   {membertest.JWT(`{"sub":"admin","iat":100,"exp":700}`), access.Token{}},
		"no service account name":                          {membertest.JWT(`{"sub":"system:serviceaccount:xylem-system:","iat":100,"exp":700}`), access.Token{}},
		"not JSON":                                         {membertest.JWT(`{`), access.Token{}},
		"not base64":                                       {"a.%.c", access.Token{}},
		"a token without claims":                           {"abcdef", access.Token{}},
		"an empty token":                                   {"", access.Token{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := access.ParseToken(tc.raw)
			if got != tc.want || ok != (tc.want != access.Token{}) {
				t.Errorf("got %+v, %v, want %+v", got, ok, tc.want)
			}
		})
	}
}

func TestWithToken(t *testing.T) {
	was := membertest.KubeconfigOf(t, "https://member", "old")
	now, err := access.WithToken(was, "new")
	if err != nil {
		t.Fatal(err)
	}
	if got := access.TokenOf(now); got != "new" {
		t.Errorf("token is %q, want %q", got, "new")
	}
	if strings.ReplaceAll(string(was), "old", "new") != string(now) {
		t.Errorf("fields other than the token changed:\n%s\n%s", was, now)
	}
	if _, err := access.WithToken([]byte("{"), "new"); err == nil {
		t.Error("a kubeconfig that does not parse caused no error")
	}
}
