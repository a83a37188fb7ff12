package access

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Token contains the claims of a service account token. Only the member can verify the token's
// signature. Xylem uses the claims only to decide when to request the next token, and for which
// account.
type Token struct {
	// Issuer is the token's issuer. Namespace and Account are the ServiceAccount's namespace and name.
	Issuer, Namespace, Account string
	// Issued and Expires are times by the member's clock.
	Issued, Expires time.Time
}

const (
	// accountPrefix is the prefix of the subject in service account tokens.
	accountPrefix = "system:serviceaccount:"
	// lastSecond is the end of the year 9999. metav1.Time cannot represent later times.
	lastSecond = 253402300799
)

// ParseToken parses a token. It returns false unless the token belongs to a service account and has
// an expiry.
func ParseToken(raw string) (Token, bool) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return Token{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Token{}, false
	}
	account, ok := strings.CutPrefix(claims.Subject, accountPrefix)
	namespace, name, cut := strings.Cut(account, ":")
	if !ok || !cut || namespace == "" || name == "" || claims.Issued <= 0 || claims.Expires <= claims.Issued || claims.Expires > lastSecond {
		return Token{}, false
	}
	return Token{
		Issuer: claims.Issuer, Namespace: namespace, Account: name,
		Issued: time.Unix(claims.Issued, 0), Expires: time.Unix(claims.Expires, 0),
	}, true
}

// Same reports whether two tokens belong to the same account.
func (t Token) Same(as Token) bool {
	return t.Issuer == as.Issuer && t.Namespace == as.Namespace && t.Account == as.Account
}

// TokenOf returns the token of the kubeconfig's current user, or "" if the user has no token or the
// kubeconfig does not parse.
func TokenOf(kubeconfig []byte) string {
	config, err := ParseKubeconfig(kubeconfig, true)
	if err != nil {
		return ""
	}
	return config.BearerToken
}

// Renewed returns the token of a changed kubeconfig, and true if the only change is another token of
// the same ServiceAccount.
func Renewed(then, now []byte) (string, bool) {
	before, err := ParseKubeconfig(then, true)
	if err != nil {
		return "", false
	}
	after, err := ParseKubeconfig(now, true)
	if err != nil {
		return "", false
	}
	old, ok := ParseToken(before.BearerToken)
	renewed, is := ParseToken(after.BearerToken)
	if !ok || !is || !old.Same(renewed) {
		return "", false
	}
	return after.BearerToken, reflect.DeepEqual(settingsOf(before), settingsOf(after))
}

// settingsOf returns all settings of a configuration that ParseKubeconfig sets, except the token.
func settingsOf(c *rest.Config) any {
	return struct {
		host string
		tls  rest.TLSClientConfig
	}{c.Host, c.TLSClientConfig}
}

// WithToken returns the kubeconfig with the current user's token replaced.
func WithToken(kubeconfig []byte, token string) ([]byte, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	_, user, err := current(config)
	if err != nil {
		return nil, err
	}
	user.Token = token
	return write(config)
}
