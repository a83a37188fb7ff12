package access

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxConnectHeaderBytes is the maximum size, in bytes, of the header of a proxy's response.
const maxConnectHeaderBytes = 64 << 10

// DialThroughProxy connects to an address, through the proxy if there is one.
func (w DialSettings) DialThroughProxy(ctx context.Context, network, address string) (net.Conn, error) {
	via, err := w.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil || via == nil {
		if err != nil {
			return nil, fmt.Errorf("read the proxy settings from the manager's environment: %w", err)
		}
		return w.Dial(ctx, network, address)
	}
	conn, err := w.Dial(ctx, network, proxyAddress(via))
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, closeWithError(conn, err)
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	tunnel, err := openProxyTunnel(ctx, conn, via, address)
	if err != nil {
		return nil, closeWithError(conn, fmt.Errorf("connect through proxy %s: %w", via.Host, err))
	}
	return tunnel, tunnel.SetDeadline(time.Time{})
}

// proxyAddress returns the host and port of a proxy. The port defaults to the scheme's port.
func proxyAddress(via *url.URL) string {
	port := via.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[via.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(via.Hostname(), port)
}

func closeWithError(conn net.Conn, err error) error {
	_ = conn.Close() // the caller returns the first error
	return err
}

// openProxyTunnel opens a tunnel to an address through a proxy (HTTP CONNECT).
func openProxyTunnel(ctx context.Context, conn net.Conn, via *url.URL, address string) (net.Conn, error) {
	if via.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	// The buffer contains nothing beyond the response, because in the tunnel the client sends
	// first.
	response, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxConnectHeaderBytes)), request) //nolint:bodyclose // a response to CONNECT has no body
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy responded with %s", response.Status)
	}
	return conn, nil
}
