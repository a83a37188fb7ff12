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
)

const (
	// setupTimeout bounds everything until a member begins to answer; users wait for it.
	setupTimeout = 25 * time.Second
	// headerTimeout bounds the TLS handshake and the request's header, each: who is slower
	// than this holds connections and wants nothing.
	headerTimeout = 10 * time.Second
	// keepAlive is how long a connection without a request stays.
	keepAlive = 90 * time.Second
	// headerLimit in bytes of a request's header. Commands are in it.
	headerLimit = 256 << 10
	// shutdownTimeout bounds the end of the server.
	shutdownTimeout = 5 * time.Second
)

// Options of the endpoint.
type Options struct {
	// Address to listen on.
	Address string
	// HostID is the host's cluster ID.
	HostID string
	// Host is the host's cache of Nodes; HostLive bypasses it.
	Host, HostLive client.Reader
	// State of a registration's member; false if this process knows nothing of it.
	State func(registration string) (fleet.State, bool)
	// Leads reports whether this replica leads; Leader names the one that does.
	Leads  func() bool
	Leader func(context.Context) (string, error)
	// Authenticator and Authorizer of requests.
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	// Run is what the authenticator needs to run; may be nil.
	Run func(context.Context)
	// Certificate to serve with.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Limits of sessions; IdleTimeout ends those on which nothing passes.
	Limits      Limits
	IdleTimeout time.Duration
	Clock       clock.WithDelayedExecution
	Log         logr.Logger
}

// Server is the endpoint. Add it to the manager as a Runnable.
type Server struct {
	Options
	links    links
	sessions sessions
}

// New makes an endpoint; Start serves it.
func New(o Options) *Server { return &Server{Options: o, sessions: sessions{limits: o.Limits}} }

// NeedLeaderElection is false: a Node has the leader's address only after it leads, and
// until then another replica says where to ask.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
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
		// What peers do wrong on the way to a request is no news, and would fill the log.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	secure := tls.NewListener(limited(tcp, s.Limits.Sessions), &tls.Config{
		GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12,
		// The authenticator verifies certificates, by the CA of the time.
		ClientAuth: tls.RequestClientCert,
		// No HTTP/2: its streams are not upgraded, and its resets let clients exhaust servers.
		NextProtos: []string{"http/1.1"},
	})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(secure) }()
	s.Log.Info("serving the Pods of virtual nodes", "address", tcp.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve the Pods of virtual nodes: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		_ = server.Close() // streams that did not end by themselves
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the Pods of virtual nodes: %w", err)
	}
	return nil
}

// handle one request.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	one := &session{
		ctx: ctx, cancel: cancel, clock: s.Clock, idle: s.IdleTimeout,
		setup: s.Clock.AfterFunc(setupTimeout, func() { cancel(errSetupTimeout) }),
	}
	defer one.end()
	connection := acceptedOf(r)
	if connection != nil {
		one.below = connection
	}
	r = r.WithContext(ctx)
	answer := &writer{ResponseWriter: w, session: one}

	who, failed := s.authenticate(r)
	if failed != nil {
		failed.write(answer, false)
		return
	}
	if connection != nil {
		connection.identified()
	}
	if r.URL.Path == "/healthz" {
		s.health(answer, r, who)
		return
	}
	c, failed := parse(r)
	if failed == nil {
		s.answer(answer, r, who, c)
		return
	}
	requestsTotal.WithLabelValues(c.subresource, strconv.Itoa(failed.code)).Inc()
	failed.write(answer, c.streams())
}

// answer a call.
func (s *Server) answer(w *writer, r *http.Request, who user.Info, c call) {
	started := s.Clock.Now()
	var t target
	// Deferred, since a stream that breaks off ends in a panic (http.ErrAbortHandler).
	defer func() {
		if t.up != nil {
			t.up.sessions.Done()
		}
	}()
	defer func() { s.audit(w, who, c, t, started) }()
	if failed := s.reach(r, who, c, &t); failed != nil {
		failed.write(w, c.streams())
		return
	}
	s.proxy(w, r, c, t)
}

// audit leaves a line in the log: who did what, where, for how long. Arguments and data are
// not in it.
func (s *Server) audit(w *writer, who user.Info, c call, t target, started time.Time) {
	requestsTotal.WithLabelValues(c.subresource, strconv.Itoa(w.session.code)).Inc()
	s.Log.Info("audit", "user", who.GetName(), "verb", c.subresource, "namespace", c.pod.Namespace, "pod", c.pod.Name,
		"container", c.container, "node", t.node, "cluster", t.registration, "code", w.session.code,
		"outcome", w.session.outcome(), "duration", s.Clock.Since(started).Round(time.Millisecond).String(), "bytes", w.session.bytes.Load())
}

// health tells who may ask a kubelet the same that the endpoint serves.
func (s *Server) health(w http.ResponseWriter, r *http.Request, who user.Info) {
	if r.Method != http.MethodGet || !s.may(r.Context(), who, "get", "healthz", "") && !s.may(r.Context(), who, "get", "proxy", "") {
		errUnauthorized.write(w, false)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok")
}
