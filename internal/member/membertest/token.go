package membertest

import (
	"encoding/base64"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// UnsignedToken returns a token with the given claims and without a signature.
func UnsignedToken(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + ".signature"
}

// SubjectClaims contains the issuer and subject claims of a member's service account.
const SubjectClaims = `"iss":"https://member","sub":"system:serviceaccount:xylem-system:xylem",`

// KubeconfigForToken returns a kubeconfig with the token.
func KubeconfigForToken(t *testing.T, server, token string) []byte {
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
