package access

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// AccountToken contains the claims of a service account token. Only the member can verify the token's
// signature. Xylem uses the claims only to decide when to request the next token, and for which
// account.
type AccountToken struct {
	// Issuer is the token's issuer. Namespace and Account are the ServiceAccount's namespace and name.
	Issuer, Namespace, Account string
	// Issued and Expires are times by the member's clock.
	Issued, Expires time.Time
}

const (
	// tokenSubjectPrefix is the prefix of the subject in service account tokens.
	tokenSubjectPrefix = "system:serviceaccount:"
	// maxTokenSecond is the end of the year 9999. metav1.Time cannot represent later times.
	maxTokenSecond = 253402300799
)

// ParseAccountToken parses a token. It returns false unless the token belongs to a service account and has
// an expiry.
func ParseAccountToken(raw string) (AccountToken, bool) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return AccountToken{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return AccountToken{}, false
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return AccountToken{}, false
	}
	account, ok := strings.CutPrefix(claims.Subject, tokenSubjectPrefix)
	namespace, name, cut := strings.Cut(account, ":")
	if !ok || !cut || namespace == "" || name == "" || claims.Issued <= 0 || claims.Expires <= claims.Issued || claims.Expires > maxTokenSecond {
		return AccountToken{}, false
	}
	return AccountToken{
		Issuer: claims.Issuer, Namespace: namespace, Account: name,
		Issued: time.Unix(claims.Issued, 0), Expires: time.Unix(claims.Expires, 0),
	}, true
}

// IsSameAccount reports whether two tokens belong to the same account.
func (t AccountToken) IsSameAccount(as AccountToken) bool {
	return t.Issuer == as.Issuer && t.Namespace == as.Namespace && t.Account == as.Account
}

// KubeconfigToken returns the token of the kubeconfig's current user, or "" if the user has no token or the
// kubeconfig does not parse.
func KubeconfigToken(kubeconfig []byte) string {
	config, err := ParseKubeconfig(kubeconfig, true)
	if err != nil {
		return ""
	}
	return config.BearerToken
}

// RenewedToken returns the token of a changed kubeconfig, and true if the only change is another token of
// the same ServiceAccount.
func RenewedToken(then, now []byte) (string, bool) {
	before, err := ParseKubeconfig(then, true)
	if err != nil {
		return "", false
	}
	after, err := ParseKubeconfig(now, true)
	if err != nil {
		return "", false
	}
	old, ok := ParseAccountToken(before.BearerToken)
	renewed, is := ParseAccountToken(after.BearerToken)
	if !ok || !is || !old.IsSameAccount(renewed) {
		return "", false
	}
	return after.BearerToken, reflect.DeepEqual(settingsExceptToken(before), settingsExceptToken(after))
}

// settingsExceptToken returns all settings of a configuration that ParseKubeconfig sets, except the token.
func settingsExceptToken(c *rest.Config) any {
	return struct {
		host string
		tls  rest.TLSClientConfig
	}{c.Host, c.TLSClientConfig}
}

// KubeconfigWithToken returns the kubeconfig with the current user's token replaced.
func KubeconfigWithToken(kubeconfig []byte, token string) ([]byte, error) {
	config, err := loadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	_, user, err := currentContextOf(config)
	if err != nil {
		return nil, err
	}
	user.Token = token
	return encodeKubeconfig(config)
}
