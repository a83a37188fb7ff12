package nodeapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member"
)

const (
	// headerTimeout bounds the TLS handshake, and then the time until the request header is read.
	// A slower peer would occupy a connection without making a request.
	headerTimeout = 10 * time.Second
	// keepAlive is how long an idle connection stays open between requests.
	keepAlive = 90 * time.Second
	// headerLimit is the maximum size of a request header in bytes. An exec request has its command
	// in the URL.
	headerLimit = 256 << 10
	// shutdownTimeout bounds the graceful shutdown of the server.
	shutdownTimeout = 5 * time.Second
)

// Options configures a Server.
type Options struct {
	// Address is the address to listen on.
	Address string
	// HostID is the host's cluster ID.
	HostID string
	// Host is the host's cache of Nodes. HostLive bypasses it.
	Host, HostLive client.Reader
	// MemberState returns the state of a registration's member, or false if this process has none.
	MemberState func(registration string) (fleet.State, bool)
	// IsLeader reports whether this replica is the leader. Leader returns the leader's name.
	IsLeader   func() bool
	LeaderName func(context.Context) (string, error)
	// Authenticator and Authorizer check requests.
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	// RunAuthenticator runs what the Authenticator needs, such as a watch for the CA. It may be nil.
	RunAuthenticator func(context.Context)
	// Certificate returns the serving certificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Limits bounds the number of sessions. A session that transfers no data for IdleTimeout
	// ends.
	Limits      SessionLimits
	IdleTimeout time.Duration
	Clock       clock.WithDelayedExecution
	Log         logr.Logger
}

// Server serves the kubelet API. Add it to the manager as a Runnable.
type Server struct {
	Options
	guard    Guard
	refusals *refusalCounter
	finder   Finder
	sessions Sessions
}

// New returns a Server. Start serves the API.
func New(o Options) *Server {
	s := &Server{
		Options: o, sessions: Sessions{Limits: o.Limits}, refusals: newRefusalCounter(o.Clock),
		guard: Guard{Authenticator: o.Authenticator, Authorizer: o.Authorizer, Log: o.Log},
	}
	s.finder = Finder{
		HostID: o.HostID, Host: o.Host, HostLive: o.HostLive, MemberState: o.MemberState, IsLeader: o.IsLeader, LeaderName: o.LeaderName, CheckNodeAccess: s.guard.CheckNodeAccess,
	}
	return s
}

// SetupWithLink makes a member's Pods reachable until its link ends.
func (s *Server) SetupWithLink(link *member.Link) error {
	link.AddRunnable(func(ctx context.Context) error {
		s.serveMember(ctx, &Upstream{Member: link.Member, Live: link.Live, Streams: link.Streams, Cache: link.Cache})
		return nil
	})
	return nil
}

func (s *Server) serveMember(ctx context.Context, up *Upstream) {
	s.finder.Links.ServeMember(ctx, up)
	ForgetMemberMetrics(up.Registration)
}

// NeedLeaderElection returns false. A Node gets a new leader's address only after the election.
// Until then, another replica can respond to callers with the leader's name.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves the API until the context ends.
func (s *Server) Start(ctx context.Context) error {
	tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for the host's API server (flag --node-api-bind-address): %w", err)
	}
	return s.serveListener(ctx, tcp)
}

func (s *Server) serveListener(ctx context.Context, tcp net.Listener) error {
	if s.RunAuthenticator != nil {
		go s.RunAuthenticator(ctx)
	}
	server := &http.Server{
		Handler:     http.HandlerFunc(s.handleRequest),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, connectionBelowTLS(c))
		},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: keepAlive, MaxHeaderBytes: headerLimit,
		// Discard errors about malformed connections, because peers could fill the log with them.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	secure := tls.NewListener(limitConnections(tcp, s.Limits.Sessions), &tls.Config{
		GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12,
		// The authenticator verifies client certificates against the current CA.
		ClientAuth: tls.RequestClientCert,
		// Disable HTTP/2, because its streams cannot be upgraded, and clients could exhaust the
		// server with resets.
		NextProtos: []string{"http/1.1"},
	})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(secure) }()
	s.Log.Info("serving the node API", "address", tcp.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve the node API: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		_ = server.Close() // close the streams that are still open
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the node API: %w", err)
	}
	return nil
}

