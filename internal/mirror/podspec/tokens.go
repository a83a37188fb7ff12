package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Environment variables that tell client libraries where the API server is. A container's own variables take precedence
// over those that the kubelet sets for the member's API server (pkg/kubelet/kubelet_pods.go: makeEnvironmentVariables).
const (
	envAPIServerHost = "KUBERNETES_SERVICE_HOST"
	envAPIServerPort = "KUBERNETES_SERVICE_PORT"
)

// CAKey is the key of the host's CA certificates in the Secret with a Pod's tokens.
const CAKey = corev1.ServiceAccountRootCAKey

// maxTokenSeconds is the maximum lifetime of a token in a member: a user who reads the Secret there can use the token that long.
// API servers issue no token for less than minTokenSeconds (pkg/apis/authentication/validation).
const (
	maxTokenSeconds = 60 * 60
	minTokenSeconds = 10 * 60
)

// maxTokens is the maximum number of different tokens of a Pod that Xylem pushes. Each is a request to the host, at each renewal.
const maxTokens = 20

// Token is a ServiceAccount token that a root Pod projects into its volumes.
type Token struct {
	// Key is the token's key in the Secret with the Pod's tokens.
	Key string
	// Audience is empty for the host's API server.
	Audience string
	// ExpirationSeconds is the lifetime to request.
	ExpirationSeconds int64
}

// TokensOfPod returns the different tokens that a Pod's volumes project. A leaf has those of its root, if the registration has
// apiServer.
func TokensOfPod(pod *corev1.Pod) []Token {
	var tokens []Token
	known := map[Token]bool{}
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if source := projected.Sources[j].ServiceAccountToken; source != nil {
				token := tokenOfSource(source)
				if !known[token] {
					known[token] = true
					tokens = append(tokens, token)
				}
			}
		}
	}
	return tokens
}

// tokenOfSource returns the token of a volume's source. Equal sources get equal tokens, as from a kubelet.
func tokenOfSource(source *corev1.ServiceAccountTokenProjection) Token {
	seconds := int64(maxTokenSeconds)
	if source.ExpirationSeconds != nil {
		seconds = max(minTokenSeconds, min(seconds, *source.ExpirationSeconds))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", seconds, source.Audience))
	return Token{Key: "token-" + hex.EncodeToString(sum[:])[:tokenKeyDigits], Audience: source.Audience, ExpirationSeconds: seconds}
}

// tokenKeyDigits is the number of digits in a token's key that tell a Pod's tokens apart.
const tokenKeyDigits = 16

// projectHostTokens replaces the token sources of a root Pod's volumes by the Secret with the Pod's tokens, and in
// the same volumes the ConfigMap kube-root-ca.crt, which the member has for its own API server. It points client
// libraries in the containers that mount a token for the host's API server to that server.
func projectHostTokens(root *corev1.Pod, spec *corev1.PodSpec, server *mirror.APIServer) {
	secret := corev1.LocalObjectReference{Name: mirror.TokenSecretName(root.UID)}
	forServer := map[string]bool{}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.Projected == nil || !slices.ContainsFunc(v.Projected.Sources, projectsToken) {
			continue
		}
		if IsTokenVolume(*v) {
			v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, isDistributionConfig)
		}
		for j := range v.Projected.Sources {
			s := &v.Projected.Sources[j]
			switch {
			case s.ServiceAccountToken != nil:
				forServer[v.Name] = forServer[v.Name] || s.ServiceAccountToken.Audience == ""
				*s = corev1.VolumeProjection{Secret: &corev1.SecretProjection{
					LocalObjectReference: secret, Items: []corev1.KeyToPath{{Key: tokenOfSource(s.ServiceAccountToken).Key, Path: s.ServiceAccountToken.Path}},
				}}
			case s.ConfigMap != nil && s.ConfigMap.Name == RootCAConfigMap:
				*s = corev1.VolumeProjection{Secret: &corev1.SecretProjection{
					LocalObjectReference: secret, Items: caItems(s.ConfigMap.Items), Optional: s.ConfigMap.Optional,
				}}
			}
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if slices.ContainsFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return forServer[m.Name] }) {
				pointToServer(&containers[i], server)
			}
		}
	}
}

// caItems returns the items of the CA. Without items, the volume would show all of the Pod's tokens.
func caItems(items []corev1.KeyToPath) []corev1.KeyToPath {
	if len(items) == 0 {
		return []corev1.KeyToPath{{Key: CAKey, Path: CAKey}}
	}
	return items
}

// isDistributionConfig recognizes the ConfigMaps that distributions such as OpenShift add to the volume of admission. They
// are not copied.
func isDistributionConfig(s corev1.VolumeProjection) bool {
	return s.ConfigMap != nil && s.ConfigMap.Name != RootCAConfigMap
}

func projectsToken(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }

// pointToServer adds the variables that the container does not set itself. They come first, so that the container's own can
// refer to them.
func pointToServer(c *corev1.Container, server *mirror.APIServer) {
	own := func(name string) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	}
	var added []corev1.EnvVar
	for _, e := range []corev1.EnvVar{{Name: envAPIServerHost, Value: server.Host}, {Name: envAPIServerPort, Value: server.Port}} {
		if !own(e.Name) {
			added = append(added, e)
		}
	}
	c.Env = append(added, c.Env...)
}
