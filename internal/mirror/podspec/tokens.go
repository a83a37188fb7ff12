package podspec

import (
	"fmt"
	"maps"
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

// Token is a ServiceAccount token that a root Pod projects into a volume.
type Token struct {
	// Key is the token's key in the Secret with the Pod's tokens.
	Key string
	// Audience is empty for the host's API server.
	Audience string
	// ExpirationSeconds is the lifetime to request.
	ExpirationSeconds int64
}

// TokensOfPod returns the tokens that a Pod's volumes project. Every member gets those of a root Pod that it runs, if its
// registration has apiServer.
func TokensOfPod(pod *corev1.Pod) []Token {
	var tokens []Token
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if source := projected.Sources[j].ServiceAccountToken; source != nil {
				seconds := int64(maxTokenSeconds)
				if source.ExpirationSeconds != nil {
					seconds = max(minTokenSeconds, min(seconds, *source.ExpirationSeconds))
				}
				tokens = append(tokens, Token{Key: tokenKey(pod.Spec.Volumes[i].Name, j), Audience: source.Audience, ExpirationSeconds: seconds})
			}
		}
	}
	return tokens
}

func tokenKey(volume string, source int) string { return fmt.Sprintf("%s.%d", volume, source) }

// projectHostTokens replaces the token sources of a root Pod's volumes by the Secret with the Pod's tokens, and in
// the same volumes the ConfigMap kube-root-ca.crt, which the member has for its own API server. It points client
// libraries in the containers that mount a token for the host's API server to that server.
func projectHostTokens(root *corev1.Pod, spec *corev1.PodSpec, server *mirror.APIServer) {
	secret := corev1.LocalObjectReference{Name: mirror.TokensRoot(root.UID)}
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
					LocalObjectReference: secret, Items: []corev1.KeyToPath{{Key: tokenKey(v.Name, j), Path: s.ServiceAccountToken.Path}},
				}}
			case s.ConfigMap != nil && s.ConfigMap.Name == RootCAConfigMap:
				*s = corev1.VolumeProjection{Secret: &corev1.SecretProjection{
					LocalObjectReference: secret, Items: s.ConfigMap.Items, Optional: s.ConfigMap.Optional,
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

// isDistributionConfig recognizes the ConfigMaps that distributions such as OpenShift add to the volume of admission. They
// are not copied.
func isDistributionConfig(s corev1.VolumeProjection) bool {
	return s.ConfigMap != nil && s.ConfigMap.Name != RootCAConfigMap
}

func projectsToken(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }

// pointToServer adds the variables that the container does not set itself.
func pointToServer(c *corev1.Container, server *mirror.APIServer) {
	values := map[string]string{envAPIServerHost: server.Host, envAPIServerPort: server.Port}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: values[name]})
		}
	}
}
