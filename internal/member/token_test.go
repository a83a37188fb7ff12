package member

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + ".signature"
}

func TestParseToken(t *testing.T) {
	const account = `"iss":"https://member","sub":"system:serviceaccount:xylem-system:xylem"`
	for name, tc := range map[string]struct {
		raw  string
		want Token
	}{
		"a service account's":              {jwt(`{` + account + `,"iat":100,"exp":700}`), Token{"https://member", "xylem-system", "xylem", time.Unix(100, 0), time.Unix(700, 0)}},
		"one without an end":               {jwt(`{` + account + `,"iat":100}`), Token{}},
		"one that ended before it began":   {jwt(`{` + account + `,"iat":700,"exp":100}`), Token{}},
		"one that outlives calendars (I8)": {jwt(`{` + account + `,"iat":100,"exp":9223372036854775807}`), Token{}},
		"a user's":                         {jwt(`{"sub":"admin","iat":100,"exp":700}`), Token{}},
		"no name":                          {jwt(`{"sub":"system:serviceaccount:xylem-system:","iat":100,"exp":700}`), Token{}},
		"no JSON":                          {jwt(`{`), Token{}},
		"no base64":                        {"a.%.c", Token{}},
		"a bare token":                     {"abcdef", Token{}},
		"nothing":                          {"", Token{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseToken(tc.raw)
			if got != tc.want || ok != (tc.want != Token{}) {
				t.Errorf("got %+v, %v, want %+v", got, ok, tc.want)
			}
		})
	}
}

const subject = `"iss":"https://member","sub":"system:serviceaccount:xylem-system:xylem",`

func kubeconfigOf(t *testing.T, server, token string) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "c"
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	raw, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A link goes on with another token of the same account at the same server, and with
// nothing else.
func TestRenewed(t *testing.T) {
	first, second := jwt(`{`+subject+`"iat":100,"exp":700}`), jwt(`{`+subject+`"iat":400,"exp":1000}`)
	was := registration(func(r *Registration) { r.Kubeconfig = kubeconfigOf(t, "https://member", first) })
	for name, tc := range map[string]struct {
		change func(*Registration)
		want   string
	}{
		"the next token": {func(r *Registration) { r.Kubeconfig = kubeconfigOf(t, "https://member", second) }, second},
		"another server": {func(r *Registration) { r.Kubeconfig = kubeconfigOf(t, "https://other", second) }, ""},
		"another account": {func(r *Registration) {
			r.Kubeconfig = kubeconfigOf(t, "https://member", jwt(`{"iss":"https://member","sub":"system:serviceaccount:a:b","iat":400,"exp":1000}`))
		}, ""},
		"another issuer": {func(r *Registration) {
			r.Kubeconfig = kubeconfigOf(t, "https://member", jwt(`{"iss":"https://else","sub":"system:serviceaccount:xylem-system:xylem","iat":400,"exp":1000}`))
		}, ""},
		"no service account's": {func(r *Registration) { r.Kubeconfig = kubeconfigOf(t, "https://member", "abc") }, ""},
		"no kubeconfig":        {func(r *Registration) { r.Kubeconfig = []byte("{") }, ""},
		"a restore is confirmed besides": {func(r *Registration) {
			r.Kubeconfig = kubeconfigOf(t, "https://member", second)
			r.ConfirmRestore = "host-1-member-2"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := registration(func(r *Registration) { r.Kubeconfig = was.Kubeconfig }, tc.change)
			got, ok := now.renewed(was)
			if !ok {
				got = ""
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWithToken(t *testing.T) {
	was := kubeconfigOf(t, "https://member", "old")
	now, err := WithToken(was, "new")
	if err != nil {
		t.Fatal(err)
	}
	if got := TokenOf(now); got != "new" {
		t.Errorf("token is %q", got)
	}
	if strings.ReplaceAll(string(was), "old", "new") != string(now) {
		t.Errorf("more than the token has changed:\n%s\n%s", was, now)
	}
	if _, err := WithToken([]byte("{"), "new"); err == nil {
		t.Error("nothing was said of a kubeconfig that does not parse")
	}
}

func TestExpired(t *testing.T) {
	raw := jwt(`{` + subject + `"iat":100,"exp":700}`)
	unauthorized := problem(v1alpha1.ReasonUnauthorized, "no")
	for name, tc := range map[string]struct {
		token string
		now   int64
		err   *Problem
		want  bool
	}{
		"it has":                    {raw, 700, unauthorized, true},
		"it has not":                {raw, 699, unauthorized, false},
		"the cause is another":      {raw, 700, problem(v1alpha1.ReasonForbidden, "no"), false},
		"of a token that is opaque": {"abc", 700, unauthorized, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := expired(tc.token, time.Unix(tc.now, 0), tc.err)
			if said := strings.Contains(got.Error(), "expired at 1970-01-01T00:11:40Z"); said != tc.want {
				t.Errorf("says %q", got)
			}
		})
	}
}
