package membertest

import (
	"encoding/base64"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// JWT is a token with claims, and without a signature.
func JWT(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + ".signature"
}

// Subject is the claims of an account of a member.
const Subject = `"iss":"https://member","sub":"system:serviceaccount:xylem-system:xylem",`

// KubeconfigOf is a kubeconfig with a token.
func KubeconfigOf(t *testing.T, server, token string) []byte {
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
