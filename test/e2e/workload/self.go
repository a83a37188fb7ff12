package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// namespaceFile contains the namespace of the Pod, next to its token.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// readInterval is the interval between reads, and readTimeout is the timeout of one.
const readInterval, readTimeout = 2 * time.Second, 10 * time.Second

// read is what the program prints about one read of its own Pod.
type read struct {
	At time.Time `json:"at"`
	// Server is the address of the API server.
	Server string `json:"server"`
	// UID and Node are those of the Pod.
	UID  string `json:"uid,omitempty"`
	Node string `json:"node,omitempty"`
	// Issued and Expires are the times in the token that the request had.
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	Error   string    `json:"error,omitempty"`
}

// readSelf reads the Pod that the variable NAME names, as a program that uses client-go in its cluster. It repeats this, and
// prints a line for each read.
func readSelf() error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return err
	}
	var token string
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			return next.RoundTrip(r)
		})
	})
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return err
	}
	for range time.Tick(readInterval) {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		result := read{Server: config.Host}
		pod, err := client.Pods(string(namespace)).Get(ctx, os.Getenv("NAME"), metav1.GetOptions{})
		cancel()
		if err != nil {
			result.Error = err.Error()
		} else {
			result.UID, result.Node = string(pod.UID), pod.Spec.NodeName
		}
		result.At = time.Now().UTC()
		if result.Issued, result.Expires, err = timesOf(token); err != nil {
			return err
		}
		line, err := json.Marshal(result)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, string(line))
	}
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// timesOf returns when a token was issued, and when it expires. It does not verify the token.
func timesOf(token string) (issued, expires time.Time, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return issued, expires, fmt.Errorf("the request had no token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return issued, expires, fmt.Errorf("decode the token: %w", err)
	}
	var claims struct{ Iat, Exp int64 }
	if err := json.Unmarshal(payload, &claims); err != nil {
		return issued, expires, fmt.Errorf("decode the token: %w", err)
	}
	return time.Unix(claims.Iat, 0).UTC(), time.Unix(claims.Exp, 0).UTC(), nil
}
