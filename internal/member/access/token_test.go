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
		want access.AccountToken
	}{
		"a service account token":                          {membertest.UnsignedToken(`{` + account + `,"iat":100,"exp":700}`), access.AccountToken{Issuer: "https://member", Namespace: "xylem-system", Account: "xylem", Issued: time.Unix(100, 0), Expires: time.Unix(700, 0)}},
		"a token without an expiry":                        {membertest.UnsignedToken(`{` + account + `,"iat":100}`), access.AccountToken{}},
		"a token that expires before it was issued":        {membertest.UnsignedToken(`{` + account + `,"iat":700,"exp":100}`), access.AccountToken{}},
		"an expiry that metav1.Time cannot represent (I8)": {membertest.UnsignedToken(`{` + account + `,"iat":100,"exp":9223372036854775807}`), access.AccountToken{}},
		"a user's token":                                   {membertest.UnsignedToken(`{"sub":"admin","iat":100,"exp":700}`), access.AccountToken{}},
		"no service account name":                          {membertest.UnsignedToken(`{"sub":"system:serviceaccount:xylem-system:","iat":100,"exp":700}`), access.AccountToken{}},
		"not JSON":                                         {membertest.UnsignedToken(`{`), access.AccountToken{}},
		"not base64":                                       {"a.%.c", access.AccountToken{}},
		"a token without claims":                           {"abcdef", access.AccountToken{}},
		"an empty token":                                   {"", access.AccountToken{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := access.ParseAccountToken(tc.raw)
			if got != tc.want || ok != (tc.want != access.AccountToken{}) {
				t.Errorf("got %+v, %v, want %+v", got, ok, tc.want)
			}
		})
	}
}

func TestWithToken(t *testing.T) {
	was := membertest.KubeconfigForToken(t, "https://member", "old")
	now, err := access.KubeconfigWithToken(was, "new")
	if err != nil {
		t.Fatal(err)
	}
	if got := access.KubeconfigToken(now); got != "new" {
		t.Errorf("token is %q, want %q", got, "new")
	}
	if strings.ReplaceAll(string(was), "old", "new") != string(now) {
		t.Errorf("fields other than the token changed:\n%s\n%s", was, now)
	}
	if _, err := access.KubeconfigWithToken([]byte("{"), "new"); err == nil {
		t.Error("a kubeconfig that does not parse caused no error")
	}
}
