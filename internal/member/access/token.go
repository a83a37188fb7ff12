package access

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// Token is what a service account's token says of itself. Nobody has verified that:
// it is the member's to believe it, and here it says no more than when to ask for
// another one, and of whom.
type Token struct {
	// Issuer, and the ServiceAccount.
	Issuer, Namespace, Account string
	// Issued and Expires by the member's clock.
	Issued, Expires time.Time
}

const (
	// accountPrefix starts the subject of a service account's token.
	accountPrefix = "system:serviceaccount:"
	// lastSecond of the year 9999: times after it cannot be written into a status.
	lastSecond = 253402300799
)

// ParseToken reads a token; false if it is no service account's that expires.
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

// Same reports whether two tokens are of the same account.
func (t Token) Same(as Token) bool {
	return t.Issuer == as.Issuer && t.Namespace == as.Namespace && t.Account == as.Account
}

// TokenOf is the token of the kubeconfig's current user; empty if there is none, or
// nothing to be read.
func TokenOf(kubeconfig []byte) string {
	config, err := ParseKubeconfig(kubeconfig, true)
	if err != nil {
		return ""
	}
	return config.BearerToken
}

// WithToken is a kubeconfig with another token in the place of its current user's.
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
