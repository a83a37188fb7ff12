package nodeapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestParse(t *testing.T) {
	pod := types.NamespacedName{Namespace: "shop", Name: "web-0"}
	long := strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		method, target string
		plain          bool // no upgrade
		want           Call
		code           int
	}{
		"logs": {http.MethodGet, "/containerLogs/shop/web-0/app?follow=true&tailLines=5&insecure=1&stream=Stdout", true,
			Call{SubresourceLog, pod, "app", url.Values{"container": {"app"}, "follow": {"true"}, "tailLines": {"5"}, "stream": {"Stdout"}}}, 0},
		"exec": {http.MethodPost, "/exec/shop/web-0/app?input=1&output=1&tty=1&command=sh&command=-c&command=a%26b", false,
			Call{SubresourceExec, pod, "app", url.Values{"container": {"app"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"false"}, "tty": {"true"}, "command": {"sh", "-c", "a&b"}}}, 0},
		"exec ignores the API server's parameter names": {http.MethodPost, "/exec/shop/web-0/app?stdin=true&container=other", false,
			Call{SubresourceExec, pod, "app", url.Values{"container": {"app"}, "stdin": {"false"}, "stdout": {"false"}, "stderr": {"false"}, "tty": {"false"}, "command": nil}}, 0},
		"attach": {http.MethodPost, "/attach/shop/web-0/app?output=1&error=1&command=x", false,
			Call{SubresourceAttach, pod, "app", url.Values{"container": {"app"}, "stdin": {"false"}, "stdout": {"true"}, "stderr": {"true"}, "tty": {"false"}}}, 0},
		"port-forward":                {http.MethodPost, "/portForward/shop/web-0?port=80,443", false, Call{SubresourcePortForward, pod, "", url.Values{"ports": {"80", "443"}}}, 0},
		"port-forward without a port": {http.MethodPost, "/portForward/shop/web-0", false, Call{SubresourcePortForward, pod, "", url.Values{}}, 0},
		"exec without an upgrade":     {http.MethodPost, "/exec/shop/web-0/app", true, Call{}, http.StatusBadRequest},
		"exec with another method":    {http.MethodPut, "/exec/shop/web-0/app", false, Call{}, http.StatusMethodNotAllowed},
		"exec with GET and a query": {http.MethodGet, "/exec/shop/web-0/app?output=1&command=id", false,
			Call{SubresourceExec, pod, "app", url.Values{"container": {"app"}, "stdin": {"false"}, "stdout": {"true"}, "stderr": {"false"}, "tty": {"false"}, "command": {"id"}}}, 0},
		"exec with GET, from the node proxy":         {http.MethodGet, "/exec/shop/web-0/app", false, Call{}, http.StatusMethodNotAllowed},
		"attach with GET, from the node proxy":       {http.MethodGet, "/attach/shop/web-0/app?", false, Call{}, http.StatusMethodNotAllowed},
		"port-forward with GET, from the node proxy": {http.MethodGet, "/portForward/shop/web-0", false, Call{}, http.StatusMethodNotAllowed},
		"logs with another method":                   {http.MethodPost, "/containerLogs/shop/web-0/app", true, Call{}, http.StatusMethodNotAllowed},
		"the root path":                              {http.MethodGet, "/", true, Call{}, http.StatusNotFound},
		"another kubelet path":                       {http.MethodPost, "/run/shop/web-0/app", false, Call{}, http.StatusNotFound},
		"pods":                                       {http.MethodGet, "/pods", true, Call{}, http.StatusNotFound},
		"a path that is too short":                   {http.MethodPost, "/exec/shop/web-0", false, Call{}, http.StatusNotFound},
		"a path that is too long":                    {http.MethodPost, "/exec/shop/web-0/app/more", false, Call{}, http.StatusNotFound},
		"a path with a UID":                          {http.MethodPost, "/exec/shop/web-0/uid/app", false, Call{}, http.StatusNotFound},
		"a trailing slash":                           {http.MethodGet, "/containerLogs/shop/web-0/app/", true, Call{}, http.StatusNotFound},
		"an empty segment":                           {http.MethodGet, "//containerLogs/shop/web-0/app", true, Call{}, http.StatusNotFound},
		"dots in the Pod's name":                     {http.MethodGet, "/containerLogs/shop/../app", true, Call{}, http.StatusBadRequest},
		"dots in the namespace":                      {http.MethodGet, "/containerLogs/../web-0/app", true, Call{}, http.StatusBadRequest},
		"an encoded slash":                           {http.MethodGet, "/containerLogs/shop/web-0%2f..%2fsecrets/app", true, Call{}, http.StatusNotFound},
		"encoded dots":                               {http.MethodGet, "/containerLogs/shop/%2e%2e/app", true, Call{}, http.StatusNotFound},
		"a question mark":                            {http.MethodGet, "/containerLogs/shop/web-0%3fx/app", true, Call{}, http.StatusNotFound},
		"a line break":                               {http.MethodGet, "/containerLogs/shop/web-0%0d%0ax/app", true, Call{}, http.StatusNotFound},
		"an upper-case letter in the namespace":      {http.MethodGet, "/containerLogs/Shop/web-0/app", true, Call{}, http.StatusBadRequest},
		"a long container name":                      {http.MethodGet, "/containerLogs/shop/web-0/" + long, true, Call{}, http.StatusBadRequest},
		"an invalid query":                           {http.MethodGet, "/containerLogs/shop/web-0/app?a=%zz", true, Call{}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, "https://10.0.0.1:10250"+tc.target, nil)
			if !tc.plain {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "SPDY/3.1")
			}
			got, failed := ParseCall(r)
			code := 0
			if failed != nil {
				code = failed.Code
			}
			if code != tc.code {
				t.Fatalf("code %d (%v), want %d", code, failed, tc.code)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Call{})); failed == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The caller's credentials and identity do not reach the member.
func TestHeadersOmitCredentials(t *testing.T) {
	from := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"k"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io.c2VjcmV0, v5.channel.k8s.io", "v4.channel.k8s.io"},
		"Authorization":          {"Bearer secret"}, "Cookie": {"a=b"}, "Impersonate-User": {"admin"}, "X-Remote-User": {"admin"},
		"X-Forwarded-For": {"10.1.2.3"}, "X-Stream-Protocol-Version": {"v5.channel.k8s.io"},
	}
	want := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"k"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Protocol": {"v5.channel.k8s.io", "v4.channel.k8s.io"}, "X-Stream-Protocol-Version": {"v5.channel.k8s.io"},
		"Accept": {"application/json, */*"},
	}
	if diff := cmp.Diff(want, Call{Subresource: SubresourceExec}.ForwardedHeaders(from)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(http.Header{"Accept": {"application/json, */*"}}, Call{Subresource: SubresourceLog}.ForwardedHeaders(from)); diff != "" {
		t.Error(diff)
	}
}
