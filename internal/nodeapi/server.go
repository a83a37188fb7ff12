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
	"github.com/xylem-io/xylem/internal/nodeapi/auth"
	"github.com/xylem-io/xylem/internal/nodeapi/call"
	"github.com/xylem-io/xylem/internal/nodeapi/failure"
	"github.com/xylem-io/xylem/internal/nodeapi/lookup"
	"github.com/xylem-io/xylem/internal/nodeapi/stream"
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
	// State returns the state of a registration's member, or false if this process has none.
	State func(registration string) (fleet.State, bool)
	// Leads reports whether this replica is the leader. Leader returns the leader's name.
	Leads  func() bool
	Leader func(context.Context) (string, error)
	// Authenticator and Authorizer check requests.
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	// Run runs what the Authenticator needs, such as a watch for the CA. It may be nil.
	Run func(context.Context)
	// Certificate returns the serving certificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Limits bounds the number of sessions. A session that transfers no data for IdleTimeout
	// ends.
	Limits      stream.Limits
	IdleTimeout time.Duration
	Clock       clock.WithDelayedExecution
	Log         logr.Logger
}

// Server serves the kubelet API. Add it to the manager as a Runnable.
type Server struct {
	Options
	guard    auth.Guard
	refusals *refusals
	finder   lookup.Finder
	sessions stream.Sessions
}

// New returns a Server. Start serves the API.
func New(o Options) *Server {
	s := &Server{
		Options: o, sessions: stream.Sessions{Limits: o.Limits}, refusals: newRefusals(o.Clock),
		guard: auth.Guard{Authenticator: o.Authenticator, Authorizer: o.Authorizer, Log: o.Log},
	}
	s.finder = lookup.Finder{
		HostID: o.HostID, Host: o.Host, HostLive: o.HostLive, State: o.State, Leads: o.Leads, Leader: o.Leader, Check: s.guard.Check,
	}
	return s
}

// Setup makes a member's Pods reachable until its link ends.
func (s *Server) Setup(link *member.Link) error {
	link.Run(func(ctx context.Context) error {
		s.serve(ctx, &lookup.Upstream{Member: link.Member, Live: link.Live, Streams: link.Streams, Cache: link.Cache})
		return nil
	})
	return nil
}

func (s *Server) serve(ctx context.Context, up *lookup.Upstream) {
	s.finder.Links.Serve(ctx, up)
	stream.Forget(up.Registration)
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
	return s.serveOn(ctx, tcp)
}

func (s *Server) serveOn(ctx context.Context, tcp net.Listener) error {
	if s.Run != nil {
		go s.Run(ctx)
	}
	server := &http.Server{
		Handler:     http.HandlerFunc(s.handle),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, below(c))
		},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: keepAlive, MaxHeaderBytes: headerLimit,
		// Discard errors about malformed connections, because peers could fill the log with them.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	secure := tls.NewListener(limited(tcp, s.Limits.Sessions), &tls.Config{
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

// handle serves one request.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	connection := acceptedOf(r)
	var below net.Conn
	if connection != nil {
		below = connection
	}
	session, r := stream.Begin(r, s.IdleTimeout, s.Clock, below)
	defer session.End()
	v := &visit{ResponseWriter: w, connection: connection, budget: s.refusals.budget(r)}
	answer := session.Writer(v)

	if v.budget.spent() {
		refusedConnections.WithLabelValues(ofPeer).Inc()
		s.refusals.wait(r)
		errTooManyRefusals.Write(answer, false)
		return
	}
	who, failed := s.guard.Authenticate(r)
	if failed != nil {
		failed.Write(answer, false)
		return
	}
	if r.URL.Path == "/healthz" {
		s.health(v, answer, r, who)
		return
	}
	if forResources(r) {
		s.resources(session, v, answer, r, who)
		return
	}
	c, failed := call.Parse(r)
	if failed == nil {
		s.answer(session, v, answer, r, who, c)
		return
	}
	requestsTotal.WithLabelValues(c.Subresource, strconv.Itoa(failed.Code)).Inc()
	failed.Write(answer, c.Streams())
}

// answer serves a parsed call.
func (s *Server) answer(session *stream.Session, v *visit, w *stream.Writer, r *http.Request, who user.Info, c call.Call) {
	started := s.Clock.Now()
	var t lookup.Target
	// Defer Leave, because an aborted stream panics with http.ErrAbortHandler.
	defer func() {
		if t.Up != nil {
			t.Up.Leave()
		}
	}()
	defer func() { s.audit(session, who, c, t, started) }()
	failed := s.finder.Authorize(r.Context(), who, c, &t)
	if failed == nil {
		v.authorize()
		failed = s.finder.Reach(r.Context(), c, &t)
	}
	if failed != nil {
		failed.Write(w, c.Streams())
		return
	}
	s.sessions.Proxy(w, r, c, t)
}

// audit logs who performed which operation, where and for how long. It does not log arguments or
// data.
func (s *Server) audit(session *stream.Session, who user.Info, c call.Call, t lookup.Target, started time.Time) {
	requestsTotal.WithLabelValues(c.Subresource, strconv.Itoa(session.Code())).Inc()
	s.Log.Info("audit", "user", who.GetName(), "verb", c.Subresource, "namespace", c.Pod.Namespace, "pod", c.Pod.Name,
		"container", c.Container, "node", t.Node, "cluster", t.Registration, "code", session.Code(),
		"outcome", session.Outcome(), "duration", s.Clock.Since(started).Round(time.Millisecond).String(), "bytes", session.Bytes())
}

// health serves /healthz to callers that are authorized for it, as on a kubelet.
func (s *Server) health(v *visit, w http.ResponseWriter, r *http.Request, who user.Info) {
	failed := failure.ErrUnauthorized
	if r.Method == http.MethodGet {
		for _, subresource := range []string{"healthz", "proxy"} {
			if failed = s.guard.Check(r.Context(), who, "get", subresource, "", failure.ErrUnauthorized); failed == nil {
				break
			}
		}
	}
	if failed != nil {
		failed.Write(w, false)
		return
	}
	v.authorize()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok")
}