// handleRequest serves one request.
func (s *Server) handleRequest(w http.ResponseWriter, r *http.Request) {
	connection := connectionOfRequest(r)
	var below net.Conn
	if connection != nil {
		below = connection
	}
	session, r := BeginSession(r, s.IdleTimeout, s.Clock, below)
	defer session.EndSession()
	v := &guardedResponse{ResponseWriter: w, connection: connection, budget: s.refusals.budgetOfRequest(r)}
	answer := session.WrapWriter(v)

	if v.budget.isExhausted() {
		refusedConnections.WithLabelValues(limitPerPeer).Inc()
		s.refusals.delayResponse(r)
		errTooManyRefusals.WriteResponse(answer, false)
		return
	}
	who, failed := s.guard.AuthenticateRequest(r)
	if failed != nil {
		failed.WriteResponse(answer, false)
		return
	}
	if r.URL.Path == "/healthz" {
		s.serveHealth(v, answer, r, who)
		return
	}
	if isMetricsRequest(r) {
		s.serveResourceMetrics(session, v, answer, r, who)
		return
	}
	c, failed := ParseCall(r)
	if failed == nil {
		s.serveCall(session, v, answer, r, who, c)
		return
	}
	requestsTotal.WithLabelValues(c.Subresource, strconv.Itoa(failed.Code)).Inc()
	failed.WriteResponse(answer, c.NeedsStream())
}

// serveCall serves a parsed call.
func (s *Server) serveCall(session *Session, v *guardedResponse, w *Writer, r *http.Request, who user.Info, c Call) {
	started := s.Clock.Now()
	var t Target
	// Defer EndRequest, because an aborted stream panics with http.ErrAbortHandler.
	defer func() {
		if t.Upstream != nil {
			t.Upstream.EndRequest()
		}
	}()
	defer func() { s.auditCall(session, who, c, t, started) }()
	failed := s.finder.AuthorizeCall(r.Context(), who, c, &t)
	if failed == nil {
		v.markAuthorized()
		failed = s.finder.FindLeaf(r.Context(), c, &t)
	}
	if failed != nil {
		failed.WriteResponse(w, c.NeedsStream())
		return
	}
	s.sessions.ProxyCall(w, r, c, t)
}

// auditCall logs who performed which operation, where and for how long. It does not log arguments or
// data.
func (s *Server) auditCall(session *Session, who user.Info, c Call, t Target, started time.Time) {
	requestsTotal.WithLabelValues(c.Subresource, strconv.Itoa(session.StatusCode())).Inc()
	s.Log.Info("audit", "user", who.GetName(), "verb", c.Subresource, "namespace", c.Pod.Namespace, "pod", c.Pod.Name,
		"container", c.Container, "node", t.Node, "cluster", t.Registration, "code", session.StatusCode(),
		"outcome", session.AuditOutcome(), "duration", s.Clock.Since(started).Round(time.Millisecond).String(), "bytes", session.ReceivedBytes())
}

// serveHealth serves /healthz to callers that are authorized for it, as on a kubelet.
func (s *Server) serveHealth(v *guardedResponse, w http.ResponseWriter, r *http.Request, who user.Info) {
	failed := ErrUnauthorized
	if r.Method == http.MethodGet {
		for _, subresource := range []string{"healthz", "proxy"} {
			if failed = s.guard.CheckNodeAccess(r.Context(), who, "get", subresource, "", ErrUnauthorized); failed == nil {
				break
			}
		}
	}
	if failed != nil {
		failed.WriteResponse(w, false)
		return
	}
	v.markAuthorized()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok")
}
